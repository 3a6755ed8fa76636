"""Captures make programs faster and never right: with all of them switched off, with a random half
and with each one alone, programs give what plain Python gives.

A commit is always tested with the same halves, so that its result can be repeated. Others are drawn
by the slow tests, and by `STATOR_CAPTURES_SEED=seed pytest ...`. A failure prints the seed.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch

from integration_tests.breaks.broken_holders import CUT
from integration_tests.breaks.test_breaks import make_args
from integration_tests.breaks.test_stress import changing_args
from integration_tests.corpora.behaviours import catalogue
from integration_tests.corpora.behaviours.test_behaviours import check
from integration_tests.corpora.facts import ALL as FACTS
from integration_tests.corpora.facts.test_facts import Scene
from integration_tests.numpy.array_programs import PROGRAMS as ARRAYS
from integration_tests.support.description import Tolerance
from integration_tests.support.oracle import assert_same
from integration_tests.support.programs import PROGRAMS
from integration_tests.support.world import World
from integration_tests.tensors.random_stream_programs import BROKEN, CAPTURED, series
from integration_tests.tensors.test_random_streams import INPUTS

SEED = os.environ.get("STATOR_CAPTURES_SEED", "1")
ANOTHER_SEED = str(random.SystemRandom().randrange(10**6))
HALVES, OF_A_HALF = 20, 5
"""Half of the captures are off in so many ways, each for so many programs."""
OF_A_CAPTURE = 20
"""The programs for which one capture alone is off, others for each."""
Case = Callable[[dict[str, Any]], Any]
"""Compares a program with plain Python, compiled with these options."""


def behaviour(name: str, title: str) -> Case:
    return lambda options: check(name, title, options=options)


def program(title: str) -> Case:
    plain = PROGRAMS[title]
    return lambda options: assert_same(plain, compiled(plain, options), changing_args(), 3)


def cut(title: str) -> Case:
    plain = CUT[title]
    return lambda options: assert_same(plain, compiled(plain, options), lambda: make_args(int), 2)


def arrays(title: str) -> Case:
    plain, make = ARRAYS[title]
    # in a graph, torch computes what NumPy computes otherwise, rounded elsewhere
    return lambda options: assert_same(
        plain, compiled(plain, options), make, 3, tolerance=Tolerance(1e-5, 1e-6)
    )


def streams(title: str) -> Case:
    plain = CAPTURED[title] if title in CAPTURED else BROKEN[title][1]

    def run(options: dict[str, Any]) -> None:
        assert series(compiled(plain, options), INPUTS) == series(plain, INPUTS)

    return run


def fact(title: str) -> Case:
    setup, body, change, unrelated = FACTS[title]

    def run(options: dict[str, Any]) -> None:
        with contextlib.ExitStack() as undone:
            scene = Scene(setup, body, options=options)
            scene.names["LATER"] = undone.callback
            for text in ("", unrelated, change, ""):
                scene.do(text)
                scene.check()

    return run


def compiled(plain: Any, options: dict[str, Any]) -> Any:
    return stator.compile(plain, backend="eager", options=options)


BEHAVIOURS = {
    f"{name}-{title}": behaviour(name, title)
    for name, found in catalogue().items()
    for title in found
}
OTHERS = {
    **{f"program-{title}": program(title) for title in PROGRAMS},
    **{f"cut-{title}": cut(title) for title in CUT},
    **{f"arrays-{title}": arrays(title) for title in ARRAYS},
    **{f"streams-{title}": streams(title) for title in (*CAPTURED, *BROKEN)},
    **{f"fact-{title}": fact(title) for title in FACTS},
}
CASES = BEHAVIOURS | OTHERS


def sampled(titles: list[str], every: int) -> list[Any]:
    """Mark all but a sample as slow."""
    return [
        title if at % every == 0 else pytest.param(title, marks=pytest.mark.slow)
        for at, title in enumerate(titles)
    ]


@pytest.fixture(autouse=True)
def _world(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    threads, before = torch.get_num_threads(), World.now()
    for name in ("STATOR_FACT", "STATOR_OTHER"):
        monkeypatch.setenv(name, "0")
        monkeypatch.delenv(name)
    yield
    before.restore()
    torch.set_num_threads(threads)


@pytest.mark.parametrize("title", [*sampled([*BEHAVIOURS], 12), *sampled([*OTHERS], 6)])
def test_program_without_captures_gives_what_plain_python_gives(title: str) -> None:
    CASES[title]({"without": ["*"]})


@pytest.mark.parametrize("at", range(OF_A_HALF))
@pytest.mark.parametrize("half", range(HALVES))
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(SEED, id="seed"),
        pytest.param(ANOTHER_SEED, id="another", marks=pytest.mark.slow),
    ],
)
def test_program_without_half_of_the_captures_gives_what_plain_python_gives(
    seed: str, half: int, at: int
) -> None:
    captures = stator.list_captures()
    off = random.Random(f"{seed} {half}").sample(captures, len(captures) // 2)
    title = random.Random(f"{seed} {half} {at}").choice([*CASES])
    print(f"STATOR_CAPTURES_SEED={seed}: {title} without {sorted(off)}")
    CASES[title]({"without": off})


@pytest.mark.slow
@pytest.mark.parametrize("at", range(OF_A_CAPTURE))
@pytest.mark.parametrize("capture", stator.list_captures())
def test_program_without_one_capture_gives_what_plain_python_gives(capture: str, at: int) -> None:
    title = random.Random(f"{capture} {at}").choice([*CASES])
    print(f"{title} without {capture}")
    CASES[title]({"without": [capture]})


class Slots:
    __slots__ = ("first", "second")
    first: int
    second: int


def test_field_of_a_changed_object_is_read_after_the_change() -> None:
    """Without the handler of a field, it is read from the existing object."""

    def make(x: torch.Tensor, n: int) -> Any:
        content = n
        slots = Slots()
        slots.first, slots.second = n, n + 1
        return x, n, (lambda: content).__closure__[0], slots  # type: ignore[index]

    def write_and_read(x: torch.Tensor, n: int, cell: Any, slots: Slots) -> Any:
        cell.cell_contents = n * 100
        slots.first = n * 10
        return x * cell.cell_contents, slots.first, slots.second, cell.cell_contents

    for off in ("objects.function_attributes", "*"):
        fn = compiled(write_and_read, {"without": [off]})
        for n in (2, 2, 3):
            x = torch.ones(2)
            expected, found = (each(*make(x, n)) for each in (write_and_read, fn))
            assert torch.equal(expected[0], found[0])
            assert expected[1:] == found[1:]


def test_text_of_a_tuple_calls_methods_of_enum_members_in_it() -> None:
    """Without the handler of its text, `tuple.__repr__` is one C function with constants."""
    CASES["enum_members-texts_of_members_are_made_on_each_call"](
        {"without": ["objects.sequence_methods"]}
    )


def test_parts_of_a_jagged_tensor_are_those_that_were_given() -> None:
    """Without the functions that make one, they are operators like any other."""

    def parts(x: torch.Tensor, offsets: torch.Tensor) -> Any:
        jagged: Any = torch.nested.nested_tensor_from_jagged(x, offsets)
        again = offsets * 1
        other: Any = torch.nested.nested_tensor_from_jagged(x, again)
        return jagged.offsets() is offsets, other.offsets() is again, other.offsets() is offsets

    given = torch.ones(6, 2), torch.tensor([0, 2, 6])
    for off in ("library.jagged_tensors", "*"):
        fn = compiled(parts, {"without": [off]})
        assert [fn(*given) for _ in range(3)] == [(True, True, False)] * 3
