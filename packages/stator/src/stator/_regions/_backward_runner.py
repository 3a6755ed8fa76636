"""Calls of a compiled function under `compiled_autograd`, for the option of that name."""

from typing import Any

import attrs
from stator_bytecode import FlatState

from stator._autograd._backward_engine import BackwardSettings
from stator._autograd._compiled_autograd import CompiledAutograd
from stator._regions._region import NOTHING
from stator._settings._options import Options


@attrs.frozen(eq=False)
class BackwardRunner:
    """Stands where a wrapper has the runner of its region: backward passes that a call starts are
    captured."""

    runner: Any
    options: Options
    newest: list[Any] = attrs.field(factory=lambda: [NOTHING])

    @property
    def finish(self) -> Any:
        return self.runner.finish

    def run(self, state: FlatState) -> Any:
        settings = BackwardSettings(
            self.options.backend, self.options.fullgraph, self.options.dynamic
        )
        with CompiledAutograd(settings):
            return self.runner.run(state)
