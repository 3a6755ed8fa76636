"""Random programs: text drawn from the grammar, with the three calls that it is compared in."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from typing import Any

import attrs
import hypothesis.strategies as st

from integration_tests.fuzzing import _grammar as g

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
SIZES, NUMBERS = (2, 3), (1, 2, 0, 3, -1, True)


@attrs.frozen
class Inputs:
    """The arguments of one call, as data."""

    size: int
    number: int
    grad: bool
    double: bool
    sharing: str
    short: bool
    small: bool


@attrs.frozen
class Program:
    """The text of a module with `main(x, y, n, bag)`, three calls of it, and how it is compiled."""

    text: str
    calls: tuple[Inputs, ...]
    options: dict[str, Any]
    fullgraph: bool


@attrs.frozen
class Place:
    """Where a statement stands: what may stand there follows from it."""

    depth: int = 3
    loop: bool = False
    generator: bool = False
    calls: bool = True  # false inside of nested functions, which could call themselves through a variable


class Writer:
    """Fills the holes of templates with what Hypothesis draws."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw

    def choose(self, options: tuple[str, ...]) -> str:
        index: int = self.draw(st.integers(0, len(options) - 1))
        return options[index]

    def block(self, place: Place, most: int) -> str:
        count = self.draw(st.integers(1, most))
        return "\n".join(self.statement(place) for _ in range(count))

    def statement(self, place: Place) -> str:
        options = g.STATEMENTS if place.depth > 0 else g.SIMPLE
        extra = (g.IN_LOOPS if place.loop else ()) + (g.IN_GENERATORS * 5 if place.generator else ())
        template = self.choose(options + extra)
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
                inside = attrs.evolve(inner, loop=False, calls=False, generator=kind == "<generator>")
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
        names = g.VARIABLES.get(kind.upper(), ())
        if kind.islower():
            return self.choose(names)
        if depth == 0:
            return self.choose(names or ("None", *g.NAMES[:4]))
        return self.fill(self.choose(g.EXPRESSIONS[kind]), place, depth - 1)


@st.composite
def programs(draw: Any) -> Program:
    """A strategy: simpler programs come first, so that Hypothesis shrinks towards them."""
    writer = Writer(draw)
    parts = [g.PRELUDE]
    helpers = draw(st.integers(0, 2))
    for number in range(helpers):
        body = f"{g.START}{writer.block(Place(2, calls=False), 3)}\nreturn t0 + t1"
        parts.append(f"def helper{number}(x, y, n, bag):\n{textwrap.indent(body, '    ')}\n")
    calls = "".join(f"t{i} = helper{i}(t0, t1, i0, [l0, d0, o0])\n" for i in range(helpers))
    body = f"{g.START}{writer.block(Place(), 4)}\n{calls}{writer.block(Place(), 4)}\n{g.END}"
    parts.append(f"def main(x, y, n, bag):\n{textwrap.indent(body, '    ')}\n")
    inputs = tuple(draw(_inputs()) for _ in range(3))
    return Program("\n".join(parts), inputs, MODES[draw(st.integers(0, len(MODES) - 1))], draw(st.integers(0, 9)) == 9)


def _inputs() -> Any:
    return st.builds(
        Inputs,
        size=st.sampled_from(SIZES),
        number=st.sampled_from(NUMBERS),
        grad=st.integers(0, 3).map(lambda drawn: drawn == 3),
        double=st.integers(0, 5).map(lambda drawn: drawn == 5),
        sharing=st.sampled_from(("apart", "apart", "same", "view")),
        short=st.booleans(),
        small=st.booleans(),
    )
