"""The stress mode: every call of the program breaks, so that breaks are met everywhere."""

from __future__ import annotations

from typing import Any

from stator_bytecode import Unsupported


class StressDomain:
    """A domain that captures no call; all else is the one it wraps."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        for name in dir(inner):
            if not name.startswith("_") and name not in ("call", "call_spread"):
                setattr(self, name, getattr(inner, name))

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        raise Unsupported("stress", "every call breaks in stress mode")

    def call_spread(self, function: Any, args: Any, kwargs: Any) -> Any:
        raise Unsupported("stress", "every call breaks in stress mode")
