"""Fingerprints: equal for code, settings and arguments for which a trace gives the same."""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Any

import attrs
import torch
from stator_backends import Backend, spec_of
from stator_bytecode import FrameLayout, Point, is_own_module
from stator_guards import GlobalState
from stator_variables import Policy, is_under_level, taken_modes

from stator._capture._dynamic import marks_of
from stator._settings._options import Options
from stator._settings._stack import Stack
from stator._torch_compat import BUILD

CONSTANTS = (bool, int, float, str, bytes, type(None))


class NotCached(Exception):
    """An object that cannot be written to a file, or whose changes would go undetected; the message
    names it."""


def digest(parts: Iterable[object]) -> str:
    """Return a text that is equal for equal parts, of which only the `repr` counts."""
    return sha256("\n".join(map(repr, parts)).encode()).hexdigest()[:32]


@functools.lru_cache(maxsize=4096)
def of_code(code: CodeType) -> str:
    """Return a fingerprint of code and the code in it, wherever its file is."""
    constants = [
        of_code(item) if isinstance(item, CodeType) else _constant_text(item)
        for item in code.co_consts
    ]
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    lines = code.co_firstlineno, code.co_linetable, code.co_exceptiontable
    return digest([code.co_qualname, code.co_code, constants, *counts, *names, *lines])


def _constant_text(value: object) -> str:
    if type(value) is frozenset:  # whose order differs between processes
        return f"frozenset{sorted(map(_constant_text, value))}"
    if type(value) is tuple:
        return f"tuple{[*map(_constant_text, value)]}"
    return f"{type(value).__name__} {value!r}"


def versions() -> dict[str, str]:
    """Return what was installed, by name: a file of another version is not used."""
    return {
        "Python": f"{sys.implementation.cache_tag} {sys.version}",
        "torch": BUILD,
        "machine": _machine(),
        "stator": _own_files(),
        "plugins": _plugins(),
    }


def _machine() -> str:
    """Return what torch answers about the machine without a guard: a folder may be shared by
    several."""
    facts = torch._C._get_cpu_capability(), torch._C._get_blas_default_backend()
    return f"{platform.system()} {platform.machine()} {facts}"


@functools.cache
def _plugins() -> str:
    """Return the versions of distributions that add to what is captured."""
    groups = "stator_handlers", "stator_operators", "stator_builders"
    points = [point for group in groups for point in entry_points(group=group)]
    return repr(sorted((each.name, each.value, each.dist and each.dist.version) for each in points))


PACKAGES = (
    "stator",
    "stator_backends",
    "stator_bytecode",
    "stator_guards",
    "stator_subgraphs",
    "stator_variables",
)


@functools.cache
def _own_files() -> str:
    """Return a fingerprint of the files of these packages: a version may change without its number,
    where they are developed."""
    found: list[tuple[str, int, int]] = []
    for name in PACKAGES:
        spec = find_spec(name)  # of one that may not be imported yet
        folder = Path(str(getattr(spec, "origin", None))).parent
        for path in sorted(folder.rglob("*.py")):
            facts = path.stat()
            found.append((str(path.relative_to(folder)), facts.st_size, facts.st_mtime_ns))
    return digest(found)


_PLAIN_OPTIONS = frozenset(
    "fullgraph dynamic recompile_limit total_limit fallback repeat_effects capture_data check "
    "keep_text uncompiled regions without".split()
)
_REFUSED_OPTIONS = (
    "break_everywhere oracle compiled_autograd measure guard_filter_fn tiered shapes_spec".split()
)


def of_options(options: Options) -> dict[str, str]:
    """Return the options as text, by name. Raises NotCached for those that no file can name."""
    for name in _REFUSED_OPTIONS:
        if getattr(options, name):
            raise NotCached(f"the option {name!r} is set")
    if options.stack != Stack():
        raise NotCached("layers were replaced")
    found = {f"option {name}": repr(getattr(options, name)) for name in sorted(_PLAIN_OPTIONS)}
    static = sorted(cls.__name__ for cls in options.static_types)
    return {**found, "static types": repr(static), "backend": _of_backend(options.backend)}


