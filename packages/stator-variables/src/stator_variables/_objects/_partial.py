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


_PARTS = ("function", "args", "args_tuple", "given", "keywords", "existing")


class PartialTracker(VariableTracker, references=_PARTS):
    """functools.partial.

    `args_tuple` and `keywords` are the tuple and the dict of a new one, once they were read, and
    `existing` is the dict of another; the program may change these dicts.
    """

    def __init__(self, cls: type, function: VariableTracker, args: Args, kwargs: Kwargs) -> None:
        self.cls = cls
        self.function = function
        self.args = args
        self.args_tuple: Any = None
        self.given = kwargs
        self.keywords: Any = None
        self.existing: Any = None

    @property
    def kwargs(self) -> Kwargs:
        if self.keywords is None:
            return self.given
        return {key.constant(): vt for key, vt in self.keywords.entries.values()}

    def call(self, t: Space, args: Args, kwargs: Kwargs) -> Result:
        if not all(type(name) is str for name in self.kwargs):
            raise t.unsupported("bad-arguments", "a partial with a keyword that is no string")
        if id(self.existing) in t.heap.changed:
            raise t.unsupported("c-attribute", "a partial whose keywords were changed here")
        return t.call(self.function, [*self.args, *args], {**self.kwargs, **kwargs})

    def rebuild(self, e: Emitter) -> str:
        parts = {"args": self.args_tuple, "keywords": self.keywords}
        read = {name: vt for name, vt in parts.items() if vt is not None}
        if any(map(e.has_made, read.values())):  # without it, and it has others
            raise e.refuse(self)
        name = e.bind(self, e.call(functools.partial, [self.function, *self.args], self.kwargs))
        for field, vt in read.items():
            e.bind(vt, f"{name}.{field}")
        return filled(e, self, name)


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
