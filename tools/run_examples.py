"""Run the examples of documentation pages: ``python tools/run_examples.py PAGE ...``.

The blocks marked ``python`` of a page are one program, run in order in one namespace, with nothing
installed but what the page says to install. A block marked ``py`` is an excerpt or generated text
and does not run.

With ``--apart`` each page runs in a process of its own that is forked after the import of torch and
stator, so that many pages take seconds; where there is no fork, they run one after another.

With ``--shown`` the program must print what the blocks marked ``text`` show, on both streams; there
``...`` stands for any text.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import multiprocessing
import os
import pathlib
import re
import sys
import tempfile
import types
from collections.abc import Sequence

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(text: str, language: str) -> list[tuple[int, str]]:
    """Return the blocks of one language: the number of lines before each, and its text."""
    found = []
    for match in FENCE.finditer(text):
        if match[1] == language:
            found.append((text.count("\n", 0, match.start(2)), match[2]))
    return found


def run(page: pathlib.Path) -> None:
    """Run the examples of one page as `__main__`. Tracebacks show the lines of the page."""
    program = sys.modules["__main__"] = types.ModuleType("__main__")
    for lines_before, body in blocks(page.read_text(), "python"):
        exec(compile("\n" * lines_before + body, str(page), "exec"), vars(program))


def run_as_shown(page: pathlib.Path) -> None:
    """Run the examples of one page; raises AssertionError if they print anything else than it
    shows."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        run(page)
    shown = "".join(body for _, body in blocks(page.read_text(), "text"))
    pattern = re.escape(shown).replace(re.escape("..."), ".*?")
    if re.fullmatch(pattern, printed.getvalue(), re.DOTALL) is None:
        raise AssertionError(f"{page} shows\n{shown}\nand prints\n{printed.getvalue()}")


def run_apart(pages: list[pathlib.Path], preload: Sequence[str] = ("torch", "stator")) -> None:
    """Run each page in a process of its own, which has modules imported; raises AssertionError if
    one fails."""
    if "fork" not in multiprocessing.get_all_start_methods():
        for page in pages:
            run(page)
        return

    for name in preload:
        importlib.import_module(name)
    forking = multiprocessing.get_context("fork")
    failed = []
    for page in pages:
        process = forking.Process(target=run, args=(page,))
        process.start()
        process.join()
        if process.exitcode:
            failed.append(str(page))
    if failed:
        raise AssertionError(f"the examples fail of {', '.join(failed)}")


def main(arguments: list[str]) -> None:
    pages = [pathlib.Path(each) for each in arguments if not each.startswith("--")]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["STATOR_CACHE_DIR"] = folder  # that of the user stays as it is
        if "--apart" in arguments:
            run_apart(pages)
            return

        for page in pages:
            (run_as_shown if "--shown" in arguments else run)(page)


if __name__ == "__main__":
    main(sys.argv[1:])
