"""Classes of builtin containers, texts and numbers that answer in Python: asked where C asks, and
not elsewhere.

For each builtin class and each method of it there is a class that overrides the method, notes that
it was asked, and answers something else. One function uses it in all the ways that follow: what it
gives, and how often it asks, is what plain Python does.
"""

from __future__ import annotations

import collections
import copy
import functools
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch

MODULES = (collections, copy, functools, itertools, math, operator)
asked: list[str] = []

COMMON = """
bool(c) ; not c ; c == c ; c == d ; c != d ; c is d ; str(c) ; repr(c) ; f'{c}' ; '%s' % (c,)
'{}'.format(c) ; [c] == [d] ; [c].count(d) ; c in [d] ; d in (c,) ; isinstance(c, type(d))
hasattr(c, 'zork') ; c and 1 ; c or 1 ; any([c]) ; (c,) == (d,) ; choose(c) ; operator.eq(c, d)
operator.truth(c) ; max([c], key=id) is c ; dict(a=c)['a'] is c ; [c] ; callable(c) ; c.__class__.__name__
c.__eq__(d) ; repr((c,)) ; match(c) ; copy.copy(c)
"""

OF_ITERABLES = """
list(c) ; tuple(c) ; set(c) ; [*c] ; (*c,) ; {*c} ; sorted(c) ; max(c) ; sum(c) ; len(c)
list(enumerate(c)) ; list(map(str, c)) ; list(zip(c, c)) ; count(*c) ; r.extend(c) ; r.__iadd__(c)
[v for v in c] ; pair(c) ; 3 in c ; 7 in c ; list(reversed(c)) ; type(iter(c)).__name__ ; next(iter(c))
dict.fromkeys(c) ; list(filter(None, c)) ; any(c) ; all(c) ; list(itertools.chain(c, c))
functools.reduce(operator.add, c) ; frozenset(c) ; collections.deque(c) ; finds(c) ; collections.Counter(c)
x.new_tensor([*c]) ; operator.length_hint(c) ; list(itertools.product(c)) ; math.prod(c)
r.__setitem__(slice(0, 0), c) ; set().union(c) ; {1}.issubset(c)
"""

OF_SEQUENCES = """
c[0] ; c[-1] ; c[0:1] ; c + c ; c * 2 ; 2 * c ; c.index(1) ; c.count(1) ; c < d ; c > d
operator.getitem(c, 0) ; unpack(c) ; operator.itemgetter(0)(c)
"""

OF_MAPPINGS = """
c[3] ; c.get(3) ; c.get(9, 0) ; list(c.keys()) ; list(c.values()) ; list(c.items()) ; {**c} ; dict(c)
c | d ; {} | c ; c | {} ; 9 in c.keys() ; c.keys() & {3} ; c.keys() == d.keys() ; c.items() == d.items()
len(c.keys()) ; dict(c, z=1) ; collections.ChainMap(c)[3] ; collections.OrderedDict(c) ; keywords(c)
{}.update(c) ; c.copy() ; c.setdefault(3, 5) ; c.setdefault(8, 5) ; c.pop(3) ; c.update({5: 6})
c.update(z=7) ; c.__ior__({4: 4}) ; c.popitem() ; c.clear() ; c.get(3)
"""

OF_SETS = """
c | d ; c & d ; c - d ; c ^ d ; {9} | c ; c <= d ; c < d ; c.union([9]) ; c.intersection([3])
c.issubset(d) ; c.isdisjoint(d) ; {3} <= c ; c == {3, 1} ; {3, 1} == c ; c.difference([3]) ; c.copy()
c.symmetric_difference([9])
"""

OF_TEXTS = """
c + 'x' ; 'x' + c ; c * 2 ; c.upper() ; c[0] ; c in 'abc' ; 'a' in c ; len(c) ; list(c) ; c < 'b'
c.join(['1', '2']) ; {'ab': 1}.get(c) ; f'{c:>5}' ; '-'.join([c, c]) ; c == 'ab' ; 'ab' == c ; sorted(c)
c in {'ab'} ; c.startswith('a')
"""

OF_NUMBERS = """
c + 1 ; 1 + c ; c - 1 ; c * 2 ; c / 2 ; c // 2 ; c % 2 ; c ** 2 ; -c ; +c ; abs(c) ; int(c) ; float(c)
round(c) ; c < 4 ; c == 3 ; 3 == c ; {3: 1}.get(c) ; str(c) ; f'{c:5}' ; x + c ; x * c ; c * x ; x ** c
math.floor(c) ; math.sqrt(c) ; max(c, 1) ; sum([c, c]) ; torch.full((2,), c) ; divmod(c, 2) ; complex(c)
c in [3] ; c in {3} ; torch.tensor(c)
"""

MADE: dict[type, Callable[[type], Any]] = {
    list: lambda cls: cls([3, 1]),
    tuple: lambda cls: cls([3, 1]),
    collections.deque: lambda cls: cls([3, 1]),
    set: lambda cls: cls([3, 1]),
    frozenset: lambda cls: cls([3, 1]),
    dict: lambda cls: cls({3: 1, 1: 2}),
    collections.OrderedDict: lambda cls: cls({3: 1, 1: 2}),
    str: lambda cls: cls("ab"),
    int: lambda cls: cls(3),
    float: lambda cls: cls(2.5),
}
LEFT_OUT = """
__new__ __init__ __class__ __init_subclass__ __subclasshook__ __getattribute__ __setattr__ __delattr__ __dir__
__sizeof__ __reduce__ __reduce_ex__ __getstate__ __class_getitem__ __getnewargs__ maketrans fromhex from_bytes fromkeys
""".split()
OPPOSITE = {"__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__bool__"}
ADDED: dict[str, Any] = {
    "__bool__": False,
    "__missing__": "missing",
    "__length_hint__": 3,
    "__radd__": "radd",
    "__or__": "or",
}
ADDED |= {
    "__neg__": "neg",
    "__rmul__": "rmul",
    "__copy__": "copied",
    "__int__": 4,
    "__ror__": "ror",
    "__sub__": "sub",
}


