"""Sets and dicts: insertion order, mutation during iteration raises, views, set operators, subclass
operators; sort is stable."""

# mypy: ignore-errors

from __future__ import annotations

import collections
import sys

from integration_tests.corpora.behaviours import program


@program
def insertion_order_survives_deletion_and_update(x, n, box):
    d = {"a": 1, "b": 2, "c": 3}
    d["a"] = 9
    del d["b"]
    d["b"] = n
    d.update(z=x, a=0)
    box.table.pop("a")
    box.table["a"] = n
    return list(d), d, list(box.table), list(reversed(d))


@program(breaks="dict-changed-during-iteration")
def mutation_during_iteration_raises(x, n, box):
    def grow():
        for key in box.table:
            box.table[key * 2] = n

    def shrink():
        for key in box.table.items():
            box.table.clear()

    def members():
        for i in box.members:
            box.members.add(i + 100)

    def ring():
        for i in box.ring:
            box.ring.append(i)

    for attempt in (grow, shrink, members, ring):
        try:
            attempt()
        except RuntimeError as error:
            box.log.append(str(error))
    for key in list(box.ordered):
        del box.ordered[key]
    for key in box.groups:
        box.groups[key] = n
    return x + 1


@program(breaks="mapping-proxy")
def views_are_live_and_set_like(x, n, box):
    d = {"a": 1, "b": n}
    keys, values, items = d.keys(), d.values(), d.items()
    d["c"] = 3
    return (
        list(keys), list(values), list(items), len(keys), "c" in keys, ("b", n) in items, n in values,
        sorted(keys & {"a", "z"}), sorted(keys | ["q"]), sorted(keys - {"a"}), sorted(keys ^ {"a", "y"}),
        keys == {"a", "b", "c"}, keys.isdisjoint({"m"}), items == d.items(), values == d.values(), keys.mapping["a"], x + 1,
    )  # fmt: skip


@program
def set_operators_and_methods(x, n, box):
    a, b = {1, 2, n}, frozenset([n, 7])
    return (
        sorted(a | b), sorted(a & b), sorted(a - b), sorted(a ^ b), type(a | b), type(b | a), a <= {1, 2, 3, 5}, a < a,
        b >= {7}, a.isdisjoint({100}), sorted(a.union([8], "a"[:0])), sorted(a.intersection([1, n])), sorted(b.difference(a)),
        sorted(a.symmetric_difference([1])), a == {n, 2, 1}, hash(b) == hash(frozenset([7, n])), 1.0 in a, True in a, x + 1,
    )  # fmt: skip


@program
def set_operators_refuse_lists(x, n, box):
    for bad in (
        lambda: {1} | [2],
        lambda: {1} < [2],
        lambda: {}.keys() - 3,
        lambda: {[1]},
        lambda: {1}.add({2}),
    ):
        try:
            box.log.append(bad())
        except TypeError as error:
            box.log.append(str(error))
    return {1} == [1], x + 1


@program
def merge_operators_keep_types(x, n, box):
    a = {"a": 1} | box.ordered
    b = box.ordered | {"w": n}
    c = box.groups | {"w": n}
    box.table |= [("t", n)]
    return a, type(b), list(b), type(c), c.default_factory, box.table, x + 1


class Lower(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key.lower(), value)

    def __getitem__(self, key):
        return super().__getitem__(key.lower())

    def __missing__(self, key):
        return f"missing {key}"

    def __or__(self, other):
        return Lower({**self, "merged": other})


class Tagged(list):
    tag = "t"

    def __add__(self, other):
        return Tagged([*self, "+", *other])

    def __getitem__(self, index):
        return ("item", super().__getitem__(index))

    def __eq__(self, other):
        return "equal"

    __hash__ = None


class Odd(set):
    def add(self, item):
        if item % 2:
            super().add(item)

    def __contains__(self, item):
        return "yes"


def lying(base):
    """A subclass that answers wrongly about itself."""

    class Lying(base):
        def __len__(self):
            return 1

        def __iter__(self):
            return iter("xy")

        def __contains__(self, item):
            return True

        def clear(self):
            raise AssertionError("not called")

        add = discard = extend = append = update = clear

    return Lying


