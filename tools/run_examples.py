"""Run the examples of documentation pages: ``python tools/run_examples.py PAGE ...``.

The blocks marked ``python`` of a page are one program, run in order in one namespace, with nothing
installed but what the page says to install. A block marked ``py`` is an excerpt or generated text
and does not run.

With ``--shown`` the program must print what the blocks marked ``text`` show, on both streams; there
``...`` stands for any text.
"""

from __future__ import annotations

import contextlib
import io
import pathlib
import re
import sys
import types

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


def main(arguments: list[str]) -> None:
    pages = [pathlib.Path(each) for each in arguments if each != "--shown"]
    for page in pages:
        (run_as_shown if "--shown" in arguments else run)(page)


if __name__ == "__main__":
    main(sys.argv[1:])
