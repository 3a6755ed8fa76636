"""Handlers of the container types as callables: `tuple`, `list`, `set`, `dict` and named tuples."""

import collections
from typing import Any

import torch
from stator_bytecode import HandlerTable, after

from stator_variables import _kinds as k
from stator_variables._build import new_namespace
from stator_variables._builtin import _dicts
from stator_variables._builtin._arity import Args, Kwargs
from stator_variables._builtin._method_table import then
from stator_variables._model import _containers, _iteration
from stator_variables._tracing import Tracing

handlers: HandlerTable[Any, Any] = HandlerTable("builtin")


@handlers.handles(tuple)
def make_tuple(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if args and args[0].cls is tuple:
        return args[0]
    return _collected(t, lambda items: k.TupleTracker(items, tuple), args)


@handlers.handles(torch.Size)
def make_size(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _collected(t, lambda items: k.TupleTracker(items, torch.Size), args)


@handlers.handles(list)
def make_list(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _collected(t, lambda items: k.ListTracker(items, list), args)


@handlers.handles(set)
def make_set(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _set_of(t, set, args)


@handlers.handles(frozenset)
def make_frozenset(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return args[0] if args and args[0].cls is frozenset else _set_of(t, frozenset, args)


def _set_of(t: Tracing, cls: type, args: Args) -> Any:
    made = k.SetTracker(cls)
    return then(_containers.set_update(t, made, args[0]), made) if args else made


def _collected(t: Tracing, make: Any, args: Args) -> Any:
    return after(_iteration.drain(t, args[0], True), make) if args else make([])


@handlers.handles(frozenset.__new__)
def _frozenset_new(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return _set_of(t, args[0].value, args[1:])


@handlers.handles(dict)
def make_dict(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    made = k.DictTracker(dict, complete=True)
    return then(_dicts.update_all(t, made, args, kwargs), made)


@handlers.handles(collections.OrderedDict)
def make_ordered_dict(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    made = k.DictTracker(collections.OrderedDict, complete=True)
    new_namespace(made)
    return then(_dicts.update_all(t, made, args, kwargs), made)


@handlers.handles(tuple.__new__)
def tuple_new(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    cls = args[0].value
    return _collected(t, lambda items: _named_tuple(cls, items), args[1:])


def _named_tuple(cls: type, items: list[Any]) -> Any:
    made = k.TupleTracker(items, cls)
    if cls.__dictoffset__:
        new_namespace(made)
    return made


_TUPLE_GETTER = type(vars(collections.namedtuple("_Probe", "field"))["field"])


@handlers.handles(_TUPLE_GETTER.__get__)
def named_field(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    descriptor, vt = args[:2]
    index = descriptor.real.__reduce__()[1][0]
    return descriptor if k.is_none(vt) else vt.items[index]
