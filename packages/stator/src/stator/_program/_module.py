"""A compiled module is the same module to its owner: it shares the attributes of the original, only
its call differs.

    compiled = compiled_module(model, call)
    compiled.__dict__ is model.__dict__      # one set of parameters, buffers, submodules, hooks
    type(compiled).__mro__[2] is type(model) # so isinstance holds
    compiled(x)                              # call(model, x): compiled code sees the original
    compiled.forward(x)                      # forward()(model, x), without hooks of the module

The class is made once for each class of modules. The object itself adds three slots and no entry in
`__dict__`, so that the state of the module is unchanged.
"""

import copy
import inspect
import operator
import sys
import types
import weakref
from abc import ABCMeta
from types import MemberDescriptorType
from typing import Any

import attrs
import torch
from stator_bytecode import HandlerTable
from stator_bytecode.errors import StatorError
from stator_guards import AttrSource, CallSource, Is
from stator_variables import Space, SymbolicDomain, VariableTracker, get_attribute, source_of, wrap

from stator._program._interoperation import show_callable_to_dynamo
from stator._program._traceback import hide


class CompiledModule:
    """The common part of compiled modules. It precedes the user's class in the bases."""

    __slots__ = ()
    _stator_model: torch.nn.Module
    _stator_call: Any
    _stator_forward: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Do nothing: the user's class, which may register its subclasses, must not get this
        one."""

    @property
    def _orig_mod(self) -> torch.nn.Module:
        """The original, by the name that torch gives it."""
        return self._stator_model

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._stator_call(self._stator_model, *args, **kwargs)
        except StatorError as error:
            hide(error)
            raise

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickled as the module it was made from: compiled code does not travel, loading does not
        need stator."""
        return operator.itemgetter(0), ((self._stator_model,),)

    def __copy__(self) -> Any:
        return compiled_module(
            copy.copy(self._stator_model), self._stator_call, self._stator_forward
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        model = copy.deepcopy(self._stator_model, memo)
        return compiled_module(model, self._stator_call, self._stator_forward)


class _LiveReport:
    """The attribute `report`. No data descriptor: an attribute that the module itself has goes
    first."""

    def __get__(self, module: Any, cls: type | None = None) -> Any:
        return self if module is None else module._stator_call.report


@attrs.frozen
class _CompiledForward:
    """The attribute `forward`. No data descriptor: a module whose instance has its own goes
    first."""

    plain: types.FunctionType

    def __get__(self, module: Any, cls: type | None = None) -> Any:
        if module is None:
            return self.plain
        model, wrapper = module._stator_model, module._stator_forward()
        method = types.MethodType(wrapper, model)
        if "torch._dynamo" in sys.modules:
            show_callable_to_dynamo(method, wrapper, types.MethodType(self.plain, model))
        return method


def compiled_module(model: torch.nn.Module, call: Any, forward: Any) -> Any:
    """An object that shares everything with `model`. Its call is `call(model, ...)`, its `forward`
    is `forward()`, made when it is needed, of `model`."""
    made: Any = object.__new__(_subclass(type(model)))
    object.__setattr__(made, "__dict__", model.__dict__)
    object.__setattr__(made, "_stator_model", model)
    object.__setattr__(made, "_stator_call", call)
    object.__setattr__(made, "_stator_forward", forward)
    return made


def _subclass(base: type) -> type:
    """Found again among the subclasses of `base`, which does not keep it alive."""
    subclasses: list[type] = type.__subclasses__(base)
    for known in subclasses:
        if CompiledModule in known.__bases__:
            return known

    body: dict[str, Any] = {
        "__slots__": ("_stator_call", "_stator_forward", "_stator_model"),
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
        **{name: _shared_slot(member) for name, member in _slots(base).items()},
    }
    if not any("report" in vars(cls) for cls in base.__mro__):
        body["report"] = _LiveReport()
    if isinstance(forward := inspect.getattr_static(base, "forward"), types.FunctionType):
        body["forward"] = _CompiledForward(forward)
    meta = type(base)
    # a metaclass of the user's is to see no new class either
    make = ABCMeta if issubclass(meta, ABCMeta) else type
    return make.__new__(meta, base.__name__, (CompiledModule, base), body)


def _slots(base: type) -> dict[str, MemberDescriptorType]:
    """Return the descriptors of the slots of `base`: the state of its instances outside of
    `__dict__`."""
    found = (item for cls in reversed(base.__mro__) for item in vars(cls).items())
    return {name: value for name, value in found if isinstance(value, MemberDescriptorType)}


def _shared_slot(member: MemberDescriptorType) -> property:
    return property(
        lambda self: member.__get__(self._stator_model, type(self._stator_model)),
        lambda self, value: member.__set__(self._stator_model, value),
        lambda self: member.__delete__(self._stator_model),
    )


# -- in place --------------------------------------------------------------------------------------
handlers: HandlerTable[Any, Any] = HandlerTable("function of stator")


# What a module compiled in place has in `_compiled_call_impl`, where `torch.nn.Module.__call__`
# looks for another way to run. It refers to its module weakly: a module is not kept alive by having
# been compiled.


class InPlace:
    """`call(module, *args, **kwargs)`, for one module."""

    def __init__(self, module: torch.nn.Module, call: Any) -> None:
        self.owner = weakref.ref(module)
        self.call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.call(self.owner(), *args, **kwargs)
        except StatorError as error:
            hide(error)
            raise


def put_in_place(module: torch.nn.Module, call: Any) -> None:
    """Let `module(...)` run `call(module, ...)`."""
    module._compiled_call_impl = InPlace(module, call)


@handlers.handles(InPlace.__call__)
def inlined(t: Space, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Continue tracing inside the module: the weak reference is read while tracing, and the object
    that has it is guarded."""
    in_place: VariableTracker = args[0]
    real: InPlace = in_place.real
    source = source_of(in_place)
    t.guard(source, Is(real))
    module = wrap(t, real.owner(), CallSource(_owner, source))
    call = wrap(t, real.call, AttrSource(source, "call"))
    return SymbolicDomain(t).call(call, [module, *args[1:]], kwargs)


@handlers.handles(_CompiledForward.__get__)
def forward_of_the_model(t: Space, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Traced code goes on in the `forward` of the original."""
    compiled: VariableTracker = args[1]
    model = compiled.real._stator_model
    return get_attribute(
        t, wrap(t, model, AttrSource(source_of(compiled), "_stator_model")), "forward"
    )


def _owner(in_place: InPlace) -> Any:
    return in_place.owner()
