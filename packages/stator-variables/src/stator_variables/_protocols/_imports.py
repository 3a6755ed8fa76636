"""The `import` statement: modules that are loaded, and breaks at others."""

import sys
from collections.abc import Sequence

from stator_bytecode.errors import Unsupported
from stator_guards import CapturedSource, DictItemSource

from stator_variables._space import Space
from stator_variables._trace._late_import import LateImport, LateImports
from stator_variables._tracker import VariableTracker


def late_import(t: Space, name: str, parts: Sequence[str], detail: str) -> Unsupported:
    """The break at an import, noted for another trace where the module may be loaded before it."""
    late = LateImport.of(name, parts)
    is_unseen = t.policy.is_whole or (t.graph.is_pure and not t.heap.changed)
    if late not in (None, *t.policy.imported) and is_unseen and t.machine.outer is None:
        t.state(LateImports).wanted = late
    return t.unsupported("import", detail, once=True)


def loaded_module(t: Space, name: str) -> VariableTracker:
    modules = CapturedSource("sys.modules", sys.modules)
    return t.wrap(sys.modules[name], DictItemSource(modules, name))
