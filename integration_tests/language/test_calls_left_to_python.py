"""Programs at the edges of what is captured: a call that the trace refuses, and one with unusual
arguments, give what plain Python gives."""

# mypy: ignore-errors

from __future__ import annotations

import abc
import collections
import copy
import enum
import functools
import importlib
import io
import operator
import pathlib
import pickle
import re
import sys
import types
import typing

import numpy as np
import pytest
import stator
import torch

from integration_tests.support.oracle import assert_same


class Text(str):
    __slots__ = ()


class Base:
    value = 5

    def method(self):
        return 1


class Child(Base):
    def missing(self):
        return super().absent

    def class_after(self):
        return super().__thisclass__.__name__, super().__class__.__name__

    def receiver(self):
        return super().__self__ is self


class First(abc.ABC):  # noqa: B024
    pass


class Second(abc.ABC):  # noqa: B024
    pass


class Both:
    pass


First.register(Both)
Second.register(Both)


@functools.singledispatch
def kind(value):
    return 0


kind.register(int)(lambda value: 1)
kind.register(First)(lambda value: 2)
kind.register(Second)(lambda value: 3)


class Hooked(abc.ABC):  # noqa: B024
    @classmethod
    def __subclasshook__(cls, other):
        raise ValueError("hook")


class Bits(enum.Flag):
    ONE = 1
    TWO = 2


class Patterned:
    __match_args__ = ("a", "b")

    def __init__(self):
        self.a = 1


class ListOfNames:
    __match_args__ = ["a"]


class NoNames:
    __match_args__ = (3,)


class Containing:
    def __init__(self, found):
        self.found = found

    def __contains__(self, item):
        return self.found


class Shadowed(types.ModuleType):
    __dict__ = property(lambda self: {})


class WithoutDict(types.ModuleType):
    __dict__ = property(lambda self: None)


CLOSED, DETACHED = io.StringIO("a"), io.TextIOWrapper(io.BytesIO())
CLOSED.close()
DETACHED.detach()
GET, KEYS = operator.itemgetter(1), types.SimpleNamespace(one="k", other="k")
PATTERN = re.compile("a+")
MODULES = Shadowed("shadowed"), WithoutDict("without")


@torch.compiler.assume_constant_result
def assumed(value):
    return 3


def adding(*numbers):
    return sum(numbers)


def partials(x):
    named = functools.partial(adding, 1)
    named.note = 3
    outer = functools.partial(named, 2)
    return x + outer(), vars(outer), named.note


def repeated_attribute(x):
    match Patterned():
        case Patterned(1, a=2):
            return x


def absent_attribute(x):
    match Patterned():
        case Patterned(_, _):
            return x + 1
        case Patterned(zz=3):
            return x + 2
    return x


def names_of_another_kind(x, cls):
    match cls():
        case cls(_):
            return x


def repeated_key(x):
    match {"k": 2, "l": 3}:
        case {KEYS.one: a, KEYS.other: b}:
            return x + a + b


def no_class(x):
    match x:
        case KEYS():
            return x


def handled_length(x):
    try:
        return len(x.sum())
    except TypeError as error:
        return str(error)


def protocol(x):
    @typing.runtime_checkable
    class Made(typing.Protocol):
        def method(self): ...

    return x + 1, isinstance(3, Made)


def new_field(name, value):
    def program(x):
        def function(y):
            return y + 1

        try:
            setattr(function, name, value)
        except (TypeError, AttributeError) as error:
            return str(error), function(x)
        return getattr(function, name), function(x)

    return program


def a_missing_part_of_a_module(x):
    import json.decoder.nothing

    return x, json


def new_parameters(x):
    def fn():
        pass

    fn.__type_params__ = (1,)  # a field since 3.12, an ordinary attribute before
    return x + 1, dict(vars(fn)), fn.__type_params__


