"""A weak reference says when an object died: what a local was the last to hold, directly or not,
dies with it.

Found by a random program: `o = copy.deepcopy([o])` after a break left the first `o` alive for the
rest of the entry, as an argument of it. Neighbours: each way in which something may hold the
object, and lose it.
"""

import collections
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


class Loud:
    def __init__(self, log: list[str], name: str = "gone") -> None:
        self.log, self.name = log, name

    def __del__(self) -> None:
        self.log.append(self.name)


class Slotted:
    __slots__ = ("held",)


def _opened(log: list[str]) -> Iterator[int]:
    def generate() -> Iterator[int]:
        try:
            yield 1
        finally:
            log.append("closed")

    generator = generate()
    next(generator)
    return generator


def _swap_and_drop(items: list[Any]) -> None:
    items[0], items[1] = items[1], items[0]
    items[1] = None


def _rebound(held: Any) -> Callable[[], Any]:
    def rebind() -> None:
        nonlocal held
        held = None

    return rebind


def _with_slot(held: Any) -> Any:
    slotted: Any = Slotted()
    slotted.held = held
    return slotted


def _told(log: list[str]) -> Any:
    """An object and what is told of its end; the reference is kept where it does not keep the
    object."""
    box = Box()
    _told.reference = weakref.ref(box, lambda _: log.append("told"))  # type: ignore[attr-defined]
    return box


LOST: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "an item that is written over": (lambda held: [held], lambda c: c.__setitem__(0, None)),
    "an item that is deleted": (lambda held: [held, 1], lambda c: c.__delitem__(0)),
    "an item that is taken off": (lambda held: [held], lambda c: c.pop()),
    "a slice": (lambda held: [held, 1], lambda c: c.__setitem__(slice(None), [2])),
    "a list that is cleared": (lambda held: [held], lambda c: c.clear()),
    "a list times nothing": (lambda held: [held], lambda c: c.__imul__(0)),
    "a list in a list": (lambda held: [[held]], lambda c: c.__setitem__(0, None)),
    "what falls out of a deque": (lambda held: collections.deque([held], 1), lambda c: c.append(2)),
    "the first of a deque": (lambda held: collections.deque([held]), lambda c: c.popleft()),
    "a value that is written over": (lambda held: {"k": held}, lambda c: c.__setitem__("k", None)),
    "a value that is deleted": (lambda held: {"k": held}, lambda c: c.__delitem__("k")),
    "an update": (lambda held: {"k": held}, lambda c: c.update(k=1)),
    "a dict that is cleared": (lambda held: {"k": held}, lambda c: c.clear()),
    "a member": (lambda held: {held}, lambda c: c.clear()),
    "an attribute": (Box, lambda c: setattr(c, "other", None)),
    "an attribute that is deleted": (Box, lambda c: delattr(c, "other")),
    "a namespace": (Box, lambda c: vars(c).clear()),
    "a slot": (_with_slot, lambda c: setattr(c, "held", None)),
    "a cell": (_rebound, lambda c: c()),
    "the end of an iterator": (lambda held: iter([held]), list),
    "a list moved on": (lambda held: [held], lambda c: [c.pop()].clear()),
    "what changed places": (lambda held: [held, 1], _swap_and_drop),
}
HELD: dict[str, Callable[[list[str]], Any]] = {
    "a finalizer": Loud,
    "a callback": _told,
    "a generator": _opened,
}


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("name", LOST)
def test_a_container_that_held_it_last(name: str, held: str) -> None:
    """It dies between the two other effects: the container was made before a break, or by the
    caller."""
    hold, let_go = LOST[name]

    def use(x: Tensor, holder: Any, log: list[str]) -> Tensor:
        log.append("before")
        let_go(holder)
        log.append("after")
        return x + 1

    def make_and_use(x: Tensor) -> Any:
        log: list[str] = []
        holder = hold(HELD[held](log))
        stator.graph_break()
        return use(x, holder, log), log

    compiled, of_caller = (
        stator.compile(make_and_use, backend="eager"),
        stator.compile(use, backend="eager"),
    )
    for _ in range(3):
        expected = make_and_use(torch.ones(2))[1]
        assert len(expected) == 3 or hold is iter
        assert compiled(torch.ones(2))[1] == expected
        log: list[str] = []
        of_caller(torch.ones(2), hold(HELD[held](log)), log)
        assert log == expected


