"""All handlers of real callables, merged in one place."""

from __future__ import annotations

from typing import Any

from stator_bytecode import HandlerTable

from stator_variables._builtin import (
    _attribute_functions,
    _binding,
    _builtins,
    _class_functions,
    _constructors,
    _deques,
    _dicts,
    _exception_methods,
    _generators,
    _instances,
    _iterator_functions,
    _mappingproxy,
    _numbers,
    _representation,
    _sequences,
    _sets,
    _strings,
    _values,
    _views,
)
from stator_variables._builtin._arity import checked
from stator_variables._library import (
    _caching,
    _functools,
    _identity,
    _inspection,
    _itertools,
    _numpy,
    _operator_functions,
    _questions,
    _weakrefs,
)
from stator_variables._model import _classes, _functions
from stator_variables._torch import (
    _assertion,
    _compile_state,
    _foreach,
    _inference,
    _marked,
    _modes,
    _module_attributes,
)

_FUNCTIONS = checked(
    _builtins.handlers.merged_with(
        _assertion.handlers,
        _binding.handlers,
        _caching.handlers,
        _class_functions.handlers,
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
        _classes.handlers,
        _functools.handlers,
        _identity.handlers,
        _inference.handlers,
        _inspection.handlers,
        _itertools.handlers,
        _mappingproxy.handlers,
        _marked.handlers,
        _modes.handlers,
        _module_attributes.handlers,
        _numbers.handlers,
        _numpy.handlers,
        _questions.handlers,
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
