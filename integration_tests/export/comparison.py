"""An exported program beside that of torch.export."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import attrs
import stator
import torch
from torch.export import ExportedProgram
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
    return [
        (spec.kind, getattr(spec.arg, "name", None), spec.target, spec.persistent)
        for spec in program.graph_signature.input_specs
    ]


def outputs_of(program: ExportedProgram) -> list[tuple[Any, ...]]:
    return [
        (spec.kind, type(spec.arg), spec.target) for spec in program.graph_signature.output_specs
    ]


def ranges_of(program: ExportedProgram) -> list[str]:
    """Return the ranges of symbols, in the order in which inputs have them."""
    return sorted(str(bounds) for bounds in program.range_constraints.values())


def shapes_of(program: ExportedProgram) -> list[str]:
    """Return the shapes of inputs and results, the symbols numbered as they come."""
    numbers: dict[str, str] = {}
    found = []
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            text = str((value.dtype, tuple(value.shape)))
            found.append(re.sub(r"\b[su]\d+\b", lambda match: _number(match, numbers), text))
    return found


def _number(match: re.Match[str], numbers: dict[str, str]) -> str:
    return numbers.setdefault(match.group(), f"n{len(numbers)}")


def operators_of(program: ExportedProgram) -> list[str]:
    return [str(node.target) for node in program.graph.nodes if node.op == "call_function"]


def run(program: ExportedProgram, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the module of a program on copies; return the result, the arguments and the state."""
    args, kwargs = pytree.tree_map_only(torch.Tensor, torch.clone, (args, kwargs))
    torch.manual_seed(0)
    made = program.module()
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
