"""CPython's own test modules, method by method: what there is, and how running one ends."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
import unittest
import warnings
from collections.abc import Callable, Iterator
from typing import Any

Method = unittest.TestCase


def methods(module_name: str) -> dict[str, Method]:
    """The tests of `test.<module_name>` by name, doctests included."""
    with _quietly():
        module = importlib.import_module(f"test.{module_name}")
        suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    return {name_of(case): case for case in _flat(suite)}


def name_of(case: Method) -> str:
    return case.id().removeprefix("test.").replace("test.", "")


def _flat(suite: Any) -> Iterator[Method]:
    if isinstance(suite, unittest.TestSuite):
        for part in suite:
            yield from _flat(part)
    else:
        yield suite


def ending(case: Method, seen: Callable[[BaseException], None] = lambda error: None) -> str:
    """Run a method in a folder of its own: "passed", "skipped", or the exception, which `seen` gets
    too."""
    result = _Result(seen)
    with _quietly(), _own_folder():
        unittest.TestSuite([case])(result)  # the suite runs class and module fixtures too
    return result.ending


class _Result(unittest.TestResult):
    ending = "passed"

    def __init__(self, seen: Callable[[BaseException], None]) -> None:
        super().__init__()
        self.seen = seen

    def addSkip(self, test: Any, reason: str) -> None:
        self.ending = "skipped"

    def addError(self, test: Any, err: Any) -> None:
        self.ending = f"{err[0].__name__}: {err[1]}"
        self.seen(err[1])

    addFailure = addError

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.addError(test, err)

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self.ending = "failed as expected"

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.ending = "unexpected success"


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    with warnings.catch_warnings(), open(os.devnull, "w") as nowhere:
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            yield
    sys.setrecursionlimit(limit)


@contextlib.contextmanager
def _own_folder() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield
