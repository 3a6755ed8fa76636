"""More of what CPython's own tests brought to light: protocols of objects, dicts, numbers, and how
long things take."""

# mypy: ignore-errors
# The programs misuse types on purpose.

from __future__ import annotations

import abc
import collections
import enum
import functools
import itertools
import json
import operator
import random
import sys
import types
import weakref
from typing import Any

import pytest
import stator
import torch

from integration_tests.corpora.cpython.test_regressions import caught, native
from integration_tests.support.oracle import assert_same


class Key:
    pass


ONE, OTHER = Key(), Key()
KEYED = {ONE: 1, OTHER: 2}


class Quiet(dict):
    """A dict whose own writing is not to be asked by what puts back effects."""

    def __setitem__(self, key: Any, value: Any) -> None:
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: Any) -> None:
        dict.__delitem__(self, key)
        self.deleted = True


class Behind:
    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __getattribute__(self, name: str) -> Any:
        if name == "_thing":
            return object.__getattribute__(self, name)
        return getattr(self._thing, name)


class Pretends:
    __class__ = str


class Counted:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def __iter__(self) -> Any:
        return iter((1, 2))

    def __len__(self) -> int:
        self.asked.append("len")
        return 2


class Hinted(Counted):
    __len__ = None

    def __iter__(self) -> Any:
        return iter((1, 2))


class Slotted:
    __slots__ = ("value",)


class WriteOnly:
    def __set__(self, obj: Any, value: Any) -> None:
        obj.__dict__["field"] = value


class Written:
    field = WriteOnly()


class Stores(dict):
    __setattr__ = dict.__setitem__


class Misplaced(int):
    __eq__ = str.__eq__
    __add__ = str.__add__
    __hash__ = None


class Empty:
    def __hash__(self) -> int:
        return hash(())


class Watched(type):
    def __getattribute__(cls, name: str) -> Any:
        if not name.startswith("_"):
            cls._log.append(name)
        return super().__getattribute__(name)


class Seen(metaclass=Watched):
    _log: list[str] = []
    field = 3


class Flags(enum.Flag):
    A = 1
    B = 2
    ALL = 255


class Told:
    log: list[str] = []

    def __del__(self) -> None:
        self.log.append("gone")


class Raw(types.ModuleType):
    log: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        Raw.log.append(name)
        return types.ModuleType.__getattribute__(self, name)


class Mapped(collections.UserDict):
    pass


@stator.disable
def forget_part() -> None:
    sys.modules.pop("json.tool", None)
    vars(json).pop("tool", None)


def registered() -> Any:
    @functools.singledispatch
    def kind(value: Any) -> str:
        return "any"

    return kind


def object_as_a_key_of_an_existing_dict(x: Any) -> Any:
    return [KEYED.get(key) for key in (ONE, OTHER)]


def claimed_class(x: Any) -> Any:
    found = isinstance(Behind(ONE), Key), isinstance(Pretends(), str)
    return (
        *found,
        caught(lambda: str.split(Pretends())),
        caught(lambda: isinstance(1, list[int] | int)),
    )


def deletion_past_an_override(x: Any) -> Any:
    made = native(Quiet(a=1, b=2))
    del made["a"]
    made["c"] = 3
    native()
    return dict(made), made.deleted


def dict_methods_on_an_ordered_dict(x: Any) -> Any:
    made = collections.OrderedDict(a=1, b=2)
    dict.__delitem__(made, "a")
    return caught(lambda: repr(made)), caught(lambda: list(made.items()))


def length_of_what_becomes_a_list(x: Any) -> Any:
    sized, unsized = Counted(), Hinted()
    return list(sized), sized.asked, tuple(sized), sized.asked, caught(lambda: list(unsized))


def slot_filled_and_emptied(x: Any) -> Any:
    made = native(Slotted())
    made.value = 1
    del made.value
    native()
    return hasattr(made, "value")


def descriptor_that_only_sets(x: Any) -> Any:
    made = Written()
    before = type(made.field).__name__
    made.field = 42
    return before, made.field


def slot_of_another_name(x: Any) -> Any:
    made = Stores()
    made.field = 42
    return (
        dict(made),
        caught(lambda: Misplaced() == Misplaced()),
        caught(lambda: Misplaced() + Misplaced()),
    )


def method_of_c_bound_to_another_class(x: Any) -> Any:
    return caught(lambda: set.add.__get__(0))


def hash_of_a_hash(x: Any) -> Any:
    return hash(Empty()) == hash(())


def attribute_through_a_metaclass(x: Any) -> Any:
    Seen._log.clear()
    return Seen.field, list(Seen._log)


def inverted_flags(x: Any) -> Any:
    nothing = ~(Flags.A | Flags.B), ~Flags.ALL, Flags(0)
    return nothing[0] is nothing[1], nothing[1] is nothing[2]


