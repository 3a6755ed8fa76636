"""Substitutes for the layers above, for trying a graph recorder by hand. They need no test runner.

graph = OutputGraph(FixedLocations())
driver = Driver(graph)
captured = driver.finish(driver.call(torch.sin, driver.input("x", torch.ones(3))))
"""

from collections.abc import Sequence
from typing import Any

import torch
from attrs import Factory, define
from stator_bytecode.errors import SourceSpan
from stator_guards import ParameterSource
from stator_variables import Dim, GraphValue, TraceLocation

from stator_subgraphs._check import check_graph

__all__ = ["Driver", "FixedLocations"]


@define
class FixedLocations:
    """A program position that stays on one line until `at` changes it."""

    place: TraceLocation = Factory(lambda: TraceLocation((SourceSpan("program.py", "f", 1),), ()))

    def current(self) -> TraceLocation:
        return self.place

    def module(self, tracker: object) -> None:
        """Return the entry of a module: this program has none."""

    def at(self, line: int, function: str = "f") -> None:
        self.place = TraceLocation((SourceSpan("program.py", function, line),), self.place.modules)


@define(eq=False)
class Driver:
    """Drive a recorder by hand in place of the interpreter; the real values are kept by name."""

    recorder: Any
    values: dict[str, Any] = Factory(dict)

    def input(self, name: str, value: object, *kinds: str) -> GraphValue:
        """Add a parameter of the program. `kinds` of its dimensions default to static."""
        self.values[name] = value
        if not isinstance(value, torch.Tensor):
            return self.traced(self.recorder.number_input(ParameterSource(name), value, name))
        dims = [Dim(kind) for kind in kinds] + [Dim()] * (value.dim() - len(kinds))
        return self.traced(self.recorder.tensor_input(ParameterSource(name), value, dims, name))

    def call(self, target: object, *args: object, **kwargs: object) -> GraphValue:
        return self.traced(self.recorder.call(target, args, kwargs))

    def traced(self, value: object) -> GraphValue:
        assert isinstance(value, GraphValue)
        return value

    def finish(self, *outputs: GraphValue) -> Any:
        """Return the finished graph, after checking that it has no faults."""
        captured = self.recorder.finish(outputs)
        faults = check_graph(captured.module)
        assert not faults, faults
        return captured

    def arguments(self, captured: Any, **values: object) -> list[Any]:
        """Read the inputs of the graph from their sources, with `values` replacing recorded
        ones."""
        state = {**self.values, **values}
        return [_loaded(item, item.source.evaluate(state)) for item in captured.inputs]

    def run(self, captured: Any, **values: Any) -> Sequence[Any]:
        """Run the graph on the values it was traced with, or on others."""
        return captured.module(*self.arguments(captured, **values))  # type: ignore[no-any-return]


def _loaded(item: Any, value: Any) -> object:
    return torch.tensor(value, dtype=torch.float64) if item.kind == "float" else value
