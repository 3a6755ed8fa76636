"""All handlers of real callables, merged in one place."""

from typing import Any

from stator_bytecode import HandlerTable

from stator_variables._builtin import (
    _attribute_functions,
    _builtins,
    _class_functions,
    _deques,
    _dicts,
    _exception_methods,
    _iterator_functions,
    _numbers,
    _representation,
    _scopes,
    _sequences,
    _sets,
    _strings,
    _values,
    _views,
)
from stator_variables._library import (
    _caching,
    _enums,
    _functools,
    _inference,
    _itertools,
    _modes,
    _namespaces,
    _numpy,
    _numpy_random,
    _ordered,
    _paths,
    _patterns,
    _pickling,
    _questions,
    _random,
    _reduction,
    _scripted,
    _warnings,
)
from stator_variables._objects import _classes, _functions, _identity, _weakrefs
from stator_variables._objects._arity import checked
from stator_variables._protocols import _instances
from stator_variables._tensors import (
    _assertion,
    _deep_copy,
    _differentiation,
    _generators,
    _hooks,
    _jagged,
    _marked,
    _packed,
    _statistics,
    _storages,
    _subclasses,
    _torch_functions,
)

_FUNCTIONS = (
    *(
        _class_functions,
        _iterator_functions,
        _instances,
        _exception_methods,
        _numbers,
        _values,
        _functions,
        _classes,
    ),
    *(
        _caching,
        _enums,
        _functools,
        _identity,
        _itertools,
        _namespaces,
        _numpy,
        _numpy_random,
        _ordered,
        _paths,
        _pickling,
        _questions,
        _random,
        _reduction,
        _warnings,
        _weakrefs,
    ),
    *(
        _assertion,
        _deep_copy,
        _differentiation,
        _generators,
        _hooks,
        _inference,
        _jagged,
        _torch_functions,
        _marked,
        _modes,
        _packed,
        _scripted,
        _statistics,
        _storages,
        _subclasses,
    ),
)
_METHODS = (
    *(
        _attribute_functions,
        _builtins,
        _deques,
        _dicts,
        _patterns,
        _representation,
        _scopes,
        _sequences,
        _sets,
        _strings,
    ),
    _views,
)
_NONE: HandlerTable[Any, Any] = HandlerTable("builtin")
DEFAULT_HANDLERS: HandlerTable[Any, Any] = checked(
    _NONE.merged_with(*(module.handlers for module in _FUNCTIONS))
).merged_with(*(module.methods.handlers for module in _METHODS))
