"""Exceptions: attributes, chaining, notes, texts, classes of the user, groups."""

# ruff: noqa
from __future__ import annotations

from typing import Any

import pytest


class Custom(Exception):
    def __init__(self, code: int, *rest: Any) -> None:
        super().__init__(f"code {code}", *rest)
        self.code = code

    def __str__(self) -> str:
        return f"<{self.code}: {self.args[0]}>"


class Quiet(ValueError):
    pass


def attributes() -> Any:
    e = Custom(3, "more")
    e.extra = [1]  # type: ignore[attr-defined]
    return (
        e.args,
        e.code,
        str(e),
        repr(e),
        e.__cause__,
        e.__context__,
        e.__suppress_context__,
        e.__traceback__,
        e.extra,
        vars(e),
    )  # type: ignore[attr-defined]


def chained() -> Any:
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise Quiet("outer") from inner
    except Quiet as outer:
        cause = outer.__cause__
        return repr(outer), repr(cause), outer.__suppress_context__, outer.__context__ is cause


def context() -> Any:
    try:
        try:
            {}["x"]
        except KeyError:
            [][1]
    except IndexError as error:
        return repr(error.__context__), error.__cause__, error.__suppress_context__, str(error)


def from_none() -> Any:
    try:
        try:
            int("x")
        except ValueError:
            raise Custom(1) from None
    except Custom as error:
        return error.__cause__, error.__suppress_context__, type(error.__context__)


def notes() -> Any:
    error = ValueError("a")
    error.add_note("first")
    error.add_note("second")
    try:
        error.add_note(5)  # type: ignore[arg-type]
    except TypeError as wrong:
        return error.__notes__, str(wrong), error


def texts() -> Any:
    made = [
        ValueError(),
        ValueError("a"),
        ValueError("a", 1),
        KeyError("k"),
        KeyError(),
        KeyError(1, 2),
        StopIteration(5),
    ]
    made += [AttributeError("x"), NameError("n"), Quiet(["q"]), RuntimeError(None)]
    return [(str(e), repr(e), e.args) for e in made], made[6].value, SystemExit(3).code  # type: ignore[attr-defined]


def flow(log: list[str]) -> Any:
    for i in range(3):
        try:
            log.append(f"try {i}")
            if i == 1:
                continue
            if i == 2:
                raise Quiet(i)
        except KeyError:
            log.append("never")
        except (TypeError, ValueError) as error:
            log.append(f"caught {error}")
            break
        else:
            log.append("else")
        finally:
            log.append("finally")
    else:
        log.append("no break")
    return log


def returns() -> Any:
    def early() -> Any:
        try:
            return "try"
        finally:
            seen.append("finally")

    def override() -> Any:
        try:
            raise ValueError
        finally:
            return "finally"  # noqa: B012

    seen: list[str] = []
    return early(), override(), seen


def bare() -> Any:
    try:
        try:
            raise Quiet("again")
        except Quiet:
            raise
    except ValueError as error:
        return error.args


def asserts(x: int) -> Any:
    assert x > 0, f"got {x}"
    return x


def unbound() -> Any:
    try:
        print(later)
        later = 1
    except UnboundLocalError as error:
        return str(error)


def bad_raise() -> Any:
    found = []
    for value in (5, int, "a"):
        try:
            raise value  # type: ignore[misc]
        except TypeError as error:
            found.append(str(error))
    try:
        raise ValueError from 5  # type: ignore[misc]
    except TypeError as error:
        found.append(str(error))
    return found


def group() -> Any:
    g = ExceptionGroup("several", [ValueError(1), TypeError("t")])
    return g.message, [repr(e) for e in g.exceptions], str(g), isinstance(g, Exception)


def except_star() -> Any:
    seen = []
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError as values:
        seen.append([repr(e) for e in values.exceptions])
    except* TypeError as types:
        seen.append([repr(e) for e in types.exceptions])
    return seen


def returned() -> Any:
    try:
        {}["gone"]
    except KeyError as error:
        return error


@pytest.mark.parametrize(
    "fn",
    [
        attributes,
        chained,
        context,
        from_none,
        notes,
        texts,
        returns,
        bare,
        unbound,
        bad_raise,
        group,
        returned,
    ],
)
def test_exceptions(check: Any, fn: Any) -> None:
    check(fn)


def test_control_flow(check: Any) -> None:
    check(flow, ([],))


def test_assert(check: Any) -> None:
    check(asserts, (1,), (-1,), breaks=None)  # pytest rewrites the assert


def test_except_star_breaks(check: Any) -> None:
    check(except_star, breaks=None)


def test_existing_exception(check: Any) -> None:
    def run(error: Any) -> Any:
        error.extra = 1
        return str(error), error.args, error.__cause__, repr(error), error.code

    check(run, lambda: (Custom(4),), lambda: (Custom(5, "x"),))


def test_user_exception_escapes(check: Any) -> None:
    def run(x: list[int]) -> Any:
        x.append(1)
        raise Custom(2, x)

    check(run, ([],))
