"""A weak reference says when an object died: what a local was the last to hold, directly or not, dies with it.

Found by a random program: `o = copy.deepcopy([o])` after a break left the first `o` alive for the rest of the entry,
as an argument of it. Neighbours: each way in which something may hold the object, and lose it.
"""

import copy
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

PROGRAMS: dict[str, Callable[[Tensor], Any]] = {}


class Box:
    def __init__(self, other: Any = None) -> None:
        self.other = other


def program(fn: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    PROGRAMS[fn.__name__.replace("_", " ")] = fn
    return fn


@program
def a_deep_copy_of_a_list(x: Tensor) -> Any:
    box: Any = Box()
    ref = weakref.ref(box)
    box = copy.deepcopy([box])
    return x + 1, ref() is None


@program
def a_memo(x: Tensor) -> Any:
    box: Any = Box()
    memo: Any = {}
    ref = weakref.ref(box)
    box = copy.deepcopy(box, memo)
    before = ref() is None
    memo = None
    return x + 1, before, ref() is None


@program
def lists(x: Tensor) -> Any:
    box: Any = Box()
    ref = weakref.ref(box)
    box = [box, [box]]
    before = ref() is None
    box = 1
    return x + 1, before, ref() is None


@program
def a_cell(x: Tensor) -> Any:
    box: Any = Box()
    ref = weakref.ref(box)
    read: Any = lambda: box  # noqa: E731
    before = ref() is read()
    box = 2
    return x + 1, before, ref() is None


@program
def a_default(x: Tensor) -> Any:
    box: Any = Box()
    ref = weakref.ref(box)
    read: Any = lambda box=box: box  # noqa: E731
    box = 2
    before = ref() is read()
    read = None
    return x + 1, before, ref() is None


@program
def an_object(x: Tensor) -> Any:
    box = Box()
    ref = weakref.ref(box)
    box = Box(box)
    before = ref() is None
    box = Box()
    return x + 1, before, ref() is None


@program
def an_attribute(x: Tensor) -> Any:
    box = Box(Box())
    ref = weakref.ref(box.other)
    before = ref() is box.other
    box.other = None
    return x + 1, before, ref() is None


@program
def a_list_that_is_cleared(x: Tensor) -> Any:
    boxes = [Box()]
    ref = weakref.ref(boxes[0])
    before = ref() is boxes[0]
    boxes.clear()
    return x + 1, before, ref() is None


@program
def a_list_that_gives_it_away(x: Tensor) -> Any:
    boxes = [Box()]
    ref = weakref.ref(boxes[0])
    box: Any = boxes.pop()
    before = ref() is box
    box = None
    return x + 1, before, ref() is None


@program
def a_dict(x: Tensor) -> Any:
    boxes = {1: Box()}
    ref = weakref.ref(boxes[1])
    before = ref() is boxes[1]
    del boxes[1]
    return x + 1, before, ref() is None


def _reference_to_the_first(boxes: Any) -> Any:
    ref = weakref.ref(boxes[0])
    boxes = None
    return ref


@program
def a_frame_that_is_done(x: Tensor) -> Any:
    ref = _reference_to_the_first([Box()])
    return x + 1, ref() is None


@program
def locals_that_change_places(x: Tensor) -> Any:
    first: Any = Box()
    second: Any = Box()
    ref = weakref.ref(first)
    first, second = second, first
    found = [ref() is second]
    second = [second]
    found.append(ref() is second[0])
    second = first
    return x + 1, found, ref() is None


@program
def a_generator(x: Tensor) -> Any:
    def give(box: Any) -> Iterator[Any]:
        yield box

    box: Any = Box()
    ref = weakref.ref(box)
    given: Any = give(box)
    box = None
    before = ref() is None
    next(given)
    given = None
    return x + 1, before, ref() is None


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_held_it_last(name: str) -> None:
    plain, compiled = PROGRAMS[name], stator.compile(PROGRAMS[name], backend="eager")
    gc.disable()  # garbage of a trace must not keep it either
    try:
        for _ in range(3):
            assert str(compiled(torch.ones(2))) == str(plain(torch.ones(2)))
    finally:
        gc.enable()


class Child(torch.nn.Module):
    def __init__(self, parent: Any) -> None:
        super().__init__()
        self.parent = weakref.ref(parent)
        self.count = 0

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        parent: Any = self.parent()
        return x.mul(parent.factor)


def test_a_reference_that_nothing_can_have_lost_costs_no_break() -> None:
    """The parent is in no frame, and the child, which has changed, does not hold it."""
    parent: Any = torch.nn.Module()
    parent.factor = 3
    child = Child(parent)
    compiled = stator.compile(child, backend="eager", fullgraph=True)
    assert [compiled(torch.ones(2)).tolist() for _ in range(3)] == [[3, 3]] * 3
    assert child.count == 3
