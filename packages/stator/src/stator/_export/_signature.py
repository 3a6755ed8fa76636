"""The signature of an exported program, as strict mode has it.

torch.export lists every parameter and buffer of a module, by each of its names. Strict mode lists
those that the program uses, once each, in the order in which it reads them, and names a placeholder
after the path by which the program reached it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from stator_guards import DictItemSource, Source

from stator._export._traced_call import TracedCall

if TYPE_CHECKING:
    from torch import fx
    from torch.export import ExportedProgram
    from torch.export.graph_signature import InputSpec

CONTAINERS = ("_modules", "_parameters", "_buffers")


def order_by_reads(program: ExportedProgram, traced: TracedCall) -> None:
    """Drop unused parameters and buffers from a program, and sort the others by their reads."""
    tensors = dict(traced.call.subject.named_parameters(remove_duplicate=False))
    tensors |= traced.call.subject.named_buffers(remove_duplicate=False)
    uses = {id(value): (traced.reads.index(id(value)), path) for path, value in _used(traced)}

    specs = program.graph_signature.input_specs
    nodes = [node for node in program.graph.nodes if node.op == "placeholder"]

    kept: list[tuple[int, int, str, InputSpec, fx.Node]] = []
    first: dict[int, fx.Node] = {}

    kinds = list(dict.fromkeys(spec.kind for spec in specs))
    for position, (spec, node) in enumerate(zip(specs, nodes, strict=True)):
        tensor = tensors.get(spec.target or "")
        if tensor is None:
            kept.append((kinds.index(spec.kind), position, "", spec, node))
            continue
        if (known := first.setdefault(id(tensor), node)) is not node:
            node.replace_all_uses_with(known)
        if known is node and (use := uses.get(id(tensor))) is not None:
            kept.append((kinds.index(spec.kind), *use, spec, node))
        else:
            program.graph.erase_node(node)

    kept.sort(key=lambda entry: entry[:2])
    specs[:] = [spec for *_, spec, _ in kept]
    for *_, path, spec, node in reversed(kept):
        program.graph._root.append(node)  # behind the start of the graph
        _rename(program, node, spec, path)  # the other names of a tensor are free
    program.graph_module.recompile()


def _used(traced: TracedCall) -> Iterator[tuple[str, Any]]:
    """Yield the tensors that the program reads from its module, by the paths it takes."""
    owner, named = traced.call.root.parameters[0], traced.call.named
    for source in traced.sources:
        *_, first = source.steps()
        if getattr(first, "parameter", None) == owner:
            value = source.evaluate(named)
            if isinstance(value, torch.Tensor):
                yield _path(source), value


def _path(source: Source) -> str:
    """Return `layers.0.weight` for `self._modules["layers"]._modules["0"]._parameters["weight"]`;
    nothing for a tensor that is not reached through modules alone."""
    keys = [step.key for step in source.steps() if isinstance(step, DictItemSource)]
    path = [str(key) for key in reversed(keys) if key not in CONTAINERS]
    return ".".join(path) if len(keys) == 2 * len(path) else ""


def _rename(program: ExportedProgram, node: fx.Node, spec: InputSpec, path: str) -> None:
    """Name a placeholder after the path, in place of its target."""
    start, target = node.name, re.sub(r"[^0-9A-Za-z]", "_", spec.target or "")
    wanted = start.removesuffix(target) + re.sub(r"[^0-9A-Za-z]", "_", path)
    taken = {other.name for other in program.graph.nodes}
    if path and start.endswith(target) and wanted not in taken:
        node.name = node.target = wanted
        spec.arg.name = wanted
