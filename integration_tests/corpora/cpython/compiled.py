"""One test method compiled: how it ends, what broke, and what of ours failed on the way.

The function of the method is a region of its own; what it calls is inlined, what cannot be captured
breaks. Each run has a process of its own: a crash, an endless trace or a patched class ends with
it.
"""

from __future__ import annotations

import builtins
import doctest
import importlib
import json
import os
import pathlib
import re
import resource
import signal
import time
import traceback
import types
from collections.abc import Callable
from typing import Any

import attrs
import stator
from cpython_methods import Method, ending
from stator._disk_cache import _lookup
from stator.errors import StatorError, Unsupported

from integration_tests.corpora.cpython.record import TIMED_OUT
from integration_tests.support.oracle import MACHINERY

MEMORY = 5 << 30
OURS = tuple(
    str(pathlib.Path(str(importlib.import_module(name).__file__)).parent) + os.sep
    for name in MACHINERY
)


@attrs.define
class Run:
    """How a method ended in one of the two ways."""

    ending: str = ""
    seconds: float = 0.0
    breaks: int = 0
    crashes: list[str] = attrs.field(factory=list)


def natively(case: Method, limit: int) -> Run:
    return _apart(lambda: Run(without_addresses(ending(case))), limit)


def compiled(case: Method, limit: int) -> Run:
    return _apart(lambda: _compiled(case), limit)


# a process of its own
# ------------------------------------------------------------------------------------------------
def _apart(run: Callable[[], Run], limit: int) -> Run:
    """`run()` in a forked process, for at most `limit` seconds."""
    started = time.monotonic()
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        _child(run, write, limit)
    os.close(write)
    with open(read) as answer:
        text = answer.read()
    _, status = os.waitpid(process, 0)
    made = Run(**json.loads(text)) if text else _died(status)
    made.seconds = time.monotonic() - started
    return made


def _child(run: Callable[[], Run], write: int, limit: int) -> None:
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(limit)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        text = json.dumps(attrs.asdict(run()))
        with open(write, "w") as answer:
            answer.write(text)
    finally:
        os._exit(0)


def _died(status: int) -> Run:
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number == signal.SIGALRM:
        return Run(TIMED_OUT)
    name = signal.Signals(number).name if number else "an early exit"
    return Run(f"died of {name}", crashes=[f"died of {name}"])


# compiled
# --------------------------------------------------------------------------------------------------
def _compiled(case: Method) -> Run:
    run = Run()
    regions: list[Any] = []
    with_record(run.crashes)
    if isinstance(case, doctest.DocTestCase):
        vars(doctest)["exec"] = lambda code, names: _execute(code, names, regions)
    else:
        fn = stator.compile(getattr(type(case), case._testMethodName), backend="eager")
        regions.append(fn)
        setattr(case, case._testMethodName, types.MethodType(fn, case))
    run.ending = without_addresses(ending(case, lambda error: _look(error, run.crashes)))
    run.breaks = sum(len(fn.report.breaks) for fn in regions if hasattr(fn, "report"))
    return run


def _execute(code: types.CodeType, names: dict[str, Any], regions: list[Any]) -> None:
    """What a doctest's `exec` does: a function without local names of its own runs in its
    globals."""
    names.setdefault("__builtins__", builtins)
    fn: Any = stator.compile(types.FunctionType(code, names), backend="eager")
    regions.append(fn)
    fn()


def with_record(crashes: list[str]) -> None:
    """Note what leaves a trace or the making of an entry besides a refusal: a test may expect such
    an exception."""
    for name in ("trace", "make_entry"):
        setattr(_lookup, name, _recording(getattr(_lookup, name), crashes))


def _recording(step: Callable[..., Any], crashes: list[str]) -> Callable[..., Any]:
    def recorded(*args: Any) -> Any:
        try:
            return step(*args)
        except Unsupported:
            raise
        except BaseException as error:
            crashes.append(_said(error))
            raise

    return recorded


def _look(error: BaseException, crashes: list[str]) -> None:
    """An exception that was raised in our files, or in code we wrote, is ours."""
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    place = "" if entry is None else entry.tb_frame.f_code.co_filename
    if isinstance(error, StatorError) or place.startswith((*OURS, "<stator ")):
        crashes.append(_said(error))


def _said(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    place = " < ".join(
        f"{pathlib.Path(each.filename).name}:{each.lineno} {each.name}" for each in reversed(frames)
    )
    return without_addresses(f"{type(error).__name__}: {str(error)[:300]} @ {place}")


def without_addresses(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x…", text)
