"""Running a script or a module as `python` does, and reporting what was compiled."""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import attrs
import torch

from stator._api import compile, compile_in_place
from stator._command_line._command import UsageError
from stator._report import REPORT_VERSION, Report
from stator._report_page._page import page
from stator._settings._stance import REGIONS


@attrs.frozen
class Script:
    """A file, or a module if `is_module` is set, with the arguments that it gets."""

    name: str
    arguments: Sequence[str]
    is_module: bool = False

    @classmethod
    def of(cls, given: argparse.Namespace) -> Script:
        return cls(given.script, given.arguments, given.module)

    def run(self, finish: Callable[[], None]) -> int:
        """Run it as `__main__`; return its exit code. `finish` is called when it has ended, however
        it does, while its objects are alive. Raises UsageError if there is no such file."""
        if not self.is_module and not os.path.exists(self.name):
            raise UsageError(f"there is no file {self.name!r}")
        before = sys.argv, sys.path[:]
        sys.argv = [self.name, *self.arguments]
        folder = os.getcwd() if self.is_module else os.path.dirname(os.path.abspath(self.name))
        sys.path.insert(0, folder)
        namespace: dict[str, Any] = {}

        try:
            namespace = self._namespace()
            return 0
        except SystemExit as ending:
            return _exit_code(ending)
        except BaseException as error:
            show_error(error)
            return 130 if isinstance(error, KeyboardInterrupt) else 1
        finally:
            finish()
            namespace.clear()
            sys.argv, sys.path[:] = before

    def _namespace(self) -> dict[str, Any]:
        if self.is_module:
            return runpy.run_module(self.name, run_name="__main__", alter_sys=True)
        return runpy.run_path(self.name, run_name="__main__")


def add_script(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a script."""
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT names a module")
    parser.add_argument("script", metavar="SCRIPT", help="a file, or a module after -m")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the arguments of the script")


@contextmanager
def in_place_of_torch_compile(backend: str | None = None) -> Iterator[None]:
    """Let `torch.compile` and `torch.nn.Module.compile` compile by stator.

    `backend` replaces the one that the program names.
    """
    torch_compile, module_compile = torch.compile, torch.nn.Module.compile

    def compiled(model: Any = None, **settings: Any) -> Any:
        return compile(model, **_with_backend(settings, backend))

    def compiled_in_place(module: torch.nn.Module, *args: Any, **settings: Any) -> None:
        named = dict(zip(_POSITIONAL, args, strict=False))
        compile_in_place(module, **_with_backend({**named, **settings}, backend))

    torch.compile = compiled
    torch.nn.Module.compile = compiled_in_place  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        torch.compile = torch_compile
        torch.nn.Module.compile = module_compile  # type: ignore[method-assign]


_POSITIONAL = ("fullgraph", "dynamic", "backend", "mode", "options", "disable")


def _with_backend(settings: dict[str, Any], backend: str | None) -> dict[str, Any]:
    return settings if backend is None else {**settings, "backend": backend}


def all_reports() -> dict[str, Report]:
    """Return the reports of all that was compiled, by the names of the functions."""
    found: dict[str, Report] = {}
    for region in sorted(REGIONS, key=lambda region: str(region.root.target.name)):
        name = str(region.root.target.name)
        number = sum(other.partition(" #")[0] == name for other in found)
        found[name if not number else f"{name} #{number + 1}"] = Report.of(region)
    return found


def check_folder(path: str | None) -> None:
    """Raise UsageError for a file that cannot be written, before a script runs for hours."""
    if path is not None and not Path(path).absolute().parent.is_dir():
        raise UsageError(f"there is no folder {str(Path(path).parent)!r}")


def text_of(reports: dict[str, Report], as_json: bool) -> str:
    """Return reports as text, or as one JSON object."""
    if as_json:
        data = {name: report.data() for name, report in reports.items()}
        return json.dumps({"version": REPORT_VERSION, "compiled": data}, indent=2)
    texts = [f"{name}: {report}" for name, report in reports.items()]
    return "\n\n".join(texts) or "nothing was compiled"


def write_page(reports: dict[str, Report], path: str, title: str) -> None:
    """Write reports as one page of HTML, and print where it is."""
    text = page({name: report.data() for name, report in reports.items()}, title)
    Path(path).write_text(text, encoding="utf-8")
    print(f"the report is in {os.path.abspath(path)}")


def _exit_code(ending: SystemExit) -> int:
    if ending.code is None or isinstance(ending.code, int):
        return ending.code or 0
    print(ending.code, file=sys.stderr)
    return 1


def show_error(error: BaseException) -> None:
    """Print an error of the program as Python does, without the frames that run the program."""
    entry = error.__traceback__
    while entry is not None and _runs_program(entry.tb_frame):
        entry = entry.tb_next
    traceback.print_exception(error.with_traceback(entry))


def _runs_program(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__"))
    return name.startswith(_RUNNERS) or frame.f_code.co_filename == ARGUMENTS


ARGUMENTS = "<--args>"
"""The file name of the code that calls a function from the command line."""
_RUNNERS = ("stator._command_line", "stator._explain", "runpy")
