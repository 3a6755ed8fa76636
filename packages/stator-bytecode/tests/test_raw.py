"""Assembling is the inverse of disassembling, and edited code still runs."""

from __future__ import annotations

import dis
import importlib
import inspect
import sys
from collections.abc import Callable
from itertools import pairwise
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stator_bytecode import Raw, RawHandler, assemble, disassemble
from stator_bytecode._codec._exception_table import (
    ExceptionEntry,
    parse_exception_table,
    write_entry,
)
from stator_bytecode._codec._stack_size import stack_size
from stator_bytecode._codec._tables import OPCODES
from stator_bytecode.errors import InvalidUse

NOP = dis.opmap["NOP"]
GLUED = {  # the interpreter takes these pairs for one
    ("KW_NAMES", "PRECALL"),
    ("KW_NAMES", "CALL"),
    ("PRECALL", "CALL"),
    ("LOAD_CONST", "CALL_KW"),
    ("YIELD_VALUE", "RESUME"),
    ("SEND", "YIELD_VALUE"),
    ("RETURN_GENERATOR", "POP_TOP"),
    ("END_FOR", "POP_TOP"),
}


def tables(code: CodeType) -> tuple[bytes, bytes, bytes]:
    return code.co_code, code.co_linetable, code.co_exceptiontable


def test_stdlib_comes_back_byte_for_byte(stdlib_codes: list[CodeType]) -> None:
    for code in stdlib_codes:
        again = assemble(disassemble(code), code)
        assert tables(again) == tables(code), code
        assert list(again.co_positions()) == list(code.co_positions())
        assert again.co_stacksize >= code.co_stacksize


def test_stack_size_of_stdlib_covers_what_the_compiler_counted(
    stdlib_codes: list[CodeType],
) -> None:
    """Except that compilers count handlers that nothing can raise into."""
    for code in stdlib_codes:
        raws = numbered(disassemble(code))
        assert stack_size(raws, code.co_flags) >= code.co_stacksize or len(reachable(raws)) < len(
            raws
        ), code


def numbered(raws: list[Raw]) -> list[Raw]:
    for index, raw in enumerate(raws):
        raw.index = index
    return raws


def reachable(raws: list[Raw]) -> set[Raw]:
    reached: set[Raw] = set()
    paths = [raws[0]]
    while paths:
        raw = paths.pop()
        if raw in reached:
            continue
        reached.add(raw)
        paths += [raw.target] if raw.target is not None else []
        paths += [raw.handler.target] if raw.handler is not None else []
        paths += [] if raw.opcode in OPCODES.no_fall_through else [raws[raw.index + 1]]
    return reached


# -- edited code runs ------------------------------------------------------------------------------


def with_nops(code: CodeType, count: int = 1) -> CodeType:
    """`code`, and the code in it, with NOPs before every instruction that may have one; jumps go to
    the NOPs."""
    raws: list[Raw] = []
    first_of: dict[Raw, Raw] = {}
    for previous, raw in pairwise([Raw(NOP), *disassemble(code)]):
        if (previous.name, raw.name) not in GLUED and raw.name not in {"END_FOR", "END_SEND"}:
            nops = [Raw(NOP, positions=raw.positions, handler=raw.handler) for _ in range(count)]
            first_of[raw] = nops[0]
            raws += nops
        raws.append(raw)
    for raw in raws:
        raw.target = first_of.get(raw.target, raw.target) if raw.target is not None else None
        if (handler := raw.handler) is not None and handler.target in first_of:
            raw.handler = RawHandler(first_of[handler.target], handler.depth, handler.lasti)
    consts = tuple(
        with_nops(value, count) if isinstance(value, CodeType) else value
        for value in code.co_consts
    )
    return assemble(raws, code, co_consts=consts)


def module_with_nops(name: str, count: int) -> ModuleType:
    original = importlib.import_module(name)
    module = ModuleType(name)
    module.__dict__.update(
        __file__=original.__file__, __package__=original.__package__, __spec__=original.__spec__
    )
    code = compile(
        inspect.getsource(original), original.__file__ or name, "exec", dont_inherit=True
    )
    registered = sys.modules[name]
    sys.modules[name] = module  # dataclasses look their own module up while it runs
    try:
        exec(with_nops(code, count), module.__dict__)
    finally:
        sys.modules[name] = registered
    return module


