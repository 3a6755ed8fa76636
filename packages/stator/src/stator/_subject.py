"""The subjects of a compilation: functions, methods, modules, classes, partials and other
callables."""

import functools
import inspect
import types
import warnings
from collections.abc import Callable
from typing import Any

import attrs
import torch
from stator_variables import has_native_hooks, is_native_frame
from torch._ops import OperatorBase, OpOverloadPacket

from stator._control import call_name, is_disabled, python_call
from stator._oracle_mode._oracle import Oracle
from stator._program._callees import Callees, CrossedCall, is_crossed, is_plainly_called
from stator._program._interoperation import show_callable_to_dynamo
from stator._program._module import CompiledModule, InPlace, compiled_module, put_in_place
from stator._program._target import Root
from stator._regions._backward_runner import BackwardRunner
from stator._regions._compilations import COMPILATIONS, TieredRunner
from stator._regions._region import Region
from stator._regions._region_runner import RegionRunner
from stator._regions._wrapper import make_wrapper, original_of, region_of
from stator._report import LiveReport, Report
from stator._settings._deferred_warning import depth_of_the_user, show_deferred_warnings
from stator._settings._options import Options
from stator._settings._stance import add_region
from stator.errors import InvalidUse


def compiled(subject: Any, options: Options) -> Any:
    """The compiled form of `subject`, of the same kind."""
    refuse(subject)
    for kind, make in _KINDS:
        if isinstance(subject, kind):
            return make(subject, options)
    if (call := python_call(type(subject))) is not None:
        return _bound(compiled_function(call, options), subject, subject)
    return compiled_function(_caller(subject), options)


def refuse(subject: Any) -> None:
    """Raise InvalidUse for what is no callable, or compiled by someone else."""
    if not callable(subject) and not isinstance(subject, staticmethod | classmethod):
        raise InvalidUse(
            f"cannot compile {subject!r}: it is not callable",
            "pass a function or a torch.nn.Module",
        )
    if isinstance(subject, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        raise InvalidUse(
            "cannot compile what torch.jit compiled", "pass the module or function it was made from"
        )
    if _is_of_torch_compile(subject):
        raise InvalidUse(
            "this is compiled by torch.compile", "pass the module or function it was made from"
        )


def _is_of_torch_compile(subject: Any) -> bool:
    if isinstance(subject, torch.nn.Module):
        return str(type(subject).__module__).startswith("torch._dynamo")
    if not isinstance(subject, types.FunctionType):
        return False
    made_in = str(subject.__globals__.get("__name__"))
    return made_in == "torch._dynamo.eval_frame" and not is_disabled(subject)


def compiled_function(
    fn: types.FunctionType, options: Options, name: str = "", owner: type | None = None
) -> Any:
    """Make the wrapper of a Python function; `name` replaces the function's own in reports.

    Objects of one `owner`, the class of a module, share entries.

    Generator and coroutine functions run without being compiled; one warning reports it.
    """
    fn = original_of(fn) or fn
    if is_disabled(fn):
        return fn
    if kind := _suspends(fn):
        text = f"{fn.__qualname__} is a {kind} function: it runs without being compiled"
        warnings.warn(text, stacklevel=depth_of_the_user())
        return fn

    region = Region.of(Root.of(fn, options.name or name), options, owner)
    region.callees = _callees(options)
    add_region(region)
    runner: Any = RegionRunner.of(region)
    if options.oracle:
        runner = Oracle(runner, fn)
    if options.tiered:
        runner = TieredRunner(runner)
    if options.compiled_autograd:
        runner = BackwardRunner(runner, options)

    wrapper = make_wrapper(fn, runner, region.pool.root, region)
    wrapper.report = LiveReport(region)  # type: ignore[attr-defined]
    return wrapper


def _callees(options: Options) -> Callees:
    return Callees(functools.partial(_callee, attrs.evolve(options, name="")))


def _callee(options: Options, subject: Any) -> Any:
    """Compile a function that a native one calls, or the call of a class of modules."""
    if isinstance(subject, type):
        return _compiled_call(subject, options)
    return compiled_function(subject, options)


def _suspends(fn: types.FunctionType) -> str:
    if inspect.isgeneratorfunction(fn):
        return "generator"
    return "coroutine" if inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn) else ""


def _module(module: torch.nn.Module, options: Options) -> Any:
    if isinstance(module, CompiledModule):
        module = module._stator_model
    cls: Any = type(module)
    call = _call_of(module, options)
    if is_native_frame(cls.forward):
        return compiled_module(module, call, lambda: call.callees.with_compiled(cls.forward))
    forward = functools.cache(lambda: compiled_function(cls.forward, options))
    return compiled_module(module, call, forward)


def _call_of(module: torch.nn.Module, options: Options) -> Any:
    """Make the compiled call of a module: that of its class, or of what its own call runs."""
    cls: Any = type(module)
    callees = _callees(options)
    if is_native_frame(cls.forward):
        wrapped: Any = module.module
        is_whole = is_plainly_called(wrapped) and not is_crossed(wrapped)
        return CrossedCall(callees, callees.call_of(type(wrapped)) if is_whole else wrapped)
    if has_native_hooks(module) and (forward := callees.compiled(cls.forward)) is not cls.forward:
        return CrossedCall(callees, forward)
    return _compiled_call(cls, options)


