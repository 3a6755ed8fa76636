"""Methods bound to an object: of Python functions and of C's."""

import types
from types import MethodType, MethodWrapperType
from typing import Any

from stator_bytecode import Result
from stator_guards import AttrSource, Equals, Is, Source, TypeIs

from stator_variables._emitter import Emitter
from stator_variables._objects._builder_table import BuilderTable, build_by_identity, field
from stator_variables._objects._lookup import defines
from stator_variables._space import Space
from stator_variables._tracker import (
    MISSING,
    Args,
    KeyOf,
    Kwargs,
    VariableTracker,
    is_a,
    real_of,
    source_of,
)
from stator_variables._trackers import BuiltinTracker, is_none

builders = BuilderTable()


class MethodTracker(VariableTracker, references=("function", "receiver")):
    """A bound method: of a Python function, or of a C function (then `cls` is that of the C method
    object)."""

    def __init__(self, function: Any, receiver: VariableTracker, cls: type = MethodType) -> None:
        self.function = function
        self.receiver = receiver
        self.cls = cls

    def call(self, t: Space, args: Args, kwargs: Kwargs) -> Result:
        return t.call(self.function, [self.receiver, *args], kwargs)

    def hash_key(self, t: Space, part: KeyOf) -> object:
        if self.cls is not MethodWrapperType or not is_a(self.receiver, BuiltinTracker):
            return MISSING
        # `Tensor.shape.__get__`, equal to all that are made like it
        return self.function.real.__get__(self.receiver.real)

    def get_attribute(self, t: Space, name: str) -> Result:
        return t.read_method(self, name)

    def rebuild(self, e: Emitter) -> str:
        if self.cls is not MethodType:
            if is_none(self.receiver):  # which `__get__` takes for nothing
                return e.bind(self, f"None.{self.function.value.__name__}")
            is_of_class = isinstance(self.function.value, types.ClassMethodDescriptorType)
            receiver = e.expr(self.receiver)
            # CPython 3.11 may crash without the second argument.
            args = f"None, {receiver}" if is_of_class else f"{receiver}, type({receiver})"
            return e.bind(self, f"{e.expr(self.function)}.__get__({args})")

        # Anything but a function would not have been bound.
        if type(real_of(self.function)) is types.FunctionType:
            e.t.guard(source_of(self.function), TypeIs(types.FunctionType))
        function, receiver = e.expr(self.function), e.expr(self.receiver)
        if not defines(e.t, self.function.cls, "__call__"):  # bound by a classmethod, since 3.13
            bind = f"{e.capture(classmethod, 'Classmethod')}({function})"
            return e.bind(self, f"{bind}.__get__(None, {receiver})")
        return e.bind(self, f"{e.capture(MethodType, 'Method')}({function}, {receiver})")


@builders.by_class.handles(MethodType)
def build_method(t: Space, real: object, source: Source) -> VariableTracker:
    t.guard(source, TypeIs(MethodType))
    return MethodTracker(field(t, real, "__func__", source), field(t, real, "__self__", source))


@builders.by_class.handles(types.BuiltinFunctionType)
def build_builtin_function(t: Space, real: Any, source: Source) -> VariableTracker:
    """A C function; one bound to an object (`some_list.append`) is a method of that object."""
    owner = getattr(real, "__self__", None)
    of_none = (
        owner is None
        or isinstance(owner, types.ModuleType | type)
        or type(owner).__name__ == "ScriptFunction"
    )
    if of_none or (descriptor := _descriptor_of(type(owner), real)) is None:
        return build_by_identity(t, real, source)
    t.guard(source, TypeIs(type(real)))
    t.guard(AttrSource(source, "__name__"), Equals(real.__name__))
    t.guard(AttrSource(source, "__self__"), TypeIs(type(owner)))
    return MethodTracker(BuiltinTracker(descriptor), field(t, real, "__self__", source), type(real))


@builders.by_class.handles(MethodWrapperType)
def build_method_wrapper(t: Space, real: Any, source: Source) -> VariableTracker:
    """A slot of a C class bound to an object (`some_object.__setattr__`): a method of that
    object."""
    descriptor = vars(real.__objclass__).get(real.__name__)
    if not isinstance(descriptor, types.WrapperDescriptorType) or isinstance(
        real.__self__, types.ModuleType | type
    ):
        return build_by_identity(t, real, source)
    t.guard(source, TypeIs(MethodWrapperType))
    t.guard(AttrSource(source, "__name__"), Equals(real.__name__))
    t.guard(AttrSource(source, "__objclass__"), Is(real.__objclass__))
    receiver = field(t, real, "__self__", source)
    return MethodTracker(BuiltinTracker(descriptor), receiver, MethodWrapperType)


def _descriptor_of(cls: type, real: Any) -> object:
    """The method descriptor a bound C method was made from; a subclass may override its name."""
    for base in cls.__mro__:
        found = base.__dict__.get(real.__name__)
        if (
            isinstance(found, types.MethodDescriptorType)
            and found.__get__(real.__self__, type(real.__self__)) == real
        ):
            return found
    return None