TEXT = "the quick brown fox\njumps over\n\n  the lazy dog " * 3
USES: dict[str, Callable[[Any], object]] = {
    "textwrap": lambda m: (m.fill(TEXT, 20), m.dedent("  a\n   b"), m.shorten(TEXT, 30)),
    "difflib": lambda m: (
        list(m.unified_diff(TEXT.split(), TEXT[::2].split())),
        m.get_close_matches("ape", ["apple"]),
    ),
    "heapq": lambda m: (
        list(m.merge([1, 4], [2, 3], reverse=False)),
        m.nsmallest(2, [3, 1, 2], key=lambda v: -v),
    ),
    "statistics": lambda m: (m.stdev([1.5, 2, 8]), m.quantiles(range(20), n=5), m.mode("abb")),
    "fractions": lambda m: (
        str(m.Fraction("1.25") ** 3),
        str(m.Fraction(0.3).limit_denominator(100)),
    ),
    "ast": lambda m: (m.literal_eval("{'a': [1, (2, -3j)]}"), m.dump(m.parse("a = b + 1"))),
    "json.decoder": lambda m: (
        m.JSONDecoder().decode('{"a": [1, 2.5, null, "\\u00e9"]}'),
        error(m),
    ),
    "json.encoder": lambda m: m.JSONEncoder(indent=2, sort_keys=True).encode(
        {"b": [1, {"c": None}], "a": 1.5}
    ),
    "dataclasses": lambda m: repr(m.replace(m.make_dataclass("D", ["x", ("y", int, 3)])(1), y=5)),
    "tokenize": lambda m: [
        token.string for token in m.generate_tokens(iter(["def f(x):\n", " return x\n"]).__next__)
    ],
    "contextlib": lambda m: nested_contexts(m.contextmanager, m.ExitStack, m.suppress),
    "colorsys": lambda m: m.hsv_to_rgb(*m.rgb_to_hsv(0.2, 0.5, 0.7)),
    "shlex": lambda m: (m.split("a 'b c' d\\ e"), m.quote("it's")),
    "string": lambda m: (
        m.Template("$a ${b}").substitute(a=1, b=2),
        m.Formatter().format("{0!r:>5}{x}", "a", x=2),
    ),
}


def error(module: Any) -> str:
    with pytest.raises(ValueError, match="Expecting value") as raised:
        module.JSONDecoder().decode("[1,")
    return f"{raised.type.__name__} {raised.value}"


def nested_contexts(contextmanager: Any, exit_stack: Any, suppress: Any) -> list[object]:
    seen: list[object] = []

    def guarded(name: str) -> Any:
        seen.append(name)
        try:
            yield name
        except KeyError as raised:
            seen.append(raised.args)
        finally:
            seen.append(-len(name))

    context = contextmanager(guarded)
    with exit_stack() as stack, suppress(ValueError):
        seen.append(stack.enter_context(context("ab")))
        stack.callback(seen.append, "called")
        with context("c"):
            raise KeyError(1)
    return seen


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("count", [1, pytest.param(130, marks=pytest.mark.slow)])
def test_stdlib_module_runs_with_nops_everywhere(name: str, count: int) -> None:
    assert USES[name](module_with_nops(name, count)) == USES[name](importlib.import_module(name))


