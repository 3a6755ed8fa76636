"""What CPython's own tests brought to light, one small program for each cause."""

# mypy: ignore-errors
# The programs misuse types on purpose.

from __future__ import annotations

import builtins
import collections
import functools
import inspect
import operator
import re
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch

from integration_tests.support.oracle import assert_same


@stator.disable
def native(value: Any = None) -> Any:
    return value


def caught(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except Exception as error:
        return type(error), str(error)


class Negative:
    def __len__(self) -> int:
        return -1  # noqa: PLE0303


class Vague:
    def __bool__(self) -> Any:
        return 1  # noqa: PLE0304

    def __int__(self) -> Any:
        return "three"

    def __iter__(self) -> Any:
        return [1]


class Closed:
    __contains__ = None


class Waiting:
    def __init__(self) -> None:
        self.value = native(3)


class Lists(list[int]):
    pass


class Kind(type):
    def __subclasscheck__(cls, other: type) -> bool:
        raise TypeError("do not ask")


class Asked(metaclass=Kind):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None


class Log:
    __hash__ = None

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def __eq__(self, other: object) -> Any:
        self.log.append("eq")
        return NotImplemented


class Found:
    @property
    def __call__(self) -> Any:
        return lambda x: x + 1


class Chained:
    @classmethod
    @property
    def name(cls) -> str:
        return cls.__name__


class Itself:
    pass


def sends() -> Iterator[Any]:
    return (yield 1)


def handles() -> Iterator[Any]:
    try:
        yield 1
    except ValueError as error:
        yield native(error) is error, error.__traceback__ is not None


def wrong_arguments_of_c_functions(x: Any) -> Any:
    calls: list[Callable[..., Any]] = [
        bool,
        int,
        float,
        tuple,
        list,
        set,
        frozenset,
        enumerate,
        zip,
        reversed,
        iter,
    ]
    calls += [next, getattr, hasattr, len, range, map, filter, sorted, isinstance]
    return [caught(lambda: c(1, 2, 3, 4)) for c in calls] + [  # noqa: B023
        caught(lambda: c(sequence=1))  # noqa: B023
        for c in calls
    ]


def results_of_special_methods(x: Any) -> Any:
    asked = [
        lambda: bool(Negative()),
        lambda: bool(Vague()),
        lambda: not Vague(),
        lambda: int(Vague()),
    ]
    asked += [lambda: iter(Vague()), lambda: [*Vague()], lambda: 1 in Closed()]
    return [caught(run) for run in asked]


def barrier_after_a_continued_constructor(x: Any) -> Any:
    made = Waiting()
    return made.value, tuple(native(x + i) for i in (1, 2, 3))


def method_of_a_pattern_over_a_break(x: Any) -> Any:
    find = re.compile("b+").findall
    return find(native("abba"))


def long_number_over_a_break(x: Any) -> Any:
    number = 1 << 40000
    native()
    return number.bit_length()


def value_of_an_ended_generator(x: Any) -> Any:
    made = sends()
    next(made)
    try:
        made.send((2,))
    except StopIteration as end:
        native(end)
        return end.value


def thrown_exception_is_an_object(x: Any) -> Any:
    made = handles()
    next(made)
    return made.throw(ValueError(1))


def parameterized_class_in_isinstance(x: Any) -> Any:
    return [
        caught(lambda: isinstance([], k))  # noqa: B023
        for k in (list[int], int | list[int], dict[str, int], 3)
    ]


def metaclass_is_not_asked_by_comparison(x: Any) -> Any:
    three = 3
    return Asked() == three, three == Asked(), caught(lambda: Asked() < 3)


def unequal_by_own_equality_alone(x: Any) -> Any:
    log: list[str] = []
    return Log(log) != Log(log), len(log), Log(log) != 3, len(log)


def callable_from_a_descriptor(x: Any) -> Any:
    return Found()(x)


def endless_call(x: Any) -> Any:
    Itself.__call__ = Itself()
    return caught(lambda: (Itself()(),))


def class_method_of_a_property(x: Any) -> Any:
    return Chained.name, Chained().name


def bound_c_function(x: Any) -> Any:
    bound = types.MethodType(len, [1, 2])
    native()
    return bound()


def nested_without_end(x: Any) -> Any:
    value: Any = x
    for _ in range(3000):
        value = [value]
    native()
    found = caught(lambda: repr(value))
    return found if isinstance(found, str) else found[0]


def cycle_of_contexts(x: Any) -> Any:
    first, second = ValueError(1), ValueError(2)
    first.__context__, second.__context__ = second, first
    try:
        try:
            raise first
        except ValueError:
            raise TypeError("new") from None
    except TypeError as error:
        return error.__context__ is first, first.__context__ is second


def wrong_cause(x: Any) -> Any:
    error = ValueError()

    def set_it() -> None:
        error.__cause__ = 1

    return caught(set_it), error.__cause__


def empty_cell(x: Any) -> Any:
    cell = types.CellType()
    before = caught(lambda: cell.cell_contents)
    cell.cell_contents = 3
    return before, cell.cell_contents


def dict_that_changes_under_its_iterator(x: Any) -> Any:
    d = {0: 1}

    def run() -> None:
        for key in d:
            del d[key]
            d[key + 1] = 1

    return caught(run), d


def renamed_generator(x: Any) -> Any:
    def make() -> Iterator[int]:
        yield 1

    make.__name__ = "renamed"
    native()
    made = make()
    return made.__name__, next(made)


def lists_emptied_by_their_comparison(x: Any) -> Any:
    class Emptying:
        __hash__ = None

        def __init__(self, other: list[Any]) -> None:
            self.other = other

        def __eq__(self, other: object) -> Any:
            self.other.clear()
            return NotImplemented

    left: list[Any] = []
    right: list[Any] = [Emptying(left)]
    left.append(Emptying(right))
    return left == right, caught(lambda: Lists(sequence=()))


def field_of_the_code_of_a_new_function(x: Any) -> Any:
    def inner() -> int:
        return 1

    found = collections.defaultdict(dict, {})
    found[inner.__code__.co_firstlineno][inner.__code__.co_name] = 1
    native()
    return dict(found)


def same_tuple(x: Any) -> Any:
    made = (x, x)
    return tuple(made) is made


class Answering:
    """An iterator that ends with a value."""

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        raise StopIteration(42)


class Made(type):
    __call__ = dict


class Entry(metaclass=Made):
    pass


class Own(classmethod):
    pass


class Owner:
    name = Own(lambda cls: cls.__name__)


class Defaults(collections.defaultdict):
    def __init__(self) -> None:
        super().__init__(list)


def value_of_an_iterator_in_yield_from(x: Any) -> Any:
    def make() -> Any:
        return (yield from Answering())

    return caught(lambda: next(make()))


def iterator_exhausted_by_its_own_function(x: Any) -> Any:
    answers = iter([1, 2, 3, 4])
    made = iter(lambda: list(made) and 1 if next(answers) == 1 else 2, 2)
    return list(made)


def deque_emptied_while_it_is_searched(x: Any) -> Any:
    class Clearing:
        __hash__ = None

        def __eq__(self, other: object) -> bool:
            d.clear()
            return False

    d = collections.deque([1, Clearing(), 2])
    return caught(lambda: 3 in d), caught(lambda: d.remove(3)), len(d)


def metaclass_whose_call_is_a_class(x: Any) -> Any:
    return Entry(a=1), type(Entry()) is dict


def subclass_of_classmethod(x: Any) -> Any:
    return Owner.name(), Owner().name()


def subclass_of_defaultdict_over_a_break(x: Any) -> Any:
    made = Defaults()
    made["a"].append(1)
    native()
    made["b"].append(2)
    return dict(made), type(made)


def slice_of_objects_over_a_break(x: Any) -> Any:
    made = slice([1], [2], None)
    native()
    return made.start, made.stop, made == slice([1], [2])


def missing_field_of_a_class(x: Any) -> Any:
    return caught(lambda: Owner.__abstractmethods__), hasattr(Owner, "__abstractmethods__")


def wrong_class_to_catch(x: Any) -> Any:
    def run() -> None:
        try:
            raise ValueError
        except (ValueError, 42):  # noqa: B030
            pass

    return caught(run)


def read_only_field_of_a_c_object(x: Any) -> Any:
    made = functools.partial(max, 1)
    native()

    def run() -> None:
        made.func = min

    return caught(run), made(2)


def weak_proxy(x: Any) -> Any:
    made = Owner()
    proxy = weakref.proxy(made)
    native()
    return proxy.name(), caught(lambda: proxy.absent)


def reversed_range_over_a_break(x: Any) -> Any:
    made = reversed(range(1, 17, 5))
    first = next(made)
    native()
    return first, list(made)


def enumerate_by_name(x: Any) -> Any:
    return list(enumerate(iterable="ab", start=3)), caught(lambda: enumerate("ab", "c"))


def iterator_over_a_list_cut_short(x: Any) -> Any:
    made = list(range(10))
    there, back = iter(made), reversed(made)
    taken = [next(there), next(there), next(back), next(back)]
    made[1:] = []
    native()
    left = operator.length_hint(there), operator.length_hint(back)
    made.extend(range(20))
    return taken, left, list(there), list(back)


def reversed_over_a_list_that_grew(x: Any) -> Any:
    made = [1, 2, 3]
    back = reversed(made)
    first = next(back)
    made.insert(0, 7)
    native()
    return first, list(back), made


def existing_reversed_over_a_list_cut_short(x: Any) -> Any:
    made = list(range(10))
    back = native(reversed(made))
    next(back)
    native()
    made[1:] = []
    native()
    return operator.length_hint(back), list(back)


def methods_through_an_alias(x: Any) -> Any:
    alias = list[int]
    made = alias()
    alias.append(made, "foo")
    return (
        made,
        alias.__getitem__(made, 0),
        alias.__len__(made),
        alias.__origin__,
        caught(lambda: alias.nothing),
    )


def field_of_an_error_that_may_be_missing(x: Any) -> Any:
    error = BlockingIOError("a", "b")
    missing = caught(lambda: error.characters_written)
    error.characters_written = 5
    return missing, error.characters_written


def annotations_are_made_when_asked_for(x: Any) -> Any:
    made = native(type("Made", (), {}))
    before = "__annotations__" in made.__dict__
    return before, made.__annotations__, "__annotations__" in made.__dict__


def signatures_of_classes_made_here(x: Any) -> Any:
    class Meta(type):
        def __call__(cls, first: int, second: str = "a") -> None: ...

    class Base:
        def __new__(cls, first: int = 1, *rest: Any, **named: Any) -> Any:
            return object.__new__(cls)

    class Derived(Base):
        def __init__(self, *, named: str = "b") -> None:
            pass

    class Answering(metaclass=Meta):
        def __init__(self, other: int) -> None:
            pass

    return [
        str(inspect.signature(made))
        for made in (Base, Derived, Answering, Derived.__init__, Base().__init__)
    ]


def namespaces_of_threads(x: torch.Tensor) -> Any:
    mine, found = threading.local(), []
    mine.x = 1
    for change in (lambda: setattr(mine, "__dict__", {}), lambda: delattr(mine, "__dict__")):
        try:
            change()
        except AttributeError as error:
            found.append(str(error))
    return x + 1, found, mine.x


def annotations_made_when_asked(x: torch.Tensor) -> Any:
    class Made:
        pass

    class Other(Made):
        y: int = 3

    found: list[Any] = [Made.__annotations__, Made.__annotations__ is Made.__annotations__]
    Made.__annotations__ = {"a": int}
    found += [dict(Made.__annotations__), "__annotations__" in Made.__dict__]
    del Made.__annotations__
    found += [
        "__annotations__" in Made.__dict__,
        Made.__annotations__,
        "__annotations__" in Made.__dict__,
    ]
    del Made.__annotations__
    try:
        del Made.__annotations__
    except AttributeError as error:
        found.append(str(error))
    return x + 1, found, list(Other.__annotations__)


def imports_after_modules_were_replaced(x: torch.Tensor) -> Any:
    import colorsys

    found: list[Any] = []
    modules: Any = sys.modules
    for replaced in (None, types.ModuleType("colorsys")):
        modules["colorsys"] = replaced
        try:
            import colorsys as another

            found.append(another is colorsys)
        except ImportError as error:
            found.append(str(error))
    modules["colorsys"] = colorsys
    return x + 1, found


def imports_by_somebody_else(x: torch.Tensor) -> Any:
    own, asked = builtins.__import__, []

    def listening(name: str, *more: Any) -> Any:
        asked.extend([name] if name == "colorsys" else [])  # tracing imports as well
        return own(name, *more)

    builtins.__import__ = listening
    try:
        import colorsys
    finally:
        builtins.__import__ = own
    return x + 1, asked, colorsys.__name__


PROGRAMS = [
    signatures_of_classes_made_here,
    iterator_over_a_list_cut_short,
    reversed_over_a_list_that_grew,
    existing_reversed_over_a_list_cut_short,
    methods_through_an_alias,
    field_of_an_error_that_may_be_missing,
    annotations_are_made_when_asked_for,
    reversed_range_over_a_break,
    enumerate_by_name,
    read_only_field_of_a_c_object,
    weak_proxy,
    wrong_class_to_catch,
    value_of_an_iterator_in_yield_from,
    *(
        [iterator_exhausted_by_its_own_function] if sys.version_info >= (3, 11, 3) else []
    ),  # a SystemError before
    deque_emptied_while_it_is_searched,
    metaclass_whose_call_is_a_class,
    subclass_of_classmethod,
    subclass_of_defaultdict_over_a_break,
    slice_of_objects_over_a_break,
    missing_field_of_a_class,
    wrong_arguments_of_c_functions,
    results_of_special_methods,
    barrier_after_a_continued_constructor,
    method_of_a_pattern_over_a_break,
    long_number_over_a_break,
    value_of_an_ended_generator,
    thrown_exception_is_an_object,
    parameterized_class_in_isinstance,
    metaclass_is_not_asked_by_comparison,
    unequal_by_own_equality_alone,
    callable_from_a_descriptor,
    endless_call,
    class_method_of_a_property,
    bound_c_function,
    nested_without_end,
    cycle_of_contexts,
    wrong_cause,
    empty_cell,
    dict_that_changes_under_its_iterator,
    renamed_generator,
    lists_emptied_by_their_comparison,
    field_of_the_code_of_a_new_function,
    same_tuple,
    namespaces_of_threads,
    annotations_made_when_asked,
    imports_after_modules_were_replaced,
    imports_by_somebody_else,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program_does_what_plain_python_does(program: Any) -> None:
    assert_same(program, stator.compile(program, backend="eager"), lambda: (torch.ones(2),))
