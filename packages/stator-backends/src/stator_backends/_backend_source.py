"""The expression that gives a backend in another process, for scripts that are to run alone."""

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from ._backend import Backend, FunctionBackend, KeywordBackend
from ._counting import CountingBackend
from ._inductor import Inductor, inductor
from ._registry import default_registry
from .errors import Unwritable


def backend_source(backend: Backend) -> str:
    """Return an expression of `lookup` and `configure`; raises Unwritable."""
    match backend:
        case CountingBackend(inner=inner):
            return backend_source(inner)
        case KeywordBackend(backend=inner, mode=mode, options=options):
            return f"configure({backend_source(inner)}, {mode!r}, {dict(options or ())!r})"
        case Inductor() if backend is not inductor:
            # the options of its mode are among its options
            return f"configure(lookup('inductor'), None, {dict(backend.options)!r})"
    name = default_registry.name_elsewhere(backend)
    return f"lookup({name or _place(backend)!r})"


def _place(backend: Any) -> str:
    """Return the place of the definition of a backend, as `lookup` takes it."""
    defined = backend.function if isinstance(backend, FunctionBackend) else backend
    module = sys.modules.get(getattr(defined, "__module__", ""))
    name = getattr(defined, "__qualname__", None) or _name_in(module, defined)
    if module is None or name is None or "<" in name:
        raise Unwritable(repr(backend), "it has no name in a module")

    place = f"{module.__name__}:{name}"
    file = getattr(module, "__file__", None)
    if file is not None and not _is_installed(module.__name__, file):
        place = f"{Path(file).resolve()}:{name}"
    return place


def _name_in(module: Any, value: object) -> str | None:
    """Return the name of an object that has none of its own."""
    return next((name for name, held in vars(module or object).items() if held is value), None)


def _is_installed(name: str, file: str) -> bool:
    """Return True for a module that another process imports by its name."""
    folders = [*map(sysconfig.get_path, ("stdlib", "purelib", "platlib"))]
    folders += os.environ.get("PYTHONPATH", "").split(os.pathsep)
    inside = [folder for folder in folders if folder and Path(folder) in Path(file).parents]
    return "." in name or bool(inside)
