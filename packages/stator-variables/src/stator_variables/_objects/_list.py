"""Lists."""

import collections
from collections.abc import Callable
from typing import Any

from stator_variables._emitter import Emitter, filled, made_empty
from stator_variables._kinds import is_self_contained
from stator_variables._objects._sequence import SequenceTracker


class ListTracker(SequenceTracker):
    """A list, or a deque (`maxlen` set then).

    An existing one is `unread` until somebody asks for its items: `added` has those that were put at its end, `taken`
    says how many were taken off the front and the back of what there was.
    """

    maxlen: int | None = None
    structure = 0  # counts what an iterator over a deque objects to
    unread: Callable[[], list[Any]] | None = None
    added: list[Any]
    taken = (0, 0)

    @property
    def items(self) -> list[Any]:
        if self.unread is not None:
            read, self.unread = self.unread, None
            try:
                items, (front, back) = read(), self.taken
                self.added[:0] = items[front : len(items) - back]
            except BaseException:  # they stay unread: what was put at the end is not all there is
                self.unread = read
                raise
        return self.added

    @items.setter
    def items(self, items: list[Any]) -> None:
        self.added = items

    def rebuild(self, e: Emitter) -> str:
        if self.cls is list and all(is_self_contained(item) for item in self.items):
            return e.bind(self, f"[{', '.join(e.expr(item) for item in self.items)}]")
        name = e.bind(self, "[]" if self.cls is list else made_empty(e, self.cls))
        if self.maxlen is not None:
            e.lines.append(f"{list_base(e, self)}.__init__({name}, (), {self.maxlen})")
        if self.items:
            late = (
                []
                if issubclass(self.cls, list)
                else [i for i, item in enumerate(self.items) if not is_self_contained(item)]
            )
            items = ", ".join(
                "None" if i in late else e.expr(item) for i, item in enumerate(self.items)
            )
            begun = (
                f"{name}.extend(" if self.cls is list else f"{list_base(e, self)}.extend({name}, "
            )
            e.lines.append(f"{begun}[{items}])")
            for i in late:  # an iterator over a deque that is in it stands among as many items
                text = f"{list_base(e, self)}.__setitem__({name}, {i}, {e.expr(self.items[i])})"
                e.lines.append(text)
        return filled(e, self, name)

    def replay(self, e: Emitter) -> None:
        name = e.expr(self)
        if self.unread is not None:
            e.lines += _at_ends(e, self, name)
            return
        if (
            issubclass(self.cls, collections.deque) and not self.structure
        ):  # iterators over it go on
            put = e.capture(collections.deque.__setitem__, "deque_setitem")
            e.lines += [f"{put}({name}, {i}, {e.expr(item)})" for i, item in enumerate(self.items)]
            return
        items = ", ".join(e.expr(item) for item in self.items)
        if issubclass(self.cls, collections.deque):
            base = list_base(e, self)
            e.lines += [f"{base}.clear({name})", f"{base}.extend({name}, [{items}])"]
        elif self.cls is list:
            e.lines.append(f"{name}[:] = [{items}]")
        else:
            e.lines.append(f"list.__setitem__({name}, slice(None), [{items}])")


def _at_ends(e: Emitter, vt: Any, name: str) -> list[str]:
    """What was taken off, and put at, the ends of a list that nobody has read."""
    base, (front, back) = list_base(e, vt), vt.taken
    if base == "list":
        lines = [f"del {name}[:{front}]"] * bool(front) + [f"del {name}[-{back}:]"] * bool(back)
    else:
        lines = [f"{base}.popleft({name})"] * front + [f"{base}.pop({name})"] * back
    added = ", ".join(e.expr(item) for item in vt.added)
    return [*lines, f"{base}.extend({name}, [{added}])"] if added else lines


def list_base(e: Emitter, vt: Any) -> str:
    return e.capture(collections.deque) if issubclass(vt.cls, collections.deque) else "list"
