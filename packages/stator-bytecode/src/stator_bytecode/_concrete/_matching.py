"""`match` statements of the concrete domain."""

from typing import Any

_SEQUENCE, _MAPPING, _MATCH_SELF = 1 << 5, 1 << 6, 1 << 22
"""Type flags: what a sequence or mapping pattern takes; whose one positional sub-pattern is the subject itself."""


class Matching:
    def match_sequence(self, subject: Any) -> bool:
        return bool(type(subject).__flags__ & _SEQUENCE)

    def match_mapping(self, subject: Any) -> bool:
        return bool(type(subject).__flags__ & _MAPPING)

    def match_keys(self, subject: Any, keys: tuple[Any, ...]) -> tuple[Any, ...] | None:
        missing = object()
        seen: set[Any] = set()
        values = []
        get = subject.get if keys else None
        for key in keys:
            if key in seen:
                raise ValueError(f"mapping pattern checks duplicate key ({key!r})")
            seen.add(key)
            assert get is not None
            if (value := get(key, missing)) is missing:
                return None
            values.append(value)
        return tuple(values)

    def match_class(self, subject: Any, cls: Any, count: int, names: tuple[str, ...]) -> tuple[Any, ...] | None:
        if not isinstance(cls, type):
            raise TypeError("called match pattern must be a class")
        if not isinstance(subject, cls):
            return None
        seen: set[str] = set()
        values = _positional(subject, cls, count, seen) if count else []
        for name in names if values is not None else ():
            if (value := _attribute(subject, cls, name, seen)) is _ABSENT:
                return None
            values.append(value)  # type: ignore[union-attr]  # the loop is empty for None
        return None if values is None else tuple(values)


_ABSENT = object()


def _positional(subject: Any, cls: type, count: int, seen: set[str]) -> list[Any] | None:
    declared = getattr(cls, "__match_args__", _ABSENT)
    itself = declared is _ABSENT and bool(cls.__flags__ & _MATCH_SELF)
    names = () if declared is _ABSENT else declared
    if type(names) is not tuple:
        raise TypeError(f"{cls.__name__}.__match_args__ must be a tuple (got {type(names).__name__})")
    allowed = 1 if itself else len(names)
    if allowed < count:
        plural = "" if allowed == 1 else "s"
        raise TypeError(f"{cls.__name__}() accepts {allowed} positional sub-pattern{plural} ({count} given)")
    if itself:
        return [subject]
    values = []
    for name in names[:count]:
        if type(name) is not str:
            raise TypeError(f"__match_args__ elements must be strings (got {type(name).__name__})")
        if (value := _attribute(subject, cls, name, seen)) is _ABSENT:
            return None
        values.append(value)
    return values


def _attribute(subject: Any, cls: type, name: str, seen: set[str]) -> Any:
    if name in seen:
        raise TypeError(f"{cls.__name__}() got multiple sub-patterns for attribute {name!r}")
    seen.add(name)
    return getattr(subject, name, _ABSENT)
