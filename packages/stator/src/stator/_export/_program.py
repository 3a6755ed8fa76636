"""The result of `capture`: a graph, and what its inputs, outputs, conditions and effects are."""

from collections.abc import Mapping
from typing import Any, Literal

import attrs
from torch.fx import GraphModule
from torch.utils._pytree import TreeSpec

from stator.errors import SourceSpan

InputKind = Literal["user input", "parameter", "buffer", "constant"]
OutputKind = Literal["computed", "input", "constant"]


@attrs.frozen
class CapturedInput:
    """One placeholder of the graph. `source` is an expression over the arguments and the subject;
    `target` is the qualified name of a parameter or buffer."""

    name: str
    kind: InputKind
    source: str
    target: str | None = None


@attrs.frozen
class CapturedOutput:
    """One leaf of the result: an output of the graph by its position, an argument of the call by
    its source, or a constant."""

    kind: OutputKind
    value: Any


@attrs.frozen
class CapturedGuard:
    """One condition under which the graph is that of the function, and the line that needs it."""

    source: str
    condition: str
    where: SourceSpan

    def __str__(self) -> str:
        return f"{self.source}: {self.condition}" if self.source else self.condition


@attrs.frozen(eq=False, repr=False)
class CapturedProgram:
    """One call of a function, captured whole.

    `graph` takes the inputs in their order and returns a tuple. `out_spec` is the structure of the
    result, with `outputs` as its leaves. `side_effects` are the statements by which the call
    changes existing objects, apart from tensors that the graph itself writes to; `g` in them are
    the outputs of the graph. `sources` maps placeholders to where their values come from.
    """

    graph: GraphModule
    inputs: tuple[CapturedInput, ...]
    outputs: tuple[CapturedOutput, ...]
    out_spec: TreeSpec
    guards: tuple[CapturedGuard, ...]
    side_effects: tuple[str, ...]

    def __repr__(self) -> str:
        parts = {
            "inputs": [f"{each.name}: {each.kind} {each.source}" for each in self.inputs],
            "graph": self.graph.code.strip().splitlines(),
            "outputs": [f"{each.kind} {each.value!r}" for each in self.outputs],
            "guards": self.guards,
            "side effects": self.side_effects,
        }
        lines = ["CapturedProgram"]
        for title, items in parts.items():
            lines += [f"  {title}", *(f"    {item}" for item in items)]
        return "\n".join(lines)

    @property
    def sources(self) -> Mapping[str, str]:
        return {spec.name: spec.source for spec in self.inputs}
