"""The kinds of trackers that hold no others by position or key: what each stores while it is
traced, and how a new one is turned back into source. Those of tensors are written in
`_tensor_kinds`, that of generators in `_generator_tracker`, and found here with the others."""

import cmath
import re
import sys
import types
from collections.abc import Callable
from types import FunctionType
from typing import Any

import attrs
import torch
from stator_bytecode import Result
from stator_guards import Is, Source

from stator_variables._emitter import Emitter, StaysInGraph, filled, made_empty
from stator_variables._generator_tracker import GeneratorTracker, generator_state, names_of
from stator_variables._hash_key import Identity
from stator_variables._pure import PATHS, is_number_of_numpy
from stator_variables._runtime._literals import has_no_literal
from stator_variables._runtime._support import found_again, make_function, unset
from stator_variables._space import Space
from stator_variables._tensor_kinds import (
    ArrayTracker,
    StorageTracker,
    SubclassTracker,
    TensorTracker,
)
from stator_variables._trace._graph import GraphValue
from stator_variables._tracker import (
    DELETED,
    MISSING,
    Args,
    ArgumentOf,
    KeyOf,
    Kwargs,
    SubstituteOf,
    VariableTracker,
    is_pending,
    made_of,
)

__all__ = ["ArrayTracker", "StorageTracker", "SubclassTracker", "TensorTracker"]
__all__ += ["GeneratorTracker", "generator_state", "names_of"]


class ConstantTracker(VariableTracker):
    """An immutable value known while tracing: numbers, strings, None, dtypes, devices, ranges, enum
    members…"""

    may_hold = False
    is_known = True

    def __init__(self, value: Any) -> None:
        self.value = value
        self.cls = type(value)

    def operate(self, t: Space, function: Callable[..., Any], *operands: VariableTracker) -> Result:
        return t.operate_on_constants(function, *operands)

    def describe(self) -> str:
        return repr(self.value)

    def constant(self) -> Any:
        return self.value

    def hash_key(self, t: Space, part: KeyOf) -> object:
        if self.value != self.value:  # a NaN is a key as that very object
            t.guard(self.source, Is(self.value))
        return self.value

    def in_graph(self, t: Space, part: ArgumentOf) -> Any:
        value = self.value
        return plain_number(t, value) if is_number_of_numpy(type(value)) else value

    def substitute(self, t: Space, part: SubstituteOf) -> object:
        return self.value

    def rebuild(self, e: Emitter) -> str:
        value = self.value
        if type(value) in _LITERALS and not has_no_literal(value):
            return repr(value)
        if type(value) is re.Match:
            return e.bind(self, f"{e.capture(found_again)}({e.capture(value, 'Match')})")
        if type(value) in PATHS:
            return e.bind(self, f"{e.capture(type(value))}({str(value)!r})")
        if is_nan(value):
            # another object on each run: containers keep each of them
            return e.bind(self, f"-(-{e.capture(value, 'nan')})")
        return e.capture(value, type(value).__name__)


class NumberTracker(VariableTracker):
    """A symbolic int, float or bool: a node with a SymInt, SymFloat or SymBool."""

    is_symbolic = True
    is_late = False  # read after the graph: see `_entry_values`
    is_address: bool = False  # of memory: it must not become a constant

    def __init__(self, traced: GraphValue, cls: type) -> None:
        self.traced = traced
        self.cls = cls
        self.steps = 0  # how many operations gave it, since its expression was measured

    def operate(self, t: Space, function: Callable[..., Any], *operands: VariableTracker) -> Result:
        return t.operate_in_graph(function, *operands)

    def hash_key(self, t: Space, part: KeyOf) -> object:
        return t.specialise(self)

    def in_graph(self, t: Space, part: ArgumentOf) -> Any:
        return self.traced

    @property
    def example(self) -> Any:
        return self.traced.example

    def rebuild(self, e: Emitter) -> str:
        """A number that is an input, or a size of one, is read from there.

        Simple arithmetic is done here as well: the graph need not give it.
        """
        if (source := e.t.graph.source_of(self.traced)) is not None:
            return e.load(source)
        text = e.t.graph.text_of(self.traced, e.load)
        return e.output(self.traced) if text is None else e.bind(self, text)


