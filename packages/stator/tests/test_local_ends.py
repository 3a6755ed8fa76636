"""Which locals of a continuation die observed: random states, and what their objects report when
those are dropped."""

from __future__ import annotations

import random
import weakref
from types import CellType
from typing import Any

import pytest
from stator._program._local_ends import LocalEnds, observed_ends

LOG: list[int] = []


class Box:
    """An object that other objects may refer to."""

    def __init__(self, held: Any = None) -> None:
        self.held = held

    def method(self) -> None:
        """Bound, it refers to the box."""


class Loud(Box):
    """An object whose end is observable."""

    def __del__(self) -> None:
        LOG.append(1)


WATCHES: list[weakref.ref[Any]] = []


def watched() -> Box:
    box = Box()
    WATCHES.append(weakref.ref(box, lambda _: LOG.append(2)))
    return box


LEAVES: tuple[Any, ...] = (int, str, list, dict, lambda: None, Box, Box, Loud, watched)


def value(rng: random.Random, kept: list[Any], depth: int = 3) -> Any:
    """A nested value, parts of which may be held by `kept` as well, or be shared."""
    made: Any
    if depth == 0 or rng.random() < 0.3:
        made = rng.choice(LEAVES)()
    elif kept and rng.random() < 0.15:
        return rng.choice(kept)
    else:
        parts = [value(rng, kept, depth - 1) for _ in range(rng.randrange(3))]
        first = parts[0] if parts else None
        made = rng.choice(
            [
                list(parts),
                tuple(parts),
                dict(enumerate(parts)),
                {"names": parts},
                CellType(first),
                Box(first),
                Box(first).method,
                iter(parts),
            ]
        )
    if rng.random() < 0.15:
        kept.append(made)
    return made


def state_of(rng: random.Random, kept: list[Any]) -> tuple[Any, ...]:
    """A state, in which a local may occur twice, or be held by another."""
    values: list[Any] = []
    for _ in range(rng.randrange(1, 7)):
        repeated = values and rng.random() < 0.2
        values.append(
            rng.choice([rng.choice(values), [rng.choice(values)]]) if repeated else value(rng, kept)
        )
    return tuple(values)


@pytest.mark.parametrize("seed", range(400))
def test_an_end_that_is_observed_is_foreseen(seed: int) -> None:
    """No place is reported: then nothing that the program can observe happens when the state is
    dropped."""
    rng, kept = random.Random(seed), list[Any]()
    made = [state_of(rng, kept)]
    places = range(len(made[0]))
    found = observed_ends(made[0], places)
    LOG.clear()
    made.clear()
    assert LOG == [] or found != ()
    kept.clear()
    WATCHES.clear()


def ends_of(state: tuple[Any, ...]) -> LocalEnds:
    """The locals of a state, all of which end unobserved as an entry assumes."""
    places = tuple(range(len(state)))
    return LocalEnds.of(places, [f"local{place}" for place in places], state, "a test")


@pytest.mark.parametrize("seed", range(200))
@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_check_made_for_one_state_foresees_the_ends_in_another(
    seed: int, offset: int, is_kept: bool
) -> None:
    """The other state has the same structure or another one; its values have other holders or
    none."""
    ends = ends_of(state_of(random.Random(seed), []))
    rng, kept = random.Random(seed + offset), list[Any]()
    made = [state_of(rng, kept)]
    if len(made[0]) != len(ends.places):
        return
    if not is_kept:
        kept.clear()
    found = ends.are_observed(made[0])
    LOG.clear()
    made.clear()
    assert LOG == [] or found
    kept.clear()
    WATCHES.clear()


class Layer:
    """What continues to live behind a state, as modules do."""

    def forward(self, layers: dict[str, Layer]) -> tuple[Any, ...]:
        iterator = enumerate(layers.values())
        while self in layers.values() and next(iterator)[1] is not self:
            pass
        return self, CellType(self), CellType(), self.forward, (1, "a", [2]), {"k": 3}, iterator


def test_states_of_one_structure_need_no_further_inspection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layers = {"a": Layer(), "b": Layer(), "c": Layer()}
    ends = ends_of(layers["a"].forward(layers))
    monkeypatch.setattr("stator._program._local_ends.observed_ends", None)
    for layer in layers.values():
        assert not ends.are_observed(layer.forward(layers))


def test_an_object_that_only_the_state_holds_is_inspected() -> None:
    layers = {"a": Layer(), "b": Layer()}
    ends = ends_of(layers["a"].forward(layers))
    assert not ends.are_observed(Layer().forward(layers))

    watched = Layer()
    WATCHES.append(weakref.ref(watched))  # type: ignore[arg-type]
    state = [watched.forward(layers)]
    del watched
    assert ends.are_observed(state.pop())
    WATCHES.clear()


def test_plain_values_and_containers_of_them_are_not_observed() -> None:
    state: tuple[Any, ...] = (1, "a", [None, 2.0], {"k": (1, 2)}, CellType([3]), CellType())
    assert observed_ends(state, range(len(state))) == ()


def test_only_the_places_asked_about_are_reported() -> None:
    state = (Loud(), 1, [Loud()])
    assert observed_ends(state, [0, 1, 2]) == (0, 2)
    assert observed_ends(state, [1, 2]) == (2,)
    assert observed_ends(state, [1]) == ()


def test_what_something_else_refers_to_is_not_reported() -> None:
    kept = [Loud(), Loud()]
    state = (kept[0], [kept[1]], kept)
    assert observed_ends(state[:2], [0, 1]) == ()
    assert observed_ends((Loud(), [Loud()]), [0, 1]) == (0, 1)


def test_a_state_that_has_other_holders_of_its_own() -> None:
    """While an entry is made, names refer to each value as well."""
    box = Loud()
    assert observed_ends((box,), [0], 2) == (0,)
    assert observed_ends((box,), [0]) == ()
