"""`stator.compile`: functions, bound methods and modules, as a call and as a decorator."""

from __future__ import annotations

import functools
import inspect
import types
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch

from stator._control import REGIONS
from stator._module import compiled_module
from stator._options import Options, Stack, make_options
from stator._region import Region
from stator._report import Report
from stator._target import Root
from stator._wrapper import make_wrapper
from stator.errors import InvalidUse


def compile(
    model: Any = None,
    *,
    backend: str | Callable[..., Any] = "inductor",
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    stack: Stack | None = None,
) -> Any:
    """Compile a function, a bound method or a module; without one, a decorator.

    The parameters mean what they mean to `torch.compile`. `options` may hold `recompile_limit`, `fallback`, `oracle` and
    `break_everywhere` of ours; the rest is the backend's. `stack` replaces layers.
    Raises InvalidUse, UnknownBackend; Unsupported on a call under `fullgraph`; BackendFailed when the backend raises.
    """
    if model is None:
        return functools.partial(
            compile,
            backend=backend,
            fullgraph=fullgraph,
            dynamic=dynamic,
            mode=mode,
            options=options,
            disable=disable,
            recompile_limit=recompile_limit,
            stack=stack,
        )
    if disable:
        return model
    if not callable(model):
        raise InvalidUse(f"cannot compile {model!r}: it is not callable", "pass a function or a torch.nn.Module")
    made = make_options(backend, fullgraph, dynamic, mode, options, stack, recompile_limit)
    return _compiled(model, made)


def _compiled(model: Any, options: Options) -> Any:
    if isinstance(model, torch.nn.Module):
        return compiled_module(model, compile_function(_call_impl_of(model), options))
    if isinstance(model, types.MethodType) and isinstance(model.__func__, types.FunctionType):
        return types.MethodType(compile_function(model.__func__, options), model.__self__)
    if isinstance(model, types.FunctionType):
        return compile_function(model, options)
    if isinstance(model, functools.partial):
        return functools.partial(_compiled(model.func, options), *model.args, **model.keywords)
    call = getattr(type(model), "__call__", None)
    if isinstance(call, types.FunctionType) and not isinstance(model, type):
        return functools.partial(compile_function(call, options), model)
    return _caller(model, options)


def _call_impl_of(model: torch.nn.Module) -> types.FunctionType:
    return type(model)._call_impl


def _caller(model: Any, options: Options) -> Any:
    """A callable written in C, or a class: compile a function that calls it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return model(*args, **kwargs)

    return compile_function(call, options)


def compile_function(fn: types.FunctionType, options: Options) -> Any:
    """The compiled form of a Python function. Generator and coroutine functions run plainly, said once."""
    fn = getattr(fn, "__stator_original__", fn)
    if inspect.isgeneratorfunction(fn) or inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn):
        kind = "generator" if inspect.isgeneratorfunction(fn) else "coroutine"
        warnings.warn(f"{fn.__qualname__} is a {kind} function: it runs without being compiled", stacklevel=4)
        return fn
    region = Region.of(Root.of(fn), options)
    REGIONS.add(region)
    return with_report(make_wrapper(fn, region), region)


def with_report(wrapper: Any, region: Region) -> Any:
    wrapper.report = LiveReport(region)
    return wrapper


class LiveReport:
    """The report of a region at the moment an attribute of it is read."""

    def __init__(self, region: Region) -> None:
        self._region = region

    def __getattr__(self, name: str) -> Any:
        return getattr(Report.of(self._region), name)

    def __str__(self) -> str:
        return str(Report.of(self._region))

    __repr__ = __str__
