"""Snapshots taken apart into a Point and values, and put together again."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any, ClassVar

import attrs
import pytest
from stator_bytecode._breaks._layout import Virtualized
from stator_bytecode._breaks._plain import plain
from stator_bytecode._breaks._point import layout_of
from stator_bytecode._codec._tables import OPCODES
from stator_bytecode._concrete._interpreter import ConcreteDomain
from stator_bytecode._handlers._all import DEFAULT
from stator_bytecode._machine._frame import (
    NULL,
    Frame,
    GeneratorState,
    GeneratorStatus,
    LastInstruction,
    PreviousExc,
    Snapshot,
    Then,
)
from stator_bytecode._machine._machine import Machine
from stator_bytecode._machine._outcome import Broke
from stator_bytecode.errors import Unsupported


class Domain(ConcreteDomain):
    """Knows the generators that it made, so that a test that stops in one can let it die in
    silence."""

    made: ClassVar[list[GeneratorState]] = []

    def make_generator(self, state: GeneratorState) -> Any:
        self.made.append(state)
        return super().make_generator(state)


@pytest.fixture(autouse=True)
def _ended_generators() -> Iterator[None]:
    gc.disable()  # what dies before its state is closed is reported
    yield
    for state in Domain.made:
        state.status = GeneratorStatus.CLOSED
    Domain.made.clear()
    gc.enable()
    gc.collect()


def stop_at(op: str, fn: Any, *args: Any) -> tuple[Snapshot, ConcreteDomain]:
    """The state of `fn` before its first `op`, which may be in a function that it calls."""

    def refuse(machine: Machine, frame: Frame, instr: Any) -> None:
        raise Unsupported("test")

    domain = Domain(make_machine=lambda domain: Machine(domain, {**DEFAULT, op: refuse}))
    outcome = domain.active.run([domain.call(fn, args, {}).frame])
    assert isinstance(outcome, Broke)
    return outcome.snapshot, domain


def split(op: str, fn: Any, *args: Any) -> Any:
    snapshot, domain = stop_at(op, fn, *args)
    return *layout_of(snapshot, domain.generator_state, lambda state: state.globals), domain


class Keeper:
    def outer(self, x: Any) -> Any:
        return [x, self.inner(x + 1)]

    def inner(self, y: Any) -> Any:
        def cell() -> Any:
            return y

        unbound: Any
        try:
            raise ValueError(y)
        except ValueError as error:
            return cell, error, y @ 1

        unbound = 1
        return unbound


def consumer(n: int) -> Any:
    total = 0
    for value in producer(n):
        total += value
        total @= 1
    return total


def producer(n: int) -> Iterator[int]:
    yield from range(n)


def test_the_names_of_the_state_are_readable_and_each_is_there_once() -> None:
    point, values, _ = split("RAISE_VARARGS", Keeper().outer, 1)
    assert point.parameters[:3] == ("self", "x", "stack0")
    assert {"f1_self", "f1_y", "f1_cell"} <= set(point.parameters)
    assert len(set(point.parameters)) == len(values) == point.count


def text_of_rows(rows: list[list[int]]) -> str:
    for row in rows:
        with contextlib.nullcontext():
            for value in sorted(
                row,
            ):
                return "a" + f"{value}"
    return ""


def test_values_on_the_stack_are_described_by_the_loop_they_belong_to() -> None:
    rows = [[2, 1]]
    point, values, _ = split("FORMAT_VALUE", text_of_rows, rows)
    assert len(point.descriptions) == point.count == len(values)
    assert point.descriptions[:3] == ("rows", "row", "value")
    assert "the loop over rows" in point.descriptions
    assert "the loop over sorted(row)" in point.descriptions
    assert point.descriptions[-1] == "a value under evaluation"


def test_values_of_a_callee_and_of_handlers_are_described() -> None:
    point, values, _ = split("RAISE_VARARGS", Keeper().outer, 1)
    assert len(point.descriptions) == point.count == len(values)
    assert point.descriptions[:3] == ("self", "x", "a value under evaluation")
    point, values, _ = split("BINARY_OP", Keeper().inner, 1)
    assert len(point.descriptions) == point.count == len(values)


def test_loop_without_a_file_is_described_all_the_same() -> None:
    namespace: dict[str, Any] = {}
    exec("def fn(xs):\n    for x in xs:\n        return f'{x}'", namespace)
    point, *_ = split("FORMAT_VALUE", namespace["fn"], [1])
    assert "the loop" in point.descriptions


def test_points_of_the_same_place_are_equal_keys_whatever_the_values() -> None:
    keeper = Keeper()
    one, first, _ = split("RAISE_VARARGS", keeper.outer, 1)
    two, second, _ = split("RAISE_VARARGS", keeper.outer, 2)
    assert one == two
    assert hash(one) == hash(two)
    assert first != second


def test_the_exception_being_handled_and_the_markers_belong_to_the_state() -> None:
    point, values, _ = split("LOAD_CLOSURE", handling)
    assert point.frames[0].handled
    (frame,) = point.frames_from(values, lambda state: None)
    assert isinstance(frame.handled, ValueError)
    assert any(isinstance(item, PreviousExc) and item.value is None for item in frame.stack)


def handling() -> Any:
    try:
        raise ValueError
    except ValueError:
        x = 1
        return lambda: x


def test_frames_come_back_as_they_were() -> None:
    snapshot, domain = stop_at("RAISE_VARARGS", Keeper().outer, 1)
    point, values = layout_of(snapshot, domain.generator_state, lambda state: state.globals)
    frames = point.frames_from(values, domain.make_generator)
    assert [type(frame) for frame in frames] == [Frame, Frame]
    for state, frame in zip(snapshot.frames, frames, strict=True):
        again = attrs.evolve(frame, function=state.function)
        assert attrs.astuple(again, recurse=False)[:9] == attrs.astuple(state, recurse=False)[:9]
    assert frames[0].parked is not None
    assert frames[0].parked.then.kind == "value"


def test_a_generator_that_only_the_stack_sees_is_carried_as_state() -> None:
    snapshot, domain = stop_at("BINARY_SUBSCR", subscript_in_loop, 3)
    point, values = layout_of(snapshot, domain.generator_state, lambda state: state.globals)
    assert [layout.raw.co_name for layout in point.carried] == ["producer"]
    made = []
    (frame,) = point.frames_from(values, lambda state: made.append(state) or ("generator", state))  # type: ignore[func-returns-value]
    assert ("generator", made[0]) in frame.stack
    assert made[0].frame.code.raw.co_name == "producer"
    assert made[0].frame.slots[0] == 3


def subscript_in_loop(n: int) -> Any:
    for value in producer(n):
        return [value][0]
    return None


@attrs.frozen
class Pair:
    """A recipe: a list."""

    def build(self, parts: Any) -> list[Any]:
        return list(parts)


def test_an_object_that_holds_a_generator_is_carried_in_parts() -> None:
    fn = subscript_of_held
    snapshot, domain = stop_at("CONTAINS_OP", fn, 3)
    taken: dict[int, Virtualized] = {}

    def virtual(value: Any) -> Any:
        if type(value) is list and any(domain.generator_state(item) is not None for item in value):
            return taken.setdefault(id(value), Virtualized(Pair(), tuple(value)))
        return domain.generator_state(value)

    point, values = layout_of(snapshot, virtual, lambda state: state.globals)
    assert [type(layout).__name__ for layout in point.carried] == [
        "FrameLayout",
        "VirtualizedLayout",
    ]
    assert len(set(point.parameters)) == len(values) == point.count
    (frame,) = point.frames_from(values, lambda state: ("generator", state))
    held = frame.slots[fn.__code__.co_varnames.index("held")]
    assert held[0] == "first"
    assert held[1][0] == "generator"
    assert held is frame.slots[fn.__code__.co_varnames.index("alias")]
    assert plain(point)(*values) == (True, [1, 2])


def test_what_the_instruction_works_on_is_never_taken_apart() -> None:
    snapshot, _ = stop_at("CONTAINS_OP", subscript_of_held, 3)
    parts = Virtualized(Pair(), ())
    for value, carried in ((3, 0), ("found", 1)):
        slots = ("found", *snapshot.frames[0].slots[1:])
        state = attrs.evolve(snapshot.frames[0], slots=slots, stack=(3, 3))
        changed = attrs.evolve(snapshot, frames=(state,))
        point, _ = layout_of(
            changed, lambda seen, value=value: parts if seen == value else None, lambda s: s.globals
        )
        assert len(point.carried) == carried


def subscript_of_held(n: int) -> Any:
    produced = producer(n)
    next(produced)
    held = alias = ["first", produced]
    found = n in (n, 4)
    return found and held is alias, list(held[1])


def test_a_running_generator_is_linked_to_its_frame() -> None:
    point, values, _ = split("GET_YIELD_FROM_ITER", consumer, 2)
    frames = point.frames_from(values, lambda state: state)
    assert frames[1].generator is not None
    assert frames[1].generator.frame is frames[1]
    assert frames[0].stack[-OPCODES.dialect.iterator_slots] is frames[1].generator


def test_values_of_a_then_are_part_of_the_state_and_its_name_of_the_point() -> None:
    snapshot, domain = stop_at("RAISE_VARARGS", Keeper().outer, 1)
    outer = snapshot.frames[0].copy()
    outer.wait(Then("attribute", ("value",), "name"))
    changed = Snapshot((outer, snapshot.frames[1]), None)
    point, values = layout_of(changed, domain.generator_state, lambda state: state.globals)
    assert "then0" in point.parameters
    then = point.frames_from(values, domain.make_generator)[0].parked.then  # type: ignore[union-attr]
    assert (then.kind, then.values, then.name) == ("attribute", ("value",), "name")


def test_markers_of_instructions_carry_no_value() -> None:
    snapshot, domain = stop_at("RAISE_VARARGS", Keeper().outer, 1)
    marked = attrs.evolve(snapshot.frames[1], stack=(LastInstruction(3), NULL))
    point, values = layout_of(
        Snapshot((marked,), None), domain.generator_state, lambda state: state.globals
    )
    (frame,) = point.frames_from(values, domain.make_generator)
    assert frame.stack == [LastInstruction(3), NULL]


def test_body_of_a_class_has_no_layout() -> None:
    snapshot, domain = stop_at("COMPARE_OP", lambda x: x > 1, 2)
    snapshot.frames[-1].names = {}
    with pytest.raises(Unsupported, match="class body"):
        layout_of(snapshot, domain.generator_state, lambda state: state.globals)
