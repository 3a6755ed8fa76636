"""The neutral stream says what the raw one says: same effects, same paths, same arguments, one
vocabulary."""

from __future__ import annotations

import dis
import gc
import sys
import weakref
from collections import defaultdict
from collections.abc import Callable
from types import CodeType
from typing import Any

import pytest
from stator_bytecode import (
    REFUSED,
    Code,
    Instruction,
    Raw,
    assemble,
    decode,
    disassemble,
    operands,
    results,
    stack_effect,
)
from stator_bytecode._codec._decode import slot_names
from stator_bytecode._codec._stack_effect import EFFECTS
from stator_bytecode._codec._stack_size import raw_effect
from stator_bytecode._codec._tables import OPCODES
from stator_bytecode.errors import Unsupported

ENDINGS = {"RETURN_VALUE", "RAISE_VARARGS", "RERAISE", "JUMP"}
RAISES_NOTHING = {"LOAD_CONST", "RETURN_VALUE"}
"""Instructions behind the loop of a generator expression, whose handler expects the iterator that
is gone by then (3.15)."""
VANISHED = {"RESUME", "CACHE", "END_FOR", "NOT_TAKEN"}


# -- the standard library --------------------------------------------------------------------------


def test_stdlib_decodes_into_a_sound_stream(stdlib_codes: list[CodeType]) -> None:
    for code in stdlib_codes:
        decoded, raws = decode(code), disassemble(code)
        check_indices(decoded)
        check_raw_ranges(decoded, raws)
        check_effects(decoded, raws)
        check_depths(decoded)


def check_indices(decoded: Code) -> None:
    count = len(decoded.instructions)
    for index, instr in enumerate(decoded.instructions):
        assert instr.index == index
        assert instr.op in EFFECTS, instr
        assert (0 <= instr.target < count) if can_jump(instr) else instr.target == -1, instr
        assert instr.handler is None or 0 <= instr.handler.target < count


def can_jump(instr: Instruction) -> bool:
    return "JUMP" in instr.op or instr.op in {"FOR_ITER", "SEND"}


def check_raw_ranges(decoded: Code, raws: list[Raw]) -> None:
    """Ranges go up; halves of a superinstruction share one; only what vanishes is between them."""
    previous = (0, 0)
    for instr in decoded.instructions:
        start, stop = instr.raw
        assert start < stop
        assert instr.raw == previous or start >= previous[1]
        check_vanished(raws[previous[1] : start])
        previous = instr.raw
    check_vanished(raws[previous[1] :])


def check_vanished(raws: list[Raw]) -> None:
    """POP_TOP (3.13) and POP_ITER belong to the END_FOR before them."""
    for before, raw in zip([None, *raws], raws, strict=False):
        assert raw.name in VANISHED or (
            raw.name in {"POP_TOP", "POP_ITER"} and before is not None and before.name == "END_FOR"
        )


def check_effects(decoded: Code, raws: list[Raw]) -> None:
    """The raw instructions of a range do to the stack what its neutral ones do."""
    by_range: dict[tuple[int, int], list[Instruction]] = defaultdict(list)
    for instr in decoded.instructions:
        by_range[instr.raw].append(instr)
    for (start, stop), instrs in by_range.items():
        covered = raws[start:stop]
        natively = sum(raw_effect(raw.opcode, raw.arg, False) for raw in covered)
        assert sum(stack_effect(each, False) for each in instrs) == natively + unsaid(covered), (
            instrs,
            covered,
        )
        if can_jump(instrs[-1]):
            assert stack_effect(instrs[-1], True) == jump_effect(covered[-1], raws), (
                instrs,
                covered,
            )


def unsaid(covered: list[Raw]) -> int:
    """Before 3.13, `dis` does not count the value that a generator finds on its stack when it
    starts; since 3.14 it counts the value that a function returns."""
    if covered[-1].name == "RETURN_VALUE":
        return -1 - raw_effect(covered[-1].opcode, 0, False)
    return int(covered[0].name == "RETURN_GENERATOR" and OPCODES.dialect.sent_value_on_entry)


