"""Lists: all that is particular to them.

In this order: storage; how a new list is made, and how changes of an existing one are replayed; the
builder of an existing one; its ends, changes and how each is undone. `_list_methods` has the
methods, `_sequence` what tuples and deques have as well, `_deque` what differs there.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from stator_bytecode import Result, after
from stator_guards import ItemSource, Source

from stator_variables._emitter import Emitter, filled, made_empty
from stator_variables._objects import _sequence
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._lookup import defines
from stator_variables._objects._program_error import complain
from stator_variables._objects._tuple import SequenceTracker, refuse_own_items
from stator_variables._objects._wrap import of_instances, read_items
from stator_variables._space import Space
from stator_variables._tracker import MISSING, ArgumentOf, VariableTracker, is_a, source_of
from stator_variables._trackers import NONE, ConstantTracker, is_self_contained

builders = BuilderTable()


class ListTracker(SequenceTracker, references=("added",)):
    """A list.

    An existing one is `unread` until its items are needed: `added` has those that were put at its
    end, and `taken` the numbers of those that were taken off the front and the back.
    """

    base: type = list
    maxlen: int | None = None  # of a deque
    unread: Callable[[], list[VariableTracker]] | None = None
    added: list[VariableTracker]
    taken = (0, 0)

    @property
    def items(self) -> list[VariableTracker]:
        if self.unread is not None:
            read = self.unread
            self.unread = None
            try:
                items, (front, back) = read(), self.taken
                self.added[:0] = items[front : len(items) - back]
            except BaseException:  # they stay unread: what was put at the end is not all there is
                self.unread = read
                raise
        return self.added

    @items.setter
    def items(self, items: list[VariableTracker]) -> None:
        self.added = items

    def in_graph(self, t: Space, part: ArgumentOf) -> Any:
        refuse_own_items(t, self)
        return [*map(part, self.items)]

    def rebuild(self, e: Emitter) -> str:
        is_exact = self.cls is list
        if is_exact and all(map(is_self_contained, self.items)):
            return e.bind(self, f"[{e.listed(self.items)}]")
        name = e.bind(self, "[]" if is_exact else made_empty(e, self.cls))
        if self.items:
            items = e.listed(self.items)
            begun = f"{name}.extend(" if is_exact else f"list.extend({name}, "
            e.lines.append(f"{begun}[{items}])")
        return filled(e, self, name)

    def replay(self, e: Emitter) -> None:
        name = e.expr(self)
        if self.unread is None:
            items = e.listed(self.items)
            is_exact = self.cls is list
            begun = f"{name}[:] = " if is_exact else f"list.__setitem__({name}, slice(None), "
            e.lines.append(f"{begun}[{items}]{'' if is_exact else ')'}")
            return
        front, back = self.taken
        taken = [f"del {name}[:{front}]"] * bool(front) + [f"del {name}[-{back}:]"] * bool(back)
        self.replay_ends(e, "list", name, taken)

    def replay_ends(self, e: Emitter, base: str, name: str, taken: list[str]) -> None:
        """Write what was taken off, and put at, the ends of one that nobody has read."""
        added = e.listed(self.added)
        e.lines += taken
        if added:
            e.lines.append(f"{base}.extend({name}, [{added}])")


# -- existing lists --------------------------------------------------------------------------------
@builders.by_base.handles(list)
@of_instances
def build_list(t: Space, real: object, source: Source) -> VariableTracker:
    return unread_list(t, ListTracker([], type(real)), real, source)


def unread_list(t: Space, tracker: ListTracker, real: object, source: Source) -> ListTracker:
    base = tracker.base  # without the tracker: a cycle would keep `real` alive after the trace
    tracker.unread = lambda: read_items(t, base, real, source)
    return tracker


# -- the ends of a list whose items are not all read ---------------------------------------
# A loop that takes items off, round by round with a break in it, is no reason to compile each
# round again for another length. A guard only requires as many items as were looked at.
def is_open(vt: Any) -> bool:
    """Return True for an existing list or deque, of no subclass and without a limit, that is
    unread."""
    is_unread = is_a(vt, ListTracker) and vt.unread is not None
    return is_unread and vt.cls is vt.base and vt.maxlen is None


def has_more(t: Space, vt: ListTracker) -> bool:
    """Return True if an unread list is not empty; False also where it has to be read first."""
    return is_open(vt) and (bool(vt.added) or _relies(t, vt, sum(vt.taken) + 1))


def _relies(t: Space, vt: ListTracker, length: int) -> bool:
    if len(vt.real) < length:
        return False
    t.need_length(vt.source, length)
    return True


def at_end(t: Space, vt: ListTracker, key: VariableTracker) -> Any:
    """Return the item at a negative constant index, or at the front of a deque.

    MISSING where more has to be read.
    """
    if key.cls is not int or not is_a(key, ConstantTracker) or not is_open(vt):
        return MISSING
    if key.value >= (vt.base is not list):
        return MISSING
    index, (front, back) = key.value + len(vt.added), vt.taken
    if key.value == 0:
        return _existing(t, vt, front) if _relies(t, vt, front + back + 1) else MISSING
    if index >= 0:
        return vt.added[index]
    return _existing(t, vt, index - back) if _relies(t, vt, front + back - index) else MISSING


def _existing(t: Space, vt: ListTracker, index: int) -> Any:
    try:
        return t.wrap(vt.real[index], ItemSource(source_of(vt), index))
    except IndexError:  # another thread took it
        return MISSING


def take(t: Space, vt: ListTracker, index: int) -> Any:
    """`vt.pop(index)` of an unread list, for its first item or its last.

    MISSING where more has to be read.
    """
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


def _note(t: Space, vt: ListTracker, item: VariableTracker, taken: tuple[int, int]) -> None:
    t.lifetimes.note_release(item, vt)
    before = vt.taken
    vt.taken = taken
    vt.structure += 1

    def undo() -> None:
        vt.taken = before
        vt.structure -= 1
        # It was read since, without this one, or the item had been put there.
        if vt.unread is None or taken == before:
            vt.added.insert(0 if taken[0] > before[0] else len(vt.added), item)

    t.journal.record(undo)
    t.mark_mutated(vt)


# -- changes ---------------------------------------------------------------------------------------
def replace_items(t: Space, vt: ListTracker, items: list[Any], *, structural: bool = True) -> None:
    """Write the new items at once, which are undone at once: every mutation but those at the
    ends."""
    t.write(vt, items=items, structure=vt.structure + structural)


def change_items(
    t: Space, vt: ListTracker, change: Callable[[list[Any]], Any], *, structural: bool = True
) -> Any:
    """Apply `change` to a copy of the items, which the list gets, and return its result."""
    items = list(vt.items)
    found = change(items)
    replace_items(t, vt, items, structural=structural)
    return found


def append(t: Space, vt: ListTracker, item: VariableTracker) -> None:
    if vt.maxlen is None and (vt.source is None or vt.unread is not None):
        _append_unread(t, vt, item)
        return
    items = [*vt.items, item]
    if vt.maxlen is not None and len(items) > vt.maxlen:
        items = items[len(items) - vt.maxlen :]
    replace_items(t, vt, items)


def _append_unread(t: Space, vt: ListTracker, item: VariableTracker) -> None:
    """Append without reading what is there already, and undo that by taking the item off again.

    A list that grows from call to call is no reason to compile again.
    """
    vt.added.append(item)
    vt.structure += 1

    def undo() -> None:
        vt.added.pop()
        vt.structure -= 1

    t.journal.record(undo)
    t.mark_mutated(vt)


def extend(t: Space, vt: ListTracker, iterable: Any) -> Result:
    """Append item by item, as C does for all but lists and tuples.

    The iterable may look at the list, or raise half way.
    """
    if _sequence.is_plain_sequence(t, iterable):
        return _extend_at_once(t, vt, iterable.items)
    if iterable is vt:
        found = t.drain(iterable, error_text="argument must be an iterable")
        return after(found, functools.partial(_extend_at_once, t, vt))
    return t.for_each(iterable, lambda item: append(t, vt, item), calls_len=True)


def _extend_at_once(t: Space, vt: ListTracker, items: Sequence[Any]) -> ConstantTracker:
    for item in list(items):
        append(t, vt, item)
    return NONE


def extend_display(t: Space, vt: ListTracker, iterable: VariableTracker) -> Result:
    """`[*iterable]`, which has an error text of its own."""
    if not defines(t, iterable.cls, "__iter__", "__getitem__"):
        complain(t, TypeError, "Value after * must be an iterable, not ", iterable.cls)
    return extend(t, vt, iterable)
