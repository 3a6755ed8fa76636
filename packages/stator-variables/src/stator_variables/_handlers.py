"""All handlers of real callables, merged in one place."""

from __future__ import annotations

from typing import Any

from stator_bytecode import HandlerTable

from stator_variables import (
    _autograd_function,
    _builtins,
    _caching,
    _compile_state,
    _deques,
    _dicts,
    _exception_methods,
    _functions,
    _functools,
    _identity,
    _inspection,
    _itertools,
    _mappingproxy,
    _modes,
    _module_attributes,
    _numbers,
    _representation,
    _sequences,
    _sets,
    _strings,
    _transforms,
    _values,
    _views,
)

DEFAULT_HANDLERS: HandlerTable[Any, Any] = _builtins.handlers.merged_with(
    _autograd_function.handlers,
    _caching.handlers,
    _compile_state.handlers,
    _deques.methods.handlers,
    _dicts.methods.handlers,
    _exception_methods.handlers,
    _functions.handlers,
    _functools.handlers,
    _identity.handlers,
    _inspection.handlers,
    _itertools.handlers,
    _mappingproxy.handlers,
    _modes.handlers,
    _module_attributes.handlers,
    _numbers.handlers,
    _representation.methods.handlers,
    _strings.methods.handlers,
    _sequences.methods.handlers,
    _sets.methods.handlers,
    _transforms.handlers,
    _values.handlers,
    _views.methods.handlers,
)
