"""`stator.compile` and `stator.compile_in_place`: the subject first, everything else as
keywords."""

from collections.abc import Callable, Mapping
from typing import Any, Concatenate, Literal, TypedDict, Unpack, overload

import torch

from stator._control import follow_resets_of_torch, is_disabled
from stator._program._traceback import hide
from stator._settings._options import Options, Stack, make_options
from stator._signature import C, CompiledCallable, Decorator, M, P, S
from stator._subject import compiled, in_place, refuse
from stator.errors import BackendFailed, InvalidUse, UnknownBackend

Mode = Literal["default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune"]
"""The modes of `torch.compile`; see `list_modes`."""


class Settings(TypedDict, total=False):
    """The keywords of `compile`."""

    backend: str | Callable[..., Any] | None
    fullgraph: bool
    dynamic: bool | None
    mode: Mode | None
    options: Mapping[str, Any] | None
    name: str | None
    disable: bool
    recompile_limit: int | None
    isolate_recompiles: bool
    shapes_spec: object
    stack: Stack | None


@overload
def compile(  # type: ignore[overload-overlap]
    model: M, **settings: Unpack[Settings]
) -> M: ...


@overload
def compile(  # type: ignore[overload-overlap]
    model: C, **settings: Unpack[Settings]
) -> C: ...


@overload
def compile(
    model: Callable[Concatenate[M, P], S], **settings: Unpack[Settings]
) -> Callable[Concatenate[M, P], S]: ...


@overload
def compile(model: Callable[P, S], **settings: Unpack[Settings]) -> CompiledCallable[P, S]: ...


@overload
def compile(model: None = None, **settings: Unpack[Settings]) -> Decorator: ...


@overload
def compile(model: object, **settings: Unpack[Settings]) -> Any: ...


def compile(
    model: object = None,
    *,
    backend: str | Callable[..., Any] | None = None,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: Mode | None = None,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: object = None,
    stack: Stack | None = None,
) -> Any:
    """Compile a function, a method, a module or another callable; without one, a decorator.

    The parameters mean what they mean to `torch.compile`. `backend=None` is the default one, see
    `set_default_backend`; `name` is the name in reports; `shapes_spec` names sizes and numbers that
    are symbols. `options` may hold `recompile_limit`, `fallback`, `oracle` and `break_everywhere`
    of ours; the rest is the backend's. `stack` replaces layers.

    Compilations of one function, and of modules of one class, share what they compile where their
    settings are equal; `isolate_recompiles=True` prevents that. A class is changed in place: calls
    of its instances are compiled. Generator and coroutine functions run plainly, and so do disabled
    ones; with `TORCH_COMPILE_DISABLE=1` in the environment every function does.

    Raises InvalidUse, UnknownBackend, InvalidOption; Unsupported on a call under `fullgraph`;
    BackendFailed when the backend raises.
    """
    try:
        made = make_options(
            backend,
            fullgraph,
            dynamic,
            mode,
            options,
            stack,
            recompile_limit=recompile_limit,
            isolate_recompiles=isolate_recompiles,
            shapes_spec=shapes_spec,
            name=name,
            disable=disable,
        )
        return _decorator(made) if model is None else _compiled(model, made)
    except BaseException as error:
        hide(error)
        raise


def _decorator(options: Options) -> Callable[[object], object]:
    def decorate(subject: object) -> object:
        try:
            return _compiled(subject, options)
        except BaseException as error:
            hide(error)
            raise

    return decorate


def _compiled(subject: object, options: Options) -> object:
    follow_resets_of_torch()
    refuse(subject)
    if options.disabled or is_disabled(subject):
        return subject
    return compiled(subject, options)


def is_supported(backend: str | Callable[..., Any] | None = None) -> bool:
    """Return True if functions can be compiled for a backend here: a small one is tried."""
    try:
        compile(lambda x: x + 1, backend=backend, isolate_recompiles=True)(torch.ones(2))
    except (UnknownBackend, BackendFailed):
        return False
    return True


def compile_in_place(module: M, **settings: Unpack[Settings]) -> M:
    """Compile a module without making another object, as `torch.nn.Module.compile` does:
    `module(...)` runs compiled.

    Gives the module back. Copies of it, pickled or not, run plainly. Compiled code that calls it
    goes on inside it. The keywords are those of `compile`. Compiling in place again replaces what
    was compiled before.
    """
    try:
        if not isinstance(module, torch.nn.Module):
            problem = f"cannot compile {module!r} in place: it is no torch.nn.Module"
            raise InvalidUse(problem, "use stator.compile")
        follow_resets_of_torch()
        refuse(module)
        made = make_options(**settings)
        if not made.disabled:
            in_place(module, made)
    except BaseException as error:
        hide(error)
        raise
    return module
