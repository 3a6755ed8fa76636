"""All handlers of real callables, merged in one place."""

from __future__ import annotations

from typing import Any

from stator_bytecode import HandlerTable

from stator_variables import (
    _assertion,
    _attribute_functions,
    _autograd_function,
    _builtins,
    _caching,
    _compile_state,
    _constructors,
    _deques,
    _dicts,
    _exception_methods,
    _foreach,
    _functions,
    _functools,
    _generators,
    _identity,
    _inspection,
    _instances,
    _iterator_functions,
    _itertools,
    _mappingproxy,
    _modes,
    _module_attributes,
    _numbers,
    _operator_functions,
    _questions,
    _representation,
    _sequences,
    _sets,
    _strings,
    _transforms,
    _values,
    _views,
    _weakrefs,
)
from stator_variables._arity import checked

_FUNCTIONS = checked(
    _builtins.handlers.merged_with(
        _assertion.handlers,
        _autograd_function.handlers,
        _caching.handlers,
        _operator_functions.handlers,
        _iterator_functions.handlers,
        _instances.handlers,
        _generators.handlers,
        _constructors.handlers,
        _attribute_functions.handlers,
        _compile_state.handlers,
        _exception_methods.handlers,
        _foreach.handlers,
        _functions.handlers,
        _functools.handlers,
        _identity.handlers,
        _inspection.handlers,
        _itertools.handlers,
        _mappingproxy.handlers,
        _modes.handlers,
        _module_attributes.handlers,
        _numbers.handlers,
        _questions.handlers,
        _transforms.handlers,
        _values.handlers,
        _weakrefs.handlers,
    )
)
DEFAULT_HANDLERS: HandlerTable[Any, Any] = _FUNCTIONS.merged_with(
    _deques.methods.handlers,
    _dicts.methods.handlers,
    _representation.methods.handlers,
    _strings.methods.handlers,
    _sequences.methods.handlers,
    _sets.methods.handlers,
    _views.methods.handlers,
)
