"""The kinds of trackers: what each sort of value stores while it is traced. Those of containers are written in
`_container_kinds`, and found here with the others."""

import cmath
import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

import attrs
import torch
import torch.utils.hooks
from stator_bytecode import GeneratorState, Unsupported
from stator_guards import Source

from stator_variables._container_kinds import (
    VIEW_CLASSES,
    DictTracker,
    HashedTracker,
    ListTracker,
    ProxyTracker,
    SequenceTracker,
    SetTracker,
    TupleTracker,
    ViewTracker,
)
from stator_variables._trace._graph import GraphValue
from stator_variables._tracker import MISSING, VariableTracker

__all__ = [
    "VIEW_CLASSES",
    "DictTracker",
    "HashedTracker",
    "ListTracker",
    "ProxyTracker",
    "SequenceTracker",
    "SetTracker",
    "TupleTracker",
    "ViewTracker",
]


class ConstantTracker(VariableTracker):
    """An immutable value known while tracing: numbers, strings, None, dtypes, devices, ranges, enum members…"""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.cls = type(value)

    def describe(self) -> str:
        return repr(self.value)

    def constant(self) -> Any:
        return self.value


class TensorTracker(VariableTracker):
    """A tensor: the node that computes it and the fake tensor that it evaluates to. `grad` and `data`: what was set as
    such, a tracker and a GraphValue. `history`: the `grad_fn` that the fake of an existing one began with.
    `is_new`: a leaf that the region makes; `connected`: its data, these with its history, and the number of
    writes to them by then."""

    history: Any = None
    is_late = False  # read after the graph: see `_streams`
    grad: Any = MISSING
    data: Any = MISSING
    hooked: Any = None  # what the Machine saved ahead of a hook: a compiled graph may not use it from there on
    node: Any = None  # a tracker of its autograd node, where the program may look at that
    is_new: bool = False
    connected: tuple[GraphValue, GraphValue, int] | None = None

    def __init__(self, traced: GraphValue, cls: type) -> None:
        self.before = traced
        self.cls = cls

    @property
    def traced(self) -> GraphValue:
        if (
            self.hooked is not None
            and self.before.example.requires_grad
            and torch.is_grad_enabled()
        ):
            raise UsedBehindHook(self.hooked)
        if (
            self.data is not MISSING
            and self.before.example.requires_grad
            and torch.is_grad_enabled()
        ):
            raise Unsupported(
                "tensor-attribute-write", "a tensor with gradients whose data was replaced before"
            )
        return self.shown

    @property
    def shown(self) -> GraphValue:
        """What it looks like. Of replaced data no node has the history, too, so that autograd must not see this."""
        return self.before if self.data is MISSING else self.data

    @property
    def example(self) -> Any:
        return self.shown.example


class UsedBehindHook(Unsupported):
    """A tensor with hooks is used in a compiled graph: then it breaks where the tensor got them, at `begun`."""

    def __init__(self, begun: Any) -> None:
        detail = "a hook on a tensor that a compiled graph goes on with"
        super().__init__("tensor-hook", detail, 'backend="eager" has a place for its gradient')
        self.begun = begun


class SubclassTracker(VariableTracker):
    """A tensor of a subclass that Python code has a say in: a plain tensor over its memory, and the class."""

    def __init__(self, tensor: TensorTracker, cls: type) -> None:
        self.tensor = tensor
        self.cls = cls


class ArrayTracker(VariableTracker):
    """A NumPy array, by a tensor over its memory; or a number of NumPy that the graph computes (`cls` its class).

    `flipped` are the dimensions that the array goes through backwards, which tensors cannot. `owns_memory`: NumPy made
    it, and not as a view; `needs_own_memory`: it has to be such an array when it becomes an object.
    """

    owns_memory = False
    needs_own_memory = False

    def __init__(self, tensor: TensorTracker, cls: type, flipped: tuple[int, ...] = ()) -> None:
        self.tensor = tensor
        self.cls = cls
        self.flipped = flipped


class NumberTracker(VariableTracker):
    """A symbolic int, float or bool: a node with a SymInt, SymFloat or SymBool."""

    is_late = False  # read after the graph: see `_streams`
    is_address: bool = False  # of memory: it must not become a constant

    def __init__(self, traced: GraphValue, cls: type) -> None:
        self.traced = traced
        self.cls = cls
        self.steps = 0  # how many operations gave it, since its expression was measured

    @property
    def example(self) -> Any:
        return self.traced.example


class TextTracker(ConstantTracker):
    """A string made of symbolic numbers, which nobody has looked at yet: `parts` are strings, and numbers with the
    specification they are formatted by. Reading `value` makes constants of the numbers, by `constant_of`."""

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
        return "".join(
            p if isinstance(p, str) else f"{{{p[0].example}:{p[1]}}}" for p in self.parts
        )

    def constant(self) -> str:
        return self.value