def object_told_that_it_dies(x: Any) -> Any:
    Told.log.clear()
    made = Told()
    del made
    return list(Told.log)


def class_of_modules(x: Any) -> Any:
    Raw.log.clear()
    made = Raw("made")
    made.field = 12
    return made.field, list(Raw.log)


def view_of_a_mapping(x: Any) -> Any:
    own, below = Mapped(a=1), {"b": 2}
    views = types.MappingProxyType(own), native(types.MappingProxyType(below))
    below["c"] = 3
    return views[0]["a"], type(views[0].copy()).__name__, dict(views[1]), views[1] | {"d": 4}


def implementation_registered_just_now(x: Any) -> Any:
    kind = native(registered())
    before = kind(1)
    kind.register(int, lambda value: "int")
    return before, kind(1), kind("a")


def ambiguous_implementations(x: Any) -> Any:
    first, second = (abc.ABCMeta(name, (), {}) for name in ("First", "Second"))
    kind = native(registered())
    for base in (first, second):
        base.register(Key)
        kind.register(base, lambda value: "one")
    return caught(lambda: kind(ONE))[0]


def fields_of_a_partial(x: Any) -> Any:
    made = functools.partial(max, 1)
    made.note = "kept"
    nested = functools.partial(made, 2)
    native()
    return made.note, nested.func is made, functools.partial(functools.partial(max, 1), 2).args


def iterator_of_c_has_no_constructor(x: Any) -> Any:
    return caught(type(iter("a"))), caught(type(iter(range(2))))


def group_of_a_list_that_grew(x: Any) -> Any:
    errors = native([ValueError(1)])
    errors.append(TypeError(2))
    try:
        raise ExceptionGroup("several", errors)
    except ExceptionGroup as group:
        errors.append(3)
        return len(group.exceptions), group.exceptions is group.exceptions, len(group.args[1])


def tuple_that_contains_itself(x: Any) -> Any:
    made = ([],)
    made[0].append(made)
    native()
    return made[0][0] is made


def float_of_a_ratio(x: Any) -> Any:
    found = []
    for _ in range(40):
        number = random.random() * 10 ** random.randint(-100, 100)
        top, bottom = native(number).as_integer_ratio()
        found.append(float(top) / bottom == number)
    return all(found)


def weak_reference_to_what_was_let_go(x: Any) -> Any:
    made = native(Key())
    reference = weakref.ref(made)
    before = reference() is made
    del made
    return before, reference()


def object_let_go_past_the_recompile_limit(x: Any) -> Any:
    left = []
    for _ in range(12):
        made = native(Key())
        reference = weakref.ref(made)
        del made
        native()
        left.append(reference() is None)
    return left


def generator_that_takes_coroutines(x: Any) -> Any:
    async def answer() -> int:
        return 3

    @types.coroutine
    def asks() -> Any:
        return (yield from waits)

    waits = answer()
    return caught(lambda: asks().send(None))


def iterator_that_asks_itself(x: Any) -> Any:
    class Asking:
        def __init__(self, value: Any) -> None:
            pass

        def __eq__(self, other: object) -> bool:
            asked.append(other is self)
            if len(asked) == 1:
                next(group, None)
            return True

        __hash__ = None

    asked: list[Any] = []
    group = next(itertools.groupby(range(10), Asking))[1]
    return [next(group, None) for _ in range(2)], asked


def slices_that_c_refuses(x: Any) -> Any:
    steps = [caught(lambda: itertools.islice("abc", 1, 2, step)) for step in (0, -1)]  # noqa: B023
    return steps, caught(lambda: itertools.repeat(None, 2.5))


def module_imported_from_its_package(x: Any) -> Any:
    forget_part()
    from json import tool

    return tool.__name__


def coroutine_is_not_copied(x: Any) -> Any:
    import copy

    async def answer() -> int:
        return 3

    made = answer()
    try:
        return caught(lambda: copy.copy(made))[0]
    finally:
        made.close()


