"""Functions that run natively where compiled code calls them, while what they call is compiled:
those that `disable(recursive=False)` was applied to, that call `skip_frame()`, or that do nothing
but bookkeeping around calls of the program's modules, as the `forward` of DistributedDataParallel.

Such a function gets code in which each callable passes through `Callees.compiled` before it is
called (`with_hooked_calls`). Python functions and modules of the program are compiled there, with
the options of the object that the function was called from; all else is called as it is.
"""

import sys
import weakref
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any

import attrs
import torch
from stator_bytecode import COMPREHENSIONS, NativeContinuation, passed_over, with_hooked_calls
from stator_variables import has_native_hooks, is_native_frame

from stator._program._interoperation import ORIGINAL_CALLABLE
from stator._program._target import Root, Target
from stator._program._traceback import OWN_CODES

LIBRARIES = sys.stdlib_module_names | {"torch", "stator", "numpy"}
"""Packages whose functions are not compiled for themselves."""


@attrs.define(eq=False)
class Callees:
    """The callees of one compiled object; `compile` gives the wrapper of a function, or of the call
    of a class of modules."""

    compile: Callable[[Any], Any]
    skipped: set[CodeType] = attrs.field(factory=set)
    """Codes that called `skip_frame`."""
    _made: dict[Any, Any] = attrs.field(factory=dict)
    _codes: Any = attrs.field(factory=weakref.WeakKeyDictionary)

    def with_compiled(self, function: Any) -> Any:
        """Return a function that does what `function`, or what was disabled as it, does."""
        reason = getattr(function, "_torchdynamo_disable_msg", None)
        if _is_disabled_alone(function):
            function = getattr(function, ORIGINAL_CALLABLE)
        if not isinstance(function, FunctionType):
            return function

        code = function.__code__
        if (hooked := self._codes.get(code)) is None:
            hooked = self._codes[code] = with_hooked_calls(code, self.compiled, _inner(code))

        made = FunctionType(
            hooked,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )

        made.__kwdefaults__ = function.__kwdefaults__
        made.__dict__.update(function.__dict__)
        made.__dict__.update(_stator_disable=True, _torchdynamo_disable_msg=reason)
        return made

    def compiled(self, target: Any) -> Any:
        """Return what to call in the place of a callable of the program."""
        if isinstance(target, MethodType):
            compiled = self.compiled(target.__func__)
            same = compiled is target.__func__
            return target if same else MethodType(compiled, target.__self__)
        if _is_disabled_alone(target) or _is_native(target):
            return self.with_compiled(target)
        if isinstance(target, torch.nn.Module):
            return self._module(target)
        if isinstance(target, FunctionType) and _is_of_program(target):
            # a function that another one makes refers to its wrapper, so neither would end
            is_lasting = "<locals>" not in target.__qualname__
            return self._known(target) if is_lasting else self.compile(target)
        return target

    def _module(self, module: torch.nn.Module) -> Any:
        if not is_plainly_called(module):
            return module
        if is_crossed(module):
            return MethodType(self.with_compiled(torch.nn.Module._call_impl), module)
        return MethodType(self.call_of(type(module)), module)

    def call_of(self, cls: type[torch.nn.Module]) -> Any:
        """Return the compiled call of a class of modules."""
        return self._known(cls)

    def _known(self, subject: Any) -> Any:
        if subject not in self._made:
            self._made[subject] = self.compile(subject)
        return self._made[subject]


def _is_disabled_alone(function: Any) -> bool:
    return getattr(function, "_torchdynamo_disable_recursive", True) is False


def _inner(code: CodeType) -> frozenset[str]:
    """Return the names of the functions in a function that are parts of it. Modules with hooks are
    called in one."""
    is_call = code is torch.nn.Module._call_impl.__code__
    return COMPREHENSIONS | {"inner"} if is_call else COMPREHENSIONS


def _is_native(function: Any) -> bool:
    return isinstance(function, FunctionType) and is_native_frame(function)


def is_crossed(module: torch.nn.Module) -> bool:
    """Return True for a module whose call runs natively, while what it calls is compiled."""
    return is_native_frame(type(module).forward) or has_native_hooks(module)


def is_plainly_called(module: torch.nn.Module) -> bool:
    """Return True for a module that `torch.nn.Module.__call__` runs, and nothing compiled."""
    is_plain = type(module).__call__ is torch.nn.Module.__call__
    return is_plain and module._compiled_call_impl is None


def _is_of_program(function: FunctionType) -> bool:
    return str(function.__globals__.get("__name__")).partition(".")[0] not in LIBRARIES


@attrs.frozen(eq=False)
class NativeTarget:
    """A target in which `skip_frame` was called, to run in the place of its entries."""

    target: Target
    callees: Callees

    def plain(self) -> Callable[..., Any]:
        if isinstance(self.target, Root):
            return self._run

        native, places = self.target.plain(), self.target.point.places[0]
        # what an exception handler has on the stack depends on the size of the code
        if isinstance(native, NativeContinuation) and places.handled is None:
            native.functions[0] = self.callees.with_compiled(native.functions[0])
        return native

    def _run(self, *state: Any) -> Any:
        root: Any = self.target
        fn, *state = state if root.fn is None else (root.fn, *state)  # type: ignore[assignment]
        native = attrs.evolve(root, fn=self.callees.with_compiled(fn))
        return native.plain()(*state)


@attrs.frozen(eq=False)
class CrossedCall:
    """The call of a module whose `forward` runs natively; `inner` is what it calls, compiled."""

    callees: Callees
    inner: Any

    @property
    def report(self) -> Any:
        return self.inner.report

    def __call__(self, module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        native = self.callees.with_compiled(torch.nn.Module._call_impl)
        return native(module, *args, **kwargs)


setattr(CrossedCall.__call__, "_stator_disable", True)
OWN_CODES.update(passed_over(NativeTarget._run, CrossedCall.__call__))
