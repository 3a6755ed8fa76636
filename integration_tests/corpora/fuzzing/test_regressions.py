"""What random programs and the table of facts have found: each difference from plain Python keeps a
test of its own."""

from __future__ import annotations

import builtins
import collections
import copy
import functools
import itertools
import math
import random
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from integration_tests.support.oracle import assert_same

FOUND: dict[str, Callable[[Tensor, dict[str, Any]], Any]] = {}


def found(fn: Callable[[Tensor, dict[str, Any]], Any]) -> Callable[[Tensor, dict[str, Any]], Any]:
    FOUND[fn.__name__.replace("_", " ")] = fn
    return fn


@found
def a_reversed_range_goes_on_after_a_break(x: Tensor, d: dict[str, Any]) -> Any:
    seen = []
    for i in reversed(range(1, 7, 2)):
        stator.graph_break()
        seen.append(i)
    return seen


@found
def a_shuffle_draws_what_it_draws_plainly(x: Tensor, d: dict[str, Any]) -> Any:
    items = [3, 1, 2, 7, 5]
    random.shuffle(items)
    return items, random.random()


@found
def a_new_dict_that_grows_under_its_loop_raises(x: Tensor, d: dict[str, Any]) -> Any:
    new = {"a": 1}
    for _ in new:
        new |= {"z": 1}
    return new


@found
def a_dict_from_outside_that_grows_under_its_loop_raises(x: Tensor, d: dict[str, Any]) -> Any:
    for key in d:
        d[key + "z"] = 1
    return d


@found
def a_set_that_grows_under_its_loop_raises(x: Tensor, d: dict[str, Any]) -> Any:
    new = {7}
    for _ in new:
        new.add(9)
    return new


@found
def a_deque_that_grows_under_its_loop_raises(x: Tensor, d: dict[str, Any]) -> Any:
    new = collections.deque([1])
    for _ in new:
        stator.graph_break()
        new.append(2)
    return new


@found
def an_ordered_dict_that_shrinks_under_its_loop_raises(x: Tensor, d: dict[str, Any]) -> Any:
    new = collections.OrderedDict(a=1, b=2)
    for key in new:
        del new[key]
        stator.graph_break()
    return new


@found
def a_deque_may_be_reversed_under_its_loop(x: Tensor, d: dict[str, Any]) -> Any:
    items = d["deque"]
    seen = []
    for item in items:
        stator.graph_break()
        seen.append(item)
        items.reverse()
        items[0] = 5
    return seen


@found
def values_of_a_dict_may_change_under_its_loop(x: Tensor, d: dict[str, Any]) -> Any:
    for key in d:
        d[key] = x + 1
        stator.graph_break()
    return d


@found
def a_dict_that_was_changed_before_its_loop(x: Tensor, d: dict[str, Any]) -> Any:
    d["more"] = 1
    d.pop("a")
    seen = []
    for item in d.items():
        stator.graph_break()
        seen.append(item)
    return seen


@found
def an_iterator_over_a_changed_dict_escapes_twice(x: Tensor, d: dict[str, Any]) -> Any:
    d["more"] = 1
    keys = iter(d.keys())
    d["list"].append(keys)
    return next(keys), d["list"][-1] is keys, d["list"].pop() is keys, list(keys)


@found
def a_keyword_only_default_across_a_break(x: Tensor, d: dict[str, Any]) -> Any:
    def inner(y: Tensor, *, k: Any = stator.graph_break()) -> Any:  # type: ignore[func-returns-value]  # noqa: B008
        return y, k

    return inner(x)


@found
def an_error_text_names_the_module_of_a_class_written_in_c(x: Tensor, d: dict[str, Any]) -> Any:
    return x, collections.deque([1]).items  # type: ignore[attr-defined]


class Thing:
    """Weak references refer to it."""


THINGS = (Thing(), Thing())
REFERENCES = (weakref.ref(THINGS[0]), weakref.ref(THINGS[0], repr))


@found
def an_object_has_one_weak_reference_without_a_callback(x: Tensor, d: dict[str, Any]) -> Any:
    first, second = map(weakref.ref, THINGS)
    return x + 1, [
        made is known
        for made in (first, second)
        for known in (*REFERENCES, first, weakref.ref(THINGS[1]))
    ]