def jump_effect(raw: Raw, raws: list[Raw]) -> int:
    """`dis` has an exhausted FOR_ITER go to END_FOR; it goes past it."""
    effect = raw_effect(raw.opcode, raw.arg, True)
    assert raw.target is not None
    if raw.name == "FOR_ITER" and raw.target.name == "END_FOR":
        place = raws.index(raw.target)
        effect += raw_effect(raw.target.opcode, 0, False)
        effect += raw_effect(raws[place + 1].opcode, 0, False) if sys.version_info >= (3, 13) else 0
    return effect


def check_depths(decoded: Code) -> None:
    """Each instruction is reached with one depth, has its operands, and handlers find what they
    keep."""
    depths: dict[int, int] = {}
    paths = [(0, 0)]
    while paths:
        index, depth = paths.pop()
        assert depths.setdefault(index, depth) == depth, decoded.instructions[index]
        instr = decoded.instructions[index]
        assert operands(instr) <= depth, instr
        following = [] if instr.op in ENDINGS else [(index + 1, depth + stack_effect(instr, False))]
        if can_jump(instr):
            following.append((instr.target, depth + stack_effect(instr, True)))
        if instr.handler is not None:
            assert instr.handler.depth <= depth or instr.op in RAISES_NOTHING
            following.append((instr.handler.target, instr.handler.depth + instr.handler.lasti + 1))
        paths += [(target, there) for target, there in following if depths.get(target) != there]


NAMED = {
    "LOAD_NAME",
    "STORE_NAME",
    "STORE_ATTR",
    "DELETE_ATTR",
    "STORE_GLOBAL",
    "IMPORT_NAME",
    "IMPORT_FROM",
}
SLOTTED = {
    "LOAD_FAST",
    "STORE_FAST",
    "DELETE_FAST",
    "LOAD_DEREF",
    "STORE_DEREF",
    "MAKE_CELL",
    "LOAD_CLOSURE",
}


def test_arguments_are_those_of_dis(stdlib_codes: list[CodeType]) -> None:
    for code in stdlib_codes[::9]:
        listed = [each for each in dis.get_instructions(code) if each.opname != "EXTENDED_ARG"]
        decoded = decode(code)
        for instr in decoded.instructions:
            check_argument(instr, decoded, listed[instr.raw[0] : instr.raw[1]])


def check_argument(instr: Instruction, decoded: Code, listed: list[dis.Instruction]) -> None:
    first = listed[0]
    if instr.op == "LOAD_CONST" and first.opname in {"LOAD_CONST", "RETURN_CONST"}:
        assert instr.arg is first.argval
    elif instr.op in NAMED or instr.op in {"LOAD_ATTR", "LOAD_METHOD"}:
        assert instr.arg == first.argval
    elif instr.op in {"LOAD_GLOBAL", "LOAD_SUPER_ATTR"}:
        assert instr.arg[0] == first.argval
    elif instr.op in SLOTTED and len(listed) == 1 and isinstance(first.argval, str):
        assert decoded.slots[instr.arg] == first.argval
    elif instr.op == "BINARY_OP":
        assert instr.arg == first.argrepr
    elif instr.op == "COMPARE_OP":
        assert first.argrepr == (f"bool({instr.arg[0]})" if instr.arg[1] else instr.arg[0])
    assert (
        first.positions is None
        or instr.positions == tuple(listed[-1].positions or ())
        or instr.op == "IMPORT_STAR"
    )


def test_slots_are_those_of_the_interpreter(stdlib_codes: list[CodeType]) -> None:
    for code in stdlib_codes:
        slots = slot_names(code)
        assert slots == tuple(code._varname_from_oparg(slot) for slot in range(len(slots)))  # type: ignore[attr-defined]
        assert slots[len(slots) - len(code.co_freevars) :] == code.co_freevars


# -- one vocabulary --------------------------------------------------------------------------------


def ops(fn: Callable[..., Any]) -> list[tuple[str, Any]]:
    return [(instr.op, instr.arg) for instr in decode(fn.__code__).instructions]


