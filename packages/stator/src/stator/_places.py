"""Where the traced program is, for the metadata of nodes: the user's frames, and the module calls around them."""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import torch
from stator_bytecode import Frame, Machine
from stator_guards import Source
from stator_variables import Place, Tracing, real_of, source_of

GENERATED = "<eval_with_key>"
"""How the names of files begin that fx makes up for the code of graphs."""


@attrs.define(eq=False)
class MachinePlaces:
    """Reads the frame stack of the Machine that traces."""

    machine: Machine | None = None
    tracing: Tracing | None = None
    _known: dict[Any, Any] = attrs.field(factory=dict)

    def current(self) -> Place:
        frames = [] if self.machine is None else self.machine.frames
        visible = [frame for frame in frames if not frame.hidden]
        spans = tuple(frame.code.span(frame.pc) for frame in visible)
        return Place(
            spans,
            self._modules(visible),
            self._original(visible),
            caught=any(map(is_caught, frames)),
            handled=any(map(is_handled, frames)),
            began=0 if self.tracing is None else self.tracing.progress.begun,
        )

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
        self.machine = self.tracing = None
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
    """Return True in an `except`, or in a `with` of a manager that is not one of torch's."""
    return any(_catches(ops) for ops in _handlers(frame))


def is_handled(frame: Frame) -> bool:
    """Return True where an exception leads to code of the program: `is_caught`, and `finally`."""
    return next(_handlers(frame), None) is not None


def _handlers(frame: Frame) -> Iterator[list[str]]:
    """Yield the first operations of each handler around a frame, but for managers of torch."""
    instructions = frame.code.instructions
    handler = instructions[frame.pc].handler
    while handler is not None:
        ops = [instr.op for instr in instructions[handler.target : handler.target + _HEAD]]
        if "WITH_EXCEPT_START" not in ops[:2] or not _is_of_torch(frame.stack[handler.depth - 1]):
            yield ops
        handler = instructions[handler.target].handler


def _is_of_torch(leave: Any) -> bool:
    """Return True if `leave`, the `__exit__` of an open `with`, is that of a manager of torch."""
    manager = getattr(leave, "receiver", None)
    return manager is not None and str(manager.cls.__module__).startswith("torch")


def _catches(ops: list[str]) -> bool:
    if "WITH_EXCEPT_START" in ops[:2] or ops[:2] == ["PUSH_EXC_INFO", "POP_TOP"]:
        return True
    return "CHECK_EXC_MATCH" in ops or "CHECK_EG_MATCH" in ops


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
