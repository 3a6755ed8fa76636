"""Tensors around tensors: inputs of the graph as any tensor is, and what is asked of their parts is
a break."""

# mypy: disable-error-code="no-untyped-call,attr-defined,assignment,method-assign,operator,override"
# torch's wrappers have no types.

from __future__ import annotations

import copy
import copyreg
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_map_only
from torch.utils.checkpoint import checkpoint

from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same

Program = Callable[..., Any]
CAPTURED: dict[str, Program] = {}
BROKEN: dict[str, Program] = {}


def captured(fn: Program) -> Program:
    CAPTURED[fn.__name__.replace("_", " ")] = fn
    return fn


def broken(fn: Program) -> Program:
    BROKEN[fn.__name__.replace("_", " ")] = fn
    return fn


class Scaled(torch.Tensor):
    """A tensor and a factor, which `sin` forgets: what it gives is a plain tensor."""

    @staticmethod
    def __new__(cls, inner: Tensor, factor: Any) -> Any:
        made: Any = torch.Tensor._make_wrapper_subclass
        return made(
            cls,
            inner.shape,
            strides=inner.stride(),
            dtype=inner.dtype,
            requires_grad=inner.requires_grad,
        )

    def __init__(self, inner: Tensor, factor: Any) -> None:
        self.inner, self.factor = inner, factor

    def __repr__(self) -> str:
        return f"Scaled({self.inner}, {self.factor})"

    def __tensor_flatten__(self) -> Any:
        return ["inner"], {"factor": self.factor}

    @staticmethod
    def __tensor_unflatten__(parts: Any, context: Any, size: Any, stride: Any) -> Any:
        return Scaled(parts["inner"], context["factor"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        factors = [arg.factor for arg in args if isinstance(arg, Scaled)]
        plain = func(*tree_map_only(Scaled, lambda x: x.inner, args), **(kwargs or {}))
        if func is torch.ops.aten.sin.default:
            return plain * (factors[0] if isinstance(factors[0], float | int) else 1)
        out = tree_map_only(Tensor, lambda x: Scaled(x, factors[0]), plain)
        return return_and_correct_aliasing(func, args, kwargs or {}, out)

    def by_factor(self) -> Any:
        return self * 3

    @property
    def halved(self) -> Any:
        return self / 2


def a_pair(shift: float = 0.0, rows: int = 2) -> Any:
    a = torch.linspace(-1, 1, rows * 3, dtype=torch.float64).reshape(rows, 3) + shift
    return TwoTensor(a, a * 2 + 1)


def make_args() -> tuple[Any, ...]:
    x = a_pair().requires_grad_()
    s = Scaled(torch.linspace(0, 1, 6, dtype=torch.float64).reshape(2, 3), 2.0).requires_grad_()
    return x, s, torch.linspace(1, 2, 3, dtype=torch.float64).requires_grad_()


def without_gradients() -> tuple[Any, ...]:
    """Compilers take the graph; where a wrapper that it gives has gradients, it runs as it is."""
    return tuple(arg.detach() for arg in make_args())


# -- in one graph ----------------------------------------------------------------------------------
@captured
def elementwise(x: Any, s: Any, w: Any) -> Any:
    return (x * w + 1).sin(), s * w, (x.exp() * 2).sum()


@captured
def two_of_a_class(x: Any, s: Any, w: Any) -> Any:
    return x * x + x.detach(), x.mm(x.t()), torch.cat([x, x * w])


@captured
def classes_are_seen(x: Any, s: Any, w: Any) -> Any:
    y = x + 1
    checks = (
        isinstance(x, TwoTensor),
        isinstance(y, Tensor),
        isinstance(x, nn.Parameter),
        isinstance(w, TwoTensor),
    )
    return y, type(x), type(y) is TwoTensor, type(s).__name__, checks, x.__class__


@captured
def shapes_are_seen(x: Any, s: Any, w: Any) -> Any:
    rows, columns = x.shape
    facts = (x.dim(), x.dtype, x.requires_grad, len(s), x.stride(), x.is_leaf, x.numel(), x.device)
    return x.reshape(columns, rows), s.view(-1), x.shape, facts


@captured
def identities(x: Any, s: Any, w: Any) -> Any:
    return x, x, s, [x, w], {"x": x}, x * 1 is x


@captured
def a_plain_result(x: Any, s: Any, w: Any) -> Any:
    return s.sin(), s.sin() + w, type(s.sin())


@captured
def methods_and_properties_of_the_class(x: Any, s: Any, w: Any) -> Any:
    return s.by_factor(), s.halved


@captured
def an_intermediate_written_to(x: Any, s: Any, w: Any) -> Any:
    y = x * 2
    z = y.add_(w)
    y[0] = 3
    return y, z is y, s.clone().mul_(2)


@captured
def an_argument_written_to(x: Any, s: Any, w: Any) -> Any:
    with torch.no_grad():
        x.mul_(2)
        s.add_(1)
        return x, x + w, s * 2


@captured
def views(x: Any, s: Any, w: Any) -> Any:
    y = x.t()
    return y, y[1], x[0] + w, x.unsqueeze(0), s.view(-1)


@captured
def a_view_of_an_intermediate_written_to(x: Any, s: Any, w: Any) -> Any:
    y = x * 1
    y[0].mul_(w)
    return y * 2


@captured
def detached_and_data(x: Any, s: Any, w: Any) -> Any:
    return x.detach() * w, x.data, s.detach().requires_grad


@captured
def under_no_grad(x: Any, s: Any, w: Any) -> Any:
    with torch.no_grad():
        y = x * w
    return y, y.requires_grad, x + y


@captured
def gradients_that_were_there(x: Any, s: Any, w: Any) -> Any:
    return x.grad is None, w * 2


PAIR, KEPT = a_pair(0.5), [a_pair(1.0)]


@captured
def globals_and_containers(x: Any, s: Any, w: Any) -> Any:
    return x * PAIR, KEPT[0] + w


@captured
def rows_in_a_loop(x: Any, s: Any, w: Any) -> Any:
    total = 0
    for row in x:
        total = total + row * w
    return total


@captured
def custom_functions(x: Any, s: Any, w: Any) -> Any:
    return (
        nn.functional.softmax(x, -1),
        nn.functional.linear(x, a_kept_weight),
        x.norm(),
        torch.where(x > 0, x, w),
    )


a_kept_weight = a_pair(rows=3)


# -- one break, or a few ---------------------------------------------------------------------------
@broken
def a_part_is_read(x: Any, s: Any, w: Any) -> Any:
    y = x * w
    return y.a + 1, x.b, s.factor, hasattr(x, "c")


@broken
def a_part_is_read_by_a_method(x: Any, s: Any, w: Any) -> Any:
    return (x * w).get_elem_a() + 1


@broken
def a_part_is_written_to(x: Any, s: Any, w: Any) -> Any:
    with torch.no_grad():
        y = x * 2
        x.a.add_(1)
        y.a.mul_(3)
        return x * w, y


@broken
def made_inside(x: Any, s: Any, w: Any) -> Any:
    y = TwoTensor(w * 2, w.exp())
    z = Scaled(w * 3, 4.0)
    return x * y, z.by_factor(), y


@broken
def attributes_are_set(x: Any, s: Any, w: Any) -> Any:
    y = x * w
    y.label = "kept"
    x.label = "mine"
    return y, y.label, x.label, vars(x)["label"]


@broken
def printed(x: Any, s: Any, w: Any) -> Any:
    return repr(x * w), str(s)


@broken
def in_a_checkpoint(x: Any, s: Any, w: Any) -> Any:
    return checkpoint(lambda a: (a * w).sin(), x, use_reentrant=False)


@broken
def in_a_branch(x: Any, s: Any, w: Any) -> Any:
    return torch.cond(w.sum() > 0, lambda a: a * 2, lambda a: a * 3, (w,)), x * 2


@broken
def data_dependent(x: Any, s: Any, w: Any) -> Any:
    if (x * 2).sum() > 0:
        return x + 1
    return x - 1, x[0, 0].item()


@broken
def copied(x: Any, s: Any, w: Any) -> Any:
    return copy.copy(x.detach()), copy.deepcopy(s.detach()) * w


@broken
def a_stack_of_both(x: Any, s: Any, w: Any) -> Any:
    try:
        return x + s
    except Exception as error:
        return type(error)


@broken
def backward_inside(x: Any, s: Any, w: Any) -> Any:
    y = (x * w).sum()
    y.backward()
    return x.grad, w.grad


ALLOWED = {"uncompiled": "allow"}
"""What computes with wrapper tensors for which gradients arrive runs natively."""


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("title", CAPTURED)
def test_it_is_captured_in_one_graph(title: str, backend: str) -> None:
    compiled = stator.compile(CAPTURED[title], backend=backend, fullgraph=True, options=ALLOWED)
    assert_same(CAPTURED[title], compiled, make_args, calls=3)
    assert len(compiled.report.graphs) == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("title", BROKEN)
def test_break_gives_what_plain_python_gives(title: str, backend: str) -> None:
    assert_same(BROKEN[title], stator.compile(BROKEN[title], backend=backend), make_args, calls=3)


@pytest.mark.parametrize("title", CAPTURED)
def test_it_is_compiled_where_no_gradient_comes_in_for_a_wrapper(title: str) -> None:
    compiled = stator.compile(CAPTURED[title], backend="aot_eager", fullgraph=True)
    assert_same(CAPTURED[title], compiled, without_gradients, calls=3)


# -- parameters ------------------------------------------------------------------------------------
class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(a_pair(rows=3))
        self.register_buffer("shift", a_pair(rows=1))

    def forward(self, x: Any) -> Any:
        assert isinstance(self.weight, nn.Parameter)
        return (nn.functional.linear(x, self.weight) + self.shift).relu(), len(
            list(self.parameters())
        )


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_parameters_and_buffers(backend: str) -> None:
    layer = Layer()

    def f(x: Any) -> Any:
        return layer(x)

    compiled = stator.compile(f, backend=backend, fullgraph=True, options=ALLOWED)
    assert_same(f, compiled, lambda: (torch.ones(2, 3, dtype=torch.float64),), calls=3)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_training_steps(backend: str) -> None:
    def losses(compile: bool) -> list[Any]:
        layer = Layer()
        called = stator.compile(layer, backend=backend) if compile else layer
        optimizer = torch.optim.SGD(layer.parameters(), 0.1)
        found = []
        for step in range(3):
            optimizer.zero_grad()
            loss = called(torch.full((2, 3), step + 1.0, dtype=torch.float64))[0].sum()
            loss.backward()
            optimizer.step()
            found += [loss.detach().a, loss.detach().b, layer.weight.detach().b.clone()]
        return found

    assert all(map(torch.equal, losses(True), losses(False)))


# -- what is relied on -----------------------------------------------------------------------------
class Another(TwoTensor):
    @staticmethod
    def __tensor_unflatten__(parts: Any, context: Any, size: Any, stride: Any) -> Any:
        return Another(*parts.values(), size, stride)


def nested() -> Any:
    return TwoTensor(a_pair(), a_pair(2.0))


def transposed() -> Any:
    return TwoTensor(
        torch.ones(3, 2, dtype=torch.float64).t(), torch.zeros(3, 2, dtype=torch.float64).t()
    )


def scaled(factor: Any) -> Any:
    return Scaled(torch.ones(2, 3, dtype=torch.float64), factor)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (a_pair, lambda: a_pair(rows=3)),
        (a_pair, lambda: a_pair().requires_grad_()),
        (a_pair, lambda: a_pair().float()),
        (a_pair, transposed),
        (a_pair, nested),
        (nested, a_pair),
        (a_pair, lambda: Another(torch.ones(2, 3), torch.ones(2, 3))),
        (lambda: nn.Parameter(a_pair(), requires_grad=False), a_pair),
        (a_pair, lambda: torch.ones(2, 3)),
        (a_pair, lambda: nn.Parameter(a_pair())),
        (lambda: scaled(1.0), lambda: scaled(2.0)),
        (lambda: scaled(1), lambda: scaled(True)),
        (lambda: scaled(torch.float32), lambda: scaled(torch.float64)),
        (lambda: scaled(0.0), lambda: scaled(-0.0)),
    ],
)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_change_is_noticed(first: Any, second: Any, backend: str) -> None:
    def f(x: Any) -> Any:
        return x * 2, x.sin(), type(x).__name__, isinstance(x, nn.Parameter)

    compiled = stator.compile(f, backend=backend)
    for make in (first, second, first, second):
        assert_same(f, compiled, lambda: (make(),))  # noqa: B023
    assert len(compiled.report.graphs) == 2
    assert not compiled.report.breaks