@found
def a_native_look_at_the_frame_finds_what_holds_a_generator(x: Tensor, d: dict[str, Any]) -> Any:
    items = enumerate(x * i for i in range(3))
    name = "items"
    first = next(items)
    return first, sorted(sys._getframe().f_locals), eval(name) is items, next(items)


@found
def identities_as_keys_across_a_break(x: Tensor, d: dict[str, Any]) -> Any:
    known, other, seen = [x], [x], {id(d)}
    memo = {id(known): "known", id(x): "x"}
    seen.add(id(known))
    stator.graph_break()
    found = (
        [memo.get(id(thing)) for thing in (known, other, x, d)],
        [id(thing) in seen for thing in (known, other, d)],
    )
    memo[id(known)] = "again"
    memo[id(other)] = "new"
    stator.graph_break()
    return found, list(memo.values()), memo[id(known)], memo.pop(id(other)), len(memo)


@found
def a_deep_copy_keeps_what_is_shared(x: Tensor, d: dict[str, Any]) -> Any:
    whole: dict[str, Any] = {"one": [x, x], "two": {"x": x.detach(), "d": d}}
    whole["one again"], whole["itself"] = whole["one"], whole
    copied = copy.deepcopy(whole)
    copied["one"].append(1)
    module = torch.nn.ModuleList([torch.nn.Linear(2, 2, bias=False)] * 2)
    twin = copy.deepcopy(module)
    return (
        copied,
        whole,
        copied["one"] is copied["one again"],
        copied["itself"] is copied,
        twin[0] is twin[1],
    )


@found
def a_write_that_a_break_takes_back_after_tensors_were_joined(x: Tensor, d: dict[str, Any]) -> Any:
    def noted(value: Tensor) -> int:
        value.add_(1)
        stator.graph_break()
        return 0

    joined = torch.stack([x, x + 1])
    return sorted([x], key=noted), torch.cat([joined[0], x]), joined


class Chains(itertools.chain[Any]):
    """A subclass of an iterator written in C."""


@found
def iterators_of_itertools_leave_the_region_not_begun(x: Tensor, d: dict[str, Any]) -> Any:
    chained = itertools.chain.from_iterable([[1], [2]]), Chains.from_iterable([[x], d])
    drained = (
        itertools.product(iter([1, 2]), "ab"),
        itertools.combinations((i for i in range(3)), 2),
    )
    return x + 1, [type(made).__name__ for made in chained], chained, drained


@found
def a_keyword_is_repeated_after_a_break(x: Tensor, d: dict[str, Any]) -> Any:
    def named(**more: Any) -> Any:
        return more

    def loud(value: Any) -> Any:
        stator.graph_break()
        return value

    return named(a=x, **loud({"b": 1}), **loud(d))