LIARS = [lying(list)([1, 2, 3]), lying(collections.deque)([1, 2, 3])]
LYING_SET, LYING_TUPLE, LYING_DICT = (
    lying(set)([1, 2, 3]),
    lying(tuple)((1, 2, 3)),
    lying(dict)(a=1, b=2),
)


def contents(thing):
    return [*type(thing).__mro__[1].__iter__(thing)]


@program(breaks="container-subclass")
def what_a_subclass_says_of_itself_is_not_what_it_holds(x, n, box):
    for made in LIARS:
        base = type(made).__mro__[1]
        base.append(made, n)
        base.__setitem__(made, 0, x)
        box.log.append((base.__len__(made), len(made), list(made), made[2], 9 in made))
    set.add(LYING_SET, n + 5)
    set.discard(LYING_SET, 1)
    dict.__setitem__(LYING_DICT, "c", n)
    box.log.append(
        (
            set.__contains__(LYING_SET, 2),
            set.__contains__(LYING_SET, 99),
            99 in LYING_SET,
            len(LYING_SET),
        )
    )
    box.log.append(
        (LYING_TUPLE[2], LYING_TUPLE[1:], LYING_TUPLE + (n,), list(LYING_TUPLE), len(LYING_TUPLE))
    )
    box.log.append(
        (
            LYING_DICT["b"],
            list(LYING_DICT),
            len(LYING_DICT),
            dict.__len__(LYING_DICT),
            "zz" in LYING_DICT,
        )
    )
    return [
        sorted(map(str, contents(made))) for made in (LYING_SET, LYING_TUPLE, LYING_DICT)
    ], x + 1


class Pair(tuple):
    __slots__ = ()

    def __new__(cls, a, b):
        return super().__new__(cls, (a, b))

    @property
    def both(self):
        return self[0] + self[1]


@program
def subclasses_override_what_they_like(x, n, box):
    d = Lower(A=1)
    d["B"] = n
    l = Tagged([1, n])
    l.tag = "own"
    s = Odd()
    for i in range(n):
        s.add(i)
    return (
        d,
        d["b"],
        d["nope"],
        d.get("A"),
        d | 3,
        l + [x],
        l[0],
        l == 3,
        list(l),
        l.tag,
        sorted(s),
        99 in s,
        Pair(1, n).both,
        Pair(x, 2),
        type(l + []).__name__,
    )


KEEP = Lower(start=1)
STACK = Tagged([1])


@program
def subclasses_from_outside_are_changed(x, n, box):
    KEEP["Key"] = n
    KEEP.update(Z=n)
    STACK.append(n)
    STACK.count = n
    return KEEP["key"], dict(KEEP), list(STACK), len(STACK), x * len(KEEP)


@program
def sort_is_stable_and_in_place(x, n, box):
    rows = [("b", 1), ("a", 2), ("b", 0), ("a", n)]
    rows.sort(key=lambda row: row[0])
    down = sorted(rows, key=lambda row: row[0], reverse=True)
    box.items.sort(reverse=True)
    return (
        rows,
        down,
        box.items,
        sorted("hello"),
        sorted({"b": 1, "a": 2}),
        sorted([3, 1.5, True]),
        x + 1,
    )


@program
def sort_with_keys_that_fail_leaves_something(x, n, box):
    items = [3, "a", 1]
    try:
        items.sort()
    except TypeError as error:
        box.log.append(str(error))
    return sorted(map(str, items)), x + n


@program
def sort_by_a_user_comparison(x, n, box):
    import functools

    compare = functools.cmp_to_key(lambda a, b: (a % 3) - (b % 3))
    return (
        sorted([5, 3, 4, n, 7], key=compare),
        min(box.items, key=lambda i: -i),
        max([], default=n),
        x + 1,
    )


@program
def dict_constructors(x, n, box):
    return (
        dict(),
        dict(a=n),
        dict([("k", x)]),
        dict({"a": 1}, b=n),
        dict(zip("ab", [1, n])),
        dict.fromkeys("ab", n),
        dict.fromkeys([1]),
        {**{"a": n}},
        dict(box.ordered),
    )


