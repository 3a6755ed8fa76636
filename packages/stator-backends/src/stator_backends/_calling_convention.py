"""Calls that release their inputs early: a compiled graph as a function of a list that it
empties."""

from collections.abc import Sequence
from typing import Any

from ._backend import BoxedRun, Compiled


def boxed(compiled: Compiled) -> BoxedRun:
    """Return `compiled` as a function of a list.

    AOTAutograd has such a function, which drops each input after its last use. The function that it
    gives back takes single inputs and wraps that one; a backend may have wrapped it further.
    """
    from torch._functorch import aot_autograd  # importing it early takes a second

    outer: Any = compiled
    while outer is not None:
        code = getattr(outer, "__code__", None)
        if code is not None and code.co_filename == aot_autograd.__file__:
            taking_list: BoxedRun = outer.__wrapped__
            return taking_list
        outer = getattr(outer, "__wrapped__", None)

    def call(inputs: list[Any]) -> Sequence[Any]:
        given = tuple(inputs)
        inputs.clear()
        return compiled(*given)

    return call
