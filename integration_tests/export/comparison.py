"""An exported program beside that of torch.export."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import attrs
import stator
import torch
from torch.export import ExportedProgram, ModuleCallSignature
from torch.export.graph_signature import InputKind, InputSpec
from torch.utils import _pytree as pytree

from integration_tests.export.programs import Program


@attrs.frozen(eq=False)
class Exported:
    """A program, or the error in its place."""

    program: ExportedProgram | None
    error: Exception | None = None


def exported(export: Callable[..., Any], program: Program) -> Exported:
    made = program.make()
    options: dict[str, Any] = {"preserve_module_call_signature": program.preserve}
    try:
        args, kwargs = program.args(), program.kwargs()
        return Exported(export(made, args, kwargs, dynamic_shapes=program.shapes, **options))
    except Exception as error:
        return Exported(None, error)


def by_stator(program: Program) -> Exported:
    return exported(stator.export, program)


def by_torch(program: Program) -> Exported:
    def strict(*args: Any, **options: Any) -> Any:
        return torch.export.export(*args, strict=True, **options)

    return exported(strict, program)


def suggestion(error: Exception) -> list[str]:
    """Return the fixes that an error suggests."""
    _, found, fixes = str(error).partition("Suggested fixes:")
    return sorted(line.strip() for line in fixes.splitlines() if " = " in line) if found else []


def inputs_of(program: ExportedProgram) -> list[tuple[Any, ...]]:
    """Return kind, name and target of each input; of buffers, whether they are persistent."""
    return [
        (spec.kind, getattr(spec.arg, "name", None), spec.target, _is_persistent(spec))
        for spec in program.graph_signature.input_specs
    ]


def _is_persistent(spec: InputSpec) -> bool | None:
    return spec.persistent if spec.kind is InputKind.BUFFER else None


def outputs_of(program: ExportedProgram) -> list[tuple[Any, ...]]:
    specs = program.graph_signature.output_specs
    return [(spec.kind, type(spec.arg), spec.target) for spec in specs]


def ranges_of(program: ExportedProgram) -> set[str]:
    """Return the ranges of symbols, whose names differ."""
    return {str(bounds) for bounds in program.range_constraints.values()}


def shapes_of(program: ExportedProgram) -> list[str]:
    """Return the shapes of inputs, the symbols numbered as they come."""
    numbers: dict[str, str] = {}
    found = []
    for node in program.graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            text = str((value.dtype, tuple(value.shape)))
            found.append(re.sub(r"\b[su]\d+\b", lambda match: _number(match, numbers), text))
    return found


def _number(match: re.Match[str], numbers: dict[str, str]) -> str:
    return numbers.setdefault(match.group(), f"n{len(numbers)}")


def calls_of(program: ExportedProgram) -> list[tuple[Any, ...]]:
    """Return the modules of a program, with the signatures that were kept."""
    return [(entry.fqn, *_signature(entry.signature)) for entry in program.module_call_graph]


def _signature(kept: ModuleCallSignature | None) -> tuple[Any, ...]:
    return () if kept is None else (kept.inputs, kept.outputs, kept.in_spec, kept.out_spec)


FACETS = {
    "inputs": inputs_of,
    "outputs": outputs_of,
    "ranges": ranges_of,
    "shapes": shapes_of,
    "calls": calls_of,
}


def run(program: ExportedProgram, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the module of a program on copies; return the result, the arguments and the state."""
    args, kwargs = pytree.tree_map_only(torch.Tensor, torch.clone, (args, kwargs))
    torch.manual_seed(0)
    made = copy.deepcopy(program).module()
    result = made(*args, **kwargs)
    return result, args, kwargs, dict(made.state_dict())


def assert_equal_trees(left: Any, right: Any) -> None:
    ours, spec = pytree.tree_flatten(left)
    theirs, other = pytree.tree_flatten(right)
    assert spec == other, (spec, other)
    for one, two in zip(ours, theirs, strict=True):
        assert type(one) is type(two), (one, two)
        if isinstance(one, torch.Tensor):
            torch.testing.assert_close(one, two)
        else:
            assert one == two