@program
def dict_methods(x, n, box):
    d = {"a": 1, "b": n, "c": x}
    found = [
        d.get("a"),
        d.get("z"),
        d.get("z", n),
        d.setdefault("a", 5),
        d.setdefault("q", []),
        d.pop("a"),
        d.pop("z", None),
        d.popitem(),
    ]
    copy = d.copy()
    copy["new"] = 1
    for bad in (
        lambda: d.pop("zz"),
        lambda: d["zz"],
        lambda: {}.popitem(),
        lambda: dict([1]),
        lambda: dict([(1, 2, 3)]),
    ):
        try:
            bad()
        except (KeyError, TypeError, ValueError) as error:
            found.append((type(error), error.args))
    return found, d, copy, d == copy, "b" in d, len(d)


@program
def number_keys_are_told_apart_only_by_equality(x, n, box):
    d = {1: "int"}
    d[True] = "bool"
    d[1.0] = "float"
    d[-0.0], d[0] = "minus", "zero"
    nan = float("nan")
    d[nan] = 1
    return d, list(map(type, d)), nan in d, float("nan") in d, {1, 1.0, True}, x + n


@program
def keys_that_change_type_between_calls(x, n, box):
    d = {box.value: "value", box.text: "text", (n, box.flag): "pair"}
    return d, d.get(1), d.get(None), [*d][0], x + 1


@program
def mixed_and_nested_keys(x, n, box):
    d = {(1, (n, "a")): 1, frozenset([n]): 2, None: 3, int: 4, len: 5, ...: 6, x: 7}
    return d[1, (n, "a")], d[frozenset({n})], d[None], d[int], d[len], d[...], d[x], x in d


@program
def tensors_are_keys_by_identity(x, n, box):
    y = x * 1
    d = {x: "x", y: "y"}
    s = {x, y, x}
    return d[x], d[y], len(s), y in s, x.detach() in d


@program
def comparison_of_dicts_and_lists(x, n, box):
    return (
        {"a": 1, "b": [n]} == {"b": [n], "a": 1.0},
        [1, [n]] < [1, [n, 0]],
        (1, 2) < (1, n, 0),
        [n] == (n,),
        {} == [],
        [1] * 3 == [1, 1, 1],
        x + 1,
    )


@program
def user_dict_list_and_string(x, n, box):
    d, l, s = collections.UserDict(a=1), collections.UserList([1, n]), collections.UserString("abc")
    d["b"] = n
    l.append(x)
    return d, d["b"], len(l), l[1:2], s.upper() == "ABC", s + "d" == "abcd", "b" in d, [*l][0]


@program
def a_set_is_iterated(x, n, box):
    total = x
    for i in box.members:
        total = total + i
    return total, list({n}), sorted(box.members), sum({1, n}), {i * 2 for i in box.members}


NAMES = frozenset(["alpha", "beta"])


@program
def a_frozen_set_from_outside(x, n, box):
    return (
        [len(name) for name in NAMES],
        "beta" in NAMES,
        NAMES | {"c"},
        NAMES <= {"alpha", "beta", n},
        x + 1,
    )


class Noting(collections.OrderedDict):
    asked = ()

    def __getitem__(self, key):
        Noting.asked += (key,)
        return super().__getitem__(key)

    def keys(self):
        Noting.asked += ("keys",)
        return super().keys()


class NotingKeys(collections.OrderedDict):
    def keys(self):
        Noting.asked += ("its keys",)
        return super().keys()


class NotingSteps(dict):
    def __getitem__(self, key):
        Noting.asked += (key,)
        return super().__getitem__(key)

    def __iter__(self):
        Noting.asked += ("iter",)
        return super().__iter__()


@program(breaks=None if sys.version_info < (3, 12) else "container-subclass")
def what_the_text_of_an_ordered_dict_asks_for(x, n, box):
    return (
        repr(Noting(a=n)),
        str(NotingKeys(a=n, b=2)),
        repr(NotingSteps(c=n)),
        repr(Noting()),
        Noting.asked,
        x + n,
    )


@program
def what_joining_dicts_asks_for(x, n, box):
    joined = (
        {"c": 3} | NotingSteps(a=n),
        box.ordered | Noting(a=n),
        box.ordered | NotingKeys(a=n, b=2),
    )
    return joined, box.groups | NotingSteps(k=n), Noting.asked, x + n


@program(breaks="container-subclass")
def what_a_subclass_is_asked_when_it_is_joined(x, n, box):
    joined = (
        NotingSteps(a=n) | {"c": 3},
        {"c": 3}.__ror__(NotingSteps(a=n)),
        box.table | Noting(a=n),
    )
    return joined, Noting.asked, x + n
