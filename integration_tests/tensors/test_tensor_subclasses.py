"""Tensor subclasses in Python: their `__torch_function__` is interpreted where torch calls it."""

# mypy: ignore-errors

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from integration_tests.support.oracle import Tolerance, assert_same

CAPTURED: dict[str, Callable[..., Any]] = {}
BREAKING: dict[str, Callable[..., Any]] = {}


def captured(fn: Any) -> Any:
    CAPTURED[fn.__name__.replace("_", " ")] = fn
    return fn


def breaking(fn: Any) -> Any:
    BREAKING[fn.__name__.replace("_", " ")] = fn
    return fn


class Plain(Tensor):
    pass


class Named(Tensor):
    """Results carry on a name."""

    label: Any = "none"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(out, cls):
            out.label = next((a.label for a in args if isinstance(a, cls)), "made")
        return out


class Child(Named):
    def __deepcopy__(self, memo: Any) -> Any:
        made = Tensor._make_subclass(type(self), plain(self).detach().clone(), self.requires_grad)
        made.__dict__.update(self.__dict__)
        return made

    def doubled(self) -> Any:
        return self * 2

    @property
    def half(self) -> Any:
        return self / 2


class Logged(Tensor):
    """Says what it was asked; `kwargs` are None where torch has none."""

    LOG: list[Any] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.LOG.append(
            (func.__name__, [each.__name__ for each in types], len(args), kwargs is None)
        )
        return super().__torch_function__(func, types, args, kwargs)