PROGRAMS = [
    value
    for name, value in list(globals().items())
    if getattr(value, "__annotations__", {}).get("x") == "Any"
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program_does_what_plain_python_does(program: Any) -> None:
    assert_same(program, stator.compile(program, backend="eager"), lambda: (torch.ones(2),))


def by_key(d: Any, key: Any) -> Any:
    return d.get(key)


def by_both(x: Any, y: Any) -> Any:
    made = {x: 1}
    return made.get(y), y in made


def by_a_pair(d: Any, x: Any, y: Any) -> Any:
    return d.get((x, y))


def test_key_objects_are_told_apart_on_later_calls() -> None:
    for program, calls in (
        (by_key, [(KEYED, ONE), (KEYED, OTHER), (KEYED, Key())]),
        (by_both, [(ONE, OTHER), (ONE, ONE), (OTHER, ONE)]),
        (by_a_pair, [({(ONE, OTHER): 5}, ONE, OTHER), ({(ONE, OTHER): 5}, ONE, ONE)]),
    ):
        compiled = stator.compile(program, backend="eager")
        for call in calls:
            assert compiled(*call) == program(*call)


def counted(n: int) -> int:
    total = 0
    for i in itertools.count():
        if i == n:
            return total
        total += i % 7
    return total


def around_a_long_loop(x: torch.Tensor) -> torch.Tensor:
    return (x + 1) * counted(60_000)


def long_loop_itself(x: torch.Tensor) -> torch.Tensor:
    total = 0
    for i in range(60_000):
        total += i % 7
    return x * total


@pytest.mark.parametrize("program", [around_a_long_loop, long_loop_itself])
def test_long_loop_without_tensors_runs_natively(program: Any) -> None:
    compiled = stator.compile(program, backend="eager")
    assert_same(program, compiled, lambda: (torch.ones(2),))
    assert [broken.reason for broken in compiled.report.breaks] == ["long-loop"]


def test_graph_goes_on_after_a_function_with_a_long_loop() -> None:
    compiled = stator.compile(around_a_long_loop, backend="eager")
    compiled(torch.ones(2))
    assert compiled.report.graph_count == 2
    assert [broken.reason for broken in compiled.report.breaks] == ["long-loop"]


def in_a_long_list(x: torch.Tensor, numbers: list[int]) -> Any:
    return x + 1, 29_999 in numbers, sum(numbers)


def reduced(x: torch.Tensor, numbers: list[int]) -> Any:
    return x + 1, functools.reduce(lambda total, n: total + n, numbers), x * 2


def through_a_generator(x: torch.Tensor, numbers: list[int]) -> Any:
    return x + 1, min(n for n in numbers), x * 2


def with_the_rest_of_it(x: torch.Tensor, numbers: list[int]) -> Any:
    it = iter(numbers)
    return x + next(it), sum(it), x * 2


@pytest.mark.parametrize("fn", [in_a_long_list, reduced, through_a_generator, with_the_rest_of_it])
def test_what_c_does_with_a_long_list_is_one_break(fn: Any) -> None:
    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, lambda: (torch.ones(2), [*range(30_000)]))
    assert len(compiled.report.breaks) <= 2, compiled.report  # to make an iterator is one, too
    assert compiled.report.entry_count == len(compiled.report.breaks) + 1


def over_a_long_list(x: torch.Tensor, numbers: list[int]) -> Any:
    total = 0
    for n in numbers:
        total += n
    return x * total


def test_loop_over_a_long_list_of_numbers_runs_natively() -> None:
    compiled = stator.compile(over_a_long_list, backend="eager")
    assert_same(over_a_long_list, compiled, lambda: (torch.ones(2), [*range(30_000)]))
    assert [broken.reason for broken in compiled.report.breaks] == ["long-container", "long-loop"]
    assert compiled.report.entry_count == 1


def over_a_huge_range(x: torch.Tensor) -> tuple[int, int]:
    numbers = iter(range(1 << 62))
    return next(numbers), next(numbers)


def test_iterator_over_a_huge_range_makes_no_items() -> None:
    assert_same(
        over_a_huge_range,
        stator.compile(over_a_huge_range, backend="eager"),
        lambda: (torch.ones(2),),
    )


def of_a_huge_number(x: torch.Tensor, n: int) -> tuple[torch.Tensor, int, float]:
    return x * (n % 7), n // 3, n / 5


def test_number_that_no_graph_can_hold_stays_a_constant() -> None:
    compiled = stator.compile(of_a_huge_number, backend="eager")
    for n in (10**30, 10**31, -(10**25), 7, 8, 1 << 62, 1 << 63):
        expected, found = of_a_huge_number(torch.ones(2), n), compiled(torch.ones(2), n)
        assert expected[1:] == found[1:]
        assert torch.equal(expected[0], found[0])


class Sequence:
    def __getitem__(self, index: int) -> int:
        return index

    def __add__(self, other: Any) -> str:
        return "added"


def concatenated(x: torch.Tensor) -> list[Any]:
    found: list[Any] = []
    pairs: list[Any] = [
        (x, x),
        ({1: 2}, {1: 2}),
        (Sequence(), Sequence()),
        ([1], [2]),
        ("a", "b"),
        (1, 2),
        ((1,), [1]),
    ]
    for one, other in pairs:
        try:
            found.append(operator.concat(one, other))
        except TypeError as error:
            found.append(str(error))
    return found


def test_what_c_takes_for_a_sequence_is_concatenated() -> None:
    assert_same(
        concatenated, stator.compile(concatenated, backend="eager"), lambda: (torch.ones(2),)
    )
