"""Loggers by subject: what switches them on, and that a call with an entry logs nothing."""

from __future__ import annotations

import logging
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import stator
import torch
from stator._settings import _logs

X = torch.arange(3.0)
OF_TORCH: Any = torch._logging


@pytest.fixture(autouse=True)
def logs_are_off(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("STATOR_LOGS", raising=False)
    stator.set_logs()
    yield
    stator.set_logs()


def inner(x: torch.Tensor) -> torch.Tensor:
    stator.graph_break("on purpose")
    return x.cos()


def outer(x: torch.Tensor) -> torch.Tensor:
    return inner(x.sin()) + 1


def logged(caplog: pytest.LogCaptureFixture, subject: str, level: int, *calls: Any) -> list[str]:
    """Return the records of one logger, which is switched on as any logger of Python is."""
    logger = logging.getLogger(f"stator.{subject}")
    logger.setLevel(level)
    compiled = stator.compile(outer, backend="eager")
    for call in calls or (X,):
        compiled(call)
    found = ours(caplog)
    assert {record.name for record in found} <= {logger.name}
    return [record.getMessage() for record in found]


def ours(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Return the records of stator; pytest also captures those that torch keeps to itself."""
    return [record for record in caplog.records if record.name.startswith("stator")]


EXPECTED = {
    "graph": "call_method[target=sin]",
    "graph_code": "= x.sin()",
    "guards": "x is a Tensor of torch.float32 on cpu, sizes (3)",
    "recompiles": "x was a Tensor of torch.float32 on cpu, sizes (3), is now one with size 4",
    "graph_breaks": "on purpose",
    "bytecode": "def entry_",
    "dynamic": "x.size(0) is s",
}


@pytest.mark.parametrize("subject", EXPECTED)
def test_records_of_each_subject(caplog: pytest.LogCaptureFixture, subject: str) -> None:
    found = logged(caplog, subject, logging.INFO, X, torch.ones(4))
    assert any(EXPECTED[subject] in text for text in found)
    assert EXPECTED.keys() | {"perf_hints"} == _logs.SUBJECTS.keys()


def test_call_with_an_entry_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    stator.set_logs(all=logging.DEBUG)
    logging.getLogger("stator").propagate = True
    compiled = stator.compile(outer, backend="eager")
    for _ in range(2):
        compiled(X)
    assert ours(caplog)
    caplog.clear()
    compiled(X)
    assert not ours(caplog)


def test_details_are_for_debug(caplog: pytest.LogCaptureFixture) -> None:
    (text,) = logged(caplog, "graph_breaks", logging.INFO)
    assert "called by" not in text
    caplog.clear()
    stator.reset()
    (text,) = logged(caplog, "graph_breaks", logging.DEBUG)
    assert "called by" in text
    assert "in outer" in text


def test_function_that_runs_eagerly_is_a_hint(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("stator.perf_hints").setLevel(logging.INFO)
    failing = stator.compile(
        lambda x: x + 1, backend=lambda graph, inputs: None, options={"fallback": True}
    )
    failing(X)
    (record,) = ours(caplog)
    assert "runs eagerly" in record.getMessage()
    assert "backend-failed" in record.getMessage()


def test_operators_that_run_uncompiled_are_a_hint(caplog: pytest.LogCaptureFixture) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return (x.to_sparse() * 2).to_dense() + 1

    logging.getLogger("stator.perf_hints").setLevel(logging.INFO)
    compiled = stator.compile(fn, backend="aot_eager", options={"uncompiled": "allow"})
    for _ in range(2):
        compiled(X)
    (record,) = ours(caplog)
    text = record.getMessage()
    assert text.endswith("fn: to_sparse, mul, to_dense")
    assert "fn run uncompiled (3 of 4)\n  3 run as they are: sparse tensors\n" in text
    assert f'File "{__file__}", line {fn.__code__.co_firstlineno + 1}' in text


def test_graph_that_is_compiled_is_no_hint(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("stator.perf_hints").setLevel(logging.INFO)
    stator.compile(lambda x: x + 1, backend="aot_eager")(X)
    assert not ours(caplog)


def test_logs_are_off_at_first(caplog: pytest.LogCaptureFixture) -> None:
    stator.compile(outer, backend="eager")(X)
    assert not ours(caplog)


def test_logs_go_to_a_file(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "compile.log"
    stator.set_logs(graph_breaks=True, guards=False, file=file)
    stator.compile(outer, backend="eager")(X)
    stator.set_logs(file=file)
    stator.reset()
    stator.compile(outer, backend="eager")(X)
    text = file.read_text()
    assert text.count("graph break in") == 1
    assert "stator.graph_breaks] graph break in outer" in text
    assert "stator.guards" not in text
    assert "on purpose" in capsys.readouterr().err


def test_artifact_that_torch_has_switched_on(capfd: pytest.CaptureFixture[str]) -> None:
    OF_TORCH.set_logs(graph_breaks=True)
    try:
        stator.compile(outer, backend="eager")(X)
    finally:
        OF_TORCH.set_logs()
    assert "[__graph_breaks]   cannot capture: a call of" in capfd.readouterr().err
    stator.reset()
    stator.compile(outer, backend="eager")(X)
    assert not capfd.readouterr().err


def test_environment_takes_precedence(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("STATOR_LOGS", "guards")
    stator.set_logs(graph_breaks=True)
    assert "set_logs has no effect" in caplog.text
    assert not logging.getLogger("stator.graph_breaks").isEnabledFor(logging.INFO)
    monkeypatch.delenv("STATOR_LOGS")


def test_levels_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATOR_LOGS", "+guards, recompiles,-bytecode,all")
    _logs._from_environment()
    levels = {name: logging.getLogger(f"stator.{name}").getEffectiveLevel() for name in EXPECTED}
    assert (levels["guards"], levels["recompiles"]) == (logging.DEBUG, logging.INFO)
    assert (levels["bytecode"], levels["graph"]) == (logging.ERROR, logging.INFO)
    monkeypatch.delenv("STATOR_LOGS")


@pytest.mark.parametrize("name", ["help", "graph_braks"])
def test_unknown_subject_is_an_error_that_lists_all(name: str) -> None:
    settings: Any = {name: True}
    with pytest.raises(stator.InvalidOption, match=f"no logs are called {name!r}") as raised:
        stator.set_logs(**settings)
    assert all(f"\n  {subject}: " in str(raised.value) for subject in _logs.SUBJECTS)


def test_value_that_is_no_level_is_an_error() -> None:
    settings: Any = {"guards": "yes"}
    with pytest.raises(stator.InvalidUse, match="guards='yes' is no level"):
        stator.set_logs(**settings)
