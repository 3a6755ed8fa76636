"""All handlers of real callables, merged in one place."""

from __future__ import annotations

from typing import Any

from stator_bytecode import HandlerTable

from stator_variables import (
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
    _values,
    _views,
)
from stator_variables._arity import checked

DEFAULT_HANDLERS: HandlerTable[Any, Any] = checked(_builtins.handlers).merged_with(
    checked(_caching.handlers),
    checked(_compile_state.handlers),
    _deques.methods.handlers,
    _dicts.methods.handlers,
    checked(_exception_methods.handlers),
    checked(_functions.handlers),
    checked(_functools.handlers),
    checked(_identity.handlers),
    checked(_inspection.handlers),
    checked(_itertools.handlers),
    checked(_mappingproxy.handlers),
    checked(_modes.handlers),
    checked(_module_attributes.handlers),
    checked(_numbers.handlers),
    _representation.methods.handlers,
    _strings.methods.handlers,
    _sequences.methods.handlers,
    _sets.methods.handlers,
    checked(_values.handlers),
    _views.methods.handlers,
)