class Mutable:
    pass


@pytest.mark.parametrize("factor", [Mutable(), torch.ones(1), {1, 2}, [1], {"by": 1}, (1, [2])])
def test_context_that_cannot_be_compared_is_a_break(factor: Any) -> None:
    kept = scaled(factor)
    compiled = stator.compile(lambda x: (x + 1, kept * 2), backend="eager")
    assert type(compiled(torch.ones(1))[1]) is Scaled
    assert [met.reason for met in compiled.report.breaks] == ["tensor-subclass"]


def test_dispatch_that_is_replaced_is_noticed() -> None:
    class Replaced(TwoTensor):
        @staticmethod
        def __tensor_unflatten__(parts: Any, context: Any, size: Any, stride: Any) -> Any:
            return Replaced(*parts.values(), size, stride)

    x = Replaced(torch.ones(2), torch.ones(2))
    compiled = stator.compile(lambda a: a * 2, backend="aot_eager")
    assert torch.equal(compiled(x).a, torch.full((2,), 2.0))

    def other(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return torch.zeros(1)

    Replaced.__torch_dispatch__ = classmethod(other)
    assert torch.equal(compiled(x), torch.zeros(1))


def test_method_of_tensors_that_is_overridden_later_is_noticed() -> None:
    class Grown(TwoTensor):
        @staticmethod
        def __tensor_unflatten__(parts: Any, context: Any, size: Any, stride: Any) -> Any:
            return Grown(*parts.values(), size, stride)

    x = Grown(torch.ones(2), torch.ones(2))
    compiled: Any = stator.compile(lambda a: a * 2, backend="aot_eager")
    for _ in range(3):
        compiled(x)
    assert not compiled.report.breaks
    Grown.numel = lambda self: 7
    assert torch.equal(compiled(x).a, torch.full((2,), 2.0))
    assert compiled.report.breaks


# -- memory ----------------------------------------------------------------------------------------
@torch.no_grad()
def writing(*args: Any) -> Any:
    for arg in args:
        arg.mul_(2)
        arg.add_(1)
    return [arg + 1 for arg in args]


def sharing_a_part() -> Any:
    a, b, c = (torch.full((3,), n) for n in (1.0, 2.0, 3.0))
    return TwoTensor(a, b), TwoTensor(a, c)


def one_part_twice() -> Any:
    a = torch.ones(3)
    return (TwoTensor(a, a),)


def with_its_part() -> Any:
    a, b = torch.ones(4), torch.zeros(4)
    return TwoTensor(a[:3], b[:3]), a


def with_its_view() -> Any:
    x = a_pair()
    return x, x[0]


def alone() -> Any:
    return (a_pair()[0],)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "make", [sharing_a_part, one_part_twice, with_its_part, with_its_view, alone, nested]
)
def test_memory_in_common(make: Any, backend: str) -> None:
    def args() -> Any:
        made = make()
        return made if isinstance(made, tuple) else (made,)

    def apart() -> Any:
        return tuple(copy.deepcopy(arg) for arg in args())

    compiled = stator.compile(writing, backend=backend)
    for given in (apart, args, apart):
        assert_same(writing, compiled, given)


