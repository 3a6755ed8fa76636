"""Weak references to objects that existed before: what the program holds, it keeps alive while it
is traced.

An object made while tracing is alive as long as the traced frames, or what they have changed, lead
to it; a call of a reference to another one is a break. A reference that calls back when such an
object, an argument or a local dies is refused.
"""

import weakref
from typing import Any

import torch
from stator_guards import CallSource, Source

from stator_variables._emitter import Emitter
from stator_variables._hash_key import RefTo, identity_of, type_hashes_by_identity
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._keys import rely_on_hash
from stator_variables._objects._wrap import of_instances
from stator_variables._runtime._support import living
from stator_variables._space import Space
from stator_variables._tracker import KeyOf, VariableTracker
from stator_variables._trackers import is_none

builders = BuilderTable()


def referent(reference: Any) -> object:
    return reference()


@builders.by_class.handles(weakref.ref, weakref.KeyedRef)
@of_instances
def build_weakref(t: Space, real: Any, source: Source) -> VariableTracker:
    target = real()
    vt = WeakrefTracker(t.wrap(target, CallSource(referent if target is None else living, source)))
    vt.cls = type(real)
    return vt


class WeakrefTracker(VariableTracker, references=("callback",), weak_references=("target",)):
    """weakref.ref: `target` is what it refers to; `callback` is what a new one is to call when that
    dies."""

    cls = weakref.ref

    def __init__(self, target: VariableTracker, callback: object = None) -> None:
        self.target = target
        self.callback = callback

    def hash_key(self, t: Space, part: KeyOf) -> object:
        """Two references are equal if what they refer to is; for tensors that is no truth value."""
        target = self.target
        by_identity = type_hashes_by_identity(target.cls) and not issubclass(
            target.cls, torch.Tensor
        )
        if is_none(target) or not by_identity:
            detail = f"a weak reference to a {target.cls.__name__} as a key"
            raise t.unsupported("user-hash", detail)
        rely_on_hash(t, target.cls)
        return RefTo(identity_of(target))

    def rebuild(self, e: Emitter) -> str:
        rest = "" if self.callback is None else f", {e.expr(self.callback)}"
        return e.bind(self, f"{e.capture(weakref.ref)}({e.expr(self.target)}{rest})")
