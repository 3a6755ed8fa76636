"""The line that is shown while a compilation takes long."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import sys
import termios
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, TextIO

import pytest
import stator
import torch
from stator._capture import _progress
from stator._capture._progress import PROGRESS, CompileProgress

X = torch.ones(2)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def use_stderr(monkeypatch: pytest.MonkeyPatch, stream: TextIO) -> None:
    """Replace stderr for the line alone: pytest replaces that of `sys` when the test begins."""
    monkeypatch.setattr(_progress, "sys", SimpleNamespace(stderr=stream, modules=sys.modules))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    stream = Terminal()
    use_stderr(monkeypatch, stream)
    monkeypatch.delenv("STATOR_PROGRESS", raising=False)
    for name, seconds in {"PATIENCE": 0.0, "PAUSE": 0.01, "TICK": 0.005}.items():
        monkeypatch.setattr(_progress, name, seconds)
    yield stream
    thread = PROGRESS._thread
    if thread is not None:
        thread.join(5)


def until_shown(stream: io.StringIO) -> Any:
    def backend(graph: Any, inputs: Any) -> Any:
        for _ in range(400):
            if "compiling by" in stream.getvalue():
                break
            time.sleep(0.005)
        return graph.forward

    return backend


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def test_a_long_compilation_shows_what_it_does_on_one_line(terminal: Terminal) -> None:
    compiled = stator.compile(scaled, backend=until_shown(terminal), isolate_recompiles=True)
    assert torch.equal(compiled(X), scaled(X))
    assert PROGRESS._thread is not None
    PROGRESS._thread.join(5)
    text = terminal.getvalue()
    assert re.search(r"stator: scaled: compiling by backend \(1 frame, 1 graph, \d+ s\)", text)
    assert "\n" not in text
    assert text.endswith("\r")  # erased


def test_on_a_terminal_the_line_is_written_and_erased(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 100))
    os.set_blocking(master, False)
    written: list[bytes] = []

    def backend(graph: Any, inputs: Any) -> Any:
        for _ in range(400):
            if select.select([master], [], [], 0.005)[0]:
                written.append(os.read(master, 1 << 12))
            if b"compiling by backend" in b"".join(written):
                break
        return graph.forward

    with os.fdopen(slave, "w") as screen:
        use_stderr(monkeypatch, screen)
        stator.compile(scaled, backend=backend, isolate_recompiles=True)(X)
        assert PROGRESS._thread is not None
        PROGRESS._thread.join(5)
        written.append(os.read(master, 1 << 12))
    os.close(master)

    text = b"".join(written).decode()
    assert re.search(r"stator: scaled: compiling by backend \(1 frame, 1 graph, \d+ s\)", text)
    assert "\n" not in text
    assert text.endswith("\r")


def test_calls_that_compile_nothing_start_nothing(terminal: Terminal) -> None:
    compiled = stator.compile(scaled, backend="eager", isolate_recompiles=True)
    compiled(X)
    thread = PROGRESS._thread
    assert thread is not None
    thread.join(5)
    compiled(X)
    assert PROGRESS._thread is thread
    assert not thread.is_alive()


def test_a_short_compilation_shows_nothing(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_progress, "PATIENCE", 60.0)
    stator.compile(scaled, backend="eager", isolate_recompiles=True)(X)
    assert PROGRESS._thread is not None
    PROGRESS._thread.join(5)
    assert terminal.getvalue() == ""


def turn_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATOR_PROGRESS", "0")


def without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    use_stderr(monkeypatch, io.StringIO())


def without_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "_has_tqdm", lambda: False)


@pytest.mark.parametrize("change", [turn_off, without_a_terminal, without_tqdm])
def test_where_nobody_looks_there_is_no_thread(
    change: Any, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(monkeypatch)
    before = threading.active_count()
    seen = []
    monkeypatch.setattr(PROGRESS, "_thread", None)

    def backend(graph: Any, inputs: Any) -> Any:
        seen.append(threading.active_count())
        return graph.forward

    stator.compile(scaled, backend=backend, isolate_recompiles=True)(X)
    assert seen == [before]
    assert terminal.getvalue() == ""


def test_compilations_that_follow_each_other_count_as_one(terminal: Terminal) -> None:
    progress = CompileProgress()
    with progress.around("first"), progress.around("second"):
        progress.add_graph("compiling by inductor")
        assert progress.text(progress.begun + 12) == (
            "stator: second: compiling by inductor (2 frames, 1 graph, 12 s)"
        )
    assert progress.pending == 0
