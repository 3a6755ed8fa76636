"""All operators that come with this package, merged in one place."""

from typing import Any

from stator_bytecode import HandlerTable

from stator_subgraphs._operators import (
    _apply_again,
    _autograd_function,
    _calls,
    _checkpoint,
    _collectives,
    _cond,
    _flex,
    _levels,
    _loop,
    _region,
    _transforms,
    _wrap,
)

_MORE = (
    _apply_again,
    _autograd_function,
    _calls,
    _checkpoint,
    _collectives,
    _flex,
    _levels,
    _loop,
    _region,
    _transforms,
    _wrap,
)
OPERATORS: HandlerTable[Any, Any] = _cond.handlers.merged_with(
    *(module.handlers for module in _MORE)
)
