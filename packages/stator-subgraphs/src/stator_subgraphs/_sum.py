"""Sums of symbols, which torch mistakes for such after a guard has put something else in their
place.

A `SymNode` records that it is a sum of symbols; another symbol is then inserted into the parts of
its expression without a further check. Once `s0 + s1 == 7` is known the expression is 7, which has
no parts: `n + s2` was `s2`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch.fx.experimental import sym_node

_torch: Any = sym_node
_add = _torch._optimized_add


@contextmanager
def sums_looked_at() -> Iterator[None]:
    """Only sums of symbols are added to by their parts."""
    before = _torch._optimized_add
    _torch._optimized_add = _looked_at
    try:
        yield
    finally:
        _torch._optimized_add = before


def _looked_at(
    left: object, right: object, left_is_sum: bool = False, right_is_sum: bool = False
) -> object:
    return _add(left, right, left_is_sum and _is_sum(left), right_is_sum and _is_sum(right))


def _is_sum(expression: Any) -> bool:
    return bool(expression.is_Add) and all(part.is_Symbol for part in expression.args)
