"""Calls of a compiled function under `compiled_autograd`, for the option of that name."""

from typing import Any

import attrs
from stator_bytecode import FlatState

from stator._backward_engine import BackwardSettings
from stator._compiled_autograd import CompiledAutograd
from stator._options import Options
from stator._region import NOTHING


@attrs.frozen(eq=False)
class BackwardRunner:
    """Stands where a wrapper has its region: backward passes that a call starts are captured."""

    runner: Any
    options: Options
    newest: list[Any] = attrs.field(factory=lambda: [NOTHING])

    @property
    def finish(self) -> Any:
        return self.runner.finish

    def run(self, state: FlatState) -> Any:
        settings = self.options.backend, self.options.fullgraph, self.options.dynamic
        with CompiledAutograd(BackwardSettings(*settings)):
            return self.runner.run(state)