def _of_backend(backend: Backend) -> str:
    spec = spec_of(backend)
    function = getattr(backend, "function", backend)
    module = getattr(function, "__module__", "") or ""
    if not is_own_module(module) or not attrs.has(type(backend)):
        raise NotCached(f"the backend {spec.name!r} is none of stator's own")
    mode, options = getattr(backend, "mode", None), getattr(backend, "options", {})
    return f"{spec} mode={mode!r} {_texts(options)}"


def _texts(options: Mapping[str, Any]) -> list[str]:
    if not all(type(value) in CONSTANTS for value in options.values()):
        raise NotCached("an option of the backend is no constant")
    return sorted(f"{name}={value!r}" for name, value in options.items())


def of_state() -> str:
    """Return the state of thread and process that changes what operators do. Raises NotCached under
    modes of the program: an entry for calls without has no guard on them."""
    if is_under_level() or taken_modes():
        raise NotCached("it is under a function mode, or in a forward derivative")
    state = GlobalState()
    for name, value in state.rest.items():
        if type(value) not in CONSTANTS and value:
            raise NotCached(f"{name} are active")
    return f"{state.native.__getstate__()} {sorted(state.rest.items())}"


def of_class(cls: type, name: str) -> Any:
    """Return an attribute that each class has, None where this one has none: without code of its
    metaclass."""
    try:
        return type.__getattribute__(cls, name)
    except AttributeError:  # `del` of it
        return None


_DEPTH = 3
_MANY = 64


def of_point(point: Point) -> str:
    """Return a fingerprint of the place of a continuation. Raises NotCached where objects are
    carried in parts."""
    return digest(map(_layout, point.laid_out))


def _layout(layout: object) -> object:
    if not isinstance(layout, FrameLayout):
        raise NotCached("objects are carried in parts")
    kinds = layout.slots, layout.stack, layout.handled, layout.then
    where = layout.pc, layout.hidden, layout.generator, layout.globals.get("__name__")
    return of_code(layout.raw), kinds, where


def of_policy(policy: Policy) -> str:
    """Return a fingerprint of what the process has learned that changes a trace."""
    native = [(of_code(one.raw), at, of_code(other.raw)) for one, at, other in policy.native_calls]
    skipped = [] if policy.callees is None else map(of_code, policy.callees.skipped)
    flags = policy.unbacked_numbers, policy.separates_steps, policy.hides_floats
    return digest([sorted(native), sorted(skipped), flags])


def of_arguments(state: Sequence[object], *, is_loose: bool = False) -> str:
    """Return the properties of arguments that nearly every entry relies on, for the choice of files
    to read: the guards decide. A loose one has no sizes and numbers."""
    return digest(_argument(value, _DEPTH, is_loose) for value in state)


def _argument(value: Any, depth: int, is_loose: bool) -> object:
    cls = type(value)
    if issubclass(cls, torch.Tensor):
        return _tensor(value, is_loose)
    if cls in (bool, str, bytes, type(None)):
        return cls.__name__, value
    if cls is int and not is_loose:
        return cls.__name__, value
    if depth and cls in (list, tuple):
        return cls.__name__, [_argument(item, depth - 1, is_loose) for item in value[:_MANY]]
    if depth and cls is dict:
        items = [*value.items()][:_MANY]
        return [
            (_argument(key, 0, False), _argument(item, depth - 1, is_loose)) for key, item in items
        ]
    return of_class(cls, "__module__"), of_class(cls, "__qualname__")


def _tensor(value: torch.Tensor, is_loose: bool) -> object:
    """Return the properties of a tensor as its class in C has them: a subclass may compute others,
    or raise, as one without sizes yet."""
    with torch._C.DisableTorchFunction():
        layout, *facts = (prop.__get__(value) for prop in _PROPERTIES)
        shape = _SHAPE.__get__(value) if layout is torch.strided else ()
        sizes = tuple(map(int, shape))
        marks = repr(marks_of(value)) if _is_marked(value) else ""
        name = of_class(type(value), "__qualname__")
        return name, len(sizes) if is_loose else sizes, *map(str, facts), marks


_SHAPE: Any = torch.Tensor.shape
_PROPERTIES: Any = (
    torch.Tensor.layout,
    torch.Tensor.dtype,
    torch.Tensor.device,
    torch.Tensor.requires_grad,
)


def _is_marked(value: torch.Tensor) -> bool:
    """Return True for a tensor with sizes that `mark_dynamic` and the like have marked."""
    return "_has_dynamo_dim_marking" in object.__getattribute__(value, "__dict__")
