"""The demo compares fairly: every way of running the model starts from nothing, in its own
process."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import demo
import pytest


@pytest.fixture
def shallow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "DEPTH", 1)


def started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> list[tuple[list[str], dict[str, str]]]:
    """Run all ways with processes that only write results; return the commands and environments of
    these."""
    found = []

    def start(command: list[str], env: dict[str, str], check: bool) -> None:
        found.append((command, env))
        pathlib.Path(command[-1]).write_text('{"first": 1.0}')

    monkeypatch.setattr(subprocess, "run", start)
    for way in demo.WAYS:
        assert demo._run_alone(way, "eager", tmp_path) == {"first": 1.0}
    return found


def test_every_way_has_an_empty_cache_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    environments = [env for _, env in started(monkeypatch, tmp_path)]
    for name in demo.CACHES:
        folders = {env[name] for env in environments}
        assert len(folders) == len(demo.WAYS)
        assert not any(pathlib.Path(folder).exists() for folder in folders)


def test_every_way_is_a_process_of_this_interpreter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    commands = [command for command, _ in started(monkeypatch, tmp_path)]
    assert [command[:2] for command in commands] == [[sys.executable, demo.__file__]] * 3
    assert [command[2] for command in commands] == list(demo.WAYS)


@pytest.mark.usefixtures("shallow")
@pytest.mark.filterwarnings("ignore")
def test_ways_give_the_same_logits(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found: dict[str, Any] = {}
    for way in demo.WAYS:
        demo.run(way, "eager", tmp_path / way)
        found[way] = json.loads((tmp_path / way).read_text())

    assert "1 graph, " in capsys.readouterr().out
    for way in demo.WAYS:
        row = demo._row(way, found[way], found["plain"])
        assert row.startswith(way)
        assert float(row.split()[-1]) < 1e-4
