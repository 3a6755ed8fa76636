"""Pieces of a graph that are compiled once, such as the blocks of a stack, as text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from stator_backends import CompiledPiece

SHOWN = 6
"""The number of equal blocks that are named."""


def lines_of_equal(pieces: Sequence[CompiledPiece]) -> Iterator[str]:
    """Yield a line for each piece whose code others share: a block of a stack."""
    by_code: defaultdict[int, list[CompiledPiece]] = defaultdict(list)
    for piece in pieces:
        by_code[piece.code].append(piece)
    for equal in by_code.values():
        if len(equal) > 1:
            places = [*dict.fromkeys(piece.place for piece in equal)]
            if len(places) > SHOWN:
                places[SHOWN - 1 : -1] = ["..."]
            count = f"{equal[0].op_count} operators"
            yield f"one piece of {count} is compiled once, x {len(equal)}: {', '.join(places)}"