def a_view_that_autograd_refuses(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x.clone()
    with torch.no_grad():
        view = y[:2]
    y.mul_(torch.ones(3, requires_grad=True))
    return y, view


@found
def a_view_that_autograd_refuses_is_used(x: Tensor, d: dict[str, Any]) -> Any:
    y, view = a_view_that_autograd_refuses(x)
    d["b"] = y
    return view + 1


@found
def a_view_that_autograd_refuses_tells_no_history(x: Tensor, d: dict[str, Any]) -> Any:
    _, view = a_view_that_autograd_refuses(x)
    try:
        return view.grad_fn
    except RuntimeError as error:
        d["b"] = str(error)
    return view.is_leaf


class Shifty(int):
    def __index__(self) -> int:
        return 1


@found
def an_int_of_a_subclass_is_its_own_index(x: Tensor, d: dict[str, Any]) -> Any:
    return range(Shifty(3)), "abcd"[Shifty(2)], x[: Shifty(2)]


@found
def a_field_of_what_only_the_interpreter_makes(x: Tensor, d: dict[str, Any]) -> Any:
    return x + sys.flags.optimize, sys.version_info.major, sys.hash_info.width


@found
def variables_named_like_those_of_generated_code(x: Tensor, d: dict[str, Any]) -> Any:
    m0, v0, g, r0_0, before = 5, 6, 7, 8, 9
    new = {1, 2}
    copied = new.copy()
    stator.graph_break()
    y = x + 1
    second = new.copy()
    stator.graph_break()
    return m0, v0, g, r0_0, before, copied, second, y


@found
def a_generator_writes_to_variables_when_the_last_of_them_lets_it_go(
    x: Tensor, d: dict[str, Any]
) -> Any:
    part: Any = None
    number = 1

    def cleaning() -> Any:
        nonlocal part, number
        try:
            yield x
        finally:
            number, part = number + 1, number

    part = cleaning()
    found = [next(part)]
    part = 5
    found += part, number, x * number
    part = cleaning()
    found.append(next(part))
    del part
    return found, part, number  # noqa: F821  # what was let go of has bound it again


def make_args() -> tuple[Tensor, dict[str, Any]]:
    return torch.arange(3.0), {"a": 1, "deque": collections.deque([1, 2, 3]), "list": [1]}


@pytest.mark.parametrize("options", [{}, {"break_everywhere": 5}], ids=["as it is", "every fifth"])
@pytest.mark.parametrize("title", FOUND)
def test_found_by_random_programs(title: str, options: dict[str, Any]) -> None:
    fn = FOUND[title]
    assert_same(fn, stator.compile(fn, backend="eager", options=dict(options)), make_args)


def test_looking_for_the_guard_that_failed_consumes_nothing() -> None:
    def unpacked(x: Tensor, items: Any) -> Any:
        a, b = items
        return x + 1, a, b

    compiled = stator.compile(unpacked, backend="eager")
    for make in (
        lambda: {"a": 1, "b": 2},
        lambda: (i for i in range(2)),
        lambda: [1, 2],
        lambda: iter("xy"),
    ):
        assert compiled(torch.ones(1), make()) == unpacked(torch.ones(1), make())


def test_a_generator_is_carried_in_the_cell_of_a_parameter() -> None:
    def doubled(steps: Any) -> Any:
        return [step for step in (lambda: (step * 2 for step in steps))()]  # noqa: C416, PLC3002

    def fn(x: Tensor) -> Any:
        return doubled(x + i for i in range(3))

    assert_same(
        fn,
        stator.compile(fn, backend="eager", options={"break_everywhere": "operations"}),
        make_args=lambda: (torch.ones(2),),
    )


class Plug:
    go: Any

    def __init__(self, factor: int) -> None:
        self.factor = factor


METHODS = (
    lambda self, x: x * self.factor,
    types.MethodType(lambda self, x: x - self.factor, Plug(5)),
    staticmethod(lambda x: x * 9),
    classmethod(lambda cls, x: x + len(cls.__name__)),
    torch.sin,
    lambda self, x: x + self.factor,
)


@pytest.mark.parametrize("mode", [False, True, "operations"])
def test_a_method_that_a_step_calls_is_known_to_be_one(mode: Any) -> None:
    def fn(x: Tensor, plug: Plug) -> Any:
        return plug.go(x)

    compiled = stator.compile(fn, backend="eager", options={"break_everywhere": mode})
    for Plug.go in METHODS:
        assert torch.equal(compiled(torch.ones(2), Plug(3)), fn(torch.ones(2), Plug(3)))


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_a_mode_that_an_error_leaves_is_left_on_a_line_of_the_program(mode: Any) -> None:
    def f(x: Tensor) -> None:
        try:
            with mode():
                x.tag = x + 1  # type: ignore[attr-defined]
                raise KeyError(x)
        finally:
            x.more = torch.rand(x.shape)  # type: ignore[attr-defined]

    compiled = stator.compile(f, backend="eager", options={"check": True})
    assert_same(f, compiled, lambda: (torch.ones(2),))


WRITES: dict[str, Callable[[Tensor], Any]] = {
    "itself": lambda t: t.mul_(2),
    "a part": lambda t: t[0].mul_(2),
    "a view": lambda t: t.view(-1).mul_(2),
    "its data": lambda t: t.detach().mul_(2),
}


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("write", WRITES)
def test_a_graph_that_raises_leaves_the_versions_of_what_it_wrote_to(
    write: str, grad: bool
) -> None:
    """Fake tensors multiply a float matrix by a double one, real ones do not: the graph raises
    after its writes."""

    def f(x: Tensor) -> tuple[Tensor, int]:
        t = x + 1
        kept = t.exp()
        stator.graph_break()
        WRITES[write](t)
        try:
            t.add_(torch.randn(2, 2, dtype=torch.double) @ torch.nn.functional.dropout(x, 0.5))
        except RuntimeError:
            t.clamp_(min=0)
        stator.graph_break()
        return kept.sum() + t, t._version

    compiled = stator.compile(f, backend="eager")
    assert_same(f, compiled, lambda: (torch.ones(2, 2, requires_grad=grad),))
    assert compiled.report.failures


class Unchanged(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def test_an_attribute_of_a_tensor_is_found_in_every_way() -> None:
    def labelled() -> tuple[Tensor]:
        x: Any = torch.ones(2)
        x.label = "kept"
        return (x,)

    def f(x: Any) -> Any:
        y: Any = x * 2
        y.made = 3
        with Unchanged():
            under = x.label, y.made, hasattr(y, "label")
        return under, object.__getattribute__(x, "label"), y.__getattribute__("made"), y

    assert_same(f, stator.compile(f, backend="eager", fullgraph=True), labelled)


@pytest.mark.parametrize(
    "before", ["pass", "g.close()", "next(g)", "list(g)", "g.close(); stator.graph_break()"]
)
def test_what_is_thrown_into_a_generator_keeps_its_traceback(before: str) -> None:
    """Also where it has ended, and a handler of another class lets it through."""
    text = f"""
def thrown(x):
    g = (value for value in (1, 2))
    try:
        {before}
        g.throw(ValueError(x.shape[0]))
    except (KeyError, IndexError):
        pass

def main(x):
    return thrown(x + 1)
"""
    namespace: dict[str, Any] = {"stator": stator}
    exec(compile(text, __file__, "exec"), namespace)
    main = namespace["main"]
    assert_same(main, stator.compile(main, backend="eager"), lambda: (torch.ones(2),), calls=2)


def test_a_transpose_that_nobody_uses_is_warned_of() -> None:
    def fn(x: Tensor) -> Tensor:
        x[0].T  # noqa: B018
        return x + 1

    torch.set_warn_always(True)
    try:
        assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2, 2),), calls=2)
    finally:
        torch.set_warn_always(False)


