"""`pickle.dumps` of builtin values: a key by which libraries store the arguments of calls.

The bytes depend on which strings, bytes and containers are one object. So the pickled values have
the identities of the trackers, and equal strings from outside are rejected: they may be one object
in another call.
"""

import pickle
from typing import Any

import torch
from attrs import Factory, define
from stator_bytecode import Result

from stator_variables._objects import _number
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._list import ListTracker
from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._tracker import Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import NONE, ConstantTracker, NumberTracker

handlers = FunctionTable("pickling")

_PLAIN = (type(None), bool, int, float, torch.dtype, torch.device)
_TEXTS = (str, bytes)
"""A pickle refers back to one that it has already."""


@handlers.handles(pickle.dumps)
def dumps(t: Space, args: Args, kwargs: Kwargs) -> Result:
    protocol = args[1] if len(args) == 2 else kwargs.get("protocol", NONE)
    version = protocol.constant()
    has_options = len(args) not in (1, 2) or kwargs.keys() - {"protocol"}
    if has_options or version not in (None, *range(pickle.HIGHEST_PROTOCOL + 1)):
        raise t.unsupported("builtin", "a call of pickle.dumps with options")
    value = _RealValues(t).of(args[0])
    return ConstantTracker(pickle.dumps(value, version))


@define(eq=False)
class _RealValues:
    """The real values of trackers, each made once."""

    t: Space
    made: dict[int, Any] = Factory(dict)
    texts: dict[Any, bool] = Factory(dict)  # whether each came from outside

    def of(self, vt: VariableTracker, is_outside: bool = False) -> object:
        if is_a(vt, NumberTracker):
            return _number.specialised(self.t, vt)
        if id(vt) not in self.made:
            if is_a(vt, ConstantTracker):
                self.made[id(vt)] = self._constant(vt, is_outside or vt.source is not None)
            else:
                self._make(vt)
        return self.made[id(vt)]

    def _constant(self, vt: Any, is_outside: bool) -> object:
        value = vt.value
        if type(value) in _PLAIN:
            return value
        if type(value) not in _TEXTS or (is_outside and value in self.texts):
            raise self._refused(vt)
        if self.texts.setdefault(value, is_outside) and not is_outside:
            raise self._refused(vt)
        return value

    def _make(self, vt: VariableTracker) -> None:
        if is_a(vt, TupleTracker) and vt.cls in (tuple, torch.Size):
            self.made[id(vt)] = vt.cls([self.of(item) for item in vt.items])
        elif is_a(vt, ListTracker) and vt.cls is list:
            made: list[Any] = []
            self.made[id(vt)] = made
            made += [self.of(item) for item in vt.items]
        elif is_a(vt, DictTracker) and vt.cls is dict:
            table: dict[Any, Any] = {}
            self.made[id(vt)] = table
            for key, value in self.t.items(vt):
                table[self.of(key, vt.source is not None)] = self.of(value)
        else:
            raise self._refused(vt)

    def _refused(self, vt: VariableTracker) -> Exception:
        return self.t.unsupported("builtin", f"a call of pickle.dumps for a {vt.cls.__qualname__}")
