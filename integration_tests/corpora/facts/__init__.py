"""What a compiled function may read, one fact a row: how it is read, how it changes, and what else
changes.

A row is `name: (setup, body, change, unrelated)`, four texts. `setup` makes globals, `body` is that
of `f(x)` (or the whole `def f`), `change` alters exactly the fact that was read, `unrelated`
something beside it. The call is `f(*ARGS)`.
"""

from __future__ import annotations

from integration_tests.corpora.facts.everyday import FACTS
from integration_tests.corpora.facts.neighbours import NEIGHBOURS
from integration_tests.corpora.facts.row import Row

__all__ = ["ALL", "PRELUDE", "READ_AGAIN", "Row"]

PRELUDE = """
import abc, collections, contextvars, dataclasses, enum, functools, os, threading, types, typing, weakref
import torch
x = torch.ones(2, 3)
ARGS = (x,)
class Plain:
    def __init__(self, **fields):
        self.__dict__.update(fields)
class Base:
    factor = 2
    other = 1
    def scale(self, x):
        return x * self.factor
    def second(self, x):
        return x
class Derived(Base):
    pass
class A:
    pass
class B(A):
    pass
K, Z = 2, 1
def double(x):
    return x * 2
def triple(x):
    return x * 3
"""

ALL: dict[str, Row] = {**NEIGHBOURS, **FACTS}
READ_AGAIN = frozenset({"__index__", "the default device", "__torch_function__ that appears"})
"""Facts that are not guarded, but read again on each call: no new entry is made, and the answer is
right."""
