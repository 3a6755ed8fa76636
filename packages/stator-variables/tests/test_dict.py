"""dict, OrderedDict, defaultdict, Counter, ChainMap and their views."""

# ruff: noqa
from __future__ import annotations

import collections
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

METHODS: list[Callable[[Any], Any]] = [
    lambda d: d["a"],
    lambda d: d["absent"],
    lambda d: d.get("absent"),
    lambda d: d.get("a", 5),
    lambda d: d.get("absent", 5),
    lambda d: d.setdefault("new", []).append(1),
    lambda d: d.setdefault("a", 3),
    lambda d: d.setdefault("n"),
    lambda d: d.pop("a"),
    lambda d: d.pop("absent"),
    lambda d: d.pop("absent", None),
    lambda d: d.popitem(),
    lambda d: (d.popitem(), d.popitem(), d.popitem()),
    lambda d: d.update({"b": 9, "z": 8}),
    lambda d: d.update([("b", 9), "xy"]),
    lambda d: d.update(b=4, q=5),
    lambda d: d.update({"k": 1}, k=2),
    lambda d: d.update([("b", 9), 4]),
    lambda d: d.update([("b", 9), (1, 2, 3)]),
    lambda d: d.update(zip("pq", range(2))),
    lambda d: d.update(5),
    lambda d: d.clear(),
    lambda d: d.copy(),
    lambda d: d | {"b": 5, "n": 6},
    lambda d: {"b": 5, "n": 6} | d,
    lambda d: d.__ior__({"b": 5, "n": 6}),
    lambda d: d | 5,
    lambda d: d == {"a": 1, "b": 2},
    lambda d: d == {"b": 2, "a": 1},
    lambda d: d != {"a": 1, "b": 2.0},
    lambda d: d == 5,
    lambda d: d < {},
    lambda d: len(d),
    lambda d: bool(d),
    lambda d: list(d),
    lambda d: list(reversed(d)),
    lambda d: list(d.items()),
    lambda d: list(reversed(d.items())),
    lambda d: list(reversed(d.values())),
    lambda d: sorted(d),
    lambda d: "a" in d,
    lambda d: "q" not in d,
    lambda d: "a" in d.keys(),
    lambda d: ("a", 1) in d.items(),
    lambda d: ("a", 2) in d.items(),
    lambda d: 2 in d.values(),
    lambda d: sorted(d.keys() & {"a", "q"}),
    lambda d: sorted(d.keys() | ["q"]),
    lambda d: sorted(d.keys() - {"a"}),
    lambda d: sorted(d.keys() ^ {"a", "x"}),
    lambda d: sorted({"a", "x"} - d.keys()),
    lambda d: sorted(d.items() & {("a", 1), ("b", 0)}),
    lambda d: d.keys() == {"a", "b"},
    lambda d: d.keys() <= {"a", "b", "c"},
    lambda d: d.keys().isdisjoint(["q"]),
    lambda d: d.items() == {"b": 2, "a": 1}.items(),
    lambda d: d.keys() == ["a", "b"],
    lambda d: repr(d),
    lambda d: str(d.keys()),
    lambda d: repr(d.items()),
    lambda d: f"{d.values()}",
    lambda d: {**d, "e": 5},
    lambda d: dict(d, z=1),
    lambda d: dict(d.items()),
    lambda d: d.__delitem__("a"),
    lambda d: d.__delitem__("absent"),
    lambda d: d.__setitem__("a", d),
    lambda d: d[[]],
    lambda d: d.get({}),
    lambda d: {k: v for k, v in d.items() if v},
    lambda d: [d.pop(k) for k in list(d)],
    lambda d: [d.__setitem__(k, 1) for k in d],
    lambda d: type(d).fromkeys("abca", 1) if type(d) is not defaultdict else 0,
    lambda d: dict.fromkeys(["b", "a", "b"]),
    lambda d: len(d.items()) + len(d.keys()) + len(d.values()),
    lambda d: (d.pop("a"), d.__setitem__("a", 5), list(d.items())),
    lambda d: max(d, key=d.get),
    lambda d: hash(d),
    lambda d: next(iter(d.items())),
    lambda d: d.get(),
    lambda d: d.update(1, 2),
    lambda d: [d.pop(k) for k in d],
    lambda d: [d.__setitem__("x" + k, 1) for k in d],
    lambda d: d.keys().mapping["a"],
]

NATIVE = range(len(METHODS) - 3, len(METHODS))
"""Those that break: a dict that changes under its iterator, the proxy of a dict that a view belongs
to."""


def caught(method: Callable[[Any], Any], d: Any) -> Any:
    try:
        return method(d), d
    except Exception as error:
        return type(error), error.args, d


@pytest.mark.parametrize("kind", [dict, OrderedDict])
@pytest.mark.parametrize("method", range(len(METHODS)))
def test_dict_method(check: Any, method: int, kind: Any) -> None:
    run = METHODS[method]
    breaks = 2 if method in NATIVE else 0
    check(run, (kind(a=1, b=2),), (kind(),), breaks=None)
    check(lambda d: caught(run, d), (kind(a=1, b=2),), (kind(),), breaks=2 * breaks)


@pytest.mark.parametrize("method", range(len(METHODS)))
def test_new_dict(check: Any, method: int) -> None:
    run = METHODS[method]

    def made() -> Any:
        d = {"a": 1}
        d["b"] = 2
        return caught(run, d)

    check(made, breaks=2 if method in NATIVE else 0)


