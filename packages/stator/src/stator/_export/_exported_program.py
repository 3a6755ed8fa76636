"""A captured call as a `torch.export.ExportedProgram`.

The graph is whole before torch.export starts, so its non-strict mode, which runs Python on fake
tensors, has no Python of the program left to run. It is given a substitute for the module: the same
parameters, buffers and submodules, and a `forward` that runs the captured graph. Names, signature,
constraints and errors are then those of torch.export.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from stator_bytecode import HandlerTable
from stator_variables import NONE, ConstantTracker
from torch.backends import cudnn, mkldnn, nnpack
from torch.fx.experimental.symbolic_shapes import ConstraintViolationError
from torch.utils._pytree import tree_map_only
from torch.utils._sympy.value_ranges import ValueRangeError

from stator._export._call import captured_call, signature_of
from stator._export._graph_run import graph_run
from stator._export._module_call import handlers as marks
from stator._export._module_call import marked_calls
from stator._export._module_stack import prepare_module_stacks
from stator._export._shape_spec import built_spec
from stator._export._signature import order_by_reads
from stator._export._traced_call import TracedCall, traced_call
from stator._export._transform import inline_transforms
from stator._settings._stack import default_handlers

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def exported(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    preserved: tuple[str, ...],
) -> ExportedProgram:
    """Capture a call, and export a substitute that runs the graph."""
    shapes = built_spec(dynamic_shapes, module, args, kwargs)
    args, kwargs = _distinct(args, dict(kwargs or {}))
    call = captured_call(module, args, kwargs)
    with _any_backend(), marked_calls(call.subject, preserved):
        traced = traced_call(call, shapes, _handlers)
    inline_transforms(traced.module)
    prepare_module_stacks(traced.module, call.root.parameters[0])
    with _errors_of_strict_mode():
        program = torch.export.export(
            _substitute(traced),
            args,
            kwargs,
            # additional inputs are checked by torch.export
            dynamic_shapes=dynamic_shapes if hasattr(dynamic_shapes, "verify") else shapes,
            strict=False,
            preserve_module_call_signature=preserved,
        )
    order_by_reads(program, traced)
    return program


@contextmanager
def _errors_of_strict_mode() -> Iterator[None]:
    """Raise UserError of torch for a size that is not in its range."""
    try:
        yield
    except (ConstraintViolationError, ValueRangeError) as error:
        exceptions = sys.modules["torch._dynamo.exc"]  # torch.export has imported it
        kind = exceptions.UserErrorType.CONSTRAINT_VIOLATION
        raise exceptions.UserError(kind, str(error)) from error


def _distinct(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Give each argument a tensor of its own: later calls need not pass one tensor twice."""
    seen: set[int] = set()

    def distinct(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in seen:
            seen.add(id(tensor))
            return tensor
        return tensor.detach().clone().requires_grad_(tensor.requires_grad)

    made: tuple[Any, dict[str, Any]] = tree_map_only(torch.Tensor, distinct, (args, kwargs))
    return made


_LEVELS = "critical debug error exception info log warning"
_SHOWN = {
    print,
    warnings.warn,
    *(getattr(owner, name) for owner in (logging, logging.Logger) for name in _LEVELS.split()),
}
"""Functions that show something, which an exported program has no place for: torch.export drops
their calls, too."""


def _handlers() -> Mapping[Any, Any]:
    """Return handlers for what differs while a program is exported."""
    exporting = {torch.compiler.is_exporting: lambda t, args, kwargs: ConstantTracker(True)}
    exporting |= dict.fromkeys(_SHOWN, lambda t, args, kwargs: NONE)
    standard = dict(default_handlers())
    return HandlerTable("callable", {**standard, **exporting}).merged_with(marks)


@contextmanager
def _any_backend() -> Iterator[None]:
    """Trace as for any machine: some libraries choose kernels by the size of a batch."""
    libraries: tuple[Any, ...] = (mkldnn, nnpack, cudnn)
    before = [library.set_flags(False)[0] for library in libraries]
    try:
        yield
    finally:
        for library, enabled in zip(libraries, before, strict=True):
            library.set_flags(enabled)


_SHARED = {"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "training"}


def _substitute(traced: TracedCall) -> torch.nn.Module:
    """Return a module with the state of the subject, and the captured call as its forward."""
    call = traced.call
    made = torch.nn.Module()
    own = vars(made).keys() - _SHARED
    members = {name: value for name, value in vars(call.subject).items() if name not in own}
    vars(made).update(members)
    replay = traced.replay(graph_run(traced.module, call.subject))

    def forward(*args: Any, **kwargs: Any) -> Any:
        state = call.state_of(args, {name: kwargs[name] for name in call.kwargs})
        named = dict(zip(call.root.parameters, state, strict=True))
        for condition in traced.conditions:
            condition.kind.holds(None, named)  # a guard of the shapes that torch.export traces with
        result, buffers = replay(*state)
        for owner, changed in buffers:
            for name, value in changed.items():
                owner[name].copy_(value)
        return result

    setattr(forward, "__signature__", signature_of(call.subject))
    made.forward = forward
    return made
