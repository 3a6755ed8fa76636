"""Methods bound to an object: of Python functions and of C's."""

import types
from typing import Any

from stator_guards import TypeIs

from stator_variables._emitter import Emitter
from stator_variables._kinds import is_none
from stator_variables._objects._lookup import defines
from stator_variables._space import real_of, source_of
from stator_variables._tracker import VariableTracker


class MethodTracker(VariableTracker):
    """A bound method: of a Python function, or of a C function (then `cls` is that of the C method object)."""

    def __init__(self, function: Any, receiver: Any, cls: type = types.MethodType) -> None:
        self.function = function
        self.receiver = receiver
        self.cls = cls

    def rebuild(self, e: Emitter) -> str:
        if self.cls is not types.MethodType:
            if is_none(self.receiver):  # which `__get__` takes for nothing
                return e.bind(self, f"None.{self.function.value.__name__}")
            is_of_class = isinstance(self.function.value, types.ClassMethodDescriptorType)
            receiver = e.expr(self.receiver)
            args = (
                f"None, {receiver}" if is_of_class else f"{receiver}, type({receiver})"
            )  # 3.11 may crash without it
            return e.bind(self, f"{e.expr(self.function)}.__get__({args})")
        if (
            type(real_of(self.function)) is types.FunctionType
        ):  # anything else would not have been bound
            e.t.guard(source_of(self.function), TypeIs(types.FunctionType))
        function, receiver = e.expr(self.function), e.expr(self.receiver)
        if not defines(
            e.t, self.function.cls, "__call__"
        ):  # a classmethod has bound it, since 3.13
            return e.bind(
                self,
                f"{e.capture(classmethod, 'Classmethod')}({function}).__get__(None, {receiver})",
            )
        return e.bind(self, f"{e.capture(types.MethodType, 'Method')}({function}, {receiver})")
