"""Functions that are traced in place of those of `torch._dynamo`.

Managers for parts of a program that mean nothing to stator are entered without a break, and a
warning names those that change what torch.compile does.
"""

from __future__ import annotations

import sys
from contextlib import ContextDecorator, nullcontext, suppress
from functools import partial
from operator import attrgetter
from typing import Any

from stator_variables import SUBSTITUTES, ConstantTracker, Space

from stator._settings._break_policy import enter_of_torch, error_on_graph_break, exit_of_torch
from stator._settings._comptime import comptime, handlers
from stator._settings._torch_settings import warn_of

SKIPS_NOTHING = "dont_skip_tracing"
"""No function of the program is skipped anyway."""


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


_of_cudagraphs = partial(manages_nothing, "override_cudagraphs")
_of_patches = partial(manages_nothing, "patch_dynamo_config")
MAKERS = ("override_cudagraphs", "patch_dynamo_config", "disable_nested_graph_breaks")
FOLLOWED: dict[str, Any] = {
    **{f"decorators.{name}": partial(_made, name) for name in (*MAKERS, SKIPS_NOTHING)},
    "decorators.CudagraphOverrideContextManager.__enter__": _of_cudagraphs,
    "decorators.CudagraphOverrideContextManager.__exit__": _of_cudagraphs,
    "decorators.DynamoConfigPatchProxy.__enter__": _of_patches,
    "decorators.DynamoConfigPatchProxy.__exit__": _of_patches,
    "decorators.error_on_graph_break": error_on_graph_break,
    "decorators.ErrorOnGraphBreakDecoratorContextManager.__enter__": enter_of_torch,
    "decorators.ErrorOnGraphBreakDecoratorContextManager.__exit__": exit_of_torch,
    "comptime.comptime.__class__.__call__": comptime,
}
"""The function that is traced in place of one of `torch._dynamo`, by its name there."""


def follow_torch() -> None:
    """Let functions be traced in place of those of `torch._dynamo`, if the program has imported
    it."""
    module = sys.modules.get("torch._dynamo")
    for path, ours in FOLLOWED.items() if module else ():
        with suppress(AttributeError):  # releases of torch lack some
            torchs = attrgetter(path)(module)
            SUBSTITUTES.setdefault(id(torchs), (torchs, ours))
