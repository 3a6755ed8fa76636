"""Artifacts of compilations in the log that `tlparse` reads."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import stator
import torch

X = torch.arange(3.0)


class Recorded(logging.Handler):
    """The metadata and the payload of each artifact."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[dict[str, Any], Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        facts: Any = record
        self.found.append((facts.metadata, facts.payload))

    def of(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        return [each for each in self.found if name in each[0]]

    def artifacts(self, name: str) -> list[Any]:
        found = self.of("artifact")
        return [payload for facts, payload in found if facts["artifact"]["name"] == name]


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    handler, trace_log = Recorded(), logging.getLogger("torch.__trace")
    trace_log.addHandler(handler)
    yield handler
    trace_log.removeHandler(handler)


def broken(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    stator.graph_break("on purpose")
    return y.cos()


def test_artifacts_of_a_compilation(recorded: Recorded) -> None:
    stator.compile(broken, backend="eager")(X)
    for name in ("dynamo_start", "dynamo_output_graph", "dynamo_cpp_guards_str"):
        assert len(recorded.of(name)) == 2
    (graph, code), _ = recorded.of("dynamo_output_graph")
    assert graph["dynamo_output_graph"]["sizes"] == {"x": ["3"], "sin": ["3"]}
    assert "x.sin()" in code
    assert ["def entry_" in text for text in recorded.artifacts("stator_entry")] == [True, True]
    (reason,) = recorded.artifacts("dynamo_graph_break_reason")
    assert "on purpose" in reason


def test_artifacts_have_the_id_of_their_compilation(recorded: Recorded) -> None:
    compiled = stator.compile(lambda x: x + 1, backend="eager")
    for size in (3, 4):
        compiled(torch.ones(size))
    ids = [facts["frame_compile_id"] for facts, _ in recorded.of("compilation_metrics")]
    assert ids == [0, 1]
    (reasons,) = recorded.artifacts("recompile_reasons")
    assert "is now one with size 4" in json.loads(reasons)[0]


def test_stack_of_a_compilation_begins_in_the_program(recorded: Recorded) -> None:
    stator.compile(broken, backend="eager")(X)
    (facts, _), _ = recorded.of("dynamo_start")
    names = [frame["name"] for frame in facts["dynamo_start"]["stack"]]
    own = test_stack_of_a_compilation_begins_in_the_program.__name__
    assert names[-2:] == [own, "broken"]


def test_metrics_of_compilations(recorded: Recorded) -> None:
    compiled = stator.compile(
        lambda x: x + 1, backend=lambda graph, inputs: None, options={"fallback": True}
    )
    compiled(X)
    stator.compile(broken, backend="eager")(X)
    failed, first, _ = (
        facts["compilation_metrics"] for facts, _ in recorded.of("compilation_metrics")
    )
    assert "cannot be called" in failed["fail_reason"]
    assert (failed["has_guarded_code"], first["has_guarded_code"]) == (False, True)
    assert (first["co_name"], first["graph_op_count"]) == ("broken", 1)
    assert first["guard_count"] > 1
