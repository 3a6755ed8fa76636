"""Steps on random streams that an entry made before its graph raised, and how they are taken back
or kept.

A step cannot be undone, so the state of a stream is saved ahead of the graph where that may be
needed: where an operator that may refuse its values is in the graph of a compiler, and in a graph
that runs in program order where a step comes after such an operator. All other entries with steps
save nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from stator_guards import Source
from stator_subgraphs import calls_in, may_raise
from stator_variables import Emitter, Step, lines_of
from torch.fx import GraphModule


@attrs.frozen(eq=False)
class RandomSteps:
    """The steps of one entry ahead of its graph; `saved` are the streams to save, None is
    torch's own."""

    steps: tuple[Step, ...] = ()
    saved: tuple[Source | None, ...] = ()

    @classmethod
    def of(cls, steps: Sequence[Step], module: GraphModule, runs_in_order: bool) -> RandomSteps:
        risky = [node.meta.get("began", 0) for node in calls_in(module) if may_raise(node)]
        if not steps or not risky:
            return cls(tuple(steps))
        changing = [step for step in steps if step.changes]
        if runs_in_order:
            changing = [step for step in changing if step.begun > min(risky)]
        made = {step.drawn for step in steps}
        keys = dict.fromkeys(step.key for step in changing)
        return cls(tuple(steps), tuple(key for key in keys if key is None or key not in made))

    def rewound(self, again: Sequence[Step]) -> set[Source | None]:
        """Return the streams that have further steps than `again`, which are the first ones."""
        later = self.steps[len(again) :]
        return {step.key for step in later if step.changes}

    def starts_with(self, again: Sequence[Step]) -> bool:
        pairs = zip(self.steps, again, strict=False)
        is_same = all(one.function is other.function for one, other in pairs)
        return is_same and len(again) <= len(self.steps)


def given_again(emitter: Emitter, again: Sequence[Step], made_again: set[int]) -> list[str]:
    """Return lines for the first steps of an entry: what they gave is known as `drawn`; some are
    made again."""
    lines: list[str] = []
    for position, step in enumerate(again):
        if position in made_again:
            lines += lines_of(emitter, [step])
        else:
            lines.append(f"{step.drawn.name} = drawn[{position}]")
    return lines
