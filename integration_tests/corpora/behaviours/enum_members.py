"""Enum members: methods of their own that C asks for, what they are part of, members that are made
when first asked for."""

# mypy: ignore-errors

from __future__ import annotations

import enum
import math

from integration_tests.corpora.behaviours import program

LOG = []


class Number(enum.IntEnum):
    ONE = 1
    FOUR = 4

    def __eq__(self, other):
        LOG.append(("eq", int.__int__(self)))
        return int.__eq__(self, other)

    def __lt__(self, other):
        LOG.append(("lt", int.__int__(self)))
        return int.__lt__(self, other)

    def __float__(self):
        LOG.append("float")
        return 9.0

    def __bool__(self):
        LOG.append("bool")
        return False

    def __repr__(self):
        LOG.append("repr")
        return "<number>"

    __hash__ = int.__hash__


class Mode(str, enum.Enum):
    FAST = "fast"
    SLOW = "slow"

    def __str__(self):
        LOG.append("str")
        return self.value + "!"

    def __call__(self, value):
        return value * len(self)

    def __contains__(self, part):
        LOG.append(("contains", part))
        return len(part) == 2


class Sign(enum.Enum):
    PLUS = "+"
    MINUS = "-"

    def __bool__(self):
        return self is Sign.PLUS

    def __len__(self):
        LOG.append("len")
        return 3

    def __format__(self, spec):
        LOG.append(spec)
        return "sign" + spec


class Kept(enum.IntFlag, boundary=enum.KEEP):
    X = 1
    Y = 4


class Taken(enum.Flag):
    A = 1
    B = 2


@program(breaks="builtin")
def a_range_asks_a_member_whether_it_is_equal(x, n, box):
    return Number.ONE in range(5), Number.FOUR in (3, Number.FOUR), x + n


@program(breaks="builtin")
def a_function_of_c_asks_a_member_for_its_number(x, n, box):
    return math.sqrt(Number.FOUR), math.isclose(Number.ONE, 9), x + n


@program
def members_say_whether_they_are_true(x, n, box):
    found = (
        "yes" if Number.FOUR else "no",
        not Number.ONE,
        Sign.MINUS and 1,
        bool(Sign.PLUS),
        any([Number.ONE]),
    )
    return found, len(Sign.PLUS), x + n


@program
def members_are_sorted_by_their_own_comparison(x, n, box):
    items = [Number.FOUR, Number.ONE]
    items.sort()
    found = [items[0].name, sorted([n, Number.FOUR])[0] is n, min(Number.FOUR, Number.ONE).name]
    return found, x * Number.FOUR


@program
def texts_of_members_are_made_on_each_call(x, n, box):
    one = Number.ONE
    found = (
        repr(one),
        f"{one!r:>9}",
        "{!r}".format(one),
        "%r" % one,
        repr((one, 1)),
        str([one]),
        f"{(one,)}",
    )
    return (
        found,
        str(Mode.FAST),
        f"{Mode.FAST}",
        "%s" % Mode.SLOW,
        f"{Sign.PLUS:x}",
        format(Sign.MINUS, "y"),
        x + n,
    )


@program
def members_that_are_texts_are_used_as_such(x, n, box):
    fast = Mode.FAST
    found = (
        fast.upper(),
        fast + "x",
        "y" + fast,
        fast.startswith("fa"),
        "-".join([fast, "q"]),
        {fast: 1}["fast"],
    )
    return found, "fa" in fast, "f" in fast, fast in ("fast", 2), fast(x), len(fast)


@program
def a_flag_that_is_made_is_asked_what_it_contains(x, n, box):
    return Kept.Y in Kept(5), x + n


@program
def a_flag_that_is_made_before_is_asked_what_it_contains(x, n, box):
    both, y = Kept(5), Kept.Y
    return y in both, Kept.X not in both, both.name, x + n


@program
def a_flag_without_numbers_is_made_and_asked(x, n, box):
    return Taken.A in Taken(3), Taken.B in Taken.A, bool(Taken(0)), x + n


@program
def members_that_have_a_length_are_not_reversible(x, n, box):
    found = []
    for member in (Taken.A, Sign.PLUS, Number.ONE):
        try:
            reversed(member)
        except TypeError as error:
            found.append(str(error))
    return found, [*reversed(Mode.FAST)], [*reversed([*Sign])], x + n
