"""`stator.capture` and `stator.export`. What they need is imported by the first call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from stator.errors import InvalidUse

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from stator._export._program import CapturedProgram


def capture(
    f: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
) -> CapturedProgram:
    """Capture one call of a function or module as one graph, without compiling or running it.

    `dynamic_shapes` is a specification as `torch.export.export` takes it; without one, all sizes
    are constants. Raises Unsupported, with the line of the program, where the call is not one
    graph, and InvalidUse for arguments that `f` does not take.
    """
    from stator._export._capture import captured

    return captured(f, args, kwargs, dynamic_shapes)


def export(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    preserve_module_call_signature: tuple[str, ...] = (),
) -> ExportedProgram:
    """Export one call of a module as `torch.export.export(strict=True)` does.

    The parameters are those of `torch.export.export`. Raises Unsupported, with the line of the
    program, where the call is not one graph, and what torch.export raises for specifications that
    the program does not satisfy.
    """
    from stator._export._exported_program import exported

    if not isinstance(module, torch.nn.Module):
        hint = "wrap the function in the forward of a module, or use stator.capture"
        raise InvalidUse(f"cannot export {module!r}: it is no torch.nn.Module", hint)
    return exported(module, args, kwargs, dynamic_shapes, preserve_module_call_signature)