PROGRAMS = {
    "getter of no name": lambda x: operator.attrgetter(3),
    "caller of no name": lambda x: operator.methodcaller(b"x"),
    "existing getter": lambda x: GET(x),  # noqa: PLW0108
    "partial with attributes": partials,
    "dispatch of no class": lambda x: (x, kind.dispatch(3)),
    "ambiguous dispatch": lambda x: x + kind(Both()),
    "absent after super": lambda x: x + Child().missing(),
    "class of super": lambda x: (x + 1, Child().class_after()),
    "receiver of super": lambda x: (x + 1, Child().receiver()),
    "hook that raises": lambda x: (x, issubclass(int, Hooked)),
    "protocol made inside": protocol,
    "repeated attribute": repeated_attribute,
    "absent attribute": absent_attribute,
    "list of names": lambda x: names_of_another_kind(x, ListOfNames),
    "no names": lambda x: names_of_another_kind(x, NoNames),
    "repeated key": repeated_key,
    "pattern of no class": no_class,
    "length of a number": handled_length,
    "tensor from contains": lambda x: 3 in Containing(x.sum() > 100),
    "number from contains": lambda x: (x, 3 in Containing(x.shape[0])),
    "no specification": lambda x: (x, format(1, None)),
    "specification of a class": lambda x: (x, format(1, Text("5d"))),
    "type of two": lambda x: (x, type(1, 2)),
    "inverted flag": lambda x: (x, ~Bits.ONE, Bits(3)),
    "combination that is none": lambda x: (x, Bits(8)),
    "paths of lists": lambda x: (x + 1, pathlib.PurePath(["a"])),
    "matches in a subclass": lambda x: (x, [m.span() for m in PATTERN.finditer(Text("aab"))]),
    "matches in bytes": lambda x: (x, [m.span() for m in PATTERN.finditer(bytearray(b"a"))]),
    "field of a closed file": lambda x: (x, CLOSED.newlines),
    "field of a detached file": lambda x: (x, DETACHED.name),
    "module that hides": lambda x: (x, MODULES[0].__name__),
    "module without": lambda x: (x, MODULES[1].__name__),
    "module of another text": lambda x: (x, importlib.__import__(Text("os")).sep),
    "missing part of a module": a_missing_part_of_a_module,
    "constant of a computed tensor": lambda x: x + assumed(x.sum()),
    "constant of an input": lambda x: x + assumed(x),
    "constant of a new list": lambda x: x + assumed([1, x + 1]),
    "mapping by name": lambda x: (x + 1, dict(**collections.UserDict(a=1))),
    "attribute of operators": lambda x: (x, torch.ops.aten.absent),
    "attribute of settings": lambda x: (x, torch._functorch.config.absent),
    "pickled flags": lambda x: (x + 1, pickle.dumps((Bits.ONE, range(3)))),
    "name of a function": new_field("__name__", 3),
    "annotations of a function": new_field("__annotations__", 3),
    "no annotations": new_field("__annotations__", None),
    "document of a function": new_field("__doc__", 3),
    "type parameters of a function": new_parameters,
    "dtype of many": lambda x: (x, np.dtype([("a", int)]).itemsize),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_gives_what_plain_python_gives(name):
    program = PROGRAMS[name]
    compiled = stator.compile(program, backend="eager")
    assert_same(program, compiled, lambda: (torch.arange(4.0),), gradients=False)


def test_the_exception_of_a_handler_outside():
    def program(x):
        return x + 1, sys.exc_info()[1]

    compiled = stator.compile(program, backend="eager")
    found = []
    for number in range(3):
        try:
            raise ValueError(number)
        except ValueError as error:
            found.append(compiled(torch.ones(1))[1] is error)
    assert all(found)
    assert compiled(torch.ones(1))[1] is None


def test_a_setting_that_is_written_and_read():
    config = torch._functorch.config

    def program(x):
        before = config.debug_assert, config.treat_parameters_as_free_to_save
        config.debug_assert = not before[0]
        config.treat_parameters_as_free_to_save = [1]
        inside = config.debug_assert, copy.copy(config.treat_parameters_as_free_to_save)
        config.debug_assert, config.treat_parameters_as_free_to_save = before
        return x + 1, inside, config.debug_assert

    assert_same(program, stator.compile(program, backend="eager"), lambda: (torch.ones(1),))