def in_place(module: torch.nn.Module, options: Options) -> None:
    """Compile a module without making another one."""
    if type(module).__call__ is not torch.nn.Module.__call__:
        problem = (
            f"{type(module).__qualname__} has a __call__ of its own, "
            "which would not run the compiled code"
        )
        raise InvalidUse(
            f"cannot compile in place: {problem}", "use stator.compile, and call what it gives"
        )
    put_in_place(module, _call_of(module, options))


def _compiled_call(cls: type, options: Options) -> Any:
    """Make the wrapper of a class's call. `Module._call_impl` is reported as the `forward` it
    runs."""
    attribute = call_name(cls) or "_call_impl"
    called = "forward" if attribute == "_call_impl" else attribute
    name = f"{cls.__qualname__}.{called}"
    return compiled_function(getattr(cls, attribute), options, name, cls)


def _class(cls: type, options: Options) -> type:
    """The class itself: from now on calls of its instances are compiled, subclasses included."""
    if (name := call_name(cls)) is None:
        problem = f"cannot compile {cls.__qualname__}: its instances cannot be called"
        raise InvalidUse(problem, "compile one of its methods, or a function that uses it")
    setattr(cls, name, _compiled_call(cls, options))
    return cls


def _method(method: types.MethodType, options: Options) -> Any:
    return _bound(compiled(method.__func__, options), method.__self__, method)


def _bound(function: Any, owner: Any, original: Any) -> types.MethodType:
    """Bind a compiled function that nothing else uses."""
    made = types.MethodType(function, owner)
    if original_of(function) is not None:
        show_callable_to_dynamo(made, function, original)
    return made


def _partial(partial: functools.partial[Any], options: Options) -> Any:
    made = functools.partial(compiled(partial.func, options), *partial.args, **partial.keywords)
    made.__dict__.update(partial.__dict__)
    made.report = getattr(made.func, "report", None)  # type: ignore[attr-defined]
    return made


def _caller(function: Any) -> Any:
    """Return a function that calls one in C, or an operator: that is what can be traced."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


_KINDS: tuple[tuple[type, Callable[[Any, Options], Any]], ...] = (
    (torch.nn.Module, _module),
    (OperatorBase, lambda subject, options: compiled_function(_caller(subject), options)),
    (OpOverloadPacket, lambda subject, options: compiled_function(_caller(subject), options)),
    (types.FunctionType, compiled_function),
    (types.MethodType, _method),
    (staticmethod, lambda subject, options: staticmethod(compiled(subject.__func__, options))),
    (classmethod, lambda subject, options: classmethod(compiled(subject.__func__, options))),
    (functools.partial, _partial),
    (type, _class),
)


def wrapper_in(subject: Any) -> types.FunctionType:
    """Return the wrapper in anything that `compiled` or `in_place` gave.

    Raises InvalidUse for anything else.
    """
    seen = subject
    while seen is not None:
        if region_of(seen) is not None:
            return seen  # type: ignore[no-any-return]
        seen = _next_inside(seen)
    raise InvalidUse(
        f"{subject!r} was not compiled by stator", "pass what stator.compile gave back"
    )


def region_in(subject: Any) -> Region:
    """Return the region of anything that `compiled` or `in_place` gave."""
    region: Any = region_of(wrapper_in(subject))
    return region  # type: ignore[no-any-return]


def report_of(compiled: object) -> Report:
    """Return the report of a compiled function, method or module, or of a module compiled in
    place.

    Raises InvalidUse for what was not compiled by stator.
    """
    wrapper: Any = wrapper_in(compiled)
    region: Any = None if wrapper is None else region_of(wrapper)
    if region is None:
        raise InvalidUse(f"{compiled!r} was not compiled by stator", "pass what compile returned")
    return Report.of(region)


def wait(compiled: object = None, timeout: float | None = None) -> bool:
    """Wait until the graphs that `compiled` has met are compiled, under the option `tiered`; of all
    compiled objects, without one.

    `timeout` is in seconds. Returns False if it was over before. Compilations that failed are
    done, too: a warning shows the reason.
    """
    owner = None if compiled is None else region_in(compiled)
    done = COMPILATIONS.wait(owner, timeout)
    COMPILATIONS.show_warnings()
    show_deferred_warnings()
    return done


def _next_inside(subject: Any) -> Any:
    """Return the object that `subject` runs: one step towards the wrapper."""
    if isinstance(subject, CompiledModule):
        return subject._stator_call
    if isinstance(subject, torch.nn.Module):
        return subject._compiled_call_impl or type(subject)._call_impl
    if isinstance(subject, InPlace):
        return subject.call
    if isinstance(subject, CrossedCall):
        return subject.inner
    if isinstance(subject, functools.partial):
        return subject.func
    if isinstance(subject, (types.MethodType, staticmethod, classmethod)):
        return subject.__func__
    return None
