"""The programs of the kit: over integers, strings, tuples and lists of them: any domain can hold
their values.

They stand in a public module because the Machine runs what stands in a private one of this package
natively.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

__all__ = [
    "PROGRAMS",
    "closures",
    "contexts",
    "formats",
    "generators",
    "handles",
    "loops",
    "matches",
    "recurses",
]
__all__ += ["divides_by_zero", "misses_arguments", "unbound", "unpacks", "withs"]


def loops(n: int) -> Any:
    total = 0
    for i in range(n):
        if i % 3 == 1:
            continue
        if i > 20:
            break
        total += i
    else:
        total = -total
    while total > 10 and total != 17:
        total -= 3
    return total


def closures(n: int) -> Any:
    count = 0

    def add(step: int = 1, *more: int, scale: int = 1, **named: int) -> int:
        nonlocal count
        count += (step + sum(more) + sum(named.values())) * scale
        return count

    def read() -> int:
        return count

    return [read(), add(), add(n), add(1, 2, scale=n), add(x=n, y=1)]


def unpacks(n: int) -> Any:
    a, (b, *c), d = n, [n, n + 1, n + 2], (n,)
    first, *rest = [*c, *d]
    merged = {"a": a, **{"b": b}}
    return a, b, c, d, first, rest, merged, [x * y for x in c for y in c if x != y]


def handles(n: int) -> Any:
    log: list[Any] = []
    for i in range(3):
        try:
            try:
                log.append(n // i)
            except ZeroDivisionError as error:
                raise ValueError(i) from error
            finally:
                log.append(("finally", i))
        except ValueError as error:
            log.append((type(error.__cause__).__name__, error.args))
    return log


def contexts(n: int) -> Any:
    try:
        try:
            raise KeyError(n)
        except KeyError:
            raise IndexError(n)  # noqa: B904  # the implicit context is what is tested
    except IndexError as error:
        return type(error.__context__).__name__, error.__cause__


class _Suppressing:
    def __init__(self, log: list[Any], kind: type[BaseException]) -> None:
        self.log, self.kind = log, kind

    def __enter__(self) -> _Suppressing:
        self.log.append("in")
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> bool:
        self.log.append("out")
        return kind is self.kind


def withs(n: int) -> Any:
    log: list[Any] = []
    with _Suppressing(log, ValueError) as entered:
        entered.log.append(n)
        raise ValueError(n)
    return log


def _counts(n: int) -> Generator[Any, Any, Any]:
    received: list[Any] = []
    for i in range(n):
        try:
            received.append((yield i))
        except ValueError:
            received.append("thrown")
    return received


def _delegates(n: int) -> Generator[Any, Any, Any]:
    yield (yield from _counts(n))


def generators(n: int) -> Any:
    running = _delegates(n)
    seen = [next(running)]
    seen.append(running.send("sent"))
    seen.append(running.throw(ValueError("x")))
    seen.extend(running)
    return seen, [*_counts(2)], sum(i for i in range(n))


def matches(n: int) -> Any:
    found: list[Any] = []
    for subject in (n, [n, 2, 3], {"k": n, "other": 1}, "text", None):
        match subject:
            case int():
                found.append(("int", subject))
            case [first, *rest]:
                found.append((first, rest))
            case {"k": value, **others}:
                found.append((value, others))
            case str() | None:
                found.append("scalar")
    return found


def formats(n: int) -> Any:
    return f"{n}|{n!r:>5}|{n:03d}|{'a' + 'b'}", str(n) * 2, n in (1, 4), n if n else "none"


def recurses(n: int) -> Any:
    return 0 if n == 0 else 1 + recurses(n - 1)


def unbound(n: int) -> Any:
    if n < 0:
        value = n
    return value


def misses_arguments(n: int) -> Any:
    return recurses()  # type: ignore[call-arg]


def divides_by_zero(n: int) -> Any:
    return n / (n - n)


PROGRAMS: tuple[Callable[[int], Any], ...] = (
    *(loops, closures, unpacks, handles, contexts, withs, generators, matches, formats, recurses),
    *(unbound, misses_arguments, divides_by_zero),
)
