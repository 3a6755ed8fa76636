"""Dicts: what is known of one, how a new one is made, and how writes to an existing one are
replayed.

`_dict_entries` builds an existing one, reads, writes and undoes; `_dict_methods` has the methods;
`_dict_update` adds other mappings; `_dict_view` and `_dict_view_methods` have the views.
"""

import collections
from collections.abc import Sized
from typing import Any

from attrs import Factory, define, field

from stator_variables._emitter import Emitter, filled, made_empty, namespace_of
from stator_variables._objects._keys import HashedTracker, runs_user_code
from stator_variables._space import Space
from stator_variables._trace._capture_state import Phase
from stator_variables._tracker import DELETED, MISSING, ArgumentOf, SubstituteOf, VariableTracker
from stator_variables._trackers import NONE, is_none, is_self_contained

DictEntries = dict[Any, tuple[Any, Any]]
"""Trackers of key and value, by hashed key."""


@define(eq=False, repr=False, slots=False)
class DictTracker(HashedTracker, references=("owner", "default_factory"), weak_references=("log",)):
    """A dict.

    Keys are hashed by `key_of`; `entries` maps a hashed key to (key tracker, value tracker), in
    order.

    `complete` is false for an existing dict of which only single keys have been read: `entries`
    then holds those (a value DELETED: known to be absent), in no order, and the rest is still in
    `real`. `log` has the writes, for replay: ("set" | "delete", hashed key, key tracker, value
    tracker); those in `undecided`, (key tracker, value tracker), come after them. `owner` is the
    object whose `__dict__` this is.
    """

    base = dict
    complete: bool = field(kw_only=True)
    log: list[tuple[str, Any, Any, Any]] = Factory(list)
    owner: VariableTracker | None = None
    iterators: list[Any] = Factory(list)  # over it, and perhaps under way
    default_factory: VariableTracker = NONE
    # whether a key of `real` compares in Python; None: nobody has looked
    may_call_eq: bool | None = None

    def contents(self, t: Space) -> Sized:
        return t.items(self)

    def fills_by_user_code(self, t: Space) -> bool:
        """Return True if filling it hashes keys in the program, which may read what the region has
        written."""
        return any(map(runs_user_code, self.entries))

    def in_graph(self, t: Space, part: ArgumentOf) -> Any:
        if self.cls is not dict:
            return MISSING
        return {key.constant(): part(value) for key, value in t.items(self)}

    def substitute(self, t: Space, part: SubstituteOf) -> object:
        if self.cls is not dict:
            return MISSING
        return {part(key): part(value) for key, value in t.items(self)}

    def rebuild(self, e: Emitter) -> str:
        if self.owner is not None:
            return namespace_of(e, self.owner, e.expr(self.owner))

        pairs, by_user_code = (
            [pair for pair in self.entries.values() if pair[1] is not DELETED],
            self.fills_by_user_code(e.t),
        )
        if (
            self.cls is dict
            and not by_user_code
            and all(is_self_contained(value) for _, value in pairs)
        ):
            inside = ", ".join(f"{e.expr(key)}: {e.expr(value)}" for key, value in pairs)
            return e.bind(self, f"{{{inside}}}")

        name = e.bind(self, _empty_dict(e, self))
        if self.cls is not collections.defaultdict and not is_none(self.default_factory):
            e.lines.append(f"{name}.default_factory = {e.expr(self.default_factory)}")
        lines = e.later[Phase.CHANGES].lines if by_user_code else e.lines
        # it may hold them, and they stand among its keys
        if not (by_user_code or all(it.exhausted for it in self.iterators)):
            e.unfilled.append(self)
            lines += [written_item(e, self.cls, name, key, NONE) for key, _ in pairs]
            e.unfilled.pop()
        for key, value in pairs:
            text = written_item(e, self.cls, name, key, value)
            lines.append(text)
        return filled(e, self, name)

    def replay(self, e: Emitter) -> None:
        name = e.expr(self)
        lines = (
            e.later[Phase.CHANGES].lines
            if any(runs_user_code(hashed) for _, hashed, _, _ in self.log)
            else e.lines
        )
        for key, value in (*_final_writes(self.log), *self.undecided):
            text = written_item(e, self.cls, name, key, value)
            lines.append(text)


def _empty_dict(e: Emitter, vt: DictTracker) -> str:
    if vt.cls is dict:
        return "{}"
    if vt.cls is collections.defaultdict:
        return f"{e.capture(vt.cls)}({e.expr(vt.default_factory)})"
    return made_empty(e, vt.cls)


def written_item(
    e: Emitter, cls: type, name: str, key: VariableTracker, value: VariableTracker | None
) -> str:
    """Item assignment, or without a value deletion, that no override of the class can see: the
    writes were interpreted already."""
    given = [e.expr(vt) for vt in (key, value) if vt is not None]
    if cls in (dict, collections.OrderedDict, collections.defaultdict):
        target = f"{name}[{given[0]}]"
        return f"del {target}" if value is None else f"{target} = {given[1]}"
    base = collections.OrderedDict if issubclass(cls, collections.OrderedDict) else dict
    verb = "delitem" if value is None else "setitem"
    function = e.capture(getattr(base, f"__{verb}__"), f"{base.__name__}_{verb}")
    return f"{function}({', '.join([name, *given])})"


def _final_writes(log: list[tuple[str, Any, Any, Any]]) -> list[tuple[Any, Any]]:
    """The log without overwritten values; deletions make the order of writes matter, so it is kept
    whole then."""
    if any(verb == "delete" for verb, *_ in log):
        return [(key, value) for _, _, key, value in log]
    final: DictEntries = {}
    for _, hashed, key, value in log:
        final[hashed] = (final[hashed][0] if hashed in final else key, value)
    return list(final.values())