class ScalarTracker(ConstantTracker):
    """A number of NumPy, `real`, that the entry reads or computes.

    Reading `value` makes it a constant: `fix` installs the guard.
    """

    source: Source

    def __init__(self, real: Any, fix: Callable[[], None]) -> None:
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


class SliceTracker(VariableTracker):
    """A slice with parts that need not be constants."""

    cls = slice

    def __init__(self, parts: tuple[Any, Any, Any]) -> None:
        self.parts = parts

    def constant(self) -> Any:
        values = [part.constant() for part in self.parts]
        return MISSING if any(v is MISSING for v in values) else slice(*values)


class CellTracker(VariableTracker):
    """One cell; `content` is NULL while it is empty."""

    cls = types.CellType

    def __init__(self, content: Any) -> None:
        self.content = content


@attrs.define(eq=False, repr=False, slots=False)
class FunctionTracker(VariableTracker):
    """A Python function, existing or made while tracing. `closure` has cell trackers; `defaults` is None or a list."""

    cls = types.FunctionType

    code: types.CodeType
    globals: Any
    name: str
    qualname: str
    defaults: list[Any] | None = None
    kwdefaults: dict[str, Any] | None = None
    closure: tuple[Any, ...] = ()
    annotations: Any = None
    fields: dict[str, Any] = attrs.field(factory=dict)  # WRITTEN_FIELDS that were set

    def describe(self) -> str:
        return self.qualname


WRITTEN_FIELDS = (
    frozenset(
        {"__name__", "__qualname__", "__doc__", "__module__", "__annotations__", "__type_params__"}
    )
    & vars(types.FunctionType).keys()
)
"""Attributes of a new function that may be set while tracing (`functools.wraps` does)."""


class MethodTracker(VariableTracker):
    """A bound method: of a Python function, or of a C function (then `cls` is that of the C method object)."""

    def __init__(self, function: Any, receiver: Any, cls: type = types.MethodType) -> None:
        self.function = function
        self.receiver = receiver
        self.cls = cls


class ObjectTracker(VariableTracker):
    """An object of any other class, existing or new; its state is `namespace`, and `members` for `__slots__`."""

    def __init__(self, cls: type, real: Any = MISSING) -> None:
        self.cls = cls
        self.real = real
        self.members: dict[Any, Any] = {}


class HandleTracker(ObjectTracker):
    """The handle of a hook, made after the graph by a call of `Space.hooks`. Its `id` is an `IdTracker`: a number
    that no other handle has. `is_of_tensor`: the dictionary that it is for is not known."""

    def __init__(self, is_of_tensor: bool) -> None:
        super().__init__(torch.utils.hooks.RemovableHandle)
        self.is_of_tensor = is_of_tensor


class ExceptionTracker(ObjectTracker):
    """An exception: args and the chaining attributes; the rest is an object like any other."""

    def __init__(self, cls: type, args: list[Any], real: Any = MISSING) -> None:
        super().__init__(cls, real)
        self.args = args
        self.made_of: list[Any] | None = (
            args  # what C's `__init__`, or `__new__`, was given; None: it has yet to be
        )
        self.args_tuple: Any = None  # the tuple that stands for `args`, once somebody asked
        self.cause: Any = None
        self.context: Any = None
        self.suppress_context = False
        self.relied: list[Any] = []  # keys of guards that its text alone needs
        self.entries: tuple[Any, ...] = ()  # of its traceback, outermost first


GROUPED = vars(BaseExceptionGroup)["exceptions"]
"""The member that holds what a group of exceptions was made of: its second argument may change later."""


class ClassTracker(VariableTracker):
    """An existing class. Its dictionary is read through `_lookup`, with guards."""

    def __init__(self, value: type) -> None:
        self.value = value
        self.real = value
        self.cls = type(value)

    def describe(self) -> str:
        return self.value.__qualname__


class MadeClass(ClassTracker):
    """A class made while tracing: `value` stands for it, the entry makes it by `function(*args)`, and then makes the
    calls of `steps` with it."""

    def __init__(self, value: type, function: Callable[..., type], args: list[Any]) -> None:
        super().__init__(value)
        self.function = function
        self.args = args
        self.steps: list[tuple[Callable[..., Any], list[Any]]] = []


class WrittenClass(VariableTracker):
    """What was set on an existing class while tracing: by name a tracker and the real object that stands for it, None
    for what was deleted."""

    def __init__(self, value: type) -> None:
        self.real = value
        self.cls = type(value)
        self.names: dict[str, tuple[Any, Any] | None] = {}


