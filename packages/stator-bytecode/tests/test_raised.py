"""Tracebacks made of places: what they show is what the code raises natively."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import pytest
from stator_bytecode import TracebackEntry, TracebackFactory, decode


def plain(value: int) -> Any:
    return [value].index(
        value + 1,
    )


def closing_over(value: int) -> Any:
    def read() -> Any:
        return globals()[value]  # type: ignore[index]

    return read()


def generating(value: int, *more: int, key: int = 3, **others: int) -> Iterator[int]:
    yield value // 0


def native(function: Callable[[int], Any]) -> TracebackType:
    with pytest.raises((ValueError, KeyError, ZeroDivisionError)) as info:
        list(function(1))
    found = info.value.__traceback__
    assert found is not None
    assert found.tb_next is not None
    return found.tb_next


def entries(found: TracebackType | None) -> list[TracebackEntry]:
    """The places of a native traceback: the first instruction at the same columns."""
    made = []
    while found is not None:
        code = found.tb_frame.f_code
        position = list(code.co_positions())[found.tb_lasti // 2]
        instructions = decode(code).instructions
        index = next(each.index for each in instructions if each.positions == position)
        made.append(TracebackEntry(code, index, found.tb_frame.f_globals))
        found = found.tb_next
    return made


def shown(found: TracebackType | None) -> list[Any]:
    summary = traceback.extract_tb(found)
    places = [(each.name, each.filename, each.lineno, each.end_lineno) for each in summary]
    return [*places, *((each.colno, each.end_colno, each.line) for each in summary)]


@pytest.mark.parametrize("function", [plain, closing_over, generating])
def test_a_made_traceback_shows_what_the_native_one_shows(function: Callable[[int], Any]) -> None:
    found = native(function)
    made = TracebackFactory(entries(found))()
    assert shown(made) == shown(found)
    assert made is not None
    assert made.tb_frame.f_globals is globals()
    assert made.tb_frame.f_code.co_qualname == found.tb_frame.f_code.co_qualname


def test_each_call_makes_another_traceback() -> None:
    factory = TracebackFactory(entries(native(closing_over)))
    first, second = factory(), factory()
    assert first is not None
    assert second is not None
    assert first.tb_frame is not second.tb_frame


def test_frames_have_no_locals_and_refer_to_their_callers() -> None:
    made = TracebackFactory(entries(native(closing_over)))()
    traceback.clear_frames(made)
    assert made is not None
    assert made.tb_next is not None
    assert made.tb_frame.f_locals == {}
    assert made.tb_next.tb_frame.f_back is made.tb_frame


def test_no_entries_make_no_traceback() -> None:
    factory = TracebackFactory(())
    assert factory() is None
    assert pickle.loads(pickle.dumps(factory))() is None
