"""What a module compiled in place has in `_compiled_call_impl`, where `torch.nn.Module.__call__` looks for another way
to run. It refers to its module weakly: a module is not kept alive by having been compiled.
"""

import weakref
from typing import Any

import torch
from stator_bytecode import HandlerTable
from stator_guards import AttrSource, CallSource, Is
from stator_variables import SymbolicDomain, Tracing, VariableTracker, source_of, wrap

handlers: HandlerTable[Any, Any] = HandlerTable("function of stator")


class InPlace:
    """`call(module, *args, **kwargs)`, for one module."""

    def __init__(self, module: torch.nn.Module, call: Any) -> None:
        self.owner = weakref.ref(module)
        self.call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(self.owner(), *args, **kwargs)


def put_in_place(module: torch.nn.Module, call: Any) -> None:
    """Let `module(...)` run `call(module, ...)`."""
    module._compiled_call_impl = InPlace(module, call)


@handlers.handles(InPlace.__call__)
def inlined(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Traced code goes on inside: the weak reference is read while tracing, and the object that has it is guarded."""
    in_place: VariableTracker = args[0]
    real: InPlace = in_place.real
    source = source_of(in_place)
    t.guard(source, Is(real))
    module = wrap(t, real.owner(), CallSource(_owner, source))
    call = wrap(t, real.call, AttrSource(source, "call"))
    return SymbolicDomain(t).call(call, [module, *args[1:]], kwargs)


def _owner(in_place: InPlace) -> Any:
    return in_place.owner()
