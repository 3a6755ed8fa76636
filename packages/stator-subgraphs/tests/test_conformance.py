"""Our own recorder passes the kit, and recorders with one fault each do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from stator_subgraphs import OutputGraph
from stator_subgraphs.conformance import Driver, FixedLocations, GraphRecorderConformance
from stator_variables import TraceLocations


class TestOutputGraph(GraphRecorderConformance):
    @pytest.fixture
    def make_recorder(self) -> Callable[[TraceLocations], Any]:
        return OutputGraph


class Delegating:
    """A recorder that does everything right, for one fault to be put in."""

    def __init__(self, places: TraceLocations) -> None:
        self.right = OutputGraph(places)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.right, name)


class MakesInputsTwice(Delegating):
    def tensor_input(self, source: Any, tensor: torch.Tensor, dims: Any, hint: str) -> Any:
        return self.right.tensor_input(source, tensor.view_as(tensor), dims, hint)


class RunsTheOperators(Delegating):
    def call(self, target: Any, args: Any, kwargs: Any) -> Any:
        torch.rand(1)
        return self.right.call(target, args, kwargs)


class NeverRollsBack(Delegating):
    def rollback(self, mark: Any) -> None:
        pass


class HidesErrors(Delegating):
    def call(self, target: Any, args: Any, kwargs: Any) -> Any:
        try:
            return self.right.call(target, args, kwargs)
        except Exception:
            return args[0]


class ForgetsTheLine(Delegating):
    def call(self, target: Any, args: Any, kwargs: Any) -> Any:
        traced = self.right.call(target, args, kwargs)
        traced.node.meta.pop("stack_trace")
        return traced


KIT = GraphRecorderConformance()


@pytest.mark.parametrize(
    ("recorder", "test"),
    [
        (MakesInputsTwice, KIT.test_one_tensor_is_one_input),
        (RunsTheOperators, KIT.test_random_streams_are_untouched),
        (NeverRollsBack, KIT.test_a_rollback_leaves_no_trace_in_the_graph),
        (NeverRollsBack, KIT.test_a_rollback_takes_back_writes_to_fakes),
        (HidesErrors, KIT.test_the_error_of_an_operator_is_a_break),
    ],
)
def test_a_known_fault_fails_the_kit(recorder: type, test: Callable[[Driver], None]) -> None:
    try:
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            test(Driver(recorder(FixedLocations())))
    finally:
        torch._C._set_grad_enabled(True)


def test_forgetting_the_line_fails_the_kit() -> None:
    with pytest.raises(KeyError):
        KIT.test_a_node_says_where_it_is_from(ForgetsTheLine)
