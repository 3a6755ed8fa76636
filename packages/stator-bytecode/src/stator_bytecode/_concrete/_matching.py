"""`match` statements and unpacking of the concrete domain: Python itself does it, in statements of
their own.

So rules and error texts are CPython's own.
"""

import functools
from types import CodeType, SimpleNamespace
from typing import Any

_SEQUENCE, _MAPPING = 1 << 5, 1 << 6
"""Type flags: what a sequence or mapping pattern takes."""


class Matching:
    def match_sequence(self, subject: Any) -> bool:
        return bool(type(subject).__flags__ & _SEQUENCE)

    def match_mapping(self, subject: Any) -> bool:
        return bool(type(subject).__flags__ & _MAPPING)

    def match_keys(self, subject: Any, keys: tuple[Any, ...]) -> Any:
        given = {f"key{i}": key for i, key in enumerate(keys)}
        pattern = ", ".join(f"given.{name}: _{i}" for i, name in enumerate(given))
        return _matched(
            f"{{{pattern}}}", len(keys), subject=subject, given=SimpleNamespace(**given)
        )

    def match_class(self, subject: Any, cls: Any, count: int, names: tuple[str, ...]) -> Any:
        parts = [""] * count + [f"{name}=" for name in names]
        pattern = ", ".join(f"{part}_{i}" for i, part in enumerate(parts))
        return _matched(f"cls({pattern})", len(parts), subject=subject, cls=cls)

    def unpack(self, value: Any, count: int) -> Any:
        return _run(f"({_names(count)}) = subject\nfound = ({_names(count)})", subject=value)

    def unpack_ex(self, value: Any, before: int, after: int) -> Any:
        first, last = _names(before), _names(before + after, before)
        return _run(
            f"({first}*rest, {last}) = subject\nfound = ({first}rest, {last})", subject=value
        )


def _names(stop: int, start: int = 0) -> str:
    return "".join(f"_{i}, " for i in range(start, stop))


def _matched(pattern: str, count: int, **given: Any) -> Any:
    return _run(
        f"match subject:\n  case {pattern}: found = ({_names(count)})\n  case _: found = None",
        **given,
    )


def _run(statement: str, **given: Any) -> Any:
    """Run it and return what it leaves in `found`. Its frame is one of this module's, which no
    traceback shows."""
    names = {"__name__": __name__, **given}
    exec(_compiled(statement), names)
    return names["found"]


@functools.lru_cache(maxsize=1024)
def _compiled(statement: str) -> CodeType:
    return compile(statement, "<match>", "exec")
