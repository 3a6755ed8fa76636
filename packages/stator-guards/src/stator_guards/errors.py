"""The errors of this layer: those every layer shares, under the names that callers of the guards
meet."""

from stator_bytecode.errors import InternalError, InvalidUse, StatorError

__all__ = ["InternalError", "InvalidUse", "StatorError"]
