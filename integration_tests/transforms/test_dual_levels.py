"""Forward-mode derivatives by `torch.autograd.forward_ad`: levels inside of a region, and regions
under a level."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import stator
import torch
from stator_variables import is_level_open
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils._pytree import tree_leaves

dual_level: Any = forward_ad.dual_level
make_dual: Any = forward_ad.make_dual
unpack_dual: Any = forward_ad.unpack_dual
Program = Callable[..., Any]


def pair(differentiable: int | None = None) -> list[Any]:
    generator = torch.Generator().manual_seed(3)
    made = [torch.randn(3, 3, generator=generator) for _ in range(2)]
    if differentiable is not None:
        made[differentiable].requires_grad_()
    return made


def facts(value: object, *, with_tangents: bool) -> list[Any]:
    """Return what a program can observe of each leaf: values, tangents, flags."""
    found: list[Any] = []
    for leaf in tree_leaves(value):
        if not isinstance(leaf, Tensor):
            found.append(leaf)
            continue
        tangent = unpack_dual(leaf).tangent if with_tangents else None
        found += [leaf.requires_grad, leaf.is_leaf, leaf.stride(), type(leaf)]
        found += [each if each is None else each.detach().clone() for each in (leaf, tangent)]
    return found


def assert_same(expected: list[Any], actual: list[Any]) -> None:
    assert len(expected) == len(actual)
    for one, other in zip(expected, actual, strict=True):
        if isinstance(one, Tensor):
            torch.testing.assert_close(other, one)
        else:
            assert other == one
    assert forward_ad._current_level == -1
    assert not is_level_open()


def outcome(fn: Program, given: list[Any], *, with_tangents: bool) -> list[Any]:
    try:
        result = fn(*given)
    except RuntimeError as error:
        result = type(error).__name__, str(error)[:40]
    return facts([result, given], with_tangents=with_tangents)


# -- levels in a region ----------------------------------------------------------------------------
def products(x: Tensor, t: Tensor) -> Any:
    z = x * 2
    with dual_level():
        found = unpack_dual(make_dual(z, t).sin() * t)
        nothing = unpack_dual(z.sin())
    return found.primal, found.tangent, nothing.tangent, z + 1


def writes(x: Tensor, t: Tensor) -> Any:
    with dual_level():
        dual = make_dual(x * 1, t * 1)
        dual.mul_(3).add_(x)
        part = dual[0]
        part.sin_()
        return unpack_dual(dual), unpack_dual(part), dual


def identities(x: Tensor, t: Tensor) -> Any:
    with dual_level():
        dual = make_dual(x, t)
        primal, tangent = unpack_dual(dual)
        return tangent is t, primal is x, dual is x, tangent, primal


def levels_in_a_loop(x: Tensor, t: Tensor) -> Tensor:
    columns = []
    for row in range(3):
        with dual_level():
            direction = torch.zeros_like(t)
            direction[row] = 1
            columns.append(unpack_dual((make_dual(x, direction) ** 2).sin()).tangent)
    return torch.stack(columns, -1)


def decorated(x: Tensor, t: Tensor) -> Any:
    @dual_level()  # type: ignore[untyped-decorator]
    def inner(x: Tensor, t: Tensor) -> Any:
        return unpack_dual(make_dual(x, t).exp())

    return inner(x, t)


def given_level(x: Tensor, t: Tensor) -> Any:
    with dual_level() as level:
        dual = make_dual(x, t, level=level)
        return level, forward_ad._current_level, unpack_dual(dual, level=0)


def without_gradients(x: Tensor, t: Tensor) -> Any:
    with dual_level():
        dual = make_dual(x, t)
        with torch.no_grad():
            scaled = dual * 2
        parts = scaled, dual.detach(), dual.sum(), dual.max(), torch.zeros(3), dual + 1
        return [unpack_dual(part) for part in parts]


def outside_of_a_level(x: Tensor, t: Tensor) -> Any:
    try:
        make_dual(x, t)
    except RuntimeError as error:
        return str(error)[:40], unpack_dual(x)


def refused_primal(x: Tensor, t: Tensor) -> Any:
    with dual_level():
        try:
            make_dual(x.long(), t)
        except ValueError as error:
            return str(error)[:30], unpack_dual(make_dual(x, t).sum())


def raises_in_the_graph(x: Tensor, t: Tensor, index: Tensor, log: list[object]) -> Any:
    log.append(0)
    with dual_level():
        dual = make_dual(x, t)
        y = dual.sin()
        x.mul_(2)
        try:
            chosen = dual.index_select(0, index)
        except (IndexError, RuntimeError) as error:
            log.append(type(error).__name__)
            chosen = y
        return unpack_dual(chosen)


WHOLE = [
    *(products, writes, identities, levels_in_a_loop, decorated, given_level),
    *(without_gradients, outside_of_a_level, refused_primal),
]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", WHOLE)
def test_level_in_a_region_is_one_graph(program: Program, backend: str) -> None:
    compiled: Any = stator.compile(program, backend=backend, fullgraph=True)
    for _ in range(3):
        expected = outcome(program, pair(), with_tangents=False)
        assert_same(expected, outcome(compiled, pair(), with_tangents=False))
    assert compiled.report.graph_count == (program is not outside_of_a_level)


@pytest.mark.parametrize("differentiable", [0, 1])
@pytest.mark.parametrize("program", [products, writes, levels_in_a_loop, without_gradients])
def test_derivatives_ahead_of_what_has_gradients(program: Program, differentiable: int) -> None:
    compiled = stator.compile(program, backend="eager")
    for _ in range(2):
        expected = outcome(program, pair(differentiable), with_tangents=False)
        actual = outcome(compiled, pair(differentiable), with_tangents=False)
        assert_same(expected, actual)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("index", [1, 7])
def test_operator_that_raises_leaves_the_level(index: int, backend: str) -> None:
    compiled = stator.compile(raises_in_the_graph, backend=backend)
    for _ in range(2):
        given, again = ([*pair(), torch.tensor([index]), []] for _ in range(2))
        expected = outcome(raises_in_the_graph, given, with_tangents=False)
        assert_same(expected, outcome(compiled, again, with_tangents=False))


def test_module_with_dual_parameters() -> None:
    """torch.compile raises an AttributeError for it."""

    def derivative(module: nn.Linear, x: Tensor) -> Any:
        parameters = dict(module.named_parameters())
        with dual_level():
            for name, parameter in parameters.items():
                delattr(module, name)
                setattr(module, name, make_dual(parameter, torch.ones_like(parameter)))
            tangent = unpack_dual(module(x)).tangent
        for name, parameter in parameters.items():
            delattr(module, name)
            module.register_parameter(name, parameter)
        return tangent, list(module.parameters())

    module = nn.Linear(3, 3)
    compiled = stator.compile(derivative, backend="eager")
    for _ in range(2):
        expected = facts(derivative(module, pair()[0]), with_tangents=False)
        assert_same(expected, facts(compiled(module, pair()[0]), with_tangents=False))
    assert [entry.reason for entry in compiled.report.entries] == [None]


# -- breaks ----------------------------------------------------------------------------------------
class Tripled(torch.autograd.Function):
    """A function whose derivative is none of its value's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0] * 2

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> Tensor:
        return tangents[0] * 3