class BuiltinTracker(VariableTracker):
    """A function or descriptor written in C, a Python module, or anything else that is known by its identity alone."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.real = value
        self.cls = type(value)

    def describe(self) -> str:
        if issubclass(self.cls, types.ModuleType):  # which may have its own way to be read
            return (
                f"module {vars(types.ModuleType)['__dict__'].__get__(self.value).get('__name__')}"
            )
        return getattr(self.value, "__qualname__", None) or repr(self.value)


class SuperTracker(VariableTracker):
    """`super(cls, receiver)`."""

    cls = super

    def __init__(self, start: Any, receiver: Any) -> None:
        self.start = start
        self.receiver = receiver


class GeneratorTracker(VariableTracker):
    """A generator whose frame the Machine holds."""

    cls = types.GeneratorType

    def __init__(self, state: GeneratorState) -> None:
        self.state = state


class IteratorTracker(VariableTracker):
    """A builtin iterator, named by `kind`; `parts` are its operands, `position` how far it is.

    Kinds: "sequence" (list, tuple), "deque", "getitem" (by items alone), each also backwards ("reversed", "deque
    reversed", "reversed getitem": `parts[1]` the length then); "keys"/"values"/"items", "set", "constant" (of str,
    range…: `parts[0]` its values), "existing" (from outside), "zip", "map", "filter", "enumerate", "callable"; of
    itertools "application" and "pooled": `parts[0]` steps for them.
    """

    def __init__(self, cls: type, kind: str, parts: list[Any], position: int = 0) -> None:
        self.cls = cls
        self.kind = kind
        self.parts = parts
        self.position = position
        self.start = position  # where an existing one stood
        self.since: Any = None  # the mark of the graph then
        self.exhausted = False

    @property
    def index(self) -> int:
        """The place of the next item in what is gone through by places, backwards as well."""
        return int(self.parts[1]) - 1 - self.position if "reversed" in self.kind else self.position


class IdTracker(VariableTracker):
    """`id(thing)`: known to be the same for the same thing, and not otherwise known while tracing."""

    cls = int

    def __init__(self, thing: Any) -> None:
        self.thing = thing


class HandleKeyTracker(VariableTracker):
    """A key of an existing dictionary of hooks: the `id` of a handle, another number in each process and for each hook
    that is registered again. It is known as the key that it is, not as the number."""

    cls = int

    def __init__(self, number: int, source: Source) -> None:
        self.number = number
        self.source = source


class PartialTracker(VariableTracker):
    """functools.partial."""

    def __init__(self, cls: type, function: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.cls = cls
        self.function = function
        self.args = args
        self.args_tuple: Any = None  # the tuple that stands for them, once somebody asked
        self.kwargs = kwargs


class StorageTracker(VariableTracker):
    """The untyped storage of a tensor; `known` is an input over it, where its size or address is read."""

    cls = torch.UntypedStorage

    def __init__(self, tensor: TensorTracker, known: TensorTracker | None = None) -> None:
        self.tensor = tensor
        self.known = known


class AddressTracker(IdTracker):
    """`storage._cdata`, a number like `id(storage)`."""


class WeakrefTracker(VariableTracker):
    """weakref.ref: `target` is what it refers to; `callback` is what a new one is to call when that dies."""

    cls = weakref.ref

    def __init__(self, target: Any, callback: Any = None) -> None:
        self.target = target
        self.callback = callback


class GraphFunction(VariableTracker):
    """A function that an operator gives, and that stays in the graph: `handler` is what a call of it does, `begun` what
    the Machine saved ahead of the operator, which runs natively if the function has to become an object."""

    cls = types.FunctionType

    def __init__(
        self,
        traced: GraphValue,
        handler: Callable[[Any, list[Any], dict[str, Any]], Any],
        begun: Any,
    ) -> None:
        self.traced = traced
        self.handler = handler
        self.begun = begun


KEY_WRAPPER: Any = type(functools.cmp_to_key(lambda a, b: 0))
"""The class of what `functools.cmp_to_key` gives, and of what that gives."""


class RecipeTracker(VariableTracker):
    """An immutable object of a C class that says all by the arguments it was made with: `operator.itemgetter("x")`."""

    def __init__(self, cls: type, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.cls = cls
        self.args = args
        self.kwargs = kwargs

    def make(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if self.cls is KEY_WRAPPER:
            made: Any = functools.cmp_to_key
            for arg in args:
                made = made(arg)
            return made
        return self.cls(*args, **kwargs)


def is_none(vt: Any) -> bool:
    return isinstance(vt, ConstantTracker) and vt.cls is types.NoneType


def is_nan(value: Any) -> bool:
    """Whether this is a number that only the same object is equal to, in a container."""
    return type(value) in (float, complex) and cmath.isnan(value)


def generator_state(vt: Any) -> GeneratorState | None:
    """The state of a generator that was made while tracing, and is known by its frame alone; asking makes nobody look
    at an unread value."""
    return vt.state if type(vt) is GeneratorTracker and names_of(vt.state) is None else None


def names_of(state: GeneratorState) -> tuple[str, str] | None:
    """`__name__` and `__qualname__` of a generator, when its function was given others than its code has."""
    real, code = getattr(state.frame.function, "real", MISSING), state.frame.code.raw
    if real is MISSING or (real.__name__, real.__qualname__) == (code.co_name, code.co_qualname):
        return None
    return real.__name__, real.__qualname__


NONE = ConstantTracker(None)
NOT_IMPLEMENTED = ConstantTracker(NotImplemented)