def choose(c: Any) -> int:
    return 1 if c else 2


def count(*args: Any) -> int:
    return len(args)


def pair(c: Any) -> Any:
    a, b = c
    return a, b


def unpack(c: Any) -> Any:
    a, *b = c
    return a, b


def finds(c: Any) -> Any:
    return next((v for v in c if v == 3), None)


def keywords(c: Any) -> Any:
    return dict(**{str(key): c[key] for key in c})


def match(c: Any) -> Any:
    match c:
        case [a, b]:
            return "sequence", a, b
        case {3: v}:
            return "mapping", v
        case str() | int() | 2.5:
            return "atom"
    return None


def uses_of(base: type) -> list[str]:
    kinds = [
        (int | float, OF_NUMBERS),
        (str, OF_TEXTS),
        (dict, OF_MAPPINGS),
        (set | frozenset, OF_SETS),
    ]
    own = next((text for kind, text in kinds if issubclass(base, kind)), OF_SEQUENCES)
    parts = [COMMON, own] if issubclass(base, int | float | str) else [COMMON, OF_ITERABLES, own]
    return [
        use for part in parts for line in part.strip().splitlines() for use in line.split(" ; ")
    ]


def program(base: type) -> Callable[..., Any]:
    lines = ["def uses(c, d, x):", "    r, out = [], []"]
    for use in uses_of(base):
        lines += [
            "    try:",
            f"        out.append({use})",
            "    except (TypeError, KeyError, ValueError) as error:",
        ]
        lines += ["        out.append(type(error).__name__)"]
    scope: dict[str, Any] = {**globals(), **{module.__name__: module for module in MODULES}}
    exec("\n".join([*lines, "    return out, r, c, x + 1"]), scope)
    made: Callable[..., Any] = scope["uses"]
    return made


def overriding(base: type, name: str) -> Any:
    real = getattr(base, name, None)

    def method(self: Any, *args: Any, **named: Any) -> Any:
        asked.append(name)
        if real is None:
            return ADDED[name]
        result = real(self, *args, **named)
        if name in OPPOSITE:
            return result if result is NotImplemented else not result
        if name in ("__iter__", "__reversed__"):
            return iter([7, *real(self)])
        if name in ("keys", "values", "items"):
            return list(result)[:1]
        return {"__getitem__": 77, "__hash__": 5}.get(name, result)

    body: dict[str, Any] = {name: method}
    if name == "__eq__" and base.__hash__ is not None:
        body["__hash__"] = base.__hash__
    return type("Own", (base,), body)


def methods_of(base: type) -> list[str]:
    own = [name for name in dir(base) if callable(getattr(base, name)) and name not in LEFT_OUT]
    return own + [name for name in ADDED if not hasattr(base, name)]


def shown(value: Any) -> Any:
    """Without asking the class."""
    if type(value) in (list, tuple):
        return [shown(item) for item in value]
    base = next((base for base in (*MADE, torch.Tensor) if issubclass(type(value), base)), object)
    base = dict if base is collections.OrderedDict and type(value) is not base else base
    return (
        type(value).__name__,
        # of the class it is
        base.__repr__(value) if base is not object else type(value).__name__,  # type: ignore[call-arg]
    )


CASES = [(base, name) for base in MADE for name in methods_of(base)]
COMMONLY = (
    "__len__",
    "__iter__",
    "__getitem__",
    "__contains__",
    "__eq__",
    "__bool__",
    "keys",
    "__missing__",
    "__add__",
)


@pytest.mark.parametrize(
    ("base", "name"),
    [
        pytest.param(
            base,
            name,
            marks=() if name in COMMONLY else pytest.mark.slow,
            id=f"{base.__name__}-{name}",
        )
        for base, name in CASES
    ],
)
def test_class_that_overrides_a_method(base: type, name: str) -> None:
    own = overriding(base, name)
    uses = program(base)
    compiled = stator.compile(uses, backend="eager", recompile_limit=64)
    for _ in range(2):
        found = []
        for fn in (uses, compiled):
            arguments = MADE[base](own), MADE[base](own), torch.ones(2)
            asked.clear()
            result = fn(*arguments)
            how_often = [*asked]
            found.append((shown(result), shown(arguments), how_often))
        assert found[0] == found[1]


@pytest.mark.parametrize("breaks", [False, True], ids=["captured", "broken"])
def test_reversed_iterator_asks_the_class_it_goes_through(breaks: bool) -> None:
    def rest(items: Any, x: torch.Tensor) -> Any:
        first = next(items)
        if breaks:
            stator.graph_break()
        return first, list(items), x + 1

    compiled = stator.compile(rest, backend="eager")
    classes = tuple, overriding(tuple, "__getitem__"), overriding(tuple, "__len__"), list
    for cls in (*classes, *classes):
        found = []
        for fn in (rest, compiled):
            asked.clear()
            found.append((shown(fn(reversed(cls([1, 2, 3])), torch.ones(2))), [*asked]))
        assert found[0] == found[1]