UNNOTICED: dict[str, Callable[[], Any]] = {
    "a number": lambda: 7,
    "an object": Box,
    "a tensor": lambda: torch.ones(1),
}


@pytest.mark.parametrize("before", UNNOTICED)
@pytest.mark.parametrize("held", [*HELD, "a finalizer that is told", "a weak value"])
@pytest.mark.parametrize("name", LOST)
def test_a_container_of_what_was_not_noticed_before(name: str, held: str, before: str) -> None:
    """The first calls let go of what nobody hears of, later ones of what somebody does."""
    hold, let_go = LOST[name]

    def use(x: Tensor, holder: Any, log: Any) -> Tensor:
        log.append("before")
        let_go(holder)
        log.append("after")
        return x + 1

    compiled = stator.compile(use, backend="eager")
    for _ in range(2):
        assert compiled(torch.ones(2), hold(UNNOTICED[before]()), []).tolist() == [2, 2]
    for _ in range(2):
        expected: list[str] = []
        use(torch.ones(2), hold(NOTICED[held](expected)), expected)
        log: list[str] = []
        compiled(torch.ones(2), hold(NOTICED[held](log)), log)
        assert log == expected
        assert len(expected) == 3 or hold is iter


def _finalized(log: list[str]) -> Any:
    box = Box()
    weakref.finalize(box, log.append, "finalized")
    return box


def _weak_value(log: list[str]) -> Any:
    box: Any = Box()
    values: Any = weakref.WeakValueDictionary(one=box)
    box.values = _Ended(values, log)
    return box


class _Ended:
    """Notes at its end whether a dictionary of weak values has lost its item."""

    def __init__(self, values: Any, log: list[str]) -> None:
        self.values, self.log = values, log

    def __del__(self) -> None:
        self.log.append(f"{len(self.values)} left")


NOTICED = HELD | {"a finalizer that is told": _finalized, "a weak value": _weak_value}


def test_a_class_that_is_given_a_finalizer_later() -> None:
    class Quiet:
        pass

    def use(x: Tensor, holder: Any, log: list[str]) -> Tensor:
        holder.other = None
        log.append("after")
        return x + 1

    compiled = stator.compile(use, backend="eager")
    log: list[str] = []
    compiled(torch.ones(2), Box(Quiet()), log)
    Quiet.__del__ = lambda self: log.append("gone")  # type: ignore[attr-defined]
    compiled(torch.ones(2), Box(Quiet()), log)
    compiled(torch.ones(2), Box(Quiet()), log)
    assert log == ["after", "gone", "after", "gone", "after"]


class Key:
    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.number == other.number

    def __hash__(self) -> int:
        return self.number


def _rebind(x: Tensor, holder: Any, log: list[str]) -> Tensor:
    held = holder.pop()
    stator.graph_break()
    log.append("before")
    held = [held]
    log.append("held")
    held = None
    log.append("after")
    return x + 1


def _drop_a_list(x: Tensor, holder: Any, log: list[str]) -> Tensor:
    held = [holder.pop()]
    stator.graph_break()
    log.append("before")
    held.clear()
    log.append("after")
    return x + 1


def _leave(held: Any, log: list[str]) -> None:
    log.append("inside")


def _leave_a_call(x: Tensor, holder: Any, log: list[str]) -> Tensor:
    held = holder.pop()
    stator.graph_break()
    _leave(held, log)
    del held
    log.append("after")
    return x + 1


def _compare(x: Tensor, holder: Any, log: list[str]) -> Tensor:
    log.append("before")
    found = holder.pop() is None
    log.append("after")
    return x + 1 + found


def _read_of_it(x: Tensor, holder: Any, log: list[str]) -> Any:
    log.append("before")
    found = holder.pop().factor
    log.append("after")
    return x + found


