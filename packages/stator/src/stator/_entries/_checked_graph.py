"""The first call of a compiled graph, in which the backend is checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from stator_backends import Lowered

from stator.errors import BackendFailed

_SEQUENCES = (tuple, list)


@attrs.define(eq=False)
class CheckedGraph:
    """Takes the place of the graph in an entry until a call has shown that the function of the
    backend returns the outputs as a sequence.

    `script` writes the graph with given inputs.
    """

    lowered: Lowered
    script: Callable[..., str]
    name: str = ""
    namespace: dict[str, Any] = attrs.field(factory=dict, repr=False)

    def __call__(self, *inputs: object) -> Any:
        outputs, count = self.lowered.callable(*inputs), self.lowered.count
        is_sequence = isinstance(outputs, _SEQUENCES)
        if is_sequence and len(outputs) == count:
            self.namespace[self.name] = self.lowered.callable
            return outputs
        given = f"{len(outputs)} outputs" if is_sequence else type(outputs).__name__
        reason = f"{given} instead of a tuple of {count}"
        written = self.script(example_inputs=inputs)
        raise BackendFailed(self.lowered.spec.name, reason, "running the graph", written)

    def capture(self, emitter: Any) -> str:
        """Return the name of the graph in an entry."""
        is_checked = self.lowered.spec.compiles and self.lowered.count
        self.name = emitter.capture(self if is_checked else self.lowered.callable, "graph")
        return self.name
