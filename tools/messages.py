"""Write docs/reference/messages.md: errors of stator beside those of torch.compile.

``python tools/messages.py`` runs both sides in processes of their own. ``message_of`` gives one of
them in this process.
"""

from __future__ import annotations

import importlib
import json
import pathlib
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from typing import Any

import attrs
from message_cases import CASES

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "messages.md"
PROGRAM = "message_cases.py"
SIDES = ("stator", "torch")
MOST_LINES = 30
"""The lines of a message that the page shows."""


@attrs.frozen
class Message:
    """What a program printed when it raised: a traceback, from the call of the compiled
    function."""

    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def frames_between(self) -> int:
        """The number of frames that are not of the program."""
        frames = [line for line in self.lines if line.startswith('  File "')]
        return sum(PROGRAM not in frame for frame in frames)

    @property
    def has_remedy(self) -> bool:
        return any(line.strip().lower().startswith(("try:", "hint:")) for line in self.lines)

    @property
    def has_caret(self) -> bool:
        return any(set(line.strip()) <= {"^", "~"} and line.strip() for line in self.lines)


def message_of(program: Callable[[Any], object], compile: Any) -> Message:
    """Run a program, and return what it would print."""
    try:
        program(compile)
    except Exception as error:
        entry = error.__traceback__
        shown = traceback.format_exception(error.with_traceback(entry and entry.tb_next))
        return Message(_without_paths("".join(shown)))
    return Message("")


def _without_paths(text: str) -> str:
    text = re.sub(r"/tmp/\S+/repro_\w+", "/tmp/repro", text.replace(f"{ROOT}/", ""))
    for folder in sys.path:
        if folder.endswith("site-packages"):
            text = text.replace(f"{folder}/", "")
    return text


def all_messages(side: str) -> dict[str, str]:
    """Return the texts of all programs under one compiler, each in a new process of Python."""
    command = [sys.executable, __file__, side]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def page(ours: dict[str, str], theirs: dict[str, str]) -> str:
    """Return the text of the page."""
    head = [
        "# Messages",
        "",
        "Programs that raise, under stator and under torch.compile; `python tools/messages.py`",
        "runs them (`tools/message_cases.py`) and writes this page. *Frames* are those that are",
        "not of the program.",
        "",
        "| program | lines: stator, torch.compile | frames | names what to try |",
        "|---|---|---|---|",
    ]
    rows, texts = [], []
    for title in CASES:
        pair = Message(ours[title]), Message(theirs[title])
        rows.append(f"| [{title}](#{_anchor(title)}) | {_facts(pair)} |")
        texts += ["", f"## {title.capitalize()}", "", *_shown("stator", pair[0])]
        texts += ["", *_shown("torch.compile", pair[1])]
    return "\n".join([*head, *rows, *texts, ""])


def _facts(pair: tuple[Message, Message]) -> str:
    counts = ", ".join(str(len(each.lines)) or "0" for each in pair)
    frames = ", ".join(str(each.frames_between) for each in pair)
    tries = ", ".join("yes" if each.has_remedy else "no" for each in pair)
    return f"{counts} | {frames} | {tries}"


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _shown(name: str, message: Message) -> list[str]:
    lines = message.lines
    if not lines:
        return [f"{name} raises nothing."]
    rest = len(lines) - MOST_LINES
    shown = lines if rest <= 1 else [*lines[:MOST_LINES], f"... {rest} more lines"]
    return [f"{name}:", "", "```text", *(line.rstrip() for line in shown), "```"]


def main(arguments: list[str]) -> None:
    """Print the texts of one side as JSON, or write the page."""
    if arguments:
        compiler = importlib.import_module(arguments[0]).compile
        found = {title: message_of(each, compiler).text for title, each in CASES.items()}
        print(json.dumps(found))
        return
    PAGE.write_text(page(*map(all_messages, SIDES)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