def breaks_inside(x: Tensor, t: Tensor) -> Any:
    with dual_level():
        y = make_dual(x, t).sin()
        stator.graph_break()
        z = y.cos() * y
        return unpack_dual(z), z


def custom_function(x: Tensor, t: Tensor) -> Any:
    with dual_level():
        applied: Any = Tripled.apply(make_dual(x, t))  # type: ignore[no-untyped-call]
        return unpack_dual(applied.sin())


def nested(x: Tensor, t: Tensor) -> Any:
    with dual_level():
        try:
            with dual_level():
                return None
        except RuntimeError as error:
            return str(error)[:30], unpack_dual(make_dual(x, t) * 2)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [breaks_inside, custom_function, nested])
def test_breaks_inside_of_a_level(program: Program, backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    for _ in range(2):
        expected = outcome(program, pair(), with_tangents=False)
        assert_same(expected, outcome(compiled, pair(), with_tangents=False))


# -- regions under a level -------------------------------------------------------------------------
def makes_and_unpacks(x: Tensor, t: Tensor) -> Any:
    dual = make_dual(x, t)
    return dual.sin(), unpack_dual(dual * 2).tangent, forward_ad._current_level


def depends_on_the_tangent(x: Tensor, t: Tensor) -> Any:
    primal, tangent = unpack_dual(x)
    return x * 2 if tangent is None else x.cos() * tangent, primal is x, x.requires_grad


def writes_to_input(x: Tensor, t: Tensor) -> Tensor:
    x.mul_(3)
    return x.sin() * t


def leaves_and_enters(x: Tensor, t: Tensor) -> Any:
    y = make_dual(x, t).sin()
    forward_ad.exit_dual_level()  # type: ignore[no-untyped-call]
    z = y * 2
    forward_ad.enter_dual_level()  # type: ignore[no-untyped-call]
    return z, unpack_dual(z).tangent


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("differentiable", [None, 0, 1])
@pytest.mark.parametrize(
    "program", [makes_and_unpacks, depends_on_the_tangent, writes_to_input, leaves_and_enters]
)
def test_region_under_a_level(program: Program, differentiable: int | None, backend: str) -> None:
    """The same compiled function, with a level and without, with tangents and without."""
    compiled = stator.compile(program, backend=backend)
    for has_tangent in (True, False, True):
        with dual_level():
            given = []
            for _ in range(2):
                x, t = (each * 1 for each in pair(differentiable))
                given.append([make_dual(x, t) if has_tangent else x, t])
            expected = outcome(program, given[0], with_tangents=True)
            actual = outcome(compiled, given[1], with_tangents=True)
        assert_same(expected, actual)


@pytest.mark.parametrize("under", [dual_level, nullcontext])
def test_region_under_a_level_is_captured(under: Callable[[], Any]) -> None:
    compiled = stator.compile(depends_on_the_tangent, backend="eager", fullgraph=True)
    with under():
        compiled(*pair())
        compiled(*pair())
    assert compiled.report.graph_count == 1


def test_level_that_stays_open() -> None:
    def enters(x: Tensor, t: Tensor) -> Tensor:
        forward_ad.enter_dual_level()  # type: ignore[no-untyped-call]
        dual: Tensor = make_dual(x, t)
        return dual.sin()

    compiled = stator.compile(enters, backend="aot_eager")
    x, t = pair()
    for _ in range(2):
        found = compiled(x, t)
        assert forward_ad._current_level == 0
        torch.testing.assert_close(unpack_dual(found).tangent, x.cos() * t)
        forward_ad.exit_dual_level()  # type: ignore[no-untyped-call]
    assert not is_level_open()
