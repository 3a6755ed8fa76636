"""Immutable objects of C classes that are determined by the arguments they were made with."""

import functools
import operator
from typing import Any

import stator_guards as guards
from stator_bytecode import Result

from stator_variables._emitter import Emitter
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._wrap import ATOMS, build_object
from stator_variables._space import Space
from stator_variables._tracker import Args, Kwargs, SubstituteOf, VariableTracker
from stator_variables._trackers import ConstantTracker

builders = BuilderTable()


KEY_WRAPPER: Any = type(functools.cmp_to_key(lambda a, b: 0))
"""The class of what `functools.cmp_to_key` gives, and of what that gives."""


class RecipeTracker(VariableTracker, references=("args", "kwargs")):
    """An immutable object of a C class that is determined by the arguments it was made with:
    `operator.itemgetter("x")`."""

    def __init__(self, cls: type, args: Args, kwargs: Kwargs) -> None:
        self.cls = cls
        self.args = args
        self.kwargs = kwargs

    def get_attribute(self, t: Space, name: str) -> Result:
        return t.read_recipe(self, name)

    def make(self, args: Args, kwargs: Kwargs) -> Any:
        if self.cls is KEY_WRAPPER:
            made: Any = functools.cmp_to_key
            for arg in args:
                made = made(arg)
            return made
        return self.cls(*args, **kwargs)

    def substitute(self, t: Space, part: SubstituteOf) -> object:
        named = {name: part(value) for name, value in self.kwargs.items()}
        return self.make([part(value) for value in self.args], named)

    def rebuild(self, e: Emitter) -> str:
        if self.cls is KEY_WRAPPER:
            parts = ")(".join(map(e.expr, self.args))
            return e.bind(self, f"{e.capture(functools.cmp_to_key)}({parts})")
        return e.bind(self, e.call(self.cls, self.args, self.kwargs))


@guards.shown_as("the arguments of {0}")
def recipe_of(real: Any) -> tuple[tuple[Any, ...], tuple[tuple[str, Any], ...]]:
    """The arguments an object was made with, by its `__reduce__`."""
    made, args = real.__reduce__()
    if isinstance(made, functools.partial):  # a methodcaller with keywords
        return (*made.args, *args), tuple(made.keywords.items())
    return args, ()


@builders.by_class.handles(operator.itemgetter, operator.attrgetter, operator.methodcaller)
def build_recipe(t: Space, real: VariableTracker, source: guards.Source) -> VariableTracker:
    """An `operator.itemgetter` and its kin, by the constants it was made with."""
    t.guard(source, guards.TypeIs(type(real)))
    args, kwargs = recipe_of(real)
    if not all(type(value) in ATOMS for value in (*args, *dict(kwargs).values())):
        return build_object(t, real, source)
    t.guard(guards.CallSource(recipe_of, source), guards.Equals((args, kwargs)))
    named = {name: ConstantTracker(value) for name, value in kwargs}
    return RecipeTracker(type(real), [ConstantTracker(value) for value in args], named)
