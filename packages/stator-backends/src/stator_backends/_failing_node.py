"""The operator that a backend had come to when it raised, and its line of the program.

Backends walk over the nodes of a graph: Inductor and interpreters of fx pass each to a method,
others have a loop. The traceback of what they raise has these frames.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType
from typing import Any

from torch._ops import OpOverload
from torch.fx import GraphModule, Node

from ._graph_facts import all_nodes
from ._pieces._lowering import where_of

FRAMES = "program_frames"
"""The metadata of a captured node: the frames of the program, outermost first. Their text is that
of a line of a traceback, and `excerpt()` gives the line of source and carets."""


def node_reached(error: BaseException) -> Node | None:
    """Return the operator that is in hand in the innermost frame that has one; None for an error
    that is not about one operator."""
    seen = set[int]()
    running = _running()
    raised: BaseException | None = error
    while raised is not None and id(raised) not in seen:
        seen.add(id(raised))
        for frame, offset in reversed([*_entries(raised)]):
            if id(frame) in running:
                continue
            if (node := _in_hand(frame, offset)) is not None:
                return node
        raised = raised.__cause__
    return None


def _running() -> set[int]:
    """Return the ids of the frames that have not ended. Before CPython 3.13, reading the locals of
    a frame keeps them in it, and those of the handler have the error: a cycle."""
    found = set[int]()
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        found.add(id(frame))
        frame = frame.f_back
    return found


def _entries(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    """Yield the frames of a traceback with the offsets of the instructions that raised."""
    entry = error.__traceback__
    while entry is not None:
        yield entry.tb_frame, entry.tb_lasti
        entry = entry.tb_next


def _in_hand(frame: FrameType, offset: int) -> Node | None:
    """Return the operator that a frame has as an argument, or as the variable of a loop that it is
    in; None if there are several."""
    variables = frame.f_locals
    if not any(_is_operator(value) for value in variables.values()):
        return None
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    for each in (names, _loop_variables(code, offset)):
        nodes: set[Any] = {variables[name] for name in each if _is_operator(variables.get(name))}
        if len(nodes) == 1:
            found: Node = nodes.pop()
            return found
    return None


def _is_operator(value: object) -> bool:
    return type(value) is Node and value.op.startswith("call_")


def _loop_variables(code: CodeType, offset: int) -> Iterator[str]:
    """Yield the names that the loops around an instruction assign."""
    instructions = [*dis.get_instructions(code)]
    for index, instruction in enumerate(instructions):
        is_loop = instruction.opname == "FOR_ITER"
        if is_loop and instruction.offset < offset < instruction.argval:
            yield from _assigned(instructions[index + 1 :])


def _assigned(instructions: Sequence[dis.Instruction]) -> Iterator[str]:
    """Yield the names that are assigned before anything else is done."""
    for instruction in instructions:
        if instruction.opname.startswith("STORE_"):
            names = instruction.argval
            yield from names if isinstance(names, tuple) else (names,)
        elif not instruction.opname.startswith("UNPACK_"):
            return


def operator_name(node: Node) -> str:
    """Return the name of an operator: `sin` of a method, `torch.sin`, `aten.sin.default`."""
    target: Any = node.target
    name = getattr(target, "__name__", None)
    if isinstance(target, str | OpOverload) or name is None:
        return str(target)
    module = str(getattr(target, "__module__", None) or "torch")
    return f"{module.removeprefix('_')}.{name}"


def program_lines(node: Node, gm: GraphModule) -> tuple[str, ...]:
    """Return the operator's line of the program as a traceback has it.

    There are carets if the captured graph, `gm`, has the call of the program that `node` is of.
    """
    place = where_of(node)
    if not place:
        return ()
    calls = [each for each in all_nodes(gm) if _call_of(each) == _call_of(node)]
    spans = [span for each in calls for span in each.meta.get(FRAMES, ()) if str(span) == place]
    if not spans:
        return (place, *_source_of(place, node))
    return (place, *spans[-1].excerpt())


def _call_of(node: Node) -> object:
    """Return the name that the captured graph has for the call that a node, also one of a backward
    pass, was traced from."""
    for key in ("source_fn_stack", "fwd_source_fn_stack"):
        if stack := node.meta.get(key):
            name, _ = stack[-1]
            return name
    return node.name


def _source_of(place: str, node: Node) -> Iterator[str]:
    """Yield the text of a line, which stands below it in the metadata."""
    lines = [line.strip() for line in node.meta["stack_trace"].splitlines()]
    below = lines[lines.index(place) + 1 :][:1]
    yield from (line for line in below if not line.startswith('File "'))