class TextTracker(ConstantTracker, references=("parts",)):
    """A string made of symbolic numbers, not read yet.

    `parts` are strings, and numbers with the specification they are formatted by. Reading `value`
    makes constants of the numbers, by `constant_of`.
    """

    def __init__(self, parts: list[Any], constant_of: Callable[[Any], Any]) -> None:
        self.parts = parts
        self.cls = str
        self.constant_of = constant_of

    @property
    def value(self) -> str:
        return "".join(
            p if isinstance(p, str) else format(self.constant_of(p[0]), p[1]) for p in self.parts
        )

    def describe(self) -> str:
        return repr(self.parts)

    def constant(self) -> str:
        return self.value

    def rebuild(self, e: Emitter) -> str:
        numbers = ", ".join(e.expr(part[0]) for part in self.parts if not isinstance(part, str))
        template = "".join(map(_placed, self.parts))
        return e.bind(
            self, f"str({numbers})" if template == "{}" else f"{template!r}.format({numbers})"
        )


class ScalarTracker(ConstantTracker):
    """A number of NumPy, `real`, that the entry reads or computes.

    Reading `value` makes it a constant: `fix` installs the guard.
    """

    source: Source

    def __init__(self, real: object, fix: Callable[[], None]) -> None:
        self.real = real
        self.cls = type(real)
        self.fix = fix
        self.steps = 0  # how many operations of NumPy give it

    @property
    def value(self) -> Any:
        self.fix()
        return self.real

    def describe(self) -> str:
        return repr(self.real)

    def constant(self) -> Any:
        return self.value

    def in_graph(self, t: Space, part: ArgumentOf) -> Any:
        number: Any = t.number_of_scalar(self)
        return number.traced if number.is_symbolic else super().in_graph(t, part)


class SliceTracker(VariableTracker, references=("parts",)):
    """A slice with parts that need not be constants."""

    cls = slice

    def __init__(self, parts: tuple[Any, Any, Any]) -> None:
        self.parts = parts

    def constant(self) -> Any:
        return made_of(lambda parts: slice(*parts), (part.constant() for part in self.parts))

    def in_graph(self, t: Space, part: ArgumentOf) -> Any:
        return slice(*(part(t.bound_of_slice(bound)) for bound in self.parts))

    def rebuild(self, e: Emitter) -> str:
        return e.bind(self, f"slice({e.listed(self.parts)})")


@attrs.define(eq=False, repr=False, slots=False)
class FunctionTracker(
    VariableTracker,
    references=("globals", "defaults", "kwdefaults", "closure", "annotations", "fields"),
):
    """A Python function, existing or made while tracing.

    `closure` has cell trackers; `defaults` is None or a list.
    """

    cls = FunctionType
    base = FunctionType
    may_hold = False

    code: types.CodeType
    globals: Any
    name: str
    qualname: str
    defaults: list[Any] | None = None
    kwdefaults: dict[str, Any] | None = None
    closure: tuple[Any, ...] = ()
    annotations: VariableTracker | None = None
    fields: dict[str, Any] = attrs.Factory(dict)  # WRITTEN_FIELDS that were set

    def call(self, t: Space, args: Args, kwargs: Kwargs) -> Result:
        return t.call_function(self, args, kwargs)

    def describe(self) -> str:
        return self.qualname

    def rebuild(self, e: Emitter) -> str:
        cells = "".join(f"{e.expr(cell_vt)}, " for cell_vt in self.closure)
        code = e.capture(self.code, self.code.co_name)
        globals_ = e.capture(self.globals.real, "globals")
        text = (
            f"{e.capture(make_function)}({code}, {globals_}, "
            f"{self.name!r}, {self.qualname!r}, ({cells}))"
        )
        name = e.bind(self, text)
        if self.defaults:
            e.lines.append(f"{name}.__defaults__ = ({e.listed(self.defaults)},)")

        if self.kwdefaults:
            inside = ", ".join(
                f"{key!r}: {e.expr(value)}" for key, value in self.kwdefaults.items()
            )
            e.lines.append(f"{name}.__kwdefaults__ = {{{inside}}}")
        if (given := getattr(self.annotations, "items", None)) is not None:  # not a constant
            items = [e.expr(item) for item in given]
            pairs = ", ".join(f"{a}: {b}" for a, b in zip(items[::2], items[1::2], strict=True))
            e.lines.append(f"{name}.__annotations__ = {{{pairs}}}")
        for field, value in self.fields.items():
            e.lines.append(f"{name}.{field} = {e.expr(value)}")
        return filled(e, self, name)


