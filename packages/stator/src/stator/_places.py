"""Where the traced program is, for the metadata of nodes: the user's frames, and the module calls around them."""

from collections.abc import Mapping
from typing import Any

import attrs
import torch
from stator_bytecode import Frame, Machine
from stator_guards import Source
from stator_variables import Place, real_of, source_of

GENERATED = "<eval_with_key>"
"""How the names of files begin that fx makes up for the code of graphs."""


@attrs.define(eq=False)
class MachinePlaces:
    """Reads the frame stack of the Machine that traces."""

    machine: Machine | None = None
    _known: dict[Any, Any] = attrs.field(factory=dict)

    def current(self) -> Place:
        frames = [] if self.machine is None else self.machine.frames
        visible = [frame for frame in frames if not frame.hidden]
        caught = any(map(is_caught, frames))
        spans = tuple(frame.code.span(frame.pc) for frame in visible)
        return Place(spans, self._modules(visible), self._original(visible), caught)

    def _original(self, frames: list[Frame]) -> Mapping[str, Any]:
        """The metadata of the node that the innermost generated `forward` has come to, by its line."""
        for frame in reversed(frames):
            raw = frame.code.raw
            module = real_of(frame.slots[0]) if raw.co_filename.startswith(GENERATED) and frame.slots else None
            if isinstance(module, torch.fx.GraphModule):
                line, *_ = frame.code.instructions[frame.pc].positions
                index = (module._lineno_map or {}).get((line or 0) - raw.co_firstlineno)
                return {} if index is None else [*module.graph.nodes][index].meta
        return {}

    def forget(self) -> None:
        self.machine = None
        self._known.clear()

    def _modules(self, frames: list[Frame]) -> tuple[tuple[str, str, type], ...]:
        found: list[tuple[str, str, type]] = []
        for frame in frames:
            if frame.code.raw.co_name == "_call_impl" and frame.slots:
                first = frame.slots[0]  # a cell where a nested function uses `self`
                entry = self._module(getattr(first, "content", first))
                if entry is not None and entry not in found:
                    found.append(entry)
        return tuple(found)

    def _module(self, tracker: Any) -> tuple[str, str, type] | None:
        if (known := self._known.get(id(tracker))) is None:
            cls = tracker.cls
            if not issubclass(cls, torch.nn.Module) or tracker.source is None:
                return None
            path = module_path(source_of(tracker))
            known = self._known[id(tracker)] = (tracker, (f"{path}#{len(self._known)}", path, cls))
        entry: tuple[str, str, type] = known[1]
        return entry


def is_caught(frame: Frame) -> bool:
    """Whether an `except`, or a `with` of another manager than one of torch's, is around where the frame is."""
    instructions = frame.code.instructions
    handler = instructions[frame.pc].handler
    while handler is not None:
        ops = [instr.op for instr in instructions[handler.target : handler.target + _HEAD]]
        if "WITH_EXCEPT_START" in ops[:2]:
            manager = getattr(frame.stack[handler.depth - 1], "receiver", None)
            if manager is None or not str(manager.cls.__module__).startswith("torch"):
                return True
        elif ops[:2] == ["PUSH_EXC_INFO", "POP_TOP"] or "CHECK_EXC_MATCH" in ops or "CHECK_EG_MATCH" in ops:
            return True
        handler = instructions[handler.target].handler
    return False


_HEAD = 12
"""Instructions in which a handler shows what it is: what names the class of an `except` is no longer."""


def module_path(source: Source) -> str:
    """`self.layers.0.fc` for `self._modules['layers']._modules['0']._modules['fc']`."""
    parts: list[str] = []
    for step in source.steps():
        if (key := getattr(step, "key", None)) is not None:
            if key not in ("_modules", "__dict__"):
                parts.append(str(key))
        elif step.base is None:
            parts.append(step.name.split(" ")[-1])
    return ".".join(reversed(parts))
