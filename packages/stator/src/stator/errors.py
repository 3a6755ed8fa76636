"""Every error stator raises, under one roof."""

from __future__ import annotations

from stator_backends import BackendFailed, UnknownBackend
from stator_bytecode.errors import InternalError, InvalidUse, SourceSpan, StatorError, Unsupported

__all__ = ["BackendFailed", "InternalError", "InvalidUse", "SourceSpan", "StatorError", "UnknownBackend", "Unsupported"]