WRITTEN_FIELDS: dict[str, Any] = {
    "__name__": str,
    "__qualname__": str,
    "__doc__": object,
    "__module__": object,
    "__annotations__": dict,
    **({"__type_params__": tuple} if "__type_params__" in vars(FunctionType) else {}),
    **(
        {"__annotate__": (FunctionType, types.NoneType)}
        if "__annotate__" in vars(FunctionType)
        else {}
    ),
}
"""Attributes of a new function that may be set while tracing (`functools.wraps` does), and what
they take."""


class ObjectTracker(VariableTracker, references=("members",)):
    """An object of any other class, existing or new; its state is `namespace`, and `members` for
    `__slots__`."""

    def __init__(self, cls: type, real: Any = MISSING) -> None:
        self.cls = cls
        self.real = real
        self.members: dict[Any, Any] = {}

    def rebuild(self, e: Emitter) -> str:
        if issubclass(self.cls, property):  # what it is of, nobody noted
            raise e.refuse(self)
        name = e.bind(self, made_empty(e, self.cls))
        for member, value in self.members.items():
            if value is not DELETED:
                e.lines.append(f"{e.capture(member)}.__set__({name}, {e.expr(value)})")
        return filled(e, self, name)

    def replay(self, e: Emitter) -> None:
        name = e.expr(self)
        for member, value in self.members.items():
            target = e.capture(member)
            if value is DELETED:
                e.lines.append(f"{e.capture(unset)}({target}, {name})")
            else:
                e.lines.append(f"{target}.__set__({name}, {e.expr(value)})")


class ClassTracker(VariableTracker):
    """An existing class. Its dictionary is read through `_lookup`, with guards."""

    base = type
    may_hold = False

    def __init__(self, value: type) -> None:
        self.value = value
        self.real = value
        self.cls = type(value)

    def call(self, t: Space, args: Args, kwargs: Kwargs) -> Result:
        return t.construct(self, list(args), kwargs)

    def hash_key(self, t: Space, part: KeyOf) -> object:
        return Identity(self.real)

    def in_graph(self, t: Space, part: ArgumentOf) -> Any:
        return self.value

    def get_item(self, t: Space, key: VariableTracker) -> Result:
        return t.get_class_item(self, key)

    def describe(self) -> str:
        return self.value.__qualname__

    def rebuild(self, e: Emitter) -> str:
        return e.capture(self.value)


class NewClassTracker(ClassTracker, references=("args", "steps")):
    """A class made while tracing: `value` represents it, the entry makes it by `function(*args)`,
    and then makes the calls of `steps` with it."""

    may_hold = True

    def __init__(self, value: type, function: Callable[..., type], args: Args) -> None:
        super().__init__(value)
        self.function = function
        self.args = args
        self.steps: list[tuple[Callable[..., Any], list[Any]]] = []

    def rebuild(self, e: Emitter) -> str:
        """Write a new class. Lines for values of its namespace that refer to it (a cell) are
        deferred until it exists."""
        name, start = e.reserve(self), len(e.lines)
        args = [e.expr(arg) for arg in self.args]
        text = f"{e.capture(self.function)}({', '.join(args)})"
        e.bind_ahead(self, text, start, tuple(f"{arg}[" for arg in args))
        for function, rest in self.steps:
            e.lines.append(e.call(function, [self, *rest], {}))
        return name


