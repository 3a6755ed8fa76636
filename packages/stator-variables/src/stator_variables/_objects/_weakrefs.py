"""Weak references to objects that existed before: what the program holds, it keeps alive while it
is traced.

An object made while tracing is alive as long as the traced frames, or what they have changed, lead
to it; a call of a reference to another one is a break. A reference that calls back when such an
object, an argument or a local dies is refused.
"""

import weakref
from typing import Any

from stator_guards import CallSource, Source

from stator_variables._emitter import Emitter
from stator_variables._objects._builder_table import BuilderTable
from stator_variables._objects._wrap import of_instances
from stator_variables._runtime._support import living
from stator_variables._space import Space
from stator_variables._tracker import (
    VariableTracker,
)

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

    def rebuild(self, e: Emitter) -> str:
        rest = "" if self.callback is None else f", {e.expr(self.callback)}"
        return e.bind(self, f"{e.capture(weakref.ref)}({e.expr(self.target)}{rest})")
