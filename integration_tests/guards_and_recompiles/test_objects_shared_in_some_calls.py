"""Arguments, globals, cells, defaults, attributes, items: one object in one call, and several in
the next."""

from __future__ import annotations

import collections
import functools
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
    names: dict[str, Any] = {
        "stator": stator,
        "torch": torch,
        "Held": Held,
        "H": {},
        "M": [None],
        "breaks": breaks,
    }
    exec(PROGRAM.format(body=body), names)
    fixed = [make(0), make(1)]
    run = names["outer"](*fixed)
    run = stator.compile(run, backend="eager", recompile_limit=64) if compiled else run
    found = []
    for call in range(CALLS):
        pick = random.Random(call).choice
        pool = [*fixed, *map(make, range(3))]
        names["G"], Held.shared, names["H"]["k"], names["M"][0], a, b = (
            pick(pool) for _ in range(6)
        )
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
    plain, ours = (
        played(OF_LISTS[title], breaks, lambda i: [i], compiled) for compiled in (False, True)
    )
    assert ours == plain


@pytest.mark.parametrize("breaks", [False, True])
@pytest.mark.parametrize("title", OF_TENSORS)
def test_tensors(title: str, breaks: bool) -> None:
    def make(i: int) -> Any:
        return torch.full((2, 2), float(i))

    plain, ours = (played(OF_TENSORS[title], breaks, make, compiled) for compiled in (False, True))
    assert ours == plain


class Plain: ...


class Equal:
    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def method(self) -> int:
        return self.value


KEYS: dict[str, Callable[[int], Any]] = {
    "object": lambda i: Plain(),
    "equal objects": lambda i: Equal(i % 2),
    "tensor": lambda i: torch.ones(2),
    "module": lambda i: torch.nn.Identity(),
    "bound method": lambda i: Equal(i % 2).method,
    "tuple": lambda i: (Plain(),),
    "partial": lambda i: functools.partial(len, "a"),
    "text": lambda i: "text" + str(i % 2),
    "int": lambda i: 10**6 + i % 2,
    "float": lambda i: 0.5 + i % 2,
    "nan": lambda i: float("nan"),
    "code": lambda i: compile("1", f"file{i % 2}", "eval"),
    "frozenset": lambda i: frozenset([i % 2]),
}
KEYED = [
    "out = len({a: 1, b: 2, G: 3}), {a: 1}.get(b)",
    "out = len({a, b, G}), a in {b}, len({a} & {b}), {a} <= {b}",
    "out = a in [b], [a, b, G].count(a), [G, b].index(b)",
    "out = (a, b) == (b, a), hash((a,)) == hash((b,))",
    "out = a == b, a != b, a is b, a is G",
    "out = len(collections.Counter([a, b, G])), len(dict.fromkeys([a, b, G]))",
    "D[a] = 1; D[b] = 2; out = len(D), D.get(G)",
    "out = len({id(a), id(b), id(G)}), id(a) in {id(b)}",
    "m = {a: 1, b: 2}; m.pop(G, None); out = len(m), list(m.values())",
    "out = len({(a, 1): 1, (b, 1): 2}), {(a, (b,)): 1}.get((b, (a,)))",
    "out = cached(a), cached(b), cached.cache_info().hits",
]


def kept(body: str, make: Callable[[int], Any], compiled: bool) -> list[Any]:
    cached = functools.lru_cache(maxsize=None)(lambda value: 1)
    names: dict[str, Any] = {"collections": collections, "cached": cached, "D": {}}
    exec(f"def run(a, b):\n    {body}\n    return out", names)
    run = (
        stator.compile(names["run"], backend="eager", recompile_limit=64)
        if compiled
        else names["run"]
    )
    fixed, found = [make(0), make(1)], []
    for call in range(CALLS):
        pick = random.Random(call).choice
        pool = [*fixed, *map(make, range(3))]
        a, b, names["G"] = (pick(pool) for _ in range(3))
        names["D"].clear()
        cached.cache_clear()
        found.append((run(a, b), len(names["D"])))
    return found


@pytest.mark.parametrize("kind", KEYS)
def test_keys(kind: str) -> None:
    for body in KEYED:
        # no truth value
        if (kind == "tensor" and "==" in body) or (kind == "tensor" and "index" in body):
            continue
        assert kept(body, KEYS[kind], compiled=True) == kept(body, KEYS[kind], compiled=False), body


class Keyed:
    me: int | None = None


NUMBERS = {
    "a memo": "key = (id(o), 1); d[key] = d.get(key, 0) + 1; out = d[key]",
    "deep in the key": "key = ('a', (id(o), id(p))); d[key] = d.get(key, 0) + 1; out = d[key]",
    "a set of identities": "key = frozenset([id(o), id(p)]); d[key] = d.get(key, 0) + 1; out = d[key]",
    "a set of objects": "key = frozenset([o, 3, ('a', p)]); d.setdefault(key, []).append(1); out = len(d[key])",
    "a set of objects deleted": "key = frozenset([o, p]); out = d.pop(key, None); out or d.update({key: 1})",
    "in a new dict": "new = {d.get('k'): 1}; d['k'] = id(o); out = id(o) in new",
    "in a new set": "out = len({d.get('k'), id(o), id(p)}); d['k'] = id(o)",
    "on the object": "out = {o.me: 1}.get(id(o)), o.me in {id(o)}; o.me = id(o)",
}


def counted(body: str, breaks: bool, compiled: bool) -> Any:
    names: dict[str, Any] = {"stator": stator}
    exec(
        f"def run(o, p, d):\n    {'stator.graph_break()' if breaks else 'pass'}\n    {body}\n    return out",
        names,
    )
    run = stator.compile(names["run"], backend="eager") if compiled else names["run"]
    o, p, d = Keyed(), Keyed(), dict[Any, Any]()
    found = [(run(o, p, d), len(d)) for _ in range(4)]
    return found, [run(p, o, d), run(Keyed(), p, d), len(d), run(o, p, d)]


@pytest.mark.parametrize("breaks", [False, True])
@pytest.mark.parametrize("body", NUMBERS.values(), ids=NUMBERS)
def test_an_identity_is_the_number_that_the_program_kept(body: str, breaks: bool) -> None:
    assert counted(body, breaks, compiled=True) == counted(body, breaks, compiled=False)