def test_write_that_is_taken_back_at_a_break() -> None:
    @torch.no_grad()
    def f(x: Any) -> Any:
        y = x * 2
        y.add_(1)
        stator.graph_break()
        y.mul_(3)
        return y, x.add_(y), x

    for backend in ("eager", "aot_eager"):
        assert_same(f, stator.compile(f, backend=backend), lambda: (a_pair(),))


class Loose(Scaled):
    """Says of no result that it shares memory."""

    @staticmethod
    def __tensor_unflatten__(parts: Any, context: Any, size: Any, stride: Any) -> Any:
        return Loose(parts["inner"], context["factor"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        plain = func(*tree_map_only(Loose, lambda x: x.inner, args), **(kwargs or {}))
        return tree_map_only(Tensor, lambda x: Loose(x, 1.0), plain)


@pytest.mark.parametrize(
    ("backend", "is_handled"), [("eager", False), ("eager", True), ("aot_eager", True)]
)
@pytest.mark.parametrize(
    "make", [a_pair, nested, lambda: Loose(torch.ones(2, 3, dtype=torch.float64), 1.0)]
)
def test_error_after_a_write_meets_what_plain_python_has(
    make: Any, backend: str, is_handled: bool
) -> None:
    """Under a compiler the writes before an error that nobody handles are missing:
    run-time-errors.md."""

    @torch.no_grad()
    def f(x: Any, w: Any, i: Any) -> Any:
        x[0].add_(1)
        x.mul_(2)
        if not is_handled:
            return nn.functional.embedding(i, w), x
        try:
            return nn.functional.embedding(i, w), x
        except IndexError:
            return x + 1, "caught"

    compiled = stator.compile(f, backend=backend)
    for index in (0, 5, 1, 7):
        assert_same(f, compiled, lambda: (make(), torch.ones(2, 3), torch.tensor([index])))  # noqa: B023


# -- as it was -------------------------------------------------------------------------------------
class Adding(TwoTensor):
    def __add__(self, other: Any) -> Any:
        return "added"


class Sized(TwoTensor):
    @property
    def shape(self) -> Any:
        return "a shape"


class Asking(TwoTensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return (
            7
            if func is torch.Tensor.mul
            else super().__torch_function__(func, types, args, kwargs or {})
        )


class Unfaithful(TwoTensor):
    """Its fake is not of the class."""


@pytest.mark.parametrize("cls", [Adding, Sized, Asking, Unfaithful])
def test_class_with_ways_of_its_own_is_left_to_torch(cls: Any) -> None:
    def f(x: Any) -> Any:
        return x + 1, x.shape, x * 2

    compiled = stator.compile(f, backend="eager")
    assert_same(f, compiled, lambda: (cls(torch.ones(2), torch.ones(2)),), gradients=False)
    assert {met.reason for met in compiled.report.breaks} == {"tensor-subclass"}


@pytest.mark.parametrize("options", [{"dynamic": True}, {"dynamic": None}])
def test_sizes_are_constants(options: Any) -> None:
    def f(x: Any, w: Any) -> Any:
        return x * x.shape[0], w.sum() * w.shape[0], x.reshape(-1)

    counting = Counting()
    compiled = stator.compile(f, backend=counting, **options)
    for rows in (2, 3, 4, 3):
        assert_same(f, compiled, lambda: (a_pair(rows=rows), torch.ones(rows)), calls=1)  # noqa: B023
    assert counting.count == 3


def test_gradient_for_one_of_several_results() -> None:
    def f(x: Any) -> Any:
        return x * 2, x.sin()

    compiled = stator.compile(f, backend="aot_eager")
    for chosen in (0, 1):
        x, y = a_pair().requires_grad_(), a_pair().requires_grad_()
        compiled(x)[chosen].sum().backward()
        f(y)[chosen].sum().backward()
        assert torch.equal(x.grad.b, y.grad.b)


@pytest.mark.parametrize("uses_written", [False, True])
def test_gradient_through_an_argument_that_is_written_to(uses_written: bool) -> None:
    def f(y: Any, w: Any) -> Any:
        z = (w * 2).sin()
        y.mul_(3)
        return z

    def gradient(fn: Any) -> Any:
        x, w = a_pair().requires_grad_(), torch.ones(3, dtype=torch.float64, requires_grad=True)
        y = x * 1
        z = fn(y, w)
        (y.sum() if uses_written else z.sum()).backward()
        return x.grad.b if uses_written else w.grad

    assert torch.equal(gradient(stator.compile(f, backend="aot_eager")), gradient(f))


class Plain(torch.Tensor):
    pass


class Watching(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


PLAIN = torch.ones(2, 3).as_subclass(Plain)


def under_a_mode(x: Any) -> Any:
    with Watching():
        y = x + 1
        return y.a


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: torch.func.grad(lambda a: a.sin().sum())(x + 0),
        lambda x: torch.func.vmap(torch.sin)(x + 0),
        lambda x: torch.zeros_like(x) + x.new_ones(3),
        lambda x: (hash(x) == hash(x), x in [x], {x: 1}[x], bool((x == 1).all())),
        lambda x: (x.to(torch.float32), x.double(), x.cpu(), x.contiguous()),
        lambda x: torch.autograd.grad(x.requires_grad_().sin().sum(), x),
        lambda x: torch.add(x, 1, out=x * 0),
        lambda x: (x.t_(), x),
        lambda x: (x.view(-1).mul_(2), x[0].add_(1), x),
        lambda x: (x.copy_(x.sin()), x, torch._foreach_mul_([x], 2.0)),
        lambda x: torch.zeros(2, 3).copy_(x),
        lambda x: torch.stack([nn.functional.dropout(x), x + torch.rand_like(x)]),
        lambda x: (x.to(x.dtype) is x, x.contiguous() is x, x.split(1), x.unbind()),
        lambda x: x[x > 0],
        lambda x: setattr(x, "data", x * 2),
        lambda x: object.__getattribute__(x * 2, "a"),
        lambda x: (isinstance(x, nn.Parameter), sorted(x.__dict__), x.__dict__["a"] * 2),
        lambda x: x.as_subclass(Plain),
        lambda x: type(PLAIN * x).__name__,
        under_a_mode,
    ],
)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_other_uses(fn: Any, backend: str) -> None:
    def f(x: Any) -> Any:
        try:
            return fn(x)
        except Exception as error:
            return type(error).__name__

    assert_same(f, stator.compile(f, backend=backend), lambda: (a_pair(),))


def test_inference_mode() -> None:
    def f(x: Any) -> Any:
        return x * 2

    with torch.inference_mode():
        assert_same(f, stator.compile(f, backend="eager"), lambda: (a_pair(),))


def test_class_that_was_copied_is_the_same() -> None:
    """`copyreg` notes on a class, and on `torch.Tensor`, which slots it has."""
    copy.deepcopy(TwoTensor(torch.ones(2), torch.ones(2)))
    assert "__slotnames__" in vars(TwoTensor)
    copyreg._slotnames(torch.Tensor)
    compiled = stator.compile(lambda x: x * 2, backend="eager", fullgraph=True)
    assert type(compiled(TwoTensor(torch.ones(2), torch.ones(2)))) is TwoTensor


class Counted(TwoTensor):
    """Operators in place count in an attribute of their own."""

    count = 0

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if str(func).startswith("aten.add_"):
            args[0].count += 1
        return super().__torch_dispatch__(func, types, args, kwargs)


def labelled(cls: Any, **attributes: Any) -> Any:
    made = cls(torch.ones(2, 3), torch.zeros(2, 3))
    vars(made).update(attributes)
    return made


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_attributes_of_its_own_that_are_no_parts(backend: str) -> None:
    def f(x: Any) -> Any:
        return x * x.factor, x.label, x.factor, hasattr(x * 2, "label")

    compiled: Any = stator.compile(f, backend=backend, fullgraph=True)
    for factor in (2, 3, 2.5):
        assert_same(f, compiled, lambda: (labelled(TwoTensor, factor=factor, label="a"),))  # noqa: B023


def test_attributes_that_operators_set() -> None:
    def f(x: Any) -> Any:
        before = x.count
        x.add_(1)
        return before, x.count, x.add_(1), x.count

    assert_same(f, stator.compile(f, backend="eager"), lambda: (labelled(Counted, count=3),))


def test_attributes_that_hold_more() -> None:
    def f(x: Any) -> Any:
        return x * 2, x.names_of[0], x.other + 1

    made = lambda: (labelled(TwoTensor, names_of=["a"], other=torch.ones(3)),)  # noqa: E731
    assert_same(f, stator.compile(f, backend="eager"), made)
