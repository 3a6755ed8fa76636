"""Imports of modules that are not loaded: breaks, or made before another trace."""

import importlib
import sys
from collections.abc import Sequence

from stator_bytecode import Result
from stator_bytecode.errors import Unsupported
from stator_guards import CapturedSource, DictItemSource

from stator_variables._space import Space
from stator_variables._trace._late_import import LateImport
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker

handlers = FunctionTable("import")


def late_import(t: Space, name: str, parts: Sequence[str], detail: str) -> Unsupported:
    """The break at an import, noted for another trace where the module may be loaded before it."""
    late = LateImport.of(name, parts)
    is_unseen = t.policy.is_whole or (t.graph.is_pure and not t.heap.changed)
    if late not in (None, *t.policy.imported) and is_unseen and t.machine.outer is None:
        t.late_import = late
    return t.unsupported("import", detail, once=True)


def loaded_module(t: Space, name: str) -> VariableTracker:
    modules = CapturedSource("sys.modules", sys.modules)
    return t.wrap(sys.modules[name], DictItemSource(modules, name))


@handlers.handles(getattr(importlib, "_bootstrap")._find_and_load)
def find_and_load(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """The end of `importlib.import_module`."""
    if (name := args[0].constant()) is MISSING:
        raise t.unsupported("import", "a module whose name is not known while tracing")
    if name in sys.modules:
        return loaded_module(t, name)
    raise late_import(t, name, (), f"the import of {name}, which is not loaded yet")
