"""The stack a list of raw instructions needs, by following every path once at each depth it is
reached with."""

import dis
from collections.abc import Sequence
from functools import lru_cache

from stator_bytecode._codec._raw_instruction import Raw, RawHandler
from stator_bytecode._codec._tables import OPCODES

GENERATOR_FLAGS = 0x20 | 0x80 | 0x200
"""CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR."""


@lru_cache(maxsize=4096)
def raw_effect(opcode: int, arg: int, jump: bool) -> int:
    return dis.stack_effect(
        opcode, arg if opcode >= OPCODES.dialect.argument_from else None, jump=jump
    )


def stack_size(raws: Sequence[Raw], flags: int) -> int:
    """Each raw's `index` must be its place in `raws`."""
    start = 1 if flags & GENERATOR_FLAGS and OPCODES.dialect.sent_value_on_entry else 0
    reached = [-1] * len(raws)
    deepest = max(start, 1)
    paths = [(0, start)]
    while paths:
        index, depth = paths.pop()
        deepest = max(deepest, _follow(raws, index, depth, reached, paths))
    return deepest


def _follow(
    raws: Sequence[Raw], start: int, depth: int, reached: list[int], paths: list[tuple[int, int]]
) -> int:
    """Goes down one path until it ends or has been followed, adds the paths that leave it; the
    deepest it got."""
    deepest = depth
    handler: RawHandler | None = None
    no_fall_through = OPCODES.no_fall_through

    for index in range(start, len(raws)):
        if reached[index] >= depth:
            break

        reached[index] = depth
        raw = raws[index]
        if raw.handler is not handler:
            handler = raw.handler
            if handler is not None:
                paths.append((handler.target.index, handler.depth + 1 + handler.lasti))
        if raw.target is not None:
            paths.append((raw.target.index, depth + raw_effect(raw.opcode, 0, True)))
        depth += raw_effect(raw.opcode, raw.arg, False)
        if raw.opcode in no_fall_through:
            break
        deepest = max(deepest, depth)

    return deepest
