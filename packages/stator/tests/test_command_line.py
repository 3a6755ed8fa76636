"""`python -m stator`: what each command prints, and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from stator.__main__ import COMMANDS, main
from stator._command_line import _script

Script = Callable[[str], str]

COMPILES = """
import sys
import torch

@torch.compile(backend="eager")
def scaled(x):
    y = x * 2
    print(type(scaled).__module__, sys.argv[1:])
    return y + 1

scaled(torch.ones(2))
"""


@pytest.fixture
def script(tmp_path: Path) -> Script:
    def write(text: str) -> str:
        path = tmp_path / "script.py"
        path.write_text(text)
        return str(path)

    return write


def test_without_a_command_it_prints_versions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert f"torch {torch.__version__}" in capsys.readouterr().out


def test_run_puts_stator_in_place_of_torch_compile(
    script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    original = torch.compile
    assert main(["run", script(COMPILES + "print(scaled.report.graph_count)"), "-v"]) == 0
    assert capsys.readouterr().out.splitlines() == ["builtins ['-v']", "2"]
    assert torch.compile is original


def test_run_compiles_modules_in_place(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "import torch\n"
        "model = torch.nn.Linear(2, 2)\n"
        "model.compile(True, backend='no such backend')\n"
        "model(torch.ones(2))\n"
        "print(type(model._compiled_call_impl).__module__)\n"
    )
    assert main(["run", "--backend", "eager", script(text)]) == 0
    assert capsys.readouterr().out.startswith("stator.")


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("sys.exit(3)", 3),
        ("sys.exit()", 0),
        ("sys.exit('stopped')", 1),
        ("raise ValueError('wrong')", 1),
        ("raise KeyboardInterrupt", 130),
    ],
)
def test_reports_are_printed_however_the_script_ends(
    ending: str, code: int, script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", script(COMPILES + ending)]) == code
    assert "scaled: 2 graphs, 2 operations, 1 break," in capsys.readouterr().out


def test_an_error_of_the_script_is_shown_without_what_runs_it(
    script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    path = script("def f():\n    raise ValueError('wrong')\n\nf()\n")
    assert main(["run", path]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[1] == f'  File "{path}", line 4, in <module>'
    assert lines[-1] == "ValueError: wrong"


def test_report_is_written_as_json(script: Script, tmp_path: Path) -> None:
    output = tmp_path / "report.json"
    assert main(["report", "--json", "--output", str(output), script(COMPILES)]) == 0
    report = json.loads(output.read_text())
    assert report["version"] == 2
    scaled = report["compiled"]["scaled"]
    first, second = scaled["entries"]
    (place,) = scaled["breaks"]
    assert (place["reason"], place["where"]["line"], place["entries"]) == ("builtin", 8, [0])
    assert first["calls"] == second["calls"] == place["crossings"] == 1
    assert (first["operators"], first["compiled_operators"]) == (1, 0)  # with the eager backend


def test_report_is_written_as_a_page(
    script: Script, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "report.html"
    assert main(["report", "--html", str(output), script(COMPILES)]) == 0
    assert capsys.readouterr().out.endswith(f"the report is in {output}\n")
    text = output.read_text()
    assert "<title>stator report: script.py</title>" in text
    assert "a call of builtins.print" in text


def test_what_a_function_compiled_that_has_returned_is_reported(
    script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "import torch\ndef main():\n    f = torch.compile(lambda x: x + 1, backend='eager')\n"
    assert main(["report", script(f"{text}    f(torch.ones(2))\nmain()")]) == 0
    assert "<lambda>: 1 graph" in capsys.readouterr().out


def test_calls_are_measured_for_the_report_only(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STATOR_MEASURE", raising=False)
    assert main(["report", script("")]) == 0
    assert "STATOR_MEASURE" not in os.environ


def test_nothing_compiled_is_reported(
    script: Script, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_script, "REGIONS", set())  # of other tests
    assert main(["report", script("print(1)")]) == 0
    assert capsys.readouterr().out == "1\nnothing was compiled\n"


def test_explain_calls_a_function(
    script: Script, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(
        script("WIDTH = 2\n\nclass Model:\n    @staticmethod\n    def step(x): return x + 1\n")
    )
    monkeypatch.chdir(path.parent)
    monkeypatch.delitem(sys.modules, "script", raising=False)
    command = ["explain", "script:Model.step", "--args", "x=torch.ones(WIDTH)"]
    assert main([*command, "--backend", "aot_eager"]) == 0
    printed = capsys.readouterr().out
    assert "1 graph, 1 operation, 0 breaks, 1 entry, backend 'aot_eager'" in printed
    assert "all operators are compiled" in printed


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["explain", "script"], "write module:function"),
        (["explain", "no_such_module:f"], "No module named 'no_such_module'"),
        (["explain", "json:no_such_name"], "no attribute 'no_such_name'"),
        (["why", "long-lop"], "did you mean long-loop"),
        (["why", "zzz"], "there is no reason 'zzz'"),
        (["run", "no_such.py"], "there is no file 'no_such.py'"),
        (["report", "no_such.py"], "there is no file 'no_such.py'"),
        (["report", "--html", "/no/such/report.html", __file__], "there is no folder '/no/such'"),
        (["report", "--output", "/no/such/a.json", __file__], "there is no folder '/no/such'"),
        (["explain", "json:dumps", "--args", "(1"], "--args '(1': '(' was never closed"),
        (["explain", "json:dumps", "--backend", "inducter"], "did you mean 'inductor'?"),
        (["bench", "--rounds", "0", "script.py"], "--rounds must be at least 1"),
        (["minify", "no_such.py"], "there is no file 'no_such.py'"),
        (["minify", __file__], "has no graph: pass the script that an error of a backend names"),
    ],
)
def test_a_mistake_is_named_with_exit_code_2(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert text in capsys.readouterr().err


def test_an_error_of_a_function_that_is_explained_is_shown_as_python_does(
    script: Script, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(script("def step(x):\n    y = x + 1\n    raise ValueError('wrong')\n"))
    monkeypatch.chdir(path.parent)
    monkeypatch.delitem(sys.modules, "script", raising=False)
    assert main(["explain", "script:step", "--args", "torch.ones(2)"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[1] == f'  File "{path}", line 3, in step'
    assert lines[-1] == "ValueError: wrong"


def test_arguments_that_raise_are_shown_as_an_error_of_the_program(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", "json:dumps", "--args", "no_such_name"]) == 1
    assert capsys.readouterr().err == "NameError: name 'no_such_name' is not defined\n"


def test_why_gives_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "--json", "long-loop"]) == 0
    (page,) = json.loads(capsys.readouterr().out)
    assert page["slug"] == "long-loop"
    assert main(["why", "--json"]) == 0
    assert page in json.loads(capsys.readouterr().out)


def test_why_prints_the_page_of_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "data-dependent-branch"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("data-dependent-branch\n\nA branch on the value of a tensor")
    assert "Try: Use `torch.where`" in text


def test_why_lists_all_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why"]) == 0
    assert {"graph-break", "data-dependent-branch"} <= {*capsys.readouterr().out.split()}


def test_doctor_finds_nothing_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert "C++ compiler: /" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "value", "subject"),
    [
        ("CXX", "no_such_compiler", "C++ compiler"),
        ("TORCH_COMPILE_DISABLE", "1", "TORCH_COMPILE_DISABLE"),
        ("TORCHINDUCTOR_CACHE_DIR", "/proc/none", "Inductor's cache"),
    ],
)
def test_doctor_names_what_to_mend(
    name: str,
    value: str,
    subject: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != "/proc")
    assert main(["doctor", "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)
    assert [each["subject"] for each in findings if each["remedy"]] == [subject]


def test_doctor_names_a_folder_that_inductor_does_not_quote(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch, "__file__", "/opt/my torch/torch/__init__.py")
    assert main(["doctor"]) == 1
    assert "! folder of torch: /opt/my torch/torch: Inductor" in capsys.readouterr().out


@pytest.mark.slow
def test_bench_runs_the_script_in_processes_of_their_own(
    script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--rounds", "1", "--json", script(COMPILES)]) == 0
    assert [*json.loads(capsys.readouterr().out)] == ["eager", "torch.compile", "stator"]


@pytest.mark.slow
def test_bench_names_the_run_that_fails(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", script("raise SystemExit(4)")]) == 2
    assert "ended with code 4 under eager" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert f"python -m stator {name}" in capsys.readouterr().out.partition("examples:")[2]


@pytest.mark.slow
def test_it_is_a_module_that_runs() -> None:
    command = [sys.executable, "-m", "stator", "why", "zzz"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2
