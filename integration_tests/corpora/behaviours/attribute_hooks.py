"""Reading attributes by `__getattribute__`, `__getattr__`, properties and descriptors: which is
asked after which fails, what an AttributeError says then."""

# mypy: ignore-errors

from __future__ import annotations

import sys
import traceback

import torch

from integration_tests.corpora.behaviours import program


class Getter:
    def __get__(self, instance, owner):
        raise AttributeError("the descriptor's")


class Plain:
    descriptor = Getter()
    unreadable = property(None)
    __slots__ = ("slot",)

    @property
    def fails(self):
        raise AttributeError("the property's")

    @property
    def breaks(self):
        print(end="")
        raise AttributeError("the property's")

    @property
    def otherwise(self):
        return {}["no such key"]


class Falls(Plain):
    def __getattr__(self, name):
        return f"instead of {name}"


class Looks(Plain):
    def __getattr__(self, name):
        return name, sys.exc_info()


class Module(torch.nn.Module):
    fails, otherwise = Plain.fails, Plain.otherwise

    def forward(self, x):
        return self.fails


class Meta(type):
    @property
    def fails(cls):
        raise AttributeError("the metaclass's")

    def __getattr__(cls, name):
        return f"{cls.__name__} instead of {name}"


class OfMeta(metaclass=Meta):
    descriptor = Getter()


class Asked:
    def __getattribute__(self, name):
        if name.startswith("no"):
            raise AttributeError(f"{name} is refused")
        return object.__getattribute__(self, name)


class AskedAgain(Asked):
    def __getattr__(self, name):
        return f"instead of {name}"


class Chained:
    def __getattr__(self, name):
        raise AttributeError(f"{name} is not there")


PLAIN, FALLS, MODULE, ASKED, AGAIN, CHAINED = (
    Plain(),
    Falls(),
    Module(),
    Asked(),
    AskedAgain(),
    Chained(),
)


def noted(read):
    try:
        return read()
    except AttributeError as error:
        return error.args, error.name, type(error.obj).__name__, error.__context__


@program
def a_property_that_fails_is_read_by_getattr(x, n, box):
    return FALLS.fails, FALLS.descriptor, FALLS.unreadable, FALLS.slot, FALLS.absent, x + n


@program(breaks="builtin")
def a_property_that_fails_after_a_break_is_read_by_getattr(x, n, box):
    return (
        FALLS.breaks,
        FALLS.breaks.upper(),
        getattr(FALLS, "breaks", None),
        hasattr(FALLS, "breaks"),
        x + n,
    )


@program
def a_getter_of_a_class_that_fails_is_read_by_the_metaclass(x, n, box):
    return OfMeta.fails, OfMeta.descriptor, OfMeta.absent, x + n


@program
def a_property_of_a_module_that_fails_is_said_to_be_absent(x, n, box):
    try:
        return MODULE(x)
    except AttributeError as error:
        return str(error), error.__context__, x + n


@program
def another_error_of_a_property_is_not_for_getattr(x, n, box):
    found = []
    for thing in (PLAIN, FALLS, MODULE):
        try:
            thing.otherwise
        except KeyError as error:
            found.append((str(error), error.__context__))
    return found, x + n


@program(breaks="exception-object")
def another_error_of_a_property_shows_the_lines_of_the_program_alone(x, n, box):
    try:
        FALLS.otherwise
    except KeyError as error:
        return [frame.name for frame in traceback.extract_tb(error.__traceback__)], x + n


@program
def what_getattribute_refuses_is_read_by_getattr(x, n, box):
    return (
        AGAIN.nothing,
        AGAIN.nobody.upper(),
        getattr(AGAIN, "now", 3),
        hasattr(ASKED, "now"),
        x + n,
    )


@program
def nothing_is_being_handled_while_getattr_runs(x, n, box):
    return Looks().fails, Looks().absent, x + n


@program(breaks="exception-object")
def an_error_notes_what_was_looked_for(x, n, box):
    reads = [
        lambda: CHAINED.one,
        lambda: PLAIN.fails,
        lambda: PLAIN.descriptor,
        lambda: ASKED.nothing,
        lambda: PLAIN.no,
    ]
    return [noted(read) for read in reads], x + n


@program(breaks="exception-object")
def an_error_notes_the_innermost_look_up(x, n, box):
    class Outer:
        @property
        def inner(self):
            return CHAINED.one

        @property
        def own(self):
            raise AttributeError("own", name="mine")

    return (
        noted(lambda: Outer().inner),
        noted(lambda: Outer().own),
        noted(lambda: getattr(Outer(), "own")),
        x + n,
    )


@program(breaks="exception-object")
def an_error_of_a_called_property_notes_nothing(x, n, box):
    return (
        noted(lambda: PLAIN.fails()),
        noted(lambda: CHAINED.one()),
        noted(lambda: ASKED.nothing()),
        x + n,
    )


@program(breaks="builtin")
def an_error_after_a_break_notes_what_was_looked_for(x, n, box):
    return noted(lambda: PLAIN.breaks), noted(lambda: PLAIN.breaks()), x + n
