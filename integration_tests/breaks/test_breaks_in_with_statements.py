"""A break inside of a `with`: the manager does what it does in plain Python, and a warm call
neither makes nor inspects it."""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same

LOG: list[Any] = []
OPEN: list[Any] = []


class Manager:
    def __init__(self, name: str = "a", swallows: bool = False) -> None:
        self.name = name
        self.swallows = swallows
        self.count = 0

    def __enter__(self) -> Manager:
        self.count += 1
        return self

    def named(self, cut: Callable[[], None]) -> int:
        cut()
        return len(self.name)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        self.count -= 1
        LOG.append((self.name, self.count, kind, str(error), [*vars(self)]))
        return self.swallows


class Derived(Manager):
    def __exit__(self, *raised: Any) -> Any:
        LOG.append("derived")
        return super().__exit__(*raised)


class Registered(Manager):
    def __enter__(self) -> Registered:
        OPEN.append(self)
        return self

    def __exit__(self, *raised: Any) -> Any:
        LOG.append(OPEN.pop() is self)


class Slotted:
    __slots__ = ("flag", "items", "shape")

    def __init__(self, *shape: int) -> None:
        self.shape = shape
        self.flag = True
        self.items: list[int] = []

    def __enter__(self) -> None:
        self.items.append(1)

    def __exit__(self, *raised: Any) -> Any:
        LOG.append((self.shape, self.flag, self.items))


class Finalized(Manager):
    def __del__(self) -> None:
        LOG.append("deleted")


class Breaking(Manager):
    def __enter__(self) -> Breaking:
        self.first = 1
        stator.graph_break()
        self.second = 2
        return self

    def __exit__(self, *raised: Any) -> Any:
        stator.graph_break()
        LOG.append([*vars(self).items()])


class Raising(Manager):
    def __exit__(self, *raised: Any) -> Any:
        raise KeyError(self.name)


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any) -> Any:
        LOG.append("called")
        return function(*args)

    return call


class Decorated(Manager):
    __exit__ = traced(Manager.__exit__)


class Replaced(Manager):
    """A class whose `__exit__` is replaced while a `with` is open."""

    def __exit__(self, *raised: Any) -> Any:
        LOG.append("the old one")
        return False


@contextlib.contextmanager
def generated(name: str) -> Iterator[Manager]:
    with Manager(name) as manager:
        yield manager


@contextlib.contextmanager
def without_gradients_inside(name: str) -> Iterator[str]:
    with torch.no_grad(), Manager("inside"):
        yield name


def new_exit(self: Any, *raised: Any) -> None:
    LOG.append("the new one")


SHARED = Manager("shared")


def without_name(x: Tensor) -> Tensor:
    with Manager():
        y = x + 1
        stator.graph_break()
        y = y * 2
    return y


def with_name(x: Tensor) -> tuple[Tensor, int]:
    with Manager("named") as manager:
        y = x + 1
        stator.graph_break()
        y = y * manager.count
    return y, manager.count


def existing(x: Tensor) -> Tensor:
    with SHARED:
        y = x + 1
        stator.graph_break()
        return y * 2


def without_gradients(x: Tensor) -> tuple[Tensor, bool]:
    with torch.no_grad():
        y = x * 2
        stator.graph_break()
        z = y * 3
    return z, torch.is_grad_enabled()


def two_without_names(x: Tensor) -> Tensor:
    with torch.no_grad(), Derived("second", True):
        y = x + 1
        stator.graph_break()
        return y * 2


def two_managers(x: Tensor) -> Tensor:
    with torch.no_grad(), Manager("first") as first, Derived("second", first.swallows):
        y = x + 1
        stator.graph_break()
        z = y * 2
    return z * 3


def nested_in_try(x: Tensor) -> Tensor:
    try:
        with Manager("inner"):
            y = x + 1
            stator.graph_break()
            raise ValueError("after the break")
    except ValueError as error:
        return y * len(str(error))
    finally:
        LOG.append("finally")


def suppressing(x: Tensor) -> Tensor:
    with contextlib.suppress(KeyError, ValueError), Manager("seen"):
        y = x + 1
        stator.graph_break()
        raise KeyError("swallowed")
    return y * 2


def swallowing_what_the_break_raises(x: Tensor) -> Tensor:
    y = x + 1
    with Manager("swallows", True):
        sys.intern(3)  # type: ignore[call-overload]
    return y * 2


def raised_by_the_break(x: Tensor) -> Tensor:
    with Manager("outer"), Derived("passes it on"):
        y = x + 1
        sys.intern(3)  # type: ignore[call-overload]
    return y


def raising_at_the_end(x: Tensor) -> Tensor:
    with Manager("around", True), Raising("key"):
        x = x + 1
        stator.graph_break()
        x = x * 2
    return x


def breaking_in_both_methods(x: Tensor) -> Tensor:
    with Breaking("b"):
        x = x + 1
    return x * 2


def registered(x: Tensor) -> Tensor:
    with Registered():
        x = x + 1
        stator.graph_break()
        OPEN[-1].count += 5
        x = x * OPEN[-1].count
    return x


def referred_to_weakly(x: Tensor) -> tuple[Tensor, bool, bool]:
    manager = Manager("weak")
    reference = weakref.ref(manager)
    with manager:
        del manager
        x = x + 1
        stator.graph_break()
        alive = reference() is not None
    return x, alive, reference() is None


def slotted(x: Tensor) -> Tensor:
    with Slotted(*x.shape):
        x = x + 1
        stator.graph_break()
        return x * 2


def finalized(x: Tensor) -> Tensor:
    with Finalized("f"):
        x = x + 1
        stator.graph_break()
        x = x * 2
    LOG.append("after")
    return x


