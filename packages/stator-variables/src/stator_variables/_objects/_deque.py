"""Deques: what differs from lists (Modules/_collectionsmodule.c)."""

from collections import deque
from typing import Any

from stator_guards import AttrSource, Equals, Source

from stator_variables._emitter import Emitter, filled, made_empty
from stator_variables._objects import _list
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._list import ListTracker
from stator_variables._objects._wrap import new_namespace, of_instances
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker
from stator_variables._trackers import is_self_contained

builders = BuilderTable()


class DequeTracker(ListTracker):
    """A deque: `maxlen` and `structure` are its own."""

    base = deque

    def rebuild(self, e: Emitter) -> str:
        name, base = e.bind(self, made_empty(e, self.cls)), e.capture(deque)
        if self.maxlen is not None:
            e.lines.append(f"{base}.__init__({name}, (), {self.maxlen})")
        late = {i: item for i, item in enumerate(self.items) if not is_self_contained(item)}
        items = ["None" if i in late else e.expr(item) for i, item in enumerate(self.items)]
        if items:
            e.lines.append(f"{base}.extend({name}, [{', '.join(items)}])")
        for i, item in late.items():  # an iterator over it that is in it stands among as many items
            text = f"{base}.__setitem__({name}, {i}, {e.expr(item)})"
            e.lines.append(text)
        return filled(e, self, name)

    def replay(self, e: Emitter) -> None:
        name = e.expr(self)
        if self.unread is None and not self.structure:  # iterators over it go on
            put = e.capture(deque.__setitem__, "deque_setitem")
            e.lines += [f"{put}({name}, {i}, {e.expr(item)})" for i, item in enumerate(self.items)]
            return
        if self.unread is None:
            items, base = e.listed(self.items), e.capture(deque)
            e.lines += [f"{base}.clear({name})", f"{base}.extend({name}, [{items}])"]
            return
        base, (front, back) = e.capture(deque), self.taken
        taken = [f"{base}.popleft({name})"] * front + [f"{base}.pop({name})"] * back
        self.replay_ends(e, base, name, taken)


@builders.by_base.handles(deque)
@of_instances
def build_deque(t: Space, real: Any, source: Source) -> VariableTracker:
    tracker = _list.unread_list(t, DequeTracker([], type(real)), real, source)
    t.guard(AttrSource(source, "maxlen"), Equals(real.maxlen))
    tracker.maxlen = real.maxlen
    return tracker


def new_deque(cls: type, items: list[Any], maxlen: int | None) -> DequeTracker:
    made = DequeTracker(items, cls)
    made.maxlen = maxlen
    if cls is not deque:
        new_namespace(made)
    return made