def _test_it(x: Tensor, holder: Any, log: list[str]) -> Tensor:
    log.append("before")
    found = 1 if holder.pop() else 2
    log.append("after")
    return x + found


def _write_under_a_key(x: Tensor, holder: Any, log: list[str]) -> Tensor:
    log.append("before")
    holder[Key(1)] = None
    log.append("between")
    holder["two"] = None
    log.append("after")
    return x + 1


ELSEWHERE: dict[str, tuple[Callable[[Any], Any], Callable[..., Tensor]]] = {
    "a local after a break": (lambda held: [held], _rebind),
    "a local list after a break": (lambda held: [held], _drop_a_list),
    "an argument after a break": (lambda held: [held], _leave_a_call),
    "an operand": (lambda held: [held], _compare),
    "an owner": (lambda held: [held], _read_of_it),
    "a condition": (lambda held: [held], _test_it),
    "a key of the program's": (lambda held: {Key(1): held, "two": 1}, _write_under_a_key),
    "a key beside one of the program's": (
        lambda held: {Key(1): 1, "two": held},
        _write_under_a_key,
    ),
}


class Quiet:
    factor = 1


class LoudFactor(Loud):
    factor = 1


@pytest.mark.parametrize("is_first_noticed", [False, True])
@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_holder_that_is_no_container_of_the_callers(name: str, is_first_noticed: bool) -> None:
    hold, use = ELSEWHERE[name]
    compiled = stator.compile(use, backend="eager")
    for number in range(5):
        results, logs = [], list[list[str]]()
        for fn in (use, compiled):
            log: list[str] = []
            is_noticed = is_first_noticed or number in (2, 4)
            results.append(
                fn(torch.ones(2), hold(LoudFactor(log) if is_noticed else Quiet()), log).tolist()
            )
            logs.append(log)
        assert results[0] == results[1]
        assert logs[0] == logs[1]
        assert ("gone" in logs[0]) is is_noticed


def test_an_attribute_that_was_not_there_before() -> None:
    def use(x: Tensor, holder: Any, log: list[str]) -> Tensor:
        holder.cache = x
        log.append("after")
        return x + 1

    compiled = stator.compile(use, backend="eager")
    holder, log = Box(), list[str]()
    compiled(torch.ones(2), holder, log)
    compiled(torch.ones(2), holder, log)
    holder.cache = Loud(log)  # type: ignore[attr-defined]
    compiled(torch.ones(2), holder, log)
    assert log == ["after", "after", "gone", "after"]


def test_guards_are_no_witnesses() -> None:
    """They refer weakly to what has to be the same object, and to roots of what they watch."""

    def use(x: Tensor, holder: Any, box: Any, by_box: Any) -> Any:
        holder[0] = None
        return x + by_box[box]

    compiled = stator.compile(use, backend="eager", fullgraph=True)
    box = Box()
    for _ in range(5):
        assert compiled(torch.ones(2), [box], box, {box: 1}).tolist() == [2, 2]
    assert len(compiled.report.entries) == 1


def test_what_others_hold_too_costs_no_break() -> None:
    def fn(x: Tensor, holder: list[Any], kept: Any) -> Tensor:
        holder[0] = None
        return x + 1 if kept.log == [] else x

    log: list[str] = []
    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    kept = Loud(log)
    for _ in range(3):
        assert compiled(torch.ones(2), [kept], kept).tolist() == [2, 2]
    assert log == []


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


def test_what_others_hold_too_lives_on_without_a_break() -> None:
    """As the object of `with self.assertRaises(...)` lets go of the test, of which somebody is told
    when it dies."""
    watched = Box()
    told = weakref.ref(watched, lambda _: None)

    def program(x: Tensor, kept: list[Box]) -> Any:
        box: Any = Box(kept[0])
        stator.graph_break()
        box = None
        y = x + 1
        kept.append(box)
        return y

    compiled = stator.compile(program, backend="eager")
    for _ in range(2):
        compiled(torch.ones(2), [watched])
        assert told() is watched
    assert [each.reason for each in compiled.report.breaks] == ["graph-break"]


