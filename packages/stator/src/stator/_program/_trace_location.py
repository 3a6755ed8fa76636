"""The current location of the traced program, for the metadata of nodes: user frames, and the
module calls around them."""

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import torch
from stator_bytecode import CallSite, Frame, Instruction, Machine
from stator_guards import Source
from stator_variables import (
    Progress,
    Space,
    TraceLocation,
    VariableTracker,
    flatten,
    real_of,
    source_of,
)
from torch.fx import traceback

from stator._program._call_history import visible_calls

_OPERATORS = frozenset({"call_function", "call_method", "call_module"})

_NUMBERS = (int, float, torch.SymInt, torch.SymFloat, torch.SymBool)

GENERATED = "<eval_with_key>"
"""The prefix of the file names that fx makes up for the code of graphs."""


@attrs.define(eq=False)
class MachineLocations:
    """Reads the frame stack of the Machine that traces."""

    machine: Machine | None = None
    tracing: Space | None = None
    _known: dict[Any, Any] = attrs.field(factory=dict)
    _calls: dict[int, list[CallSite]] = attrs.field(factory=dict)
    """The calls that were under way, by the number of the instruction; see
    `TraceLocation.began`."""

    def current(self) -> TraceLocation:
        frames = [] if self.machine is None else self.machine.frames
        visible = [frame for frame in frames if not frame.hidden]
        guarded = [f for f in frames if f.code.instructions[f.pc].handler is not None]
        began = 0 if self.tracing is None else self.tracing.state(Progress).begun
        self._calls.setdefault(began, [site for _, site in visible_calls(frames)])

        spans = tuple(frame.code.span(frame.pc) for frame in visible)
        return TraceLocation(
            spans,
            self._modules(visible),
            self._original(visible),
            caught=any(map(is_caught, guarded)),
            catches_operators=any(map(catches_operators, guarded)),
            has_except=any(map(has_except, guarded)),
            handled=any(map(is_handled, guarded)),
            began=began,
            custom=self._annotations(),
        )

    def _annotations(self) -> Mapping[str, Any]:
        """Return what `torch.fx.traceback.annotate` has put on the nodes of this moment."""
        t = self.tracing
        known: Any = None if t is None else t.heap.trackers.get(id(traceback.current_meta))
        if t is None or id(known) not in t.heap.changed:
            return {}
        _, value = known.entries.get("custom", (None, None))
        if getattr(value, "cls", None) is not dict:  # no key, or one that was deleted
            return {}
        leaves, spec = flatten(t, value)
        found: dict[str, Any] = spec.filled(leaf.constant() for leaf in leaves)
        return found

    def contributing(self, nodes: Iterable[torch.fx.Node]) -> frozenset[CallSite]:
        """Return the calls in which operators on tensors were recorded: numbers alone are no work
        for a graph."""
        began = {node.meta.get("began") for node in nodes if _is_tensor_operator(node)}
        return frozenset(site for number in began for site in self._calls.get(number or 0, ()))

    def _original(self, frames: list[Frame]) -> Mapping[str, Any]:
        """The metadata of the node that the innermost generated `forward` has come to, by its
        line."""
        for frame in reversed(frames):
            raw = frame.code.raw
            module = (
                real_of(frame.slots[0])
                if raw.co_filename.startswith(GENERATED) and frame.slots
                else None
            )
            if isinstance(module, torch.fx.GraphModule) and type(module).forward.__code__ is raw:
                line, *_ = frame.code.instructions[frame.pc].positions
                index = (module._lineno_map or {}).get((line or 0) - raw.co_firstlineno)
                return {} if index is None else [*module.graph.nodes][index].meta
        return {}

    def forget(self) -> None:
        self.machine = self.tracing = None
        self._known.clear()
        self._calls.clear()

    def _modules(self, frames: list[Frame]) -> tuple[tuple[str, str, type], ...]:
        found: list[tuple[str, str, type]] = []
        for frame in frames:
            if frame.code.raw.co_name == "_call_impl" and frame.slots:
                first = frame.slots[0]  # a cell where a nested function uses `self`
                entry = self.module(getattr(first, "content", first))
                if entry is not None:
                    key, path, cls = entry
                    if call := self._call_number(key, frame):
                        key = f"{key}@{call}"
                    if (key, path, cls) not in found:
                        found.append((key, path, cls))
        return tuple(found)

    def _call_number(self, key: str, frame: Frame) -> int:
        """Return how many calls of the module there were before that of a frame."""
        calls = self._known.setdefault(key, {})
        _, number = calls.setdefault(id(frame), (frame, len(calls)))
        return int(number)

    def module(self, tracker: Any) -> tuple[str, str, type] | None:
        """Return the entry of a module, see `TraceLocation.modules`."""
        if (known := self._known.get(id(tracker))) is None:
            cls = tracker.cls
            if not issubclass(cls, torch.nn.Module) or tracker.source is None:
                return None
            path = module_path(source_of(tracker))
            known = self._known[id(tracker)] = (tracker, (f"{path}#{len(self._known)}", path, cls))
        entry: tuple[str, str, type] = known[1]
        return entry