def _laplace(x: Tensor) -> Tensor:
    return torch.distributions.Laplace(x, x.exp()).rsample()


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.new(x.size()).zero_() + x,
        lambda x: x.new(x.sum().size()).zero_(),
        lambda x: x.new(torch.Size([2, x.shape[0]])).zero_(),
        lambda x: x.new((1, 2)),
        lambda x: x.new(*x.shape).zero_(),
        _laplace,
    ],
)
def test_a_size_that_new_is_given_is_a_shape_and_a_tuple_is_content(
    fn: Callable[[Tensor], Tensor],
) -> None:
    sizes = itertools.cycle([2, 3, 4])
    assert_same(
        fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(next(sizes), 4),), calls=3
    )


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: (x.to_sparse() * 2).to_dense(),
        lambda x: (x.to_sparse() + x.to_sparse()).is_sparse,
        lambda x: torch.sparse.mm(x.to_sparse(), x),
    ],
)
def test_sparse_tensors_stay_sparse_where_sizes_change(fn: Callable[[Tensor], Any]) -> None:
    sizes = itertools.cycle([2, 3, 4])
    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.eye(next(sizes)),), calls=3)


def test_sparse_inputs_stay_sparse_where_sizes_change() -> None:
    def fn(x: Tensor) -> Tensor:
        return (x * 2).to_dense()

    compiled = stator.compile(fn, backend="eager")
    for size in (2, 3, 4):
        assert torch.equal(compiled(torch.eye(size).to_sparse()), torch.eye(size) * 2)


def test_an_int_that_python_does_not_write_down_is_named_where_a_guard_fails() -> None:
    def fn(n: int, x: Tensor) -> tuple[int, Tensor]:
        return pow(n, 2, 7), x + 1

    compiled = stator.compile(fn, backend="eager")
    for n in (3, 10**5000, 10**5000 + 1):
        assert compiled(n, torch.ones(2))[0] == pow(n, 2, 7)
    assert "bits>" in str(compiled.report)


def test_shapes_are_broadcast_without_a_break() -> None:
    broadcast: Any = torch.broadcast_shapes  # which has no types

    def fn(x: Tensor, y: Tensor) -> Any:
        shape = broadcast(x.shape, (1,), y.shape)
        return x.expand(shape) * y, shape, type(shape)

    sizes = itertools.cycle([2, 3, 4, 1, 5])
    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    assert_same(fn, compiled, lambda: (torch.ones(next(sizes), 4), torch.ones(1, 4)), calls=5)
    assert compiled.report.graph_count == 3  # first, symbolic, and 1


