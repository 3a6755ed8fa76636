"""Keys whose `__hash__` or `__eq__` reads what changes while the region runs: what an entry fills
asks them again."""

# mypy: ignore-errors

from __future__ import annotations

import collections
from typing import Any

import pytest
import stator
import torch

from integration_tests.support.oracle import assert_same

PROGRAMS = {}
STRICT = False
LOG = []


def program(fn):
    PROGRAMS[fn.__name__.replace("_", " ")] = fn
    return fn


class Word:
    def __init__(self, text, tags=()):
        self.text, self.tags, self.seen = text, [*tags], 0

    def __hash__(self):
        return hash((self.text, len(self.tags)))

    def __eq__(self, other):
        return self.text == other.text and (not STRICT or self.tags == other.tags)

    def __repr__(self):
        return f"{self.text}{self.tags}"


class Crowded(Word):
    def __hash__(self):
        return 3


class Failing(Crowded):
    __hash__ = Crowded.__hash__

    def __eq__(self, other):
        if STRICT:
            raise ZeroDivisionError(self.text)
        return self is other


@program
def a_hash_changes_below_a_set(x):
    words = {Word("a"), Word("b")}
    for word in words:
        word.tags.append(1)
    return [word in words for word in words], len(words), x + len(words)


@program
def an_attribute_that_is_hashed_is_written(x):
    key = Word("a")
    table = {key: x}
    key.text = "b"
    return (
        key in table,
        Word("a") in table,
        table[next(iter(table))] if key in table else x,
        [*table],
    )


@program
def equal_once_and_not_at_the_end(x):
    global STRICT
    STRICT = False
    words = {Crowded("a", [1])}
    words.add(Crowded("a", [2]))
    STRICT = True
    words.add(Crowded("a", [3]))
    return sorted(map(repr, words)), x * 2


@program
def unequal_once_and_not_at_the_end(x):
    global STRICT
    STRICT = True
    words = {Crowded("a", [1]), Crowded("a", [2])}
    STRICT = False
    return sorted(map(repr, words)), x * 2


@program
def other_answers_in_between(x):
    global STRICT
    STRICT = False
    one, two = Crowded("a", [1]), Crowded("a", [2])
    words = {one}
    words.add(two)
    STRICT = True
    words.add(two)
    STRICT = False
    return len(words), two in words, words, x * 2


@program
def raises_at_the_end(x):
    global STRICT
    STRICT = False
    words = {Failing("a"), Failing("b"), Failing("c")}
    STRICT = True
    return len(words), words, x * 2


@program
def raises_where_it_is_merged(x):
    global STRICT
    STRICT = False
    words, more = {Failing("a")}, {Failing("b"), Failing("c")}
    STRICT = True
    try:
        words.update(more)
    except ZeroDivisionError:
        return len(words), len(more), x
    finally:
        STRICT = False
    return x


@program
def inside_a_tuple(x):
    key = Word("a")
    table = collections.OrderedDict({(key, 1): x})
    key.tags.append(5)
    return (key, 1) in table, [*table], [*table.values()]


@program
def in_a_frozen_set(x):
    key = Word("a")
    words = frozenset([key, Word("b")])
    key.tags.append(5)
    return key in words, sorted(map(repr, words)), x


@program
def a_break_before_the_change(x):
    key = Word("a")
    table = {key: x}
    stator.graph_break()
    key.tags.append(5)
    return key in table, table


@program
def a_break_after_the_change(x):
    key = Word("a")
    table = {key: x}
    key.tags.append(5)
    stator.graph_break()
    return key in table, [*table], table[key] if key in table else x * 2


@program
def in_a_function_that_is_called(x):
    def filled(key):
        return {key: x + 1}

    key = Word("a")
    table = filled(key)
    key.tags.append(5)
    return key in table, [*table.values()]


@pytest.mark.parametrize("fn", PROGRAMS.values(), ids=list(PROGRAMS))
def test_keys_are_what_plain_python_makes_of_them(fn):
    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2),), 3)


def existing(x, table, key):
    table[key] = x
    key.tags.append(1)
    return len(table), [*table.values()]


def test_a_container_from_outside():
    made = lambda: (torch.ones(2), {Word("b"): 1}, Word("a"))  # noqa: E731
    assert_same(existing, stator.compile(existing, backend="eager"), made, 3)


def what_is_not_hashed(x):
    key = Crowded("a")
    table = {key: x}
    key.seen += 1
    key.tags.append(2)
    return table[key] + key.seen, table


def what_is_forgotten(x):
    key = Word("a")
    count = len({key, Word("b")})
    key.tags.append(2)
    return x + count


