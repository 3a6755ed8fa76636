"""Random programs: text drawn from the grammar, with the calls that it is compared in.

A number gives the same program everywhere: nothing but `random.Random(number)` is drawn from.
"""

from __future__ import annotations

import random
import re
import textwrap
from typing import Any

import attrs

from integration_tests.corpora.fuzzing import _grammar as g
from integration_tests.corpora.fuzzing._expressions import EXPRESSIONS
from integration_tests.corpora.fuzzing._statements import (
    ATTEMPT,
    IN_GENERATORS,
    IN_LOOPS,
    SIMPLE,
    STATEMENTS,
)
from integration_tests.corpora.fuzzing._worlds import PRELUDE as CHANGED
from integration_tests.corpora.fuzzing._worlds import WORDS, WORLDS, World

HOLE = re.compile(r"<(\w+)>")
MODES: tuple[dict[str, Any], ...] = (
    *({},) * 6,
    {"break_everywhere": "calls"},
    {"break_everywhere": 3},
    {"break_everywhere": 7},
    {"break_everywhere": "operations"},
    {"recompile_limit": 1},
    {"recompile_limit": 1, "break_everywhere": 5},
)
COSTLY = {"break_everywhere": "operations"}
"""Takes as long as eight programs do otherwise: one in four of those that would."""
CHANGING_CALLS = 6
SIZES, NUMBERS = (2, 3, 2, 3, 5, 1), (*(1, 2, 0, 3, -1, True) * 2, 5, 7, 2.5, 1 << 65)


@attrs.frozen
class Inputs:
    """The arguments of one call, as data."""

    size: int
    number: int | float
    grad: bool
    double: bool
    sharing: str
    short: bool
    small: bool


@attrs.frozen
class Program:
    """The text of a module with `main(x, y, n, bag)`, calls of it, and how it is compiled."""

    number: int
    text: str
    calls: tuple[Inputs, ...]
    options: dict[str, Any]
    fullgraph: bool
    changes: tuple[tuple[str, ...], ...] = ()
    """What is done to its globals before each call."""


@attrs.frozen
class Place:
    """Where a statement stands: what may stand there follows from it."""

    depth: int = 3
    loop: bool = False
    generator: bool = False
    # false inside of nested functions, which could call themselves through a variable
    calls: bool = True


