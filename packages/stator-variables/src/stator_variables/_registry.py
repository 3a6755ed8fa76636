"""The single list of modules that have handlers of real callables, or builders of trackers: the
imports of this one.

A module may have `handlers` of functions, a table of `methods`, and `builders`; they are merged
here. An operation that is not found by a real callable or by a class is declared in
`_operations.py` and joined in `_standard_space.py`.
"""

# ruff: noqa: F401
import types
from typing import Any

from stator_bytecode import HandlerTable
from stator_guards import Source

from stator_variables._builtin import (
    _attribute_functions,
    _builtins,
    _class_functions,
    _exception_methods,
    _format_functions,
    _generic_aliases,
    _instance_functions,
    _iterator_functions,
    _scopes,
    _values,
)
from stator_variables._distributed import (
    _device_mesh,
    _distributed_tensor,
    _mesh_queries,
    _placement,
    _placement_methods,
)
from stator_variables._library import (
    _assertions,
    _caching,
    _dual_level,
    _enums,
    _functools,
    _gradient_hooks,
    _imports,
    _inference,
    _itertools,
    _jagged_tensors,
    _logger_levels,
    _modes,
    _namespaces,
    _number_reads,
    _numpy,
    _optimizers,
    _optree,
    _ordered_list,
    _paths,
    _patterns,
    _pickling,
    _process_queries,
    _reduction,
    _scripted_function,
    _tensor_subclasses,
    _warnings,
)
from stator_variables._library._random import _numpy as _numpy_random
from stator_variables._library._random import _python as _python_random
from stator_variables._library._random import _torch as _torch_random
from stator_variables._objects import (
    _cell,
    _class_methods,
    _constants,
    _deque,
    _deque_methods,
    _dict_entries,
    _dict_methods,
    _dict_view,
    _dict_view_methods,
    _exception,
    _function_attributes,
    _functions,
    _identity,
    _list,
    _list_methods,
    _mapping_proxy,
    _mapping_proxy_methods,
    _method,
    _number_methods,
    _partial,
    _recipe,
    _sequence_methods,
    _set_members,
    _set_methods,
    _super,
    _text_methods,
    _tuple,
    _weakref_methods,
    _weakrefs,
)
from stator_variables._objects._arity import checked
from stator_variables._objects._builder_table import Builder, BuilderTable
from stator_variables._objects._iterators import _existing_iterator, _map, _zip
from stator_variables._objects._wrap import build_object
from stator_variables._space import Space
from stator_variables._tensors import (
    _arrays_beside_tensors,
    _deep_copy,
    _differentiation,
    _inputs,
    _marked_function,
    _packed_sequence,
    _statistics,
    _storages,
    _torch_functions,
)
from stator_variables._tracker import MISSING, FunctionTable, VariableTracker


def _tables(name: str) -> list[Any]:
    modules = [value for value in globals().values() if isinstance(value, types.ModuleType)]
    return [getattr(module, name) for module in modules if hasattr(module, name)]


_NONE = FunctionTable("builtin")
DEFAULT_HANDLERS: HandlerTable[Any, Any] = checked(
    _NONE.merged_with(*_tables("handlers"))
).merged_with(*(methods.handlers for methods in _tables("methods")))
"""All handlers of real callables."""

_others = [table for table in _tables("builders") if table is not _constants.builders]
_BUILDERS = _constants.builders.merged_with(*_others)  # first: an enumeration may also be a tuple


def build(t: Space, real: object, source: Source) -> VariableTracker:
    """Make the tracker of an existing value, its class guarded."""
    cls = type(real)
    given: Builder | None = None if t.builders is None else t.builders.find(cls)
    tracker = (given or _builder_for(cls))(t, real, source)
    tracker.source = source
    if tracker.real is MISSING:
        tracker.real = real
    return tracker


def _builder_for(cls: type) -> Builder:
    if issubclass(cls, type):
        return _BUILDERS.exact.get(id(cls), _constants.build_class)
    return _BUILDERS.find(cls) or build_object
