"""The opcode handlers and the codec's vocabulary fit together."""

from __future__ import annotations

from stator_bytecode import DEFAULT, REFUSED, SAFE
from stator_bytecode._codec._stack_effect import EFFECTS
from stator_bytecode._machine._generator import ALL_COMPLETIONS


def test_every_neutral_operation_is_handled_or_refused() -> None:
    assert set(EFFECTS) - set(DEFAULT) - set(REFUSED) == set()


def test_nothing_is_both_handled_and_refused() -> None:
    assert set(DEFAULT) & set(REFUSED) == set()


def test_tables_speak_of_handled_operations_only() -> None:
    assert set(ALL_COMPLETIONS) | SAFE <= set(DEFAULT)
    assert set(DEFAULT) <= set(EFFECTS)
