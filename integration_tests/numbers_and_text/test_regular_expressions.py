"""Regular expressions: matches and iterators over them are made on each call, and substitutions
call the program."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

NUMBERS = re.compile(r"(?P<number>\d+)|(x)")
RUNS = re.compile("a*")


class Counting:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, match: re.Match[str]) -> str:
        self.calls += 1
        return match[0] * 2


def one_more(match: re.Match[str]) -> Any:
    return str(int(match["number"]) + 1) if match["number"] else None


def counted(x: Tensor) -> Any:
    count = Counting()
    return (
        NUMBERS.subn(count, "a1x22", count=1),
        NUMBERS.sub(count, "a1x22", -1),
        NUMBERS.sub(count, ""),
        count.calls,
    )


def refused(x: Tensor) -> Any:
    found: list[Any] = []
    cases: Any = ((lambda match: 3, "a1"), (lambda match: match[7], "a1"), (one_more, b"a1"))
    for repl, text in cases:
        try:
            found.append(NUMBERS.sub(repl, text))
        except (TypeError, IndexError) as error:
            found.append((type(error), str(error)))
    return found


def half_consumed(x: Tensor) -> Any:
    found = NUMBERS.finditer("1x2x", 1, 3)
    return next(found), found


def in_a_loop(x: Tensor) -> Any:
    ends = [match.end() for match in NUMBERS.finditer("1x22")]
    return ends, [match.span() for match in re.finditer("a", "aba")]


PROGRAMS: dict[str, Callable[[Tensor], Any]] = {
    "a pattern from outside": lambda x: (
        NUMBERS.sub("-", "1x"),
        NUMBERS.findall("1x"),
        NUMBERS.pattern,
        NUMBERS.groups,
    ),
    "a function": lambda x: NUMBERS.sub(one_more, "a1x22"),
    "a function of a text by a size": lambda x: NUMBERS.sub(one_more, f"a{x.shape[0]}"),
    "empty matches": lambda x: (
        RUNS.sub(lambda match: "-", "baac"),
        re.sub(rb"a", lambda match: b"z", b"bab"),
    ),
    "an object that counts": counted,
    "what cannot be put in": refused,
    "a loop": in_a_loop,
    "an iterator": lambda x: NUMBERS.finditer("1x2x"),
    "an iterator that was begun": half_consumed,
    "matches": lambda x: (
        re.search("a", "xa"),
        RUNS.match("aa", 1),
        RUNS.fullmatch("aa"),
        [*NUMBERS.finditer("1x")],
    ),
    "iterators of constants": lambda x: (
        "ab".__iter__(),
        range(3).__iter__(),
        range(3).__reversed__(),
        b"a".__iter__(),
    ),
}


def _said(value: Any) -> Any:
    if isinstance(value, re.Match):
        fields = (value.re, value.string, value.pos, value.endpos, value.lastindex, value.lastgroup)
        return "match", value.regs, *fields
    if isinstance(value, list | tuple):
        return [_said(item) for item in value]
    return (type(value), [_said(item) for item in value]) if hasattr(value, "__next__") else value


@pytest.mark.parametrize("title", PROGRAMS)
def test_as_in_python(title: str) -> None:
    compiled = stator.compile(PROGRAMS[title], backend="eager", fullgraph=True)
    for size in (1, 1, 2, 3):
        assert _said(compiled(torch.ones(size))) == _said(PROGRAMS[title](torch.ones(size)))


@pytest.mark.parametrize("title", ["matches", "an iterator", "iterators of constants"])
def test_each_call_gives_its_own(title: str) -> None:
    compiled = stator.compile(PROGRAMS[title], backend="eager", fullgraph=True)
    first, second = compiled(torch.ones(1)), compiled(torch.ones(1))
    pairs = zip(first, second, strict=True) if isinstance(first, tuple) else [(first, second)]
    assert not any(one is other for one, other in pairs)


def test_match_over_a_break() -> None:
    def program(x: Tensor) -> Any:
        match = NUMBERS.search("zz12")
        y = x + 1
        stator.graph_break()
        assert match is not None
        return y.sum().item(), match.group(), match.groupdict(), match

    compiled = stator.compile(program, backend="eager")
    for _ in range(2):
        assert _said(compiled(torch.ones(2))) == _said(program(torch.ones(2)))
