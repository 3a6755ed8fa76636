"""Long texts of errors of other projects, shown in part: their beginning, the lines that name an
error, and their end.

    CppCompileError: C++ compile error
    ...
    ... 2,040 lines, which are in the file named below
    /usr/bin/ld: cannot find -ltorch: No such file or directory
"""

import re

from stator_bytecode import shows_own_frames

FIRST, NAMED, LAST = 4, 5, 6
"""The lines that are shown of each part."""
WIDTH = 200
_NAMES_ERROR = re.compile(r"\berror\b", re.IGNORECASE)


def shorten(error: BaseException) -> None:
    """Cut the texts of an error and of what caused it; nothing if `STATOR_FULL_TRACEBACK=1` is in
    the environment. Only texts that the errors print as they are can be cut."""
    if shows_own_frames():
        return
    seen = set[int]()
    cut: BaseException | None = error
    while cut is not None and id(cut) not in seen:  # an error may be its own cause
        seen.add(id(cut))
        if cut.args == (str(cut),):
            cut.args = (in_part(str(cut)),)
        cut = cut.__cause__


def in_part(text: str) -> str:
    """Return the lines of `text` that are worth showing."""
    lines = [line if len(line) <= WIDTH else f"{line[:WIDTH]} ..." for line in text.splitlines()]
    middle = lines[FIRST:-LAST]
    named = [line for line in middle if _NAMES_ERROR.search(line)][:NAMED]
    left = len(middle) - len(named)
    if left <= 1:
        return "\n".join(lines)
    rest = f"... {left:,} lines, which are in the file named below"
    return "\n".join([*lines[:FIRST], *named, rest, *lines[-LAST:]])
