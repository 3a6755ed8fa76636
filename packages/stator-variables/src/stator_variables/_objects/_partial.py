"""`functools.partial`."""

import functools
from collections.abc import Sequence
from typing import Any

import stator_guards as guards

from stator_variables._emitter import Emitter, filled
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._wrap import with_namespace, wrap_items
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker

builders = BuilderTable()


class PartialTracker(VariableTracker, references=("function", "args", "args_tuple", "kwargs")):
    """functools.partial."""

    def __init__(
        self, cls: type, function: VariableTracker, args: list[Any], kwargs: dict[str, Any]
    ) -> None:
        self.cls = cls
        self.function = function
        self.args = args
        self.args_tuple: Any = None  # the tuple for them, once it was read
        self.kwargs = kwargs

    def call(self, t: Space, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return t.call(self.function, [*self.args, *args], {**self.kwargs, **kwargs})

    def rebuild(self, e: Emitter) -> str:
        if self.args_tuple is not None:  # the program may have kept it, and the new one has another
            raise e.refuse(self)
        text = e.call(functools.partial, [self.function, *self.args], self.kwargs)
        return filled(e, self, e.bind(self, text))


@builders.by_base.handles(functools.partial)
def build_partial(t: Space, real: VariableTracker, source: guards.Source) -> VariableTracker:
    t.guard(source, guards.TypeIs(type(real)))
    (function, at), (given, args_source), (keywords, kwargs_source) = (
        _c_field(real, name, source) for name in ("func", "args", "keywords")
    )
    args = wrap_items(t, given, args_source)
    t.guard(kwargs_source, guards.KeysAre(tuple(keywords)))
    kwargs = {
        name: t.wrap(arg, guards.DictItemSource(kwargs_source, name))
        for name, arg in keywords.items()
    }
    made = PartialTracker(type(real), t.wrap(function, at), args, kwargs)
    return with_namespace(t, made, real, source)


def _c_field(real: object, name: str, source: guards.Source) -> tuple[Any, guards.Source]:
    """Return what a call uses, and its source: a subclass may have an attribute of that name."""
    if getattr(type(real), name, None) is vars(functools.partial)[name]:
        return getattr(real, name), guards.AttrSource(source, name)
    read = _READERS[name]
    return read(real), guards.CallSource(read, source)


_READERS: dict[str, Any] = {
    name: vars(functools.partial)[name].__get__ for name in ("func", "args", "keywords")
}