@pytest.mark.parametrize("fn", [what_is_not_hashed, what_is_forgotten])
def test_what_no_entry_asks_otherwise_is_no_break(fn):
    assert_same(
        fn, stator.compile(fn, backend="eager", fullgraph=True), lambda: (torch.ones(2),), 3
    )


def test_break_names_the_line_that_asked():
    fn = PROGRAMS["an attribute that is hashed is written"]
    compiled = stator.compile(fn, backend="eager")
    compiled(torch.ones(2))
    reason = compiled.report.breaks[0]
    assert (reason.reason, reason.where.line) == ("user-hash", fn.__code__.co_firstlineno + 3)


class Term:
    """As sympy has it: the hash is that of the parts, noted when it is asked first."""

    def __init__(self, name, *parts):
        self.name, self.parts, self.noted = name, parts, None

    def __hash__(self):
        found = self.noted
        if found is None:
            found = self.noted = hash(self.parts) ^ hash(self.name)  # no list is written to
        return found

    def __eq__(self, other):
        return isinstance(other, Term) and (self.name, self.parts) == (other.name, other.parts)


def term(depth, noted):
    made = Term(f"t{depth}", *(term(depth - 1, noted) for _ in range(2 if depth else 0)))
    return made if not noted or depth == 2 or hash(made) else None


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("noted", [False, True])
@pytest.mark.parametrize("inside", [False, True])
def test_a_hash_that_is_noted_may_ask_for_others_that_are(depth, noted, inside):
    def fn(x, given):
        key = term(depth, noted) if inside else given
        table = {key: x + 1, Term("t0"): x}
        return (
            table[term(depth, noted)],
            table[key],
            hash(key) == hash(given),
            given.noted is not None,
            len(table),
        )

    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, lambda: (torch.ones(2), term(depth, noted)), calls=3)


class Numbered:
    """Its hash is not there before `number` is."""

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return hash(self.number)

    def __eq__(self, other):
        return self.number == other.number

    def __repr__(self):
        return f"Numbered({self.number})"


class Slotted(Numbered):
    __slots__ = ("number",)


def half_made(cls):
    """As where a break is in the middle of `__init__`: the object is there, and the region writes
    what is hashed."""
    made = cls.__new__(cls)
    stator.graph_break()
    made.number = 3
    return made


FILLED = {
    "a set": lambda a, cls: {a, cls(1)},
    "a set of a list": lambda a, cls: set([a, cls(1), a]),  # noqa: C405
    "a set that is changed": lambda a, cls: (
        s := {cls(4), a},
        s.discard(cls(4)),
        s.update([cls(5), a]),
    )[0],
    "a union": lambda a, cls: {a} | {cls(4), cls(3)},
    "a frozen set": lambda a, cls: frozenset([a, cls(1)]),
    "a frozen set in a tuple": lambda a, cls: (1, frozenset([a, cls(1)])),
    "a frozen set as a key": lambda a, cls: {frozenset([a]): 2},
    "a dict": lambda a, cls: {a: 1, cls(1): [a]},
    "a dict of tuples": lambda a, cls: {(a, 1): 1, (cls(3), 2): 2},
    "a dict in an object": lambda a, cls: setattr(a, "own", {a: 1}) if cls is Numbered else a,
    "an ordered dict": lambda a, cls: collections.OrderedDict([(a, 1), (cls(1), 2)]),
    "a counter": lambda a, cls: collections.Counter([a, cls(3), cls(1)]),
    "keys and an iterator": lambda a, cls: (
        (d := {cls(1): 1, a: 2}).keys(),
        next(it := iter(d)),
        it,
    ),
    "a generator over a set": lambda a, cls: (b for b in [{a, cls(1)}]),
}


@pytest.mark.parametrize("cls", [Numbered, Slotted])
@pytest.mark.parametrize("name", FILLED)
@pytest.mark.parametrize("late", [False, True])
def test_what_is_filled_sees_what_the_region_wrote_to_its_keys(name, cls, late):
    def fn(x):
        a = half_made(cls)
        made = FILLED[name](a, cls)
        if late:
            stator.graph_break()
        return x + 1, a, made, list(made) if hasattr(made, "__next__") else 0

    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2),), calls=2)


@pytest.mark.parametrize("cls", [Numbered, Slotted])
@pytest.mark.parametrize("late", [False, True])
def test_what_was_there_before_sees_it_as_well(cls, late):
    def fn(x, table, group, log):
        a = half_made(cls)
        b = cls(2)
        table[a], table[b], table[cls(9)] = 1, x, 2
        group |= {a, b}
        b.number = 7
        group.add(b)
        table.pop(cls(3))
        log.append({a: 1})
        if late:
            stator.graph_break()
        return a in group, a in table, len(group)

    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, lambda: (torch.ones(2), {cls(9): 0}, {cls(1)}, []), calls=2)


