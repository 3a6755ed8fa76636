"""Arguments, globals, cells, defaults, attributes, items: one object in one call, and several in the next."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch

CALLS = 12
OF_LISTS = {
    "identity": "out = a is b, a is G, b is C, a is Held.shared, a is d, H['k'] is a, M[0] is b",
    "argument written": "a.append(1); b.append(2); out = list(G), list(C), list(d), list(Held.shared), list(M[0])",
    "global written": "G.append(5); out = list(a), list(b), len(d); C.append(6)",
    "emptied": "n = len(G); a.clear(); out = n, len(G), len(b), len(C)",
    "each with each": "out = [one is two for one in (a, G, C) for two in (b, d, Held.shared, M[0], H['k'])]",
    "stored": "H['k'] = a; M[0] = b; Held.shared = a; out = H['k'] is G, M[0] is C, Held.shared is d",
    "exchanged": "H['k'], M[0] = M[0], H['k']; out = a is H['k'], b is M[0]",
    "looked for": "out = any(a is t for t in (G, C)), [a] == [G], id(a) == id(G), id(b) == id(d)",
    "ids in a dict": "out = len({id(a): 1, id(b): 2, id(G): 3})",
    "ids in a set": "seen = {id(a)}; out = id(b) in seen, id(G) in seen, len({id(C), id(d)})",
    "ids in tuples": "out = len({(id(a), 1): 1, (id(b), 1): 2}), {(id(d),): 1}.get((id(C),))",
    "memo": "memo = {id(a): 'a'}; memo[id(G)] = 'G'; out = memo.get(id(b)), memo[id(a)]",
    "given back": "out = [a, b, G, C, d]",
    "held twice": "p = [a, b]; q = [a, b]; p[0].append(1); out = p == q, len(q[0]), len(G), p[0] is q[1]",
}
OF_TENSORS = {
    "identity": "out = a is b, a is G, b is C, a is Held.shared, H['k'] is a",
    "argument written": "a.add_(1); out = G + 0, C + 0, b * 2",
    "global written": "G.mul_(2); out = a + 0, b + 0, d + 0",
    "view written": "a[0].fill_(5); out = b + 0, G.sum(), C.sum()",
    "written to": "torch.add(a, 1, out=b); out = a + 0, G + 0, C + 0",
    "stored": "Held.shared = a; M[0] = b; out = Held.shared is G, M[0] + Held.shared",
    "data": "a.data = b + 1; out = a + 0, G + 0",
    "ids": "out = len({id(a): 1, id(b): 2, id(G): 3}), id(a) in {id(b)}",
    "given back": "out = [a, b, a + 1, G, a is G]",
}
PROGRAM = """
def outer(C, default):
    def run(a, b, d=default):
        if breaks:
            stator.graph_break()
        {body}
        return out, a is b, G is C
    return run
"""


class Held:
    shared: Any = None


def shown(value: Any) -> Any:
    return [shown(item) for item in value] if isinstance(value, list | tuple) else str(value)


def played(body: str, breaks: bool, make: Callable[[int], Any], compiled: bool) -> list[Any]:
    """Results, and what all is afterwards, of calls with objects that are picked from a few."""
    names: dict[str, Any] = {"stator": stator, "torch": torch, "Held": Held, "H": {}, "M": [None], "breaks": breaks}
    exec(PROGRAM.format(body=body), names)
    fixed = [make(0), make(1)]
    run = names["outer"](*fixed)
    run = stator.compile(run, backend="eager", recompile_limit=64) if compiled else run
    found = []
    for call in range(CALLS):
        pick = random.Random(call).choice
        pool = [*fixed, *map(make, range(3))]
        names["G"], Held.shared, names["H"]["k"], names["M"][0], a, b = (pick(pool) for _ in range(6))
        try:
            result = shown(run(a, b))
        except Exception as error:
            result = type(error), str(error)
        now = [a, b, *fixed, names["G"], Held.shared, names["H"]["k"], names["M"][0]]
        found.append((result, shown(now), [[one is two for one in now] for two in now]))
    return found


@pytest.mark.parametrize("breaks", [False, True])
@pytest.mark.parametrize("title", OF_LISTS)
def test_lists(title: str, breaks: bool) -> None:
    plain, ours = (played(OF_LISTS[title], breaks, lambda i: [i], compiled) for compiled in (False, True))
    assert ours == plain


@pytest.mark.parametrize("breaks", [False, True])
@pytest.mark.parametrize("title", OF_TENSORS)
def test_tensors(title: str, breaks: bool) -> None:
    def make(i: int) -> Any:
        return torch.full((2, 2), float(i))

    plain, ours = (played(OF_TENSORS[title], breaks, make, compiled) for compiled in (False, True))
    assert ours == plain
