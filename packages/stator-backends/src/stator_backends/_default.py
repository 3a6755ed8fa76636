"""The registry that names mean something in when nobody passes another one: built here, all in one place."""

from ._aot import aot_eager, aot_eager_decomp_partition
from ._backend import Backend, BackendSpec
from ._eager import eager
from ._inductor import inductor
from ._registry import BackendRegistry

default_registry = BackendRegistry()
for _backend in (eager, aot_eager, aot_eager_decomp_partition, inductor):
    default_registry.register(_backend)


def register_backend(backend: Backend, name: str | None = None, spec: BackendSpec | None = None) -> Backend:
    """`default_registry.register`; also a decorator for a function that is a backend."""
    return default_registry.register(backend, name, spec)


def list_backends() -> tuple[str, ...]:
    return default_registry.names()


def lookup(backend: str | Backend) -> Backend:
    return default_registry.lookup(backend)