ORDERED: list[Callable[[Any], Any]] = [
    lambda d: d.move_to_end("a"),
    lambda d: d.move_to_end("c", last=False),
    lambda d: d.move_to_end("absent"),
    lambda d: d.popitem(last=False),
    lambda d: d.popitem(),
    lambda d: d == OrderedDict(b=2, a=1, c=3),
    lambda d: d == {"b": 2, "a": 1, "c": 3},
    lambda d: d | {"z": 1},
    lambda d: [d.move_to_end(k) for k in list(d)[:2]],
    lambda d: (d.pop("b"), d.__setitem__("b", 4)),
    lambda d: d.setdefault("q", default=3),
    lambda d: d.pop("q", default=3),
    lambda d: list(reversed(d)),
    lambda d: (d.move_to_end("a"), d.move_to_end("b", False), next(iter(d)), d.update(a=5)),
]


@pytest.mark.parametrize("method", range(len(ORDERED)))
def test_ordered_dict(check: Any, method: int) -> None:
    run = ORDERED[method]
    check(lambda d: caught(run, d), (OrderedDict(a=1, b=2, c=3),))


def test_defaultdict(check: Any) -> None:
    def count(words: list[str]) -> Any:
        made = defaultdict(list)
        for i, word in enumerate(words):
            made[word].append(i)
        made.default_factory = None
        return made, made.copy()

    check(count, (["a", "b", "a"],), breaks=2)

    def existing(d: Any) -> Any:
        d["new"] += 1
        return d["x"], d.default_factory, dict(d), repr(d)

    check(existing, lambda: (defaultdict(int, x=1),))


def test_counter(check: Any) -> None:
    def count(text: str) -> Any:
        c = Counter(text)
        c.update("aab")
        c.subtract("b")
        more = c + Counter(a=1)
        return (
            c,
            more,
            c.most_common(1),
            list(c.elements()),
            c["zz"],
            c.total(),
            more & c,
            more | c,
            -c,
        )

    check(count, ("hello aab",))


def test_existing_counter_is_updated(check: Any) -> None:
    def update(c: Any) -> Any:
        c.update(["a", "q"])
        c["z"] += 2
        return c.most_common()

    check(update, lambda: (Counter("aab"),))


def test_chain_map(check: Any) -> None:
    def chain(a: dict[str, int], b: dict[str, int]) -> Any:
        m = ChainMap(a, b)
        m["new"] = 1
        child = m.new_child({"a": 9})
        return (
            m["x"],
            m["y"],
            child["a"],
            "y" in m,
            len(m),
            list(m),
            m.get("q"),
            child.parents == m,
            m.pop("x"),
        )

    check(chain, ({"x": 1}, {"x": 2, "y": 3}))


def test_user_dict_and_list(check: Any) -> None:
    def run() -> Any:
        d, x = UserDict(a=1), UserList([3, 1])
        d["b"] = 2
        x.append(2)
        x.sort()
        return d, d.get("a"), "b" in d, dict(d), x, x + [1], x[1:], len(d), d | {"c": 1}

    check(run)


class Attributes(dict):
    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class Doubling(dict):
    def __missing__(self, key: str) -> str:
        return key * 2


def test_dict_subclasses(check: Any) -> None:
    def run(d: Attributes) -> Any:
        d.b = d.a + 1
        new = Attributes(x=1)
        new.y = 2
        return new, hasattr(d, "q"), Doubling()["ab"], Doubling(c=1).get("z"), new.x

    check(run, lambda: (Attributes(a=1),))


def test_keys_of_several_kinds(check: Any) -> None:
    def run(d: dict[Any, Any]) -> Any:
        d[1] = "one"
        d[1.0] = "float"
        d[True] = "bool"
        d[(1, "a")] = 2
        d[frozenset([1])] = 3
        d[int] = 4
        d[None] = 5
        return d, d[1.0], d[(1, "a")], d[int], list(d)

    check(run, ({},), ({1: 0},), ({True: 0, (1, "a"): 2},))


def test_objects_as_keys(check: Any) -> None:
    class Key:
        pass

    def run(a: Key, b: Key) -> Any:
        return len({a: 1, b: 2}), len({a, b}), {a: 1}.get(b), a in {b: 0}

    shared = Key()
    check(run, lambda: (Key(), Key()), lambda: (shared, shared))


def test_one_dict_passed_twice(check: Any) -> None:
    def run(a: dict[str, int], b: dict[str, int]) -> Any:
        a["x"] = 1
        return b.get("x"), len(b)

    def twice() -> Any:
        d: dict[str, int] = {}
        return d, d

    check(run, lambda: ({}, {}), twice)


def test_a_dict_that_changes_between_calls(check: Any) -> None:
    def run(d: dict[str, int]) -> Any:
        return d.get("a"), "b" in d, list(d)

    check(run, ({},), ({"a": 1},), ({"a": 2, "b": 1},), ({"b": 1, "a": 2},))


def test_collections_are_what_they_were(check: Any) -> None:
    def run() -> Any:
        made = collections.OrderedDict([("a", 1)])
        made.extra = 5  # type: ignore[attr-defined]
        return made, type(made), isinstance(made, dict), made.extra  # type: ignore[attr-defined]

    check(run)