class WrittenClass(VariableTracker, references=("names",)):
    """The attributes set on an existing class while tracing: by name a tracker and the real object
    in its place, None for deleted ones."""

    def __init__(self, value: type) -> None:
        self.real = value
        self.cls = type(value)
        self.names: dict[str, tuple[Any, Any] | None] = {}

    def replay(self, e: Emitter) -> None:
        owner = e.capture(self.real, self.cls.__name__)
        for name, written in self.names.items():
            if written is None:
                e.lines.append(f"type.__delattr__({owner}, {name!r})")
            else:
                e.lines.append(f"type.__setattr__({owner}, {name!r}, {e.expr(written[0])})")


class BuiltinTracker(VariableTracker):
    """A function or descriptor written in C, a Python module, or anything else that is known by its
    identity alone."""

    may_hold = False

    def __init__(self, value: Any) -> None:
        self.value = value
        self.real = value
        self.cls = type(value)

    def call(self, t: Space, args: Args, kwargs: Kwargs) -> Result:
        return t.call_builtin(self, args, kwargs)

    def hash_key(self, t: Space, part: KeyOf) -> object:
        if type(self.real) is types.CodeType:
            return self.real  # equal to others of the same text
        return Identity(self.real)

    def in_graph(self, t: Space, part: ArgumentOf) -> Any:
        return self.value

    def describe(self) -> str:
        if issubclass(self.cls, types.ModuleType):  # which may have its own way to be read
            return (
                f"module {vars(types.ModuleType)['__dict__'].__get__(self.value).get('__name__')}"
            )
        return getattr(self.value, "__qualname__", None) or repr(self.value)

    def rebuild(self, e: Emitter) -> str:
        return e.capture(self.value)


class GraphFunction(VariableTracker):
    """A function that an operator gives, and that stays in the graph: `handler` is what a call of
    it does, `begun` what the Machine saved ahead of the operator, which runs natively if the
    function has to become an object."""

    cls = FunctionType

    def __init__(
        self,
        traced: GraphValue,
        handler: Callable[[Any, list[Any], dict[str, Any]], Any],
        begun: object,
    ) -> None:
        self.traced = traced
        self.handler = handler
        self.begun = begun

    def call(self, t: Space, args: Args, kwargs: Kwargs) -> Any:
        return self.handler(t, list(args), kwargs)

    def rebuild(self, e: Emitter) -> str:
        raise StaysInGraph(self.begun, e.refuse(self))


def plain_number(t: Space, value: Any) -> object:
    """Return the number of Python that torch takes a number of NumPy for."""
    number = value.item()
    if type(number) is int and number > sys.maxsize:
        raise t.unsupported("graph-argument", f"{value!r}, which torch takes for no number")
    return number


def is_none(vt: VariableTracker | None) -> bool:
    return getattr(vt, "cls", None) is types.NoneType


def is_nan(value: Any) -> bool:
    """Return True for a number that, in a container, only the same object is equal to."""
    return type(value) in (float, complex) and cmath.isnan(value)


NONE = ConstantTracker(None)
NOT_IMPLEMENTED = ConstantTracker(NotImplemented)


_LITERALS = (int, float, str, bytes, bool, type(None))


def is_self_contained(vt: VariableTracker) -> bool:
    return is_pending(vt) or vt.source is not None or vt.is_known or vt.base is torch.Tensor


def _placed(part: Any) -> str:
    """A part of a text in a template for `str.format`."""
    if isinstance(part, str):
        return part.replace("{", "{{").replace("}", "}}")
    return f"{{:{part[1]}}}" if part[1] else "{}"
