"""Native calls that an entry made before its graph raised, and how they are taken back or kept.

A call cannot be undone, so the state that it changes, such as that of a stream of random numbers,
is saved ahead of the graph where that may be needed: where an operator that may refuse its values
is in the graph of a compiler, and in a graph that runs in program order where a call comes after
such an operator. All other entries with calls save nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from stator_guards import Source
from stator_subgraphs import calls_in, may_raise
from stator_variables import Emitter, EntryCall, lines_of
from torch.fx import GraphModule

Save = Callable[[Any], Callable[[], object]]
"""Takes an object, and returns a function that puts its state back."""


@attrs.frozen(eq=False)
class CallsAhead:
    """The calls of one entry ahead of its graph; `saved` are the objects whose state to save, None
    is torch's own generators."""

    calls: tuple[EntryCall, ...] = ()
    saved: tuple[Source | None, ...] = ()

    @classmethod
    def of(cls, calls: Sequence[EntryCall], module: GraphModule, runs_in_order: bool) -> CallsAhead:
        risky = [node.meta.get("began", 0) for node in calls_in(module) if may_raise(node)]
        if not calls or not risky:
            return cls(tuple(calls))
        changing = [call for call in calls if call.changes]
        if runs_in_order:
            changing = [call for call in changing if call.begun > min(risky)]
        made = {call.value for call in calls}
        keys = dict.fromkeys(call.key for call in changing)
        return cls(tuple(calls), tuple(key for key in keys if key is None or key not in made))

    @property
    def objects(self) -> tuple[Source, ...]:
        """The objects whose state is saved, in order."""
        return tuple(key for key in self.saved if key is not None)

    @property
    def saves(self) -> tuple[Save, ...]:
        """The functions that save the state of each of `objects`."""
        by_key = {call.key: call.save for call in self.calls}
        return tuple(by_key[key] for key in self.objects)

    def rewound(self, again: Sequence[EntryCall]) -> set[Source | None]:
        """Return the objects that have further calls than `again`, which are the first ones."""
        later = self.calls[len(again) :]
        return {call.key for call in later if call.changes}

    def starts_with(self, again: Sequence[EntryCall]) -> bool:
        pairs = zip(self.calls, again, strict=False)
        is_same = all(one.function is other.function for one, other in pairs)
        return is_same and len(again) <= len(self.calls)


def given_again(emitter: Emitter, again: Sequence[EntryCall], made_again: set[int]) -> list[str]:
    """Return lines for the first calls of an entry: what they gave is known as `results`; some are
    made again."""
    lines: list[str] = []
    for position, call in enumerate(again):
        if position in made_again:
            lines += lines_of(emitter, [call])
        else:
            lines.append(f"{call.value.name} = results[{position}]")
    return lines
