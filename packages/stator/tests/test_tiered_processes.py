"""The thread that compiles beside the program, where a process ends or is forked."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAD = """
import os, threading
import stator, torch

began, released = threading.Event(), threading.Event()

def backend(gm, inputs):
    began.set()
    while not released.wait(0.01):
        pass
    return gm.forward

x = torch.ones(2)
compiled = stator.compile(lambda x: x + 1, backend=backend, options={"tiered": True})
assert compiled(x).tolist() == [2, 2]
assert began.wait(20)
"""
FORKED = """
child = os.fork()
if child == 0:
    code = 1
    released.set()
    if not any(each.name == "stator" for each in threading.enumerate()):
        assert compiled(x).tolist() == [2, 2]
        assert stator.wait(compiled, 20)
        assert compiled(x).tolist() == [2, 2]
        states = [entry.tier.state for entry in compiled.report.entries]
        code = 0 if states[0] == "compiled" else 2
    os._exit(code)
_, status = os.waitpid(child, 0)
released.set()
assert os.waitstatus_to_exitcode(status) == 0, status
assert stator.wait(compiled, 20)
assert compiled.report.entries[0].tier.state == "compiled"
"""


def run(program: str) -> str:
    """Run a program that has to end by itself, without a word of the interpreter."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", HEAD + program]
    found = subprocess.run(command, check=False, capture_output=True, text=True, timeout=100)
    assert (found.returncode, found.stderr) == (0, "")
    return found.stdout


@pytest.mark.slow
def test_exit_interrupts_a_compilation_that_would_never_end() -> None:
    assert run("print('done')") == "done\n"


@pytest.mark.slow
def test_exception_of_the_program_ends_the_process() -> None:
    assert run("raise SystemExit(0)") == ""


@pytest.mark.slow
def test_forked_child_compiles_for_itself() -> None:
    run(FORKED)
