"""Stacks of equal blocks that read and write an object which the program made, as a cache of keys
and values: what each block does with it is as in plain Python, in the first, a middle and the last
block, and blocks that do the same with their own part of it are interpreted once."""

import copy
import gc
import sys
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn

from integration_tests.modules.blocks_with_caches import (
    CHANGES,
    DEPTH,
    PREPARED,
    SIZE,
    USES,
    Cache,
    Entry,
    Prepared,
    Stack,
    appended_to_entry,
    break_inside,
    compared_with_first,
    gives_what_it_wrote,
    grown,
    new_parts,
    own_parts,
    put_by_inner_call,
    replaced_entry,
    same_index,
    under_known_index,
    under_two_indices,
    update,
)


def shape_of(value: Any, known: dict[int, int]) -> Any:
    """Describe a value with all that it leads to, identities included."""
    if isinstance(value, str | int | float | None | torch.dtype):
        return value
    if id(value) in known:
        return "known", known[id(value)]
    known[id(value)] = len(known)
    if isinstance(value, Tensor):
        return "tensor", value.tolist(), value.requires_grad, value._is_view()
    if isinstance(value, list | tuple):
        return type(value).__name__, [shape_of(item, known) for item in value]
    if isinstance(value, dict):
        return [(key, shape_of(item, known)) for key, item in value.items()]
    if isinstance(value, nn.Module):
        return type(value).__name__
    return type(value).__name__, shape_of(vars(value), known)


def outcome(call: Any, *args: Any) -> Any:
    try:
        out, cache = call(*args)
    except (IndexError, AttributeError, KeyError) as error:
        return type(error), str(error)
    if out.requires_grad:
        out.sum().backward()
    return shape_of((out, cache), {})


def outcomes(model: nn.Module, call: Any, change: Any = None) -> Iterator[list[Any]]:
    """Yield the effects of calls, with and without gradients; the model is changed after the first
    two."""
    for step in range(6):
        if step == 2 and change is not None:
            change(model)
        torch.manual_seed(step // 2)
        x = torch.randn(1, SIZE)
        model.zero_grad()
        with torch.set_grad_enabled(step % 2 == 0):
            found = [outcome(call, x)]
        found += [shape_of(p.grad, {}) for p in model.parameters()]
        found += [shape_of(vars(getattr(each, "kept", Entry())), {}) for each in model.modules()]
        yield found


def assert_as_plain(model: nn.Module, change: Any = None) -> None:
    plain = copy.deepcopy(model)
    compiled = stator.compile(model, backend="eager", options={"recompile_limit": 64})
    pairs = zip(outcomes(model, compiled, change), outcomes(plain, plain, change), strict=True)
    for found, expected in pairs:
        assert found == expected


SAMPLE = [compared_with_first, under_two_indices, same_index]


def cases(*groups: list[Any]) -> list[Any]:
    """Return the cases; all but a sample are slow."""
    every = [each for group in groups for each in group]
    return [
        each if each in SAMPLE else pytest.param(each, marks=pytest.mark.slow) for each in every
    ]


@pytest.mark.parametrize("use", cases(USES))
def test_blocks_that_use_a_new_cache_are_as_in_python(use: Any) -> None:
    assert_as_plain(Prepared(use))


@pytest.mark.parametrize("prepared", cases(PREPARED))
def test_one_part_of_a_new_cache_differs(prepared: Any) -> None:
    for use in (update, under_two_indices):
        model = Prepared(use)
        model.prepared = prepared
        assert_as_plain(model)


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("prepared", PREPARED)
def test_one_part_differs_for_every_use(use: Any, prepared: Any) -> None:
    model = Prepared(use)
    model.prepared = prepared
    assert_as_plain(model)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_the_index_of_one_block_is_another_one(change: Any) -> None:
    model = Prepared(update)
    change(model)
    assert_as_plain(model)


@pytest.mark.parametrize("change", cases(CHANGES))
def test_the_index_of_one_block_changes_between_calls(change: Any) -> None:
    assert_as_plain(Prepared(update), change)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "use", [under_known_index, under_two_indices, own_parts, put_by_inner_call]
)
def test_the_index_of_one_block_changes_for_other_uses(use: Any, change: Any) -> None:
    assert_as_plain(Prepared(use), change)


class Given(Stack):
    """Takes the cache from its caller."""

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Any]:
        return super().forward(x, cache)


@pytest.mark.parametrize("use", cases([update, new_parts, under_known_index, grown]))
def test_a_cache_of_the_caller_is_as_in_python(use: Any) -> None:
    plain = Given(use)
    compiled: Any = stator.compile(copy.deepcopy(plain), backend="eager")
    caches = Cache(), Cache()
    for step in range(3):
        x = torch.full((1, SIZE), float(step))
        with torch.no_grad():
            found = compiled(x, caches[0])[0], caches[0]
            expected = plain(x, caches[1])[0], caches[1]
        assert shape_of(found, {}) == shape_of(expected, {})


REPEATED = [update, new_parts, own_parts, appended_to_entry, replaced_entry, gives_what_it_wrote]


@pytest.mark.parametrize("use", [update, *cases(REPEATED[1:])])
def test_blocks_that_use_their_part_of_a_new_cache_are_interpreted_once(use: Any) -> None:
    compiled: Any = stator.compile(Prepared(use), backend="eager")
    with torch.no_grad():
        compiled(torch.ones(1, SIZE))
    [line] = compiled.report.entries[0].equal_calls
    assert line == f"calls of Block that were recorded like an earlier one: {DEPTH - 1}"


@pytest.mark.parametrize("use", [update, *cases([break_inside])])
def test_logs_of_accesses_are_released_with_the_trace(use: Any) -> None:
    """Without the garbage collector: no cycle keeps a trace."""
    made: list[weakref.ref[object]] = []

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_qualname == "AccessLogs.begin":
            made.append(weakref.ref(frame.f_locals["self"]))

    compiled: Any = stator.compile(Prepared(use), backend="eager")
    gc.disable()
    sys.setprofile(profile)
    try:
        compiled(torch.ones(1, SIZE))
        sys.setprofile(None)
        alive = [each() is not None for each in made]
    finally:
        sys.setprofile(None)
        gc.enable()
    assert alive
    assert not any(alive)