def decorated(x: Tensor) -> Tensor:
    with Decorated("d"):
        x = x + 1
        stator.graph_break()
        return x * 2


def replaced_meanwhile(x: Tensor) -> Tensor:
    with Replaced():
        x = x + 1
        stator.graph_break()
        setattr(Replaced, "__exit__", new_exit)
        stator.graph_break()
        x = x * 2
    with Replaced():
        return x + 1


def in_a_loop(x: Tensor) -> Tensor:
    with Manager("outside") as outside:
        for i in range(5):
            with Manager(f"round {i % 2}", i % 2 == 0):
                x = x + i
                stator.graph_break()
                x = x * 2
            outside.count += i
    return x


def of_a_generator(x: Tensor) -> Tensor:
    with generated("g") as manager, generated("h"):
        x = x + manager.count
        stator.graph_break()
        return x * 2


def of_a_generator_with_managers(x: Tensor) -> Tensor:
    with without_gradients_inside("g"):
        x = x + 1
        stator.graph_break()
        return x * 2


def on_a_stack(x: Tensor) -> Tensor:
    with contextlib.ExitStack() as stack:
        stack.enter_context(Manager("entered"))
        x = x + 1
        stator.graph_break()
        stack.callback(LOG.append, "callback")
        return x * 2


def two_calls_deep(x: Tensor) -> Tensor:
    with Manager("outermost"):
        return without_name(x + 1) * 2


def a_method_on_the_stack(x: Tensor) -> Tensor:
    return torch.add(x, 1) + SHARED.named(stator.graph_break)


def read_from_its_frame(x: Tensor) -> tuple[Tensor, list[str]]:
    with Manager("seen") as manager:
        x = x + 1
        names = sorted(name for name in locals() if name != "x")
        return x * manager.count, names


PROGRAMS: list[Callable[..., Any]] = [
    *(
        without_name,
        with_name,
        existing,
        without_gradients,
        two_managers,
        two_without_names,
        nested_in_try,
    ),
    *(suppressing, swallowing_what_the_break_raises, raised_by_the_break, raising_at_the_end),
    *(breaking_in_both_methods, registered, referred_to_weakly, slotted, finalized, decorated),
    *(
        replaced_meanwhile,
        in_a_loop,
        of_a_generator,
        on_a_stack,
        of_a_generator_with_managers,
        two_calls_deep,
    ),
    *(a_method_on_the_stack, read_from_its_frame),
]


def _ones(size: int, *more: Any) -> tuple[Any, ...]:
    return (torch.ones(size), *more)


def noting(fn: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Print what managers noted, and begin each call with the same managers."""

    @functools.wraps(fn)
    def call(*args: Any) -> Any:
        LOG.clear()
        SHARED.count = 0
        with monkeypatch.context() as patch:
            patch.setattr(Replaced, "__exit__", Replaced.__exit__)
            try:
                return fn(*args)
            finally:
                print(LOG)

    return call


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_a_manager_does_what_it_does_without_a_break(
    fn: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = stator.compile(fn, backend="eager")
    plain, noted = noting(fn, monkeypatch), noting(compiled, monkeypatch)
    assert_same(plain, noted, lambda: (torch.ones(3, requires_grad=True),), calls=4)
    assert "runs plainly" not in str(compiled.report)


@pytest.mark.parametrize("limit", [1, 8])
@pytest.mark.parametrize("fn", [without_name, two_managers, raised_by_the_break, in_a_loop])
def test_past_the_recompile_limit_a_manager_is_a_real_object_again(
    fn: Callable[..., Any], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = stator.compile(fn, backend="eager", recompile_limit=limit, dynamic=False)
    plain, noted = noting(fn, monkeypatch), noting(compiled, monkeypatch)
    for size in (2, 3, 4):
        assert_same(plain, noted, functools.partial(_ones, size), calls=2)


def test_managers_with_other_flags_share_no_continuation() -> None:
    def suppressed(x: Tensor, swallows: bool) -> Tensor:
        with Manager("flag", swallows):
            x = x + 1
            stator.graph_break()
            raise ValueError("kept or not")
        return x * 2

    compiled = stator.compile(suppressed, backend="eager")
    for swallows in (True, False, True, False):
        assert_same(suppressed, compiled, functools.partial(_ones, 2, swallows), calls=1)


def test_the_rounds_of_a_loop_share_their_continuation() -> None:
    def counted(x: Tensor, rounds: int) -> Tensor:
        with Manager("counter") as manager:
            for _ in range(rounds):
                manager.count += 1
                x = x * manager.count
                stator.graph_break()
        return x

    counting = Counting()
    compiled = stator.compile(counted, backend=counting, dynamic=True)
    assert torch.equal(compiled(torch.ones(2), 9), counted(torch.ones(2), 9))
    assert counting.count <= 8


MADE = (
    without_name,
    without_gradients,
    two_without_names,
    suppressing,
    of_a_generator_with_managers,
)


@pytest.mark.parametrize("fn", MADE, ids=lambda fn: fn.__name__)
def test_a_warm_call_makes_no_manager(fn: Callable[..., Any]) -> None:
    compiled = stator.compile(fn, backend="eager")
    for _ in range(3):
        compiled(torch.ones(3))
    sources = [entry.source for entry in compiled.report.entries]
    assert not [text for text in sources if "__new__" in text or "Method" in text]

    called: list[str] = []

    def seen(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)

    sys.setprofile(seen)
    try:
        compiled(torch.ones(3))
    finally:
        sys.setprofile(None)
    assert not {"__enter__", "__exit__", "hold_plain_values"} & {*called}