def test_an_averaged_model_is_compiled() -> None:
    def fn(model: Any, x: Tensor) -> Any:
        return model(x)

    averaged: Any = torch.optim.swa_utils.AveragedModel(torch.nn.Linear(3, 3))
    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    assert_same(fn, compiled, lambda: (averaged, torch.ones(2, 3)))


@pytest.mark.parametrize("name", ["sum", "len", "max", "sorted", "tuple", "open"])
def test_builtins_that_are_replaced(name: str) -> None:
    """In the region, and around it: nothing of ours can run while they are."""
    use = eval(f"lambda x: ({name}((1, 2)), x + 1)")

    def inside(x: Tensor) -> Any:
        own = getattr(builtins, name)
        setattr(builtins, name, lambda *args: 42)
        found = use(x)
        setattr(builtins, name, own)
        return found, x + 2

    assert_same(inside, stator.compile(inside, backend="eager"), lambda: (torch.ones(2),))
    compiled = stator.compile(use, backend="eager")
    for _ in range(2):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(builtins, name, lambda *args: 42)
            found = compiled(torch.ones(2))
        assert found[0] == 42


@pytest.mark.parametrize("breaks", [False, True])
@pytest.mark.parametrize("ends", [True, False])
def test_a_set_takes_numbers_that_nobody_looked_at(breaks: bool, ends: bool) -> None:
    def fn(x: Tensor, numbers: set[float]) -> Any:
        found = x.sum(0).tolist()
        if breaks:
            stator.graph_break()
        numbers.update(found)
        if ends:
            raise KeyError
        return numbers

    scale = itertools.count()
    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, lambda: (torch.ones(2, 2) * next(scale) + 0.25, {1.0, 2.0}), calls=4)


OTHERS: list[Any] = [(), (1,), (1, 2), (1, 2, 3), [1, 2], [1]]
OTHERS += [
    (torch.zeros(2),),
    (torch.zeros(2), 1, 2),
    (torch.zeros(3), 1, 2),
    (torch.zeros(()), 1, 2),
]


@pytest.mark.parametrize("shape", [(2, 2), (2,), (2, 1)])
@pytest.mark.parametrize(
    "text", ["a == b", "b == a", "tuple(a) == b", "a != b", "a < b", "b in [a]", "a == list(b)"]
)
def test_tuples_of_different_lengths_are_compared_by_their_items_first(
    text: str, shape: tuple[int, ...]
) -> None:
    """Of lists the lengths come first."""
    fn = eval(f"lambda x, b: (lambda a: ({text}, x + 1))(x.max(0))")
    for other in OTHERS:
        assert_same(
            fn, stator.compile(fn, backend="eager"), functools.partial(_shown, shape, other)
        )


def _shown(shape: tuple[int, ...], other: Any) -> Any:
    return torch.zeros(shape), other


NANS = """
float("nan") | (float("nan"),) | (1.5, float("nan")) | frozenset([float("nan")]) | complex("nan") | (complex("nan"), 2)
float("nan") * 2 | math.inf - math.inf | math.nan | (math.nan, 2) | float(math.nan) | 1e999 - 1e999 | -float("nan")
"""


@pytest.mark.parametrize(
    "text", [text for line in NANS.strip().split("\n") for text in line.split(" | ")]
)
def test_each_run_makes_a_nan_of_its_own(text: str) -> None:
    """Containers keep each of them: equal is what is the same object. One that exists, or is in the
    code, is one."""
    make = eval(f"lambda: {text}")

    def fn(x: Tensor, kept: dict[Any, int], numbers: set[Any]) -> Any:
        for _ in range(3):
            stator.graph_break()  # so that one entry runs three times
            numbers |= {make(), math.nan}
            kept[make()] = len(kept)
        return x + 1, len(numbers), len(kept)

    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, lambda: (torch.ones(2), {}, {math.nan}), calls=3)


def test_each_look_at_a_gradient_that_no_tensor_gets_warns() -> None:
    def fn(x: Tensor) -> Any:
        y = x * 2
        stator.graph_break()
        for _ in range(3):
            y.grad = y.grad
        return y, y.grad

    torch.set_warn_always(True)
    try:
        assert_same(
            fn,
            stator.compile(fn, backend="eager"),
            lambda: (torch.ones(2, requires_grad=True),),
            calls=3,
        )
    finally:
        torch.set_warn_always(False)
