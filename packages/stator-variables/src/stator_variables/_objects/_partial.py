"""`functools.partial`."""

import functools
from typing import Any

from stator_bytecode import Result
from stator_guards import AttrSource, CallSource, DictItemSource, KeysAre, Source

from stator_variables._emitter import Emitter, filled
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._wrap import of_instances, wrap_items
from stator_variables._space import Space
from stator_variables._tracker import Args, Kwargs, VariableTracker

builders = BuilderTable()


class PartialTracker(VariableTracker, references=("function", "args", "args_tuple", "kwargs")):
    """functools.partial."""

    def __init__(self, cls: type, function: VariableTracker, args: Args, kwargs: Kwargs) -> None:
        self.cls = cls
        self.function = function
        self.args = args
        self.args_tuple: Any = None  # the tuple for them, once it was read
        self.kwargs = kwargs

    def call(self, t: Space, args: Args, kwargs: Kwargs) -> Result:
        return t.call(self.function, [*self.args, *args], {**self.kwargs, **kwargs})

    def rebuild(self, e: Emitter) -> str:
        if self.args_tuple is not None:  # the program may have kept it, and the new one has another
            raise e.refuse(self)
        text = e.call(functools.partial, [self.function, *self.args], self.kwargs)
        return filled(e, self, e.bind(self, text))


@builders.by_base.handles(functools.partial)
@of_instances
def build_partial(t: Space, real: VariableTracker, source: Source) -> VariableTracker:
    (function, at), (given, args_source), (keywords, kwargs_source) = (
        _c_field(real, name, source) for name in ("func", "args", "keywords")
    )
    args = wrap_items(t, given, args_source)
    t.guard(kwargs_source, KeysAre(tuple(keywords)))
    kwargs = {
        name: t.wrap(arg, DictItemSource(kwargs_source, name)) for name, arg in keywords.items()
    }
    return PartialTracker(type(real), t.wrap(function, at), args, kwargs)


def _c_field(real: object, name: str, source: Source) -> tuple[Any, Source]:
    """Return what a call uses, and its source: a subclass may have an attribute of that name."""
    if getattr(type(real), name, None) is vars(functools.partial)[name]:
        return getattr(real, name), AttrSource(source, name)
    read = _READERS[name]
    return read(real), CallSource(read, source)


_READERS: dict[str, Any] = {
    name: vars(functools.partial)[name].__get__ for name in ("func", "args", "keywords")
}