def arg_of(fn: Callable[..., Any], op: str) -> Any:
    (arg,) = [arg for each, arg in ops(fn) if each == op]
    return arg


def test_call_with_keywords_is_one_instruction() -> None:
    def fn(f: Any, a: Any, b: Any) -> Any:
        return f(a, *(), key=b) if a else f(a, key=b)

    assert arg_of(fn, "CALL") == (2, ("key",))


def test_call_covers_all_its_raw_instructions() -> None:
    def fn(f: Any, a: Any) -> Any:
        return f(a, key=1)

    decoded = decode(fn.__code__)
    (call,) = [instr for instr in decoded.instructions if instr.op == "CALL"]
    names = [raw.name for raw in disassemble(fn.__code__)[slice(*call.raw)]]
    assert names in (
        ["KW_NAMES", "PRECALL", "CALL"],
        ["KW_NAMES", "CALL"],
        ["LOAD_CONST", "CALL_KW"],
    )
    assert (operands(call), results(call, False)) == (4, 1)


def test_loop_ends_after_what_the_interpreter_skips() -> None:
    def fn(a: Any, b: Any) -> Any:
        for _ in a:
            pass
        return b

    instructions = decode(fn.__code__).instructions
    (loop,) = [instr for instr in instructions if instr.op == "FOR_ITER"]
    after = instructions[loop.target]
    assert (after.op, after.arg) == ("LOAD_FAST", 1)
    slots = OPCODES.dialect.iterator_slots
    found = (operands(loop), results(loop, False), results(loop, True))
    assert found == (slots, slots + 1, 0)


def test_plain_function_is_the_same_in_every_version() -> None:
    def fn(a: Any, b: Any) -> Any:
        a += b
        return -a < b

    assert [each for each in ops(fn) if each[0] != "NOP"] == [
        ("LOAD_FAST", 0),
        ("LOAD_FAST", 1),
        ("BINARY_OP", "+="),
        ("STORE_FAST", 0),
        ("LOAD_FAST", 0),
        ("UNARY_OP", "-"),
        ("LOAD_FAST", 1),
        ("COMPARE_OP", ("<", False)),
        ("RETURN_VALUE", None),
    ]


def test_constant_return_is_two_instructions() -> None:
    def fn() -> None: ...

    assert ops(fn) == [("LOAD_CONST", None), ("RETURN_VALUE", None)]


def test_assertion_error_is_a_constant() -> None:
    code = compile("assert a", "m", "exec")  # pytest rewrites the statement in this file
    assert AssertionError in [
        instr.arg for instr in decode(code).instructions if instr.op == "LOAD_CONST"
    ]


def test_null_of_a_call_is_where_the_interpreter_has_it() -> None:
    def fn() -> Any:
        return print()

    place = "before" if decode(fn.__code__).null_first else "after"
    assert arg_of(fn, "LOAD_GLOBAL") == ("print", place)


def test_closure_cell_is_told_from_a_local() -> None:
    def fn(a: Any, b: Any) -> Any:
        return lambda: a, b

    assert decode(fn.__code__).slots == ("a", "b")
    assert [each for each in ops(fn) if each[0] in {"MAKE_CELL", "LOAD_CLOSURE", "LOAD_FAST"}] == [
        ("MAKE_CELL", 0),
        ("LOAD_CLOSURE", 0),
        ("LOAD_FAST", 1),
    ]


def test_local_of_an_inlined_comprehension_that_is_a_cell_outside_is_loaded_as_a_local() -> None:
    def fn(values: Any) -> Any:
        x = 1
        return [x + 1 for x in values], lambda: x

    decoded = decode(fn.__code__)
    slot = decoded.slots.index("x")
    cleared = ("LOAD_FAST_AND_CLEAR", slot) in ops(fn)
    assert (("LOAD_FAST", slot) in ops(fn)) == cleared


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("{x}", [("FORMAT_VALUE", ("", False))]),
        ("{x:>3}", [("FORMAT_VALUE", ("", True))]),
        ("{x!r}", [("FORMAT_VALUE", ("r", False))]),
        ("{x!a:3}", [("FORMAT_VALUE", ("a", True))]),
    ],
)
def test_conversion_and_format(spec: str, expected: list[tuple[str, Any]]) -> None:
    fn = eval(f"lambda x: f'{spec}'")
    found = [each for each in ops(fn) if each[0] in {"FORMAT_VALUE", "CONVERT_VALUE"}]
    if found[0][0] == "CONVERT_VALUE":  # 3.13 converts first
        (_, conversion), (_, (nothing, has_spec)) = found
        assert nothing == ""
        found = [("FORMAT_VALUE", (conversion, has_spec))]
    assert found == expected


