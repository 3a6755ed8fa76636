"""Conversions of raw arguments to neutral ones, and the rules that hold in every supported CPython.

Each version's table starts from `SHARED` and adds what is its own. Regular families are made from
tables of names.
"""

from collections.abc import Callable, Sequence
from typing import Any

from stator_bytecode._codec._dialect import Emit, Fuse, Fused, Resolve, Rule, Rules, Scope
from stator_bytecode._codec._raw_instruction import Raw
from stator_bytecode.errors import Unsupported

OPERATORS = ("+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^")
_NAMES = "add and floordiv lshift matmul mul mod or pow rshift sub truediv xor".split()
OPERATOR_NAMES = dict(zip(OPERATORS, _NAMES, strict=True))
"""The methods and the functions of `operator` that an operator's name is part of: `__add__`,
`__radd__`, `__iadd__`."""
BINARY = OPERATORS + tuple(operator + "=" for operator in OPERATORS)
SUBSCRIPT = len(BINARY)
"""The argument of BINARY_OP for `a[b]`, since 3.14."""
COMPARISONS = ("<", "<=", "==", "!=", ">", ">=")
CONVERTERS: dict[str, Callable[[Any], str]] = {"s": str, "r": repr, "a": ascii}
CONVERSIONS = ("", *CONVERTERS)
"""Conversions of a replacement field, for FORMAT_VALUE and CONVERT_VALUE: none, !s, !r, !a."""

VANISHES: Rule = ()


def nothing(_: Scope, arg: int) -> None:
    return None


def number(_: Scope, arg: int) -> int:
    return arg


def flag(_: Scope, arg: int) -> bool:
    return bool(arg)


def name(scope: Scope, arg: int) -> str:
    return scope.names[arg]


def constant(scope: Scope, arg: int) -> Any:
    return scope.consts[arg]


def always(value: Any) -> Resolve:
    return lambda scope, arg: value


def one_of(values: Sequence[Any]) -> Resolve:
    return lambda scope, arg: values[arg]


def one(op: str, resolve: Resolve = nothing) -> Rule:
    return (Emit(op, resolve),)


def same(resolve: Resolve, ops: str) -> Rules:
    """Give the rules of raw opcodes that have the neutral name; `ops` separates them by spaces."""
    return {op: one(op, resolve) for op in ops.split()}


def renamed(resolve: Resolve, **ops: str) -> Rules:
    return {raw: one(neutral, resolve) for raw, neutral in ops.items()}


def halves(first: str, second: str) -> Rule:
    """A superinstruction on two locals: their slots are the high and the low four bits."""
    return Emit(first, lambda scope, arg: arg >> 4), Emit(second, lambda scope, arg: arg & 15)


def followed_by(raws: Sequence[Raw], index: int, *names: str) -> None:
    """Compilers always emit these together; code from elsewhere that does not is refused."""
    found = tuple(raw.name for raw in raws[index + 1 : index + 1 + len(names)])
    if found != names:
        raise Unsupported(
            "unexpected-bytecode", f"{raws[index].name} is followed by {found}, not by {names}"
        )


def loop_end(*after: str) -> Fuse:
    """The instructions that an exhausted FOR_ITER skips. Nothing else ever reaches it."""

    def fuse(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
        followed_by(raws, index, *after)
        return (index + 1 + len(after), index, None, None)

    return fuse


def call(*after: str, named: bool = False) -> Fuse:
    """The last of several instructions calls; the first, if `named`, has the names of keyword
    arguments."""

    def fuse(raws: Sequence[Raw], index: int, scope: Scope) -> Fused:
        followed_by(raws, index, *after)
        last = index + len(after)
        return (
            last + 1,
            last,
            "CALL",
            (raws[last].arg, constant(scope, raws[index].arg) if named else ()),
        )

    return fuse


SHARED: Rules = {
    **dict.fromkeys(("CACHE", "RESUME"), VANISHES),
    **same(
        nothing,
        """
        NOP POP_TOP PUSH_NULL STORE_SUBSCR DELETE_SUBSCR
        SETUP_ANNOTATIONS LOAD_BUILD_CLASS RETURN_VALUE RETURN_GENERATOR
        PUSH_EXC_INFO POP_EXCEPT CHECK_EXC_MATCH CHECK_EG_MATCH
        MATCH_MAPPING MATCH_SEQUENCE MATCH_KEYS GET_LEN
        YIELD_VALUE GET_AITER GET_ANEXT END_ASYNC_FOR
        """,
    ),
    **same(
        number,
        """
        COPY SWAP STORE_FAST DELETE_FAST
        MAKE_CELL COPY_FREE_VARS LOAD_DEREF STORE_DEREF DELETE_DEREF
        BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_MAP BUILD_STRING BUILD_SLICE
        LIST_APPEND SET_ADD MAP_ADD LIST_EXTEND SET_UPDATE DICT_UPDATE DICT_MERGE
        UNPACK_SEQUENCE MATCH_CLASS RAISE_VARARGS RERAISE GET_AWAITABLE
        """,
    ),
    **same(
        name,
        """
        STORE_GLOBAL DELETE_GLOBAL LOAD_NAME STORE_NAME DELETE_NAME STORE_ATTR DELETE_ATTR
        IMPORT_FROM
        """,
    ),
    **same(flag, "IS_OP CONTAINS_OP"),
    **renamed(
        nothing, JUMP_FORWARD="JUMP", JUMP_BACKWARD="JUMP", JUMP_BACKWARD_NO_INTERRUPT="JUMP"
    ),
    "UNARY_NEGATIVE": one("UNARY_OP", always("-")),
    "UNARY_INVERT": one("UNARY_OP", always("~")),
    "UNARY_NOT": one("UNARY_OP", always("not")),
    "UNPACK_EX": one("UNPACK_EX", lambda scope, arg: (arg & 0xFF, arg >> 8)),
}

UNTIL_313: Rules = {
    **same(nothing, "BINARY_SUBSCR"),
    **same(number, "BUILD_CONST_KEY_MAP"),
    # one slot for `__exit__`
    **same(always(False), "BEFORE_WITH BEFORE_ASYNC_WITH WITH_EXCEPT_START"),
    "LOAD_ASSERTION_ERROR": one("LOAD_CONST", always(AssertionError)),
    "BINARY_OP": one("BINARY_OP", one_of(BINARY)),
    "CALL_FUNCTION_EX": one("CALL_FUNCTION_EX", lambda scope, arg: bool(arg & 1)),
}
"""Changes of CPython 3.14."""

UNTIL_314: Rules = {
    # an iterator has one slot
    **same(always(1), "GET_ITER GET_YIELD_FROM_ITER FOR_ITER"),
    **same(name, "IMPORT_NAME"),
}
"""Changes of CPython 3.15."""

UNTIL_312: Rules = {
    "LOAD_CONST": one("LOAD_CONST", constant),
    **same(number, "LOAD_FAST LOAD_CLOSURE MAKE_FUNCTION"),
    "LOAD_GLOBAL": one(
        "LOAD_GLOBAL", lambda scope, arg: (scope.names[arg >> 1], "before" if arg & 1 else None)
    ),
    "FORMAT_VALUE": one("FORMAT_VALUE", lambda scope, arg: (CONVERSIONS[arg & 3], bool(arg & 4))),
}
"""Changes of CPython 3.13."""
