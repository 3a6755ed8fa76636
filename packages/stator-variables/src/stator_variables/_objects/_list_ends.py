"""The ends of a list or deque from outside, of which nobody has asked for all items: a loop that works it off, round by
round with a break in it, is no reason to compile each round again for another length.

What is relied on is that there are as many items as were looked at.
"""

import collections
from typing import Any

from stator_guards import ItemSource

from stator_variables import _kinds as k
from stator_variables._objects._list import ListTracker
from stator_variables._space import Space
from stator_variables._tracker import MISSING


def is_open(vt: Any) -> bool:
    """Whether its items are those of C, none of them read, and no number of them falls out."""
    return (
        isinstance(vt, ListTracker)
        and vt.unread is not None
        and vt.cls in _EXACT
        and vt.maxlen is None
    )


_EXACT = (list, collections.deque)


def has_more(t: Space, vt: Any) -> bool:
    """Whether an unread list is not empty; False also for what has to be read to know."""
    return is_open(vt) and (bool(vt.added) or _relies(t, vt, sum(vt.taken) + 1))


def _relies(t: Space, vt: Any, length: int) -> bool:
    if len(vt.real) < length:
        return False
    t.need_length(vt.source, length)
    return True


def at_end(t: Space, vt: Any, key: Any) -> Any:
    """The item at a negative constant index, or at the front of a deque; MISSING where more has to be read."""
    if key.cls is not int or not isinstance(key, k.ConstantTracker) or not is_open(vt):
        return MISSING
    if key.value >= (vt.cls is collections.deque):
        return MISSING
    index, (front, back) = key.value + len(vt.added), vt.taken
    if key.value == 0:
        return _existing(t, vt, front) if _relies(t, vt, front + back + 1) else MISSING
    if index >= 0:
        return vt.added[index]
    return _existing(t, vt, index - back) if _relies(t, vt, front + back - index) else MISSING


def _existing(t: Space, vt: Any, index: int) -> Any:
    try:
        return t.wrap(vt.real[index], ItemSource(vt.source, index))
    except IndexError:  # another thread took it
        return MISSING


def take(t: Space, vt: Any, index: int) -> Any:
    """`vt.pop(index)` of an unread list, for its first item or its last, or MISSING where more has to be read."""
    if index not in (0, -1) or not is_open(vt):
        return MISSING
    front, back = vt.taken
    if index == -1 and vt.added:
        item = vt.added.pop()
        _note(t, vt, item, vt.taken)
    elif (
        not _relies(t, vt, front + back + 1)
        or (item := _existing(t, vt, -1 - back if index else front)) is MISSING
    ):
        return MISSING
    else:
        _note(t, vt, item, (front, back + 1) if index else (front + 1, back))
    return item


def _note(t: Space, vt: Any, item: Any, taken: tuple[int, int]) -> None:
    t.note_release(item, vt)
    before, vt.taken = vt.taken, taken
    vt.structure += 1

    def undo() -> None:
        vt.taken = before
        vt.structure -= 1
        if (
            vt.unread is None or taken == before
        ):  # read since, without this one; or it had been put there
            vt.added.insert(0 if taken[0] > before[0] else len(vt.added), item)

    t.journal.record(undo)
    t.change(vt)
