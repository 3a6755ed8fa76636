"""Every opcode is either handled or refused; tables agree with the interpreter they describe."""

from __future__ import annotations

import dis
import sys

import pytest
from stator_bytecode import REFUSED
from stator_bytecode._codec._dialect import Scope
from stator_bytecode._codec._raw_instruction import Raw
from stator_bytecode._codec._stack_effect import EFFECTS
from stator_bytecode._codec._tables import DIALECTS, OPCODES, dialect_of
from stator_bytecode.errors import InvalidUse

DIALECT = OPCODES.dialect
REAL = {
    name: number
    for name, number in dis.opmap.items()
    if number < 256 and not name.startswith("INSTRUMENTED_")
}
SCOPE = Scope(("name",) * 256, (("names",),) * 256, frozenset({1}))


def test_every_opcode_is_handled_or_refused() -> None:
    assert set(DIALECT.rules) | DIALECT.parts | set(DIALECT.refused) == set(REAL)


def test_no_opcode_is_both_handled_and_refused() -> None:
    assert not set(DIALECT.rules) & set(DIALECT.refused)
    assert not DIALECT.parts & (set(DIALECT.rules) | set(DIALECT.refused))


def test_running_version_has_its_own_table() -> None:
    assert DIALECT.version == sys.version_info[:2]


def test_unknown_version_is_refused_by_name() -> None:
    with pytest.raises(InvalidUse, match=r"no bytecode table for Python 3\.99"):
        dialect_of((3, 99))


def test_caches_are_those_of_the_interpreter() -> None:
    units = test_unknown_version_is_refused_by_name.__code__.co_code[::2]
    shown = list(dis.get_instructions(test_unknown_version_is_refused_by_name, show_caches=True))
    opcodes = [instruction.opcode for instruction in shown if instruction.opname != "CACHE"]
    assert sum(1 + OPCODES.caches[opcode] for opcode in opcodes) == len(units)


def test_opcodes_with_arguments_are_those_of_the_interpreter() -> None:
    has_argument = set(getattr(dis, "hasarg", range(dis.HAVE_ARGUMENT, 256)))
    assert {number for number in REAL.values() if number in has_argument} == {
        number for number in REAL.values() if number >= DIALECT.argument_from
    }


@pytest.mark.parametrize("name", sorted(set(DIALECT.rules) - DIALECT.parts))
def test_every_rule_gives_operations_with_a_stack_effect(name: str) -> None:
    ops = set(_ops(name))
    assert ops <= set(EFFECTS)


def _ops(name: str) -> list[str]:
    rule = DIALECT.rules[name]
    if isinstance(rule, tuple):
        return [emit.op for emit in rule]
    following = {
        "PRECALL": ["CALL"],
        "KW_NAMES": ["PRECALL", "CALL"] if "PRECALL" in REAL else ["CALL"],
        "END_FOR": ["POP_ITER"] if "POP_ITER" in REAL else ["POP_TOP"],
    }
    raws = [Raw(REAL[each]) for each in [name, *following.get(name, ["POP_TOP"])]]
    return [op for arg in (1, 2, 3) if (op := rule(_with_arg(raws, arg), 0, SCOPE)[2]) is not None]


def _with_arg(raws: list[Raw], arg: int) -> list[Raw]:
    raws[0].arg = arg
    return raws


def test_refused_operations_say_why() -> None:
    assert all(reason for reason in REFUSED.values())
    assert set(DIALECT.refused) <= set(REFUSED)
    assert {"GET_AWAITABLE", "END_ASYNC_FOR"} <= set(REFUSED)


def test_all_dialects_speak_one_vocabulary() -> None:
    emitted = {
        emit.op
        for dialect in DIALECTS.values()
        for rule in dialect.rules.values()
        if isinstance(rule, tuple)
        for emit in rule
    }
    assert emitted <= set(EFFECTS)