def test_star_import_leaves_nothing() -> None:
    code = compile("from m import *", "m", "exec")
    instructions = decode(code).instructions
    (star,) = [instr for instr in instructions if instr.op == "IMPORT_STAR"]
    assert stack_effect(star, False) == -1
    assert instructions[star.index + 1].op == "LOAD_CONST"


def test_asynchronous_code_decodes_to_refused_operations() -> None:
    async def fn(a: Any) -> None:
        async with a as b:
            async for _ in b:
                await b

    found = {op for op, _ in ops(fn)} & set(REFUSED)
    assert found == {
        "BEFORE_ASYNC_WITH",
        "GET_AITER",
        "GET_ANEXT",
        "GET_AWAITABLE",
        "END_ASYNC_FOR",
    }


def test_handler_is_shared_and_points_into_the_stream() -> None:
    def fn(a: Any) -> Any:
        try:
            a()
            a()
        except ValueError:
            return 1

    instructions = decode(fn.__code__).instructions
    calls = [instr for instr in instructions if instr.op == "CALL"]
    assert calls[0].handler is calls[1].handler
    assert calls[0].handler is not None
    assert instructions[calls[0].handler.target].op == "PUSH_EXC_INFO"


# -- refusals and the cache ------------------------------------------------------------------------


def test_call_torn_apart_is_refused() -> None:
    def fn(f: Any) -> Any:
        return f(key=1)

    raws = disassemble(fn.__code__)
    index = next(
        index for index, raw in enumerate(raws) if raw.name in {"PRECALL", "CALL", "CALL_KW"}
    )
    raws.insert(index, Raw(dis.opmap["NOP"]))
    with pytest.raises(Unsupported, match=r"NOP|CALL_KW"):
        decode(assemble(raws, fn.__code__))


def test_jump_into_a_call_is_refused() -> None:
    def fn(f: Any) -> Any:
        return f(key=1)

    raws = disassemble(fn.__code__)
    call = next(raw for raw in raws if raw.name in {"CALL", "CALL_KW"})
    raws.insert(0, Raw(dis.opmap["JUMP_FORWARD"], target=call))
    with pytest.raises(Unsupported, match="into the middle of one operation"):
        decode(assemble(raws, fn.__code__, co_stacksize=10))


def test_code_object_is_decoded_once() -> None:
    def fn() -> None: ...

    twin = fn.__code__.replace()
    assert decode(fn.__code__) is decode(fn.__code__)
    assert twin == fn.__code__
    assert decode(twin) is not decode(fn.__code__)


def test_decoded_code_does_not_live_for_ever() -> None:
    def fn() -> None: ...

    codes = [fn.__code__.replace() for _ in range(4097)]
    dead = weakref.ref(codes[0])
    for code in codes:
        decode(code)
    del codes, code
    gc.collect()
    assert dead() is None


def test_function_is_made_with_all_its_parts_at_once() -> None:
    """No break comes between, where 3.13 has a function without the cells that its code reads."""

    def outer(x: int) -> Any:
        def inner(a: int = 1, *, b: int = 2) -> int:
            return a + b + x

        return inner

    decoded = decode(outer.__code__)
    made = [instr for instr in decoded.instructions if instr.op == "MAKE_FUNCTION"][-1]
    annotations = 16 if hasattr(outer, "__annotate__") else 4
    assert made.arg == 1 + 2 + annotations + 8
    assert decoded.instructions[made.index + 1].op == "STORE_FAST"
