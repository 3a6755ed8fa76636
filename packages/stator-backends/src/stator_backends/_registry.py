"""Names for backends: registered by hand, or announced by an installed distribution as an entry
point.

Two entry point groups are read: ours, and the one that backends made for `torch.compile` already
use, so those work unchanged. An entry point is imported when its name is first looked up, not
before.
"""

import difflib
import pkgutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import torch

from ._backend import Backend, BackendSpec, FunctionBackend
from ._cudagraphs import cudagraphs
from ._eager import aot_eager, aot_eager_decomp_partition, eager
from ._inductor import inductor
from ._script import run_file
from .errors import BackendError, BackendNotFound

ENTRY_POINT_GROUPS = ("stator_backends", "torch_dynamo_backends")


def installed_entry_points() -> list[EntryPoint]:
    """Return the entry points of all installed distributions; the group that wins a clash of names
    comes first."""
    found = entry_points()
    return [point for group in ENTRY_POINT_GROUPS for point in found.select(group=group)]


@attrs.define(eq=False)
class BackendRegistry:
    """Names to backends. What is registered by hand hides an entry point of the same name."""

    _backends: dict[str, Backend] = attrs.Factory(dict)
    _discover: Callable[[], Iterable[EntryPoint]] = installed_entry_points

    def register(
        self, backend: Backend, name: str | None = None, spec: BackendSpec | None = None
    ) -> Backend:
        """Register a backend under a name, with the capabilities of a bare function; return what
        `lookup` will return."""
        if spec is not None:
            backend = FunctionBackend(backend, spec)
        name = (
            name
            or getattr(getattr(backend, "spec", None), "name", None)
            or getattr(backend, "__name__", None)
        )
        if name is None:
            raise ValueError(f"{backend!r} has no name of its own: pass one")
        if name in self._backends:
            raise ValueError(
                f"two backends are called {name!r}: {self._backends[name]!r} and {backend!r}"
            )
        self._backends[name] = backend
        return backend

    def names(self) -> tuple[str, ...]:
        """All names, sorted. Nothing is imported to find out."""
        return tuple(sorted({*self._backends, *(point.name for point in self._discover())}))

    def lookup(self, backend: str | Backend) -> Backend:
        """The backend of that name; a callable is returned as it is.

        `package.module:name` and `path/to/file.py:name` are imported.
        """
        if not isinstance(backend, str):
            if not callable(backend):
                raise TypeError(f"a backend is a name or a callable, not {backend!r}")
            return backend
        return self._load(backend) if (found := self._backends.get(backend)) is None else found

    def _load(self, name: str) -> Backend:
        found = (point for point in self._discover() if point.name == name)
        point = _InFile(name) if ":" in name else next(found, None)
        if point is None:
            if (of_torch := registered_in_torch(name)) is not None:
                return of_torch
            known = tuple(sorted({*self.names(), *torch.compiler.list_backends()}))
            raise BackendNotFound(name, known, tuple(difflib.get_close_matches(name, known)))
        try:
            loaded = point.load()
        # importing is the plugin's code: whatever it raises is its failure
        except Exception as error:
            raise BackendError(
                name, f"{type(error).__name__}: {error}", f"loading {point.value}"
            ) from error
        # Threads may race to here; all of them must come away with the same object, which is a
        # cache key.
        return self._backends.setdefault(name, loaded)

    def name_elsewhere(self, backend: Backend) -> str | None:
        """Return the name under which another process finds this backend; None if there is none."""
        brought = {*BUILT_IN, *(point.name for point in self._discover())}
        names = [name for name, known in self._backends.items() if known is backend]
        return next((name for name in names if name in brought or ":" in name), None)


_running: set[tuple[int, str]] = set()
"""The threads that run a file at the moment, with the file."""


@attrs.frozen
class _InFile:
    """A backend by the place of its definition, to be loaded as an entry point is."""

    value: str

    def load(self) -> Any:
        place, _, name = self.value.rpartition(":")
        if not place.endswith(".py"):
            return pkgutil.resolve_name(self.value)
        # A script that is under way would start again, and do again what led here.
        for namespace in _namespaces_of(place):
            if name in namespace:
                return namespace[name]
        return _run(place)[name]


def _namespaces_of(place: str) -> Iterator[dict[str, Any]]:
    """Yield the namespaces of the modules of this process that a file was loaded as, also as
    `__main__`."""
    path = Path(place).resolve()
    for module in [*sys.modules.values()]:
        file = vars(module).get("__file__") if isinstance(module, ModuleType) else None
        is_named_so = isinstance(file, str) and file.endswith(path.name)
        if is_named_so and Path(str(file)).resolve() == path:
            yield vars(module)


def _run(place: str) -> dict[str, Any]:
    """Run a file as a module; raises ImportError where this thread is in the middle of that."""
    case = (threading.get_ident(), place)
    if case in _running:
        raise ImportError(
            f"{place} starts itself again: put what it runs under `if __name__ == '__main__':`"
        )
    _running.add(case)
    try:
        return run_file(place)
    finally:
        _running.discard(case)


# The registry that names mean something in when nobody passes another one: built here, all in one
# place.

default_registry = BackendRegistry()
for _backend in (eager, aot_eager, aot_eager_decomp_partition, inductor):
    default_registry.register(_backend)
default_registry.register(cudagraphs)
BUILT_IN = tuple(default_registry._backends)


def register_backend(
    backend: Backend, name: str | None = None, spec: BackendSpec | None = None
) -> Backend:
    """`default_registry.register`; also a decorator for a function that is a backend."""
    return default_registry.register(backend, name, spec)


def registered_in_torch(name: str) -> Backend | None:
    """Return a backend of the registry of `torch.compile`, which torch loads to list its names."""
    if name not in torch.compiler.list_backends(()):
        return None
    registry: Any = sys.modules["torch._dynamo.backends.registry"]
    found: Backend = registry.lookup_backend(name)
    return found


def list_backends(exclude_tags: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names of backends, without those that torch gives one of the tags: `debug`,
    `experimental`.

    With tags, or once it is loaded, the registry of torch is listed, too.
    """
    names = {*default_registry.names()}
    if not exclude_tags and "torch._dynamo.backends.registry" not in sys.modules:
        return tuple(sorted(names))
    everything, tagged = ({*torch.compiler.list_backends(tags)} for tags in ((), exclude_tags))
    return tuple(sorted((names | everything) - (everything - tagged)))


def list_modes() -> tuple[str, ...]:
    """Return the values of `mode` that Inductor has."""
    from torch._inductor import list_mode_options

    return tuple(list_mode_options())


def list_options() -> tuple[str, ...]:
    """Return the options of Inductor."""
    from torch._inductor import list_options as of_inductor

    return tuple(of_inductor())


def lookup(backend: str | Backend) -> Backend:
    return default_registry.lookup(backend)
