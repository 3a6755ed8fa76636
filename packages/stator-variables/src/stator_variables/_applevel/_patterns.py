"""Functions of `re` that are defined in C and call the program, as plain Python
(Modules/_sre/sre.c)."""

from __future__ import annotations

from typing import Any

__app_level__ = True


def one_by_one(matches: Any) -> object:
    """`re.Pattern.finditer`, of which C makes such an iterator, too."""
    left = iter(matches)
    return iter(lambda: next(left, None), None)


def sub(repl: object, string: object, count: int, matches: object) -> object:
    return subn(repl, string, count, matches)[0]


def subn(repl: Any, string: Any, count: int, matches: Any) -> Any:
    """`re.Pattern.subn(repl, string, count)` with a function `repl` (`pattern_subx`)."""
    parts: list[Any] = []
    done = made = 0
    for match in matches:
        if count and made >= count:
            break
        start, end = match.span()
        if done < start:
            parts.append(string[done:start])
        if (item := repl(match)) is not None:
            parts.append(item)
        done, made = end, made + 1
    if done < len(string):
        parts.append(string[done:])
    return string[:0].join(parts), made
