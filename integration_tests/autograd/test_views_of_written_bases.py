"""A view whose base was written to with gradients: autograd refuses to write to it until its
history was asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

Program = Callable[[Tensor, Tensor], Any]


def made_here(x: Tensor, w: Tensor) -> Any:
    view = x.t()
    x.mul_(w)
    view.zero_()
    return view


def behind_a_break(x: Tensor, w: Tensor) -> Any:
    view = x.t()
    x.mul_(w)
    stator.graph_break()
    view.zero_()
    return view


def before_a_break(x: Tensor, w: Tensor) -> Any:
    view = x[0]
    stator.graph_break()
    x.mul_(w)
    view.add_(1)
    return view


def caught(x: Tensor, w: Tensor) -> Any:
    view = x.view(-1)
    try:
        x.mul_(w)
        view.mul_(2)
    except RuntimeError as error:
        return str(error), x + 1
    return view


def caught_behind_a_break(x: Tensor, w: Tensor) -> Any:
    view = x.view(-1)
    x.mul_(w)
    stator.graph_break()
    try:
        view.mul_(2)
    except RuntimeError as error:
        return str(error), view + 1
    return view


def read_first(x: Tensor, w: Tensor) -> Any:
    view = x[1:]
    x.mul_(w)
    total = view.sum()
    view.mul_(2)
    return total, view


def read_behind_a_break(x: Tensor, w: Tensor) -> Any:
    view = x[1:]
    x.mul_(w)
    stator.graph_break()
    total = view.sum()
    view.mul_(2)
    return total, view


def asked_first(x: Tensor, w: Tensor) -> Any:
    view = x[1:]
    x.mul_(w)
    leaf = view.is_leaf
    view.mul_(2)
    return leaf, view


def a_gradient_is_asked_for(x: Tensor, w: Tensor) -> Any:
    view = x[1:]
    x.mul_(w)
    grad = view.grad
    view.mul_(2)
    return grad, view


def with_another_memory(x: Tensor, w: Tensor) -> Any:
    view = x.t()
    x.set_((w + 1).sum(0))  # type: ignore[call-overload]
    view.zero_()
    return view


def without_gradients(x: Tensor, w: Tensor) -> Any:
    view = x.t()
    x.mul_(w)
    with torch.no_grad():
        view.zero_()
    return view


def made_without_gradients(x: Tensor, w: Tensor) -> Any:
    with torch.no_grad():
        view = x.t()
    x.mul_(w)
    view.zero_()
    return view


def the_base_again(x: Tensor, w: Tensor) -> Any:
    view = x.t()
    x.mul_(w)
    x.add_(1)
    return view * 2, x


def given_back(x: Tensor, w: Tensor) -> Any:
    view = x.t()
    x.mul_(w)
    return view


PROGRAMS: tuple[Program, ...] = (
    *(
        made_here,
        behind_a_break,
        before_a_break,
        caught,
        caught_behind_a_break,
        read_first,
        read_behind_a_break,
    ),
    *(
        asked_first,
        a_gradient_is_asked_for,
        with_another_memory,
        without_gradients,
        made_without_gradients,
    ),
    *(the_base_again, given_back),
)


def outcome(fn: Program, x: Tensor) -> Any:
    """What it gives, and the gradients; or what it raises; what it leaves; and whether the view can
    be written to."""
    w = torch.full((3, 3), 2.0, requires_grad=True)
    found: list[Any] = []
    with contextlib.suppress(RuntimeError):
        try:
            result = fn(x, w)
        except RuntimeError as error:
            found.append(str(error))
            raise
        parts = result if isinstance(result, tuple) else (result,)
        found += [part.tolist() if isinstance(part, Tensor) else part for part in parts]
        if isinstance(parts[-1], Tensor):
            try:
                parts[-1].mul_(3)
            except RuntimeError as error:
                found.append(str(error))
            parts[-1].sum().backward()  # type: ignore[no-untyped-call]
    return found, x.tolist(), w.grad is not None and w.grad.tolist()


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("options", [{}, {"break_everywhere": 2}], ids=["", "breaking"])
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_a_view_that_is_behind_stays_so(fn: Program, options: dict[str, Any]) -> None:
    compiled = stator.compile(fn, backend="eager", options=options)
    for number in range(3):
        assert outcome(compiled, torch.ones(3, 3) + number) == outcome(
            fn, torch.ones(3, 3) + number
        )


@pytest.mark.parametrize(
    "fn", [made_here, behind_a_break, caught, caught_behind_a_break, with_another_memory]
)
def test_compilers_write_to_no_view_that_is_behind(fn: Program) -> None:
    compiled = stator.compile(fn, backend="aot_eager")
    for number in range(2):
        assert outcome(compiled, torch.ones(3, 3) + number) == outcome(
            fn, torch.ones(3, 3) + number
        )


def written(view: Tensor, w: Tensor) -> Any:
    view.mul_(2)
    return view


def read(view: Tensor, w: Tensor) -> Any:
    return view * w


def of_its_base(base: Tensor) -> Tensor:
    return base.t()


def behind(base: Tensor) -> Tensor:
    view = base.t()
    base.mul_(torch.full((3, 3), 3.0, requires_grad=True))
    return view


def told(base: Tensor) -> Tensor:
    view = behind(base)
    assert not view.is_leaf
    return view


def asked_for_gradients(view: Tensor, w: Tensor) -> Any:
    view.requires_grad_()
    return (view * w).sum()


def flagged(view: Tensor, w: Tensor) -> Any:
    view.requires_grad_(True)
    stator.graph_break()
    return (view * w).sum()


def a_leaf() -> Tensor:
    return torch.ones(3, 3, requires_grad=True)


def of_a_leaf() -> Tensor:
    return a_leaf()[:]


def of_a_leaf_without_gradients() -> Tensor:
    with torch.no_grad():
        return a_leaf()[:]


def of_a_result_without_gradients() -> Tensor:
    result = a_leaf() * 2
    with torch.no_grad():
        return result[:]


def refused(base: Tensor) -> Tensor:
    view = of_a_leaf_without_gradients()
    view.detach().add_(1)
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        view.is_leaf  # noqa: B018
    return view


@pytest.mark.parametrize(
    "makers", [(of_its_base, behind, told), (behind, told, of_its_base), (told, behind, refused)]
)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", [written, read, asked_for_gradients])
def test_a_view_that_is_given_stays_behind(
    fn: Program, backend: str, makers: tuple[Callable[[Tensor], Tensor], ...]
) -> None:
    compiled = stator.compile(fn, backend=backend)
    for make in (*makers, *makers):
        assert outcome(compiled, make(torch.ones(3, 3))) == outcome(fn, make(torch.ones(3, 3)))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", [asked_for_gradients, flagged])
def test_a_view_made_without_gradients_gets_a_flag_of_its_own(fn: Program, backend: str) -> None:
    """By its base it has one already."""
    compiled, w = stator.compile(fn, backend=backend), torch.full((3, 3), 2.0)
    for make in (
        a_leaf,
        of_a_leaf,
        of_a_leaf_without_gradients,
        of_a_result_without_gradients,
        a_leaf,
    ):
        gradients = []
        for each in (fn, compiled):
            view = make()
            each(view, w).backward()
            gradients.append(view.is_leaf and view.grad is not None and view.grad.tolist())
        assert gradients[0] == gradients[1]


def written_apart(view: Tensor, w: Tensor) -> Any:
    view.detach().mul_(3)
    try:
        return view * w
    except RuntimeError as error:
        return str(error)[:40]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_the_handler_of_the_program_meets_what_autograd_refuses(backend: str) -> None:
    """Of a view that was made without gradients and is written to apart from autograd: not before
    the graph runs."""
    compiled, w = (
        stator.compile(written_apart, backend=backend),
        torch.full((3, 3), 2.0, requires_grad=True),
    )
    for make in (of_a_leaf, of_a_leaf_without_gradients, of_a_result_without_gradients, a_leaf):
        view, other = make(), make()
        expected, found = written_apart(view, w), compiled(other, w)
        assert str(found).partition("grad_fn")[0] == str(expected).partition("grad_fn")[0]
        assert (other.detach().tolist(), other._version) == (view.detach().tolist(), view._version)


def asked_for_its_gradient(view: Tensor, w: Tensor) -> Any:
    return view.grad is None, view.detach() * 2


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_what_is_relied_on_is_asked_of_no_view_that_refuses_to_tell() -> None:
    compiled: Any = stator.compile(asked_for_its_gradient, backend="eager")
    for make in (of_its_base, refused, behind, told, refused, of_its_base):
        view, other = make(torch.ones(3, 3)), make(torch.ones(3, 3))
        assert str(compiled(other, other)) == str(asked_for_its_gradient(view, view))
        if make is behind:
            with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
                other.mul_(2)


def with_a_part(x: Tensor) -> Any:
    part = x.chunk(2)[0]
    stator.graph_break()
    with torch.no_grad():
        x.mul_(2)
    return part.detach() * 2, x.detach() + 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", lambda gm, inputs: gm])
@pytest.mark.parametrize(
    "make", [a_leaf, of_a_leaf, of_a_leaf_without_gradients, of_a_result_without_gradients]
)
def test_compilers_ask_no_view_that_refuses_to_tell(
    make: Callable[[], Tensor], backend: Any
) -> None:
    compiled: Any = stator.compile(with_a_part, backend=backend)
    for _ in range(2):
        assert str(compiled(make())) == str(with_a_part(make()))


@torch.compiler.nested_compile_region
def detached(x: Tensor) -> Any:
    return x.detach().sin()


def given_to_regions(x: Tensor) -> Any:
    part = x.chunk(2)[0]
    first = detached(part) + detached(part)
    with torch.no_grad():
        x.mul_(2)
    return first, detached(part) + detached(part)


@pytest.mark.parametrize(
    "make", [a_leaf, of_a_leaf, of_a_leaf_without_gradients, of_a_result_without_gradients]
)
def test_a_region_is_given_views_that_refuse_to_tell(make: Callable[[], Tensor]) -> None:
    compiled: Any = stator.compile(given_to_regions, backend="eager")
    for _ in range(2):
        assert str(compiled(make())) == str(given_to_regions(make()))
