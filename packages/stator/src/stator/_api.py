"""`stator.compile` and `stator.compile_in_place`: the subject first, everything else as
keywords."""

from collections.abc import Callable, Mapping
from typing import Any, Concatenate, Literal, TypedDict, Unpack, overload

import torch

from stator._control import follow_resets_of_torch, is_disabled
from stator._program._traceback import hidden_frames
from stator._settings._options import Options, make_options
from stator._settings._stack import Stack
from stator._signature import C, CompiledCallable, Decorator, M, P, S, Unannotated
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
def compile(model: Unannotated[P, S], **settings: Unpack[Settings]) -> CompiledCallable[P, S]: ...


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

    `backend=None` is the default one (`set_default_backend`), `name` the name in reports, `stack`
    replaces layers. The other parameters mean what they mean to `torch.compile`.

    Objects of one function, and modules of one class, share what is compiled under equal settings,
    unless `isolate_recompiles`. A class is changed in place. Generators and coroutines run plainly.

    Raises InvalidUse, UnknownBackend, InvalidOption; calls raise Unsupported, BackendFailed.
    """
    with hidden_frames():
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


def _decorator(options: Options) -> Callable[[object], object]:
    def decorate(subject: object) -> object:
        with hidden_frames():
            return _compiled(subject, options)

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
    with hidden_frames():
        if not isinstance(module, torch.nn.Module):
            problem = f"cannot compile {module!r} in place: it is no torch.nn.Module"
            raise InvalidUse(problem, "use stator.compile")
        follow_resets_of_torch()
        refuse(module)
        made = make_options(**settings)
        if not made.disabled:
            in_place(module, made)
    return module