def test_what_two_hold_dies_with_the_second() -> None:
    def program(x: Tensor) -> Any:
        one: Any = Box(Box())
        other: Any = [one.other]
        ref = weakref.ref(one.other)
        stator.graph_break()
        one = None
        before = ref() is None
        del other
        return x + 1, before, ref() is None

    compiled = stator.compile(program, backend="eager")
    for _ in range(3):
        assert compiled(torch.ones(2))[1:] == program(torch.ones(2))[1:] == (False, True)


class Bin:
    """A place from which something is released."""

    held: Any = None


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize(
    "wrapped", [lambda thing: thing, lambda thing: [thing], lambda thing: {"k": (thing, 1)}]
)
def test_what_something_else_holds_may_be_released_later(
    held: str, wrapped: Callable[[Any], Any]
) -> None:
    """One entry for values that live on, whatever they are; those that die get another one."""

    def use(x: Tensor, place: Bin, log: list[str]) -> Tensor:
        log.append("before")
        place.held = None
        log.append("after")
        return x + 1

    def run(fn: Callable[..., Any], keep: bool) -> tuple[list[str], list[Any]]:
        place, log = Bin(), list[str]()
        place.held = wrapped(HELD[held](log))
        kept = [place.held] if keep else []
        fn(torch.ones(2), place, log)
        return [*log], kept

    compiled = stator.compile(use, backend="eager")
    for _ in range(3):
        place = Bin()
        place.held = wrapped("plain")
        compiled(torch.ones(2), place, [])
    for keep in (True, True, False, True, False, False):
        assert run(compiled, keep)[0] == run(use, keep)[0]


@pytest.mark.parametrize("held", HELD)
def test_a_new_container_may_release_what_its_place_holds(held: str) -> None:
    """The end of what a list was copied from is not that of the copy: it is no reason to break."""

    def use(x: Tensor, place: Bin, log: list[str]) -> Tensor:
        known = [place.held, 1]
        log.append("before")
        known[0] = None
        known.clear()
        log.append("after")
        return x + 1

    compiled = stator.compile(use, backend="eager")
    for _ in range(3):
        outcomes = []
        for fn in (compiled, use):
            place, log = Bin(), list[str]()
            place.held = HELD[held](log)
            fn(torch.ones(2), place, log)
            log.append("returned")
            del place
            outcomes.append([*log])
        assert outcomes[0] == outcomes[1]
    assert not compiled.report.breaks


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("breaks", [False, True])
def test_a_place_that_is_emptied_after_its_copy(held: str, breaks: bool) -> None:
    def use(x: Tensor, place: Bin, log: list[str]) -> Tensor:
        if breaks:
            stator.graph_break()
        known = [place.held]
        place.held = None
        log.append("copied")
        known.pop()
        log.append("released")
        return x + 1

    compiled = stator.compile(use, backend="eager")
    for _ in range(3):
        outcomes = []
        for fn in (compiled, use):
            place, log = Bin(), list[str]()
            place.held = HELD[held](log)
            fn(torch.ones(2), place, log)
            outcomes.append([*log])
        assert outcomes[0] == outcomes[1]


class Rows:
    """A sequence of Python's: its iterator is suspended inside a `try`."""

    def __init__(self, *rows: Any) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self.rows
        except IndexError:
            LATE.append("caught")


LATE: list[str] = []


def test_an_exception_name_that_catches_the_end_of_a_generator() -> None:
    """`except IndexError` is left out of an entry only as long as the name stands for another
    class."""

    def use(x: Tensor) -> Any:
        for row in Rows(1, 2):
            return x + row, "left"

    compiled = stator.compile(use, backend="eager")
    assert compiled(torch.ones(2))[0].tolist() == [2, 2]
    assert not compiled.report.breaks
    assert LATE == []
    globals()["IndexError"] = GeneratorExit
    try:
        for fn in (use, compiled, compiled):
            fn(torch.ones(2))
            assert LATE == ["caught"]
            LATE.clear()
    finally:
        del globals()["IndexError"]
    compiled(torch.ones(2))
    assert LATE == []