def _is_tensor_operator(node: torch.fx.Node) -> bool:
    example = node.meta.get("example_value")
    return node.op in _OPERATORS and not isinstance(example, _NUMBERS)


def operators_of(module: torch.nn.Module) -> int:
    """Return how many operators of a graph, bodies included, compute or write tensors: views do
    not."""
    graphs = [each.graph for each in module.modules() if isinstance(each, torch.fx.GraphModule)]
    return sum(_computes(node) for graph in graphs for node in graph.nodes)


def _computes(node: torch.fx.Node) -> bool:
    has_base = getattr(node.meta.get("example_value"), "_is_view", bool)
    is_view = "gives_view" in node.meta or has_base()
    return _is_tensor_operator(node) and (not is_view or "writes" in node.meta)


def is_caught(frame: Frame) -> bool:
    """Return True in an `except`, or in a `with` of a manager that is not one of torch's."""
    return any(_catches(frame, start, lambda cls: True) for start in _handlers(frame))


def catches_operators(frame: Frame) -> bool:
    """Return True where the program may catch what an operator of torch raises: no class of its
    own."""
    return any(_catches(frame, start, _may_be_raised_by_torch) for start in _handlers(frame))


def has_except(frame: Frame) -> bool:
    """Return True where an `except` may catch what an operator of torch raises, but for those in
    torch, which run hooks and raise it again."""
    if str(_global_of(frame, "__name__")).startswith("torch."):
        return False
    starts = (start for start in _handlers(frame) if not _is_with(frame, start))
    return any(_catches(frame, start, _may_be_raised_by_torch) for start in starts)


def is_handled(frame: Frame) -> bool:
    """Return True where an exception leads to code of the program: `is_caught`, and `finally`."""
    return next(_handlers(frame), None) is not None


def _handlers(frame: Frame) -> Iterator[int]:
    """Yield where each handler around a frame starts, but for managers of torch."""
    instructions = frame.code.instructions
    handler = instructions[frame.pc].handler
    while handler is not None:
        is_with = _is_with(frame, handler.target)
        if not is_with or not _is_of_torch(frame.stack[handler.depth - 1]):
            yield handler.target
        handler = instructions[handler.target].handler


def _is_with(frame: Frame, start: int) -> bool:
    head = frame.code.instructions[start : start + 2]
    return any(instr.op == "WITH_EXCEPT_START" for instr in head)


def _is_of_torch(leave: VariableTracker) -> bool:
    """Return True if `leave`, the `__exit__` of an open `with`, is that of a manager of torch."""
    manager = getattr(leave, "receiver", None)
    return manager is not None and _is_torch(str(manager.cls.__module__))


def _catches(frame: Frame, start: int, matches: Callable[[Any], bool]) -> bool:
    """Return True if a handler is a `with`, or an `except` whose classes match, or cannot be
    known."""
    instructions = frame.code.instructions
    if _is_with(frame, start):
        return True

    pc = start
    tested: list[Any] = []

    while pc < len(instructions):
        instr = instructions[pc]
        if instr.op == "LOAD_GLOBAL":
            tested.append(_global_of(frame, instr.arg[0]))
        elif instr.op in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH"):
            if any(map(matches, tested)):
                return True
            tested = []
        elif instr.op == "POP_TOP" and pc == start + 1:
            return True  # a bare `except`
        elif instr.op not in _BETWEEN_TESTS:
            return _tests_exception(instructions, pc)
        pc = instr.target if "JUMP" in instr.op else pc + 1

    return False


_BETWEEN_TESTS = frozenset({"PUSH_EXC_INFO", "BUILD_TUPLE", "NOP", "COPY", "POP_JUMP_IF_FALSE"})


def _tests_exception(instructions: Sequence[Instruction], pc: int) -> bool:
    """Return True if a class that no name of the module has is tested here:
    `except torch.linalg.LinAlgError`."""
    ops = [instr.op for instr in instructions[pc : pc + _HEAD]]
    return "CHECK_EXC_MATCH" in ops or "CHECK_EG_MATCH" in ops


_HEAD = 12
"""Instructions in which the class of an `except` is named."""


def _global_of(frame: Frame, name: str) -> object:
    namespace = real_of(frame.globals)
    found = namespace.get(name) if isinstance(namespace, dict) else None
    return getattr(builtins, name, None) if found is None else found


def _may_be_raised_by_torch(cls: object) -> bool:
    """Return False for classes of which no exception leaves an operator of torch when it runs.

    Errors of other kinds, such as the TypeError for an argument, would have been raised while
    tracing; and NotImplementedError is raised for a device, whatever the values are.
    """
    if not isinstance(cls, type):
        return True
    if issubclass(cls, NotImplementedError):
        return False
    if any(issubclass(each, cls) for each in _RUN_TIME_ERRORS):
        return True
    is_known = cls.__module__ == "builtins" or _is_torch(cls.__module__)
    return is_known and issubclass(cls, _RUN_TIME_ERRORS)


def _is_torch(module: str) -> bool:
    """Return True for the name of a module of torch, not for `torch_geometric`."""
    return module.partition(".")[0] == "torch"


_RUN_TIME_ERRORS = (RuntimeError, IndexError, ValueError, MemoryError, KeyboardInterrupt)


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