class Declining(Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented


class Parameter(nn.Parameter):
    scale = 3


HANDLED: dict[Any, Callable[..., Any]] = {}


def implements(*functions: Any) -> Any:
    def register(fn: Any) -> Any:
        HANDLED.update(dict.fromkeys(functions, fn))
        return fn

    return register


class Masked(Tensor):
    """Has a mask, made by `__new__` and `__init__`, and a table of functions."""

    mask: Any

    @staticmethod
    def __new__(cls: Any, data: Any, mask: Any) -> Any:
        return Tensor._make_subclass(cls, data)

    def __init__(self, data: Any, mask: Any) -> None:
        self.mask = mask

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in HANDLED:
            return HANDLED[func](*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)


@implements(torch.sum, Tensor.sum)
def masked_sum(x: Any, *args: Any, **kwargs: Any) -> Any:
    plain = x.as_subclass(Tensor)
    return torch.where(x.mask, plain, torch.zeros_like(plain)).sum(*args, **kwargs)


@implements(torch.add, Tensor.add)
def masked_add(x: Any, y: Any) -> Any:
    first, second = (
        each.as_subclass(Tensor) if isinstance(each, Masked) else each for each in (x, y)
    )
    mask = x.mask if isinstance(x, Masked) else y.mask
    return Masked(first + second, mask)


class Unitful(Tensor):
    """A `__torch_function__` that never calls that of torch."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            if func is Tensor.mul or func is torch.mul:
                return func(*args, **(kwargs or {})) * 100
            return func(*args, **(kwargs or {}))


LAYER = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.LayerNorm(2)).requires_grad_(False)


def plain(x: Any) -> Any:
    return x.as_subclass(Tensor) if isinstance(x, Tensor) else x


@captured
def results_are_of_the_class(x: Tensor) -> Any:
    y = x.as_subclass(Plain)
    found = [
        y + 1,
        1 - y,
        y / 2,
        2 / y,
        y**2,
        y @ y.t(),
        -y,
        y == 1,
        y < x,
        x * y,
        y[0],
        y[:, 1:],
        y.T,
        y.mT,
        y.detach(),
    ]
    found += [
        *y.split(1),
        *y,
        torch.cat([y, x]),
        torch.stack((x, y)),
        F.relu(y),
        F.linear(y, x),
        y.to(torch.float64),
    ]
    found += [
        *y.max(0),
        y.sum(),
        torch.ones_like(y),
        y.new_zeros(2),
        y.reshape(-1),
        torch.where(y > 0, x, y),
        abs(y),
    ]
    return [type(each).__name__ for each in found], [plain(each) for each in found]


@captured
def what_is_no_tensor_stays(x: Tensor) -> Any:
    y = x.as_subclass(Plain)
    return (
        y.shape,
        y.dtype,
        y.dim(),
        len(y),
        y.size(0),
        y.requires_grad,
        y.is_contiguous(),
        y.device,
        y.numel(),
        y.ndim,
    )


@captured
def labels_are_carried_on(x: Tensor) -> Any:
    y = (x * 1).as_subclass(Named)
    first = y.label
    y.label = "rows"
    z = (y.sum(0) + 1).relu()
    return (
        first,
        z.label,
        torch.add(1, y).label,
        torch.cat([y, y]).label,
        hasattr(z, "other"),
        plain(z),
    )


@captured
def subclasses_of_subclasses_go_first(x: Tensor) -> Any:
    y, z = x.as_subclass(Named), x.as_subclass(Child)
    z.label = "child"
    both = y + z
    return (
        type(both).__name__,
        both.label,
        type(z.doubled()).__name__,
        z.half.label,
        plain(z.half),
        plain(both),
    )


@captured
def it_is_told_what_torch_tells(x: Tensor) -> Any:
    y = (x * 1).as_subclass(Logged)
    z = [
        y + 1,
        1 + y,
        1 - y,
        y.add(2),
        torch.add(y, 1, alpha=2),
        torch.add(x, y),
        x + y,
        y[0],
        y.shape,
        y.T,
        y.dim(),
    ]
    z += [
        F.relu(y),
        F.dropout(y, 0.5, training=False),
        torch.cat([x, y]),
        y.sum(dim=0),
        y == x,
        y @ x.t(),
        y.max(0),
    ]
    y[0] = 1
    y += 1
    found = list(Logged.LOG)
    Logged.LOG.clear()
    return found, len(z), plain(y)


@captured
def who_declines_leaves_it_to_the_next(x: Tensor) -> Any:
    y, z = x.as_subclass(Declining), x.as_subclass(Unitful)
    return type(y * z).__name__, plain(y * z)


@captured
def functions_are_told_apart(x: Tensor) -> Any:
    y = x.as_subclass(Unitful)
    return y * 2, y + 2, torch.mul(y, x), type(y).__name__, type(y + 1).__name__


@captured
def a_table_of_functions(x: Tensor) -> Any:
    m = Masked(x, x > 0)
    total = torch.sum(m + 1)
    return total, type(total).__name__, m.sum(0), (m + 1).mask, type(m * 2).__name__, plain(m * 2)


@captured
def it_is_written_in_place(x: Tensor) -> Any:
    base = x * 1
    y = base.as_subclass(Named)
    same = y.add_(1)
    y[0] = 5
    y *= 2
    row = y[1]
    row.zero_()
    other = x.detach().as_subclass(Named)
    return (
        same is y,
        base,
        plain(y),
        y.label,
        torch.add(plain(other), 1, out=other) is other,
        plain(other),
    )


@captured
def functions_disabled_by_a_class(x: Tensor) -> Any:
    y = x.as_subclass(Unitful)
    return torch._C._disabled_torch_function_impl(torch.mul, (Unitful,), (y, 2), {}), y * 2


@captured
def it_is_returned_and_held(x: Tensor) -> Any:
    y = x.as_subclass(Child)
    y.label = [x.shape[0]]
    return y, {"again": y, "other": y * 1}


@captured
def reduced_in_a_loop(x: Tensor) -> Any:
    y = x.as_subclass(Named)
    for i in range(3):
        y = functools.reduce(torch.add, [y, y * i, x])
    return plain(y), y.label


@captured
def the_constructor_of_torch(x: Any) -> Any:
    made = Plain(x)
    return made + 1, made.shape, type(made), Tensor(x) * 2


@captured
def the_constructor_in_a_wrapper(x: Any) -> Any:
    def make(*args: Any, **kwargs: Any) -> Any:
        return Named(*args, **kwargs)

    made = make(x)
    made.label = "made"
    return made.sin(), (made * 2).label


@captured
def the_constructor_of_numbers(x: Any) -> Any:
    return Plain([1.0, 2.0]).sum() + x.sum()


@captured
def a_write_through_the_constructed(x: Any) -> Any:
    y = x.detach().clone()
    Plain(y).add_(1)
    return y


@captured
def modules_take_it(x: Tensor) -> Any:
    y = LAYER(x.as_subclass(Named))
    return y.label, plain(y)


@breaking
def a_print_in_the_function(x: Tensor) -> Any:
    class Printing(Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            print(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    y = GIVEN[0](x).as_subclass(Printing)
    return plain(y + 1)


def identity(x: Any) -> Any:
    return x


GIVEN = [identity]


class Breaking(Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        stator.graph_break()
        return super().__torch_function__(func, types, args, kwargs)


class Raising(Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.add:
            raise KeyError("add")
        return super().__torch_function__(func, types, args, kwargs)


@breaking
def a_break_in_the_function(x: Tensor) -> Any:
    y = x.as_subclass(Breaking)
    z = y + 1
    return plain(z) * 2, type(z).__name__


@captured
def an_exception_of_the_function(x: Tensor) -> Any:
    y = x.as_subclass(Raising)
    try:
        y + 1
    except KeyError as error:
        return error.args, plain(y * 2)
    return None


@breaking
def nobody_implements_it(x: Tensor) -> Any:
    try:
        return x.as_subclass(Declining) + 1
    except TypeError as error:
        return str(error)[:40], x + 1


@breaking
def its_value_is_asked_for(x: Tensor) -> Any:
    y = x.as_subclass(Named)
    return (y.sum() > 0).item(), bool(y.sum() > 0), float(y.sum()), plain(y) + 1


@breaking
def a_break_between(x: Tensor) -> Any:
    y = x.as_subclass(Named)
    y.label = "kept"
    z = y + 1
    stator.graph_break()
    return (z * 2).label, plain(z + y), type(z).__name__


@breaking
def disabled_by_hand(x: Tensor) -> Any:
    y = x.as_subclass(Unitful)
    with torch._C.DisableTorchFunctionSubclass():
        z = y * 2
    return z, y * 2


@breaking
def disabled_around_breaks(x: Tensor) -> Any:
    y = x.as_subclass(Plain)
    with torch._C.DisableTorchFunctionSubclass():
        found = [y * 2]
        stator.graph_break()
        found += [F.relu(y * 2), y + 1]
        stator.graph_break()
        found += [F.relu(y * 2), y + 1]
    return [type(each).__name__ for each in (*found, y + 1)], found


@captured
def functions_in_python_are_told_of_all_classes(x: Tensor) -> Any:
    y = (x * 1).as_subclass(Logged)
    z = [F.mse_loss(y, x * 2), F.mse_loss(x, y), y - x, x**y, torch.functional.norm(y), 2 - y]
    found = list(Logged.LOG)
    Logged.LOG.clear()
    return found, [plain(each) for each in z]


WRITES_RUN_NATIVELY = {"uncompiled": "warn"}
"""Where a tensor with gradients is written to, no compiler takes the operator."""


def run(fn: Callable[..., Any], make: Callable[[int], Any], **options: Any) -> None:
    """AOTAutograd writes to a leaf, here known by a view, as no program could: that graph raises,
    the program runs."""
    compiled = stator.compile(fn, **options)
    numbers, may_raise = (
        iter([2, 2, 3, 3, 4]),
        fn is one_is_written_to and options["backend"] == "aot_eager",
    )
    make_args = lambda: (make(next(numbers)),)  # noqa: E731
    assert_same(
        fn, compiled, make_args, 5, tolerance=Tolerance(1e-5, 1e-5), graphs_may_raise=may_raise
    )


def tensors(rows: int) -> Tensor:
    return torch.linspace(-1, 1, rows * 3).reshape(rows, 3).requires_grad_(rows != 3)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("title", CAPTURED)
def test_a_subclass_made_inside_is_captured(title: str, backend: str) -> None:
    run(CAPTURED[title], tensors, backend=backend, fullgraph=True, options=WRITES_RUN_NATIVELY)


@pytest.mark.parametrize("title", [*CAPTURED, *BREAKING])
def test_a_subclass_made_inside_is_right_with_breaks(title: str) -> None:
    run(
        {**CAPTURED, **BREAKING}[title],
        tensors,
        backend="eager",
        options={"break_everywhere": True},
    )


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("title", BREAKING)
def test_what_is_not_captured_is_right(title: str, backend: str) -> None:
    run(BREAKING[title], tensors, backend=backend)


# -- from outside ----------------------------------------------------------------------------------
TAKING: dict[str, Callable[..., Any]] = {}


def taking(fn: Any) -> Any:
    TAKING[fn.__name__.replace("_", " ")] = fn
    return fn


@taking
def one_is_read(y: Any) -> Any:
    return (
        y.label,
        (y + 1).label,
        plain(y * 2),
        y.shape,
        y.requires_grad,
        type(y).__name__,
        y.doubled().label,
    )


@taking
def one_is_returned_itself(y: Any) -> Any:
    return y, y.add(1)


@taking
def one_is_written_to(y: Any) -> Any:
    z = y.detach()
    same = z.mul_(2)
    z[0, 0] = 7
    y.data.add_(1)
    return same is z, plain(z), plain(y)


@taking
def one_gets_attributes(y: Any) -> Any:
    y.label = f"{y.label}, seen"
    y.other = y.sum()
    return y.label, plain(y.other), hasattr(y, "missing")


@taking
def one_is_kept(y: Any) -> Any:
    kept = {"y": y, "list": [y, y * 2]}
    return kept, kept["y"] is y


@taking
def one_is_used_without_gradients(y: Any) -> Any:
    with torch.no_grad():
        z = y * 2
    return z.requires_grad, plain(z), (y * 3).requires_grad, plain(y * 3)


@taking
def one_and_a_plain_one(y: Any) -> Any:
    x = torch.ones(3)
    return (
        (x + y).label,
        (y + x).label,
        plain(torch.stack([x, y[0]])),
        torch.where(y > 0, y, x).label,
    )


def made(cls: Any) -> Callable[[int], Any]:
    def make(rows: int) -> Any:
        y = Tensor._make_subclass(cls, tensors(rows).detach(), rows != 3)
        y.label = f"of {rows}"
        return y

    return make


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("title", TAKING)
def test_a_subclass_from_outside_is_captured(title: str, backend: str) -> None:
    run(TAKING[title], made(Child), backend=backend, fullgraph=True, options=WRITES_RUN_NATIVELY)


@pytest.mark.parametrize("title", TAKING)
def test_a_subclass_from_outside_is_right_with_breaks(title: str) -> None:
    run(TAKING[title], made(Child), backend="eager", options={"break_everywhere": True})


def scaled(p: Any, x: Tensor) -> Any:
    return (p * x).sum() * p.scale, type(p * x), type(p + p), isinstance(p, nn.Parameter)


def test_a_class_of_parameters_has_no_say() -> None:
    compiled = stator.compile(scaled, backend="eager", fullgraph=True)
    for rows in (2, 2, 3):
        ours, theirs, x = (
            Parameter(torch.ones(rows)),
            Parameter(torch.ones(rows)),
            torch.arange(float(rows)),
        )
        expected, found = scaled(ours, x), compiled(theirs, x)
        expected[0].backward()
        found[0].backward()
        assert torch.equal(ours.grad, theirs.grad)
        assert expected[1:] == found[1:] == (Tensor, Tensor, True)


def test_another_class_or_function_is_another_entry() -> None:
    class Changing(Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return "before"

    def fn(x: Any) -> Any:
        return x + 1

    compiled = stator.compile(fn, backend="eager")
    x = torch.ones(2)
    assert type(compiled(x)) is Tensor
    assert type(compiled(x.as_subclass(Plain))) is Plain
    assert compiled(x.as_subclass(Changing)) == "before"
    Changing.__torch_function__ = classmethod(lambda cls, *args: "after")
    assert compiled(x.as_subclass(Changing)) == "after"
    assert type(compiled(x)) is Tensor


def test_one_tensor_in_two_places_is_one() -> None:
    def fn(a: Any, b: Any) -> Any:
        a.detach().add_(1)
        return a is b, plain(a + b)

    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    one, other = (torch.zeros(2).as_subclass(Plain) for _ in range(2))
    assert compiled(one, other)[0] is False
    same = torch.zeros(2).as_subclass(Plain)
    is_one, found = compiled(same, same)
    assert is_one
    assert torch.equal(found, torch.full((2,), 2.0))
    assert compiled(one, other)[0] is False


@pytest.mark.parametrize("change", ["t_", "squeeze_", "detach_"])
def test_the_shape_of_one_from_outside_is_changed_natively(change: str) -> None:
    def fn(y: Any) -> Any:
        getattr(y, change)()
        return plain(y * 2)

    compiled = stator.compile(fn, backend="eager")
    for _ in range(3):
        ours, theirs = (
            Tensor._make_subclass(Plain, torch.arange(6.0).reshape(1, 6)) for _ in range(2)
        )
        assert torch.equal(fn(ours), compiled(theirs))
        assert ours.shape == theirs.shape


@pytest.mark.parametrize(
    "function",
    [
        F.linear,
        lambda x, w: F.linear(x, w, w[:, 0]),
        lambda x, w: torch.matmul(w, x) * 2,
        lambda x, w: F.gelu(w),
        lambda x, w: torch.cat([w, x[None]]),
        lambda x, w: torch.sum(input=w, dim=0),
        lambda x, w: F.scaled_dot_product_attention(w, w, w),
    ],
)
def test_a_function_in_c_is_the_first_to_look_at_a_subclass(function: Callable[..., Any]) -> None:
    x, w = torch.ones(6), Parameter(torch.arange(12.0).view(2, 6))
    compiled = stator.compile(function, backend="eager", fullgraph=True)

    for _ in range(2):
        found, expected = compiled(x, w), function(x, w)
        assert type(found) is type(expected)
        torch.testing.assert_close(found, expected)


def test_a_module_with_a_parameter_of_a_subclass_is_one_graph() -> None:
    module = nn.Linear(6, 2)
    module.weight = Parameter(module.weight.data)
    compiled = stator.compile(module, backend="eager", fullgraph=True)
    other = copy.deepcopy(module)

    for _ in range(3):
        compiled(torch.ones(6)).sum().backward()
        other(torch.ones(6)).sum().backward()
        torch.testing.assert_close(module.weight.grad, other.weight.grad)


def disabled(s):
    enabled = torch._C._is_torch_function_enabled
    with torch._C.DisableTorchFunction():
        inside = enabled()
    with torch._C.DisableTorchFunctionSubclass():
        return inside, enabled()


NATIVE: dict[str, Callable[..., Any]] = {
    "grad_fn": lambda s: s.grad_fn,
    "hooks": lambda s: (s._backward_hooks, s._post_accumulate_grad_hooks),
    "name": lambda s: (s.name, s.volatile),
    "no tensor": lambda s: Tensor.shape.__get__(3),
    "the class of all": lambda s: Tensor.shape.__get__(None, Tensor),
    "a missing operand": Tensor.add,
    "another operand": lambda s: torch.add(s, "a"),
    "no class": lambda s: s.as_subclass(3),
    "by name": lambda s: s.as_subclass(cls=Tensor),
    "types that are none": lambda s: Tensor.__torch_function__(torch.add, (3,), (s, 1)),
    "other types": lambda s: Child.__torch_function__(torch.add, (int,), (s, 1)),
    "no function": lambda s: Child.__torch_function__(types=()),
    "enabled": lambda s: torch._C._is_torch_function_enabled(),
    "disabled": disabled,
}


@pytest.mark.parametrize("title", NATIVE)
def test_calls_that_torch_refuses_or_c_answers(title: str) -> None:
    fn = NATIVE[title]
    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, lambda: (torch.ones(3).as_subclass(Child),), gradients=False)
