"""Managers of `torch._dynamo` for parts of a program that mean nothing to stator: compiled code
enters them without a break, and a warning names those that change what torch.compile does."""

from __future__ import annotations

import sys
from contextlib import ContextDecorator, nullcontext
from functools import partial
from typing import Any

from stator_bytecode import HandlerTable
from stator_variables import SUBSTITUTES, ConstantTracker, Space

from stator._torch_settings import warn_of

handlers: HandlerTable[Any, Any] = HandlerTable("manager of torch._dynamo")
SKIPS_NOTHING = "dont_skip_tracing"
"""No function of the program is skipped anyway."""
MANAGERS = {
    "override_cudagraphs": "CudagraphOverrideContextManager",
    "patch_dynamo_config": "DynamoConfigPatchProxy",
    "disable_nested_graph_breaks": "",
    SKIPS_NOTHING: "",
}
"""Functions that make managers, or decorate functions with them, and the classes of some."""


class NoManager(ContextDecorator, nullcontext[None]):
    """A manager, which decorates functions, too, and changes nothing."""


def manages_nothing(name: str, *args: object) -> None:
    """Warn of what has no effect, where this is traced."""


@handlers.handles(manages_nothing)
def at_compile_time(t: Space, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if (name := args[0].constant()) != SKIPS_NOTHING:
        warn_of([f"torch._dynamo.{name}"])
    return ConstantTracker(None)


def _made(name: str, fn: Any = None, *args: object, **settings: object) -> Any:
    manages_nothing(name)
    return fn if callable(fn) else NoManager()


def follow_managers() -> None:
    """Trace functions of this module where compiled code makes a manager of torch, or enters it."""
    decorators: Any = sys.modules.get("torch._dynamo.decorators")
    for name, cls in MANAGERS.items() if decorators else ():
        manager = getattr(decorators, cls, None)
        ends = [manager.__enter__, manager.__exit__] if manager else []
        for torchs in (getattr(decorators, name), *ends):
            ours = manages_nothing if torchs in ends else _made
            SUBSTITUTES.setdefault(id(torchs), (torchs, partial(ours, name)))
