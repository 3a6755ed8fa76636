"""Callbacks at the start and at the end of compilations, and the ids of compilations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch._guards import CompileContext

X = torch.arange(3.0)


def broken(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    stator.graph_break()
    return y.cos()


@pytest.fixture
def seen() -> Iterator[list[tuple[str, str]]]:
    """The events of compilations in their order."""
    found: list[tuple[str, str]] = []

    @stator.on_compile_start
    def start(event: stator.CompileEvent) -> None:
        found.append(("start", event.name))

    @stator.on_compile_end
    def end(event: stator.CompileEvent) -> None:
        found.append(("end", event.name))

    yield found
    stator.remove_compile_callback(start)
    stator.remove_compile_callback(end)


def test_each_compilation_is_reported(
    compile_: Callable[..., Any], seen: list[tuple[str, str]]
) -> None:
    compiled = compile_(broken)
    line = broken.__code__.co_firstlineno + 2
    continued = f"broken from line {line}"
    names = ["broken", continued]
    for _ in range(2):
        compiled(X)
        assert seen == [(when, name) for name in names for when in ("start", "end")]
    seen.clear()
    compiled(torch.ones(4))
    assert [name for when, name in seen if when == "end"] == names


def test_compilation_that_fails_ends(seen: list[tuple[str, str]]) -> None:
    def failing(graph: Any, inputs: Any) -> Any:
        raise ValueError("of the backend")

    with pytest.raises(stator.BackendFailed):
        stator.compile(lambda x: x + 1, backend=failing)(X)
    assert [when for when, _ in seen] == ["start", "end"]


def test_compilation_inside_of_another_is_not_reported(seen: list[tuple[str, str]]) -> None:
    def compiling(graph: Any, inputs: Any) -> Any:
        stator.compile(lambda x: x * 2, backend="eager")(X)
        return graph.forward

    stator.compile(lambda x: x + 1, backend=compiling)(X)
    assert [when for when, _ in seen] == ["start", "end"]


def test_removed_callback_is_not_called(compile_: Callable[..., Any]) -> None:
    found: list[stator.CompileEvent] = []
    for register in (stator.on_compile_start, stator.on_compile_end):
        register(found.append)
    stator.remove_compile_callback(found.append)
    compile_(broken)(X)
    assert not found


def test_what_a_callback_raises_reaches_the_caller(compile_: Callable[..., Any]) -> None:
    def raising(event: stator.CompileEvent) -> None:
        raise ValueError(event.name)

    compiled = compile_(broken)
    stator.on_compile_start(raising)
    try:
        with pytest.raises(ValueError, match="broken"):
            compiled(X)
    finally:
        stator.remove_compile_callback(raising)
    assert torch.equal(compiled(X), broken(X))


def test_ids_count_frames_and_their_compilations() -> None:
    ids: list[str] = []

    def backend(graph: Any, inputs: Any) -> Any:
        ids.append(str(CompileContext.current_compile_id()))
        return graph.forward

    compiled = stator.compile(broken, backend=backend)
    for size in (3, 4):
        compiled(torch.ones(size))
    frames = [name.split("/") for name in ids]
    assert [compilation for _, compilation in frames] == ["0", "0", "1", "1"]
    first, second = frames[0][0], frames[1][0]
    assert int(second) == int(first) + 1
    assert [frame for frame, _ in frames] == [first, second] * 2