class Rehashed:
    """A key whose hash may be another than it was when it was put in. It logs its questions."""

    def __init__(self, hashed):
        self.hashed = hashed

    def __hash__(self):
        LOG.append(("hash", self.hashed))
        return self.hashed

    def __eq__(self, other):
        LOG.append(("equal", self.hashed))
        return type(other) is Rehashed and self.hashed == other.hashed

    def __repr__(self):
        return "Rehashed"


def tried(use, *arguments):
    try:
        return use(*arguments)
    except KeyError as error:
        return repr(error)


ON_A_SET = {
    "contains": lambda c, key: (key in c, Rehashed(1) in c, Rehashed(9) in c, 0 in c),
    "list": lambda c, key: list(c),
    "copy": lambda c, key: (list(c.copy()), key in set(c), key in frozenset(c), key in {*c}),
    "combined": lambda c, key: (
        len(c | {key}),
        len(c - {key}),
        len({key} - c),
        len(c ^ {key}),
        c >= {key},
    ),
}
ON_A_DICT = {
    "contains": lambda c, key: (key in c, Rehashed(1) in c, c.get(key), 0 in c),
    "list": lambda c, key: list(c),
    "reversed": lambda c, key: [*reversed(c)],
    "items": lambda c, key: (list(c.items()), list(c.values())),
    "copy": lambda c, key: c.copy(),
    "as a dict": lambda c, key: dict(c),
    "unpacked": lambda c, key: {**c},
    "combined": lambda c, key: c | {key: 1},
    "compared": lambda c, key: c == {0: 1},
    "popitem": lambda c, key: c.popitem(),
    "deleted": lambda c, key: c.pop(key),
    "written": lambda c, key: c.update({key: 2}),
    "shown": lambda c, key: repr(c),
}
MADE = {
    "set": (lambda keys: {*keys}, ON_A_SET),
    "frozenset": (frozenset, ON_A_SET),
    "dict": (dict.fromkeys, ON_A_DICT),
    "ordered": (collections.OrderedDict.fromkeys, ON_A_DICT),
}


@pytest.mark.parametrize("after", [1, 2, 9])
@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, (_, uses) in MADE.items() for name in uses]
)
def test_a_key_may_have_another_hash_than_when_it_was_put_in(kind, name, broken, after):
    make, use = MADE[kind][0], MADE[kind][1][name]

    def fn(x, container, key):
        if broken:
            stator.graph_break()
        found = tried(use, container, key)
        if broken:
            stator.graph_break()
        return x + 1, found

    compiled = stator.compile(fn, backend="eager")
    for _ in range(3):
        outcomes = []
        for run in (fn, compiled):
            key = Rehashed(1)
            container = make([0, key, 5])
            key.hashed = after
            LOG.clear()
            outcomes.append((repr(run(torch.ones(2), container, key)), [*LOG]))
        assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("started", [0, 1])
@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize(
    "over", [iter, reversed, lambda d: iter(d.items()), lambda d: iter(d.values())]
)
def test_the_iterator_of_an_ordered_dict_asks_its_keys(over, broken, started):
    def fn(x, it):
        if broken:
            stator.graph_break()
        return x + 1, tried(next, it), tried(list, it)

    compiled = stator.compile(fn, backend="eager")
    for after in (1, 2, 9):
        outcomes = []
        for run in (fn, compiled):
            key = Rehashed(1)
            it = over(collections.OrderedDict.fromkeys([0, key, 5, (key, 2)]))
            for _ in range(started):
                next(it)
            key.hashed = after
            LOG.clear()
            outcomes.append((repr(run(torch.ones(2), it)), [*LOG]))
        assert outcomes[0] == outcomes[1]


class Heard(str):
    """Notes each question."""

    def __hash__(self) -> int:
        ASKED.append("hash")
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        ASKED.append("eq")
        return super().__eq__(other)


class HeardInC(Heard):
    __hash__ = str.__hash__


ASKED: list[str] = []
HELD: dict[str, dict[Any, int]] = {
    cls.__name__: {cls("a"): 1, "b": 2, 3: 4} for cls in (Heard, HeardInC)
}
LOOKS = "d['a']|d['b']|d[3]|'a' in d|d.get('a')|d.get('c')|d.setdefault('a')|d[held]|d.pop('b')|len(d)|{**d}|held in d"


@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize("text", LOOKS.split("|"))
def test_a_look_asks_keys_that_were_there_once(text: str, name: str) -> None:
    look = eval(f"lambda d, held: {text}")
    compiled = stator.compile(look, backend="eager")
    made = type(next(iter(HELD[name])))
    for _ in range(3):
        found = []
        for fn in (look, compiled):
            given, held = HELD[name].copy(), made("a")
            ASKED.clear()
            found.append((fn(given, held), [*ASKED]))
        assert found[0] == found[1]