class Writer:
    """Fills the holes of templates with what it draws."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def block(self, place: Place, most: int) -> str:
        return "\n".join(self.statement(place) for _ in range(self.draw.randint(1, most)))

    def statement(self, place: Place) -> str:
        options = STATEMENTS if place.depth > 0 else SIMPLE
        extra = (IN_LOOPS if place.loop else ()) + (IN_GENERATORS * 5 if place.generator else ())
        template = self.draw.choice(options + extra)
        if self.draw.randrange(5) < 2:
            template = ATTEMPT.format(textwrap.indent(template, "    "))
        # a loop within a loop counts for itself
        template = re.sub(r"\bturn\b", f"turn{place.depth}", template)
        return "\n".join(self.line(line, place) for line in template.split("\n"))

    def line(self, line: str, place: Place) -> str:
        indent = line[: len(line) - len(line.lstrip())]
        inner = attrs.evolve(place, depth=place.depth - 1)
        match line.strip():
            case "<block>":
                text = self.block(inner, 2)
            case "<loop>":
                text = self.block(attrs.evolve(inner, loop=True), 2)
            case "<nested>" | "<generator>" as kind:
                inside = attrs.evolve(
                    inner, loop=False, calls=False, generator=kind == "<generator>"
                )
                text = self.block(inside, 2)
            case "<nonlocal>":
                text = f"nonlocal {', '.join(g.NAMES)}\nglobal COUNT, LOG, TABLE, HELD"
            case template:
                text = self.fill(template, place, 2)
        return textwrap.indent(text, indent)

    def fill(self, template: str, place: Place, depth: int) -> str:
        if "lambda" in template:  # it could call itself, too
            place = attrs.evolve(place, calls=False)
        return HOLE.sub(lambda hole: self.hole(hole[1], place, depth), template)

    def hole(self, kind: str, place: Place, depth: int) -> str:
        if kind == "C" and not place.calls:
            return "torch.tanh"
        names: tuple[str, ...] = g.VARIABLES.get(kind.upper(), ())
        if kind.islower():
            return self.draw.choice(names)
        if depth == 0:
            return self.draw.choice(names or ("None", *g.NAMES[:4]))
        return self.fill(self.draw.choice(EXPRESSIONS[kind]), place, depth - 1)


def program(number: int) -> Program:
    draw = random.Random(number)
    text = next(text for text in iter(lambda: _text(draw), "") if _is_valid(text))
    inputs = tuple(_inputs(draw) for _ in range(3))
    options = draw.choice(MODES)
    if options == COSTLY and number % 4:
        options = {}
    return Program(number, text, inputs, options, fullgraph=draw.randrange(10) == 0)


def changing_program(number: int) -> Program:
    """Short, for its world changes between the six calls, two of three of which are like the one
    before."""
    draw = random.Random(f"changing {number}")
    worlds = draw.sample(WORLDS, 2)
    text = next(text for text in iter(lambda: _reading(draw, worlds), "") if _is_valid(text))
    inputs = [_inputs(draw)]
    while len(inputs) < CHANGING_CALLS:
        inputs.append(draw.choice((inputs[-1], inputs[-1], _inputs(draw))))
    changes = [tuple(_change(draw, worlds) for _ in range(draw.randint(1, 3))) for _ in inputs[1:]]
    options = {} if (drawn := draw.choice(MODES)) == COSTLY and number % 6 else drawn
    return Program(number, text, tuple(inputs), options, fullgraph=False, changes=((), *changes))


def _reading(draw: random.Random, worlds: list[World]) -> str:
    writer = Writer(draw)
    reads = [
        writer.fill(_word(draw, _read(draw, draw.choice(worlds))), Place(0), 1) for _ in range(4)
    ]
    before = writer.block(Place(1), 2) if draw.randrange(2) else "pass"
    attempts = "\n".join(ATTEMPT.format(textwrap.indent(read, "    ")) for read in reads)
    body = textwrap.indent(f"{g.START}{before}\n{attempts}\n{g.END}", "    ")
    return f"{g.PRELUDE}{CHANGED}\n\ndef main(x, y, n, bag):\n{body}\n"


def _read(draw: random.Random, world: World) -> str:
    return (
        draw.choice(world.uses)
        if draw.randrange(4) == 0
        else f"out.append({draw.choice(world.asks)})"
    )


def _change(draw: random.Random, worlds: list[World]) -> str:
    return (
        "back()"
        if draw.randrange(4) == 0
        else _word(draw, draw.choice(draw.choice(worlds).changes))
    )


def _word(draw: random.Random, template: str) -> str:
    """With its words drawn; the holes of the grammar stay."""
    return HOLE.sub(
        lambda hole: draw.choice(WORDS[hole[1]]) if hole[1] in WORDS else hole[0], template
    )


def _is_valid(text: str) -> bool:
    """An assignment expression may not stand everywhere."""
    try:
        compile(text, "program", "exec")
    except SyntaxError:
        return False
    return True


def _text(draw: random.Random) -> str:
    writer = Writer(draw)
    parts = [g.PRELUDE]
    helpers = draw.randrange(3)
    for index in range(helpers):
        body = f"{g.START}{writer.block(Place(2, calls=False), 3)}\nreturn t0 + t1"
        parts.append(f"def helper{index}(x, y, n, bag):\n{textwrap.indent(body, '    ')}\n")
    calls = "".join(f"t{i} = helper{i}(t0, t1, i0, [l0, d0, o0])\n" for i in range(helpers))
    body = f"{g.START}{writer.block(Place(), 4)}\n{calls}{writer.block(Place(), 4)}\n{g.END}"
    parts.append(f"def main(x, y, n, bag):\n{textwrap.indent(body, '    ')}\n")
    return "\n".join(parts)


def _inputs(draw: random.Random) -> Inputs:
    return Inputs(
        size=draw.choice(SIZES),
        number=draw.choice(NUMBERS),
        grad=draw.randrange(4) == 0,
        double=draw.randrange(6) == 0,
        sharing=draw.choice(("apart", "apart", "same", "view")),
        short=draw.randrange(2) == 0,
        small=draw.randrange(2) == 0,
    )