def loops(limit: int) -> list[object]:
    out: list[object] = []
    for number in range(limit):
        try:
            if number % 3 == 0:
                continue
            out.append([number // (each - 2) for each in range(number)])
        except ZeroDivisionError as error:
            out.append(str(error))
        finally:
            out.append(lambda bound=number: bound)
    return [value() if callable(value) else value for value in out]


def generators(limit: int) -> list[object]:
    def inner() -> Any:
        got = yield 1
        return (yield from (got, limit))

    def outer() -> Any:
        try:
            return (yield from inner())
        except KeyError:
            yield "caught"

    running = outer()
    return [next(running), running.send(5), running.throw(KeyError), *outer()]


def patterns(limit: int) -> list[object]:
    def one(value: object) -> object:
        match value:
            case {"a": [first, *rest], **others}:
                return first, rest, others
            case int(real=0) | None:
                return "nothing"
            case [_, _] as pair if limit:
                return pair
        return limit

    return [one(value) for value in ({"a": [1, 2], "b": 3}, 0, [1, 2], "other")]


def groups(limit: int) -> list[object]:
    seen: list[object] = []
    try:
        raise ExceptionGroup("two", [ValueError(limit), KeyError(2)])
    except* ValueError as found:
        seen.append(found.exceptions[0].args)
    except* KeyError:
        seen.append("key")
    return seen


@pytest.mark.parametrize("fn", [loops, generators, patterns, groups])
@pytest.mark.parametrize("count", [1, 7, 300])
def test_function_runs_with_nops_everywhere(fn: FunctionType, count: int) -> None:
    edited = FunctionType(with_nops(fn.__code__, count), fn.__globals__)
    assert edited(8) == fn(8)


# -- what follows by itself ------------------------------------------------------------------------


def test_replacements_reach_the_code_object() -> None:
    code = assemble(disassemble(loops.__code__), loops.__code__, co_name="other", co_stacksize=99)
    assert (code.co_name, code.co_stacksize) == ("other", 99)


def test_code_that_is_longer_than_its_table_of_lines_is_read_to_its_end() -> None:
    code = (lambda x: x + 1).__code__
    longer = code.replace(co_code=bytes([NOP, 0]) + code.co_code)
    assert [raw.name for raw in disassemble(longer)] == [
        "NOP",
        *(raw.name for raw in disassemble(code)),
    ]


def test_jump_turns_round_with_its_target() -> None:
    """`JUMP_FORWARD end; back: RETURN 1; end: JUMP_FORWARD back` needs a backward jump at the
    end."""
    code = (lambda: 1).__code__
    *entry, last = disassemble(code)
    over, back = Raw(dis.opmap["JUMP_FORWARD"]), Raw(dis.opmap["JUMP_FORWARD"])
    first = entry.pop() if last.name == "RETURN_VALUE" else last
    tail = [first, last] if first is not last else [last]
    over.target, back.target = back, first
    assert FunctionType(assemble([*entry, over, *tail, back], code), {})() == 1


def test_target_outside_the_list_is_refused() -> None:
    raws = disassemble(loops.__code__)
    jump = next(raw for raw in raws if raw.target is not None)
    jump.target = Raw(NOP)
    with pytest.raises(InvalidUse, match="not among the instructions"):
        assemble(raws, loops.__code__)


def test_instruction_listed_twice_is_refused() -> None:
    raws = disassemble(loops.__code__)
    target = next(raw.target for raw in raws if raw.target is not None)
    with pytest.raises(InvalidUse, match="twice"):
        assemble([target, *raws], loops.__code__)


def test_equal_handlers_of_neighbours_share_a_range() -> None:
    raws = disassemble(loops.__code__)
    before = len(list(parse_exception_table(loops.__code__.co_exceptiontable)))
    for raw in raws:
        if (handler := raw.handler) is not None:
            raw.handler = RawHandler(handler.target, handler.depth, handler.lasti)
    code = assemble(raws, loops.__code__)
    assert len(list(parse_exception_table(code.co_exceptiontable))) == before


UNITS = st.integers(0, 1 << 24)
ENTRIES = st.builds(
    lambda start, length, target, depth, lasti: (start, start + length, target, depth, lasti),
    UNITS, UNITS, UNITS, st.integers(0, 1 << 12), st.booleans(),
)  # fmt: skip


@given(st.lists(ENTRIES))
def test_exception_table_is_read_as_written(entries: list[ExceptionEntry]) -> None:
    table = bytearray()
    for entry in entries:
        write_entry(table, entry)
    assert list(parse_exception_table(bytes(table))) == entries


COLUMNS = st.one_of(
    st.just((None, None)),
    st.tuples(st.integers(0, 300), st.integers(0, 300)),
)
POSITIONS = st.one_of(
    st.just((None, None, None, None)),
    st.builds(
        lambda line, more, columns: (line, line + more, *columns),
        st.integers(1, 5000), st.sampled_from([0, 0, 1, 70]), COLUMNS,
    ),
)  # fmt: skip


@given(st.lists(POSITIONS, min_size=1), st.integers(1, 5000))
def test_positions_are_read_as_written(positions: list[Any], first_line: int) -> None:
    def nothing() -> None: ...

    raws = [Raw(NOP, positions=each) for each in positions]
    code = assemble(
        [*raws, *disassemble(nothing.__code__)], nothing.__code__, co_firstlineno=first_line
    )
    assert list(code.co_positions())[: len(positions)] == positions


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 400)), max_size=8))
def test_nops_anywhere_change_nothing(insertions: list[tuple[int, int]]) -> None:
    def gcd(a: int, b: int) -> int:
        while b:
            a, b = b, a % b
        return a

    raws = disassemble(gcd.__code__)
    for place, count in insertions:
        raws = [
            *raws[: place % len(raws)],
            *(Raw(NOP) for _ in range(count)),
            *raws[place % len(raws) :],
        ]
    assert FunctionType(assemble(raws, gcd.__code__), {})(84, 36) == 12


def test_code_that_no_compiler_makes_is_refused() -> None:
    def fn(x: int) -> int:
        while x:
            x -= 1
        return x

    code = fn.__code__
    raws = disassemble(code)
    loop = next(raw for raw in raws if raw.name.startswith("LOAD_FAST"))
    forward = next(raw for raw in raws if raw.name.startswith("RESUME"))
    jump = Raw(dis.opmap["JUMP_FORWARD"], 0, forward, loop.positions, None)
    again = assemble([*raws, jump], code)
    assert disassemble(again)[-1].name == "JUMP_BACKWARD"
    backward = Raw(dis.opmap["FOR_ITER"], 0, forward, loop.positions, None)
    with pytest.raises(InvalidUse, match="FOR_ITER cannot jump in the direction of its target"):
        assemble([*raws, backward], code)
