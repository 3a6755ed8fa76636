"""The flat state of a Point in the words of the program, for messages that name a value to its
user.

parameters     x    stack0                f1_y
descriptions   x    the loop over xs      y of helper
"""

import ast
import linecache
from collections.abc import Iterator, Sequence

from stator_bytecode._breaks import _layout as layouts
from stator_bytecode._codec._instruction import Code, Instruction
from stator_bytecode._machine._check import stack_depths

_LONGEST_TEXT = 60


def descriptions_of(
    frames: Sequence[layouts.FrameLayout], carried: Sequence[layouts.Layout]
) -> Iterator[str]:
    """Yield what each value of the flat state is to the program, in the order of the parameters."""
    for frame in frames:
        yield from _of_frame(frame)

    for layout in carried:
        if isinstance(layout, layouts.VirtualizedLayout):
            kinds = [kind for kind in layout.slots if kind in layouts.CARRYING]
            yield from ("a part of an object on the stack" for _ in kinds)
        else:
            yield from _of_frame(layout)


def _of_frame(layout: layouts.FrameLayout) -> Iterator[str]:
    for slot, kind in zip(layout.code.slots, layout.slots, strict=True):
        if kind in layouts.CARRYING:
            yield "the iterable of the comprehension" if slot.startswith(".") else slot

    loops = _loops_at(layout.code, layout.pc) if layout.stack else {}
    for depth, kind in enumerate(layout.stack):
        if kind is layouts.PREVIOUS:
            yield "the exception handled before"
        elif kind in layouts.CARRYING:
            yield loops.get(depth, "a value under evaluation")

    if layout.handled:
        yield "the exception being handled"
    if layout.then is not None:
        yield from ("a value that a call waits with" for _ in range(layout.then.count))


def _loops_at(code: Code, pc: int) -> dict[int, str]:
    """Return the loops around an instruction, by the stack position of their iterators."""
    loops = {}
    for instr, depth in zip(code.instructions, stack_depths(code), strict=True):
        is_around = instr.op == "FOR_ITER" and instr.index <= pc < instr.target
        if is_around and depth is not None:
            loops[depth - instr.arg] = _loop_text(code, instr)
    return loops


def _loop_text(code: Code, for_iter: Instruction) -> str:
    """Return a description of a loop, with the text of its iterable where the file can be read."""
    line, end_line, column, end_column = for_iter.positions
    if line is None or end_line is None:
        return "the loop"

    filename = code.raw.co_filename
    lines = [linecache.getline(filename, number) for number in range(line, end_line + 1)]
    lines[-1] = lines[-1].encode()[:end_column].decode()
    lines[0] = lines[0].encode()[column:].decode()
    try:
        iterable = _iterable(ast.parse("".join(lines)).body)
    except SyntaxError:
        iterable = None
    return "the loop" if iterable is None else f"the loop over {_short(iterable)}"


def _iterable(statements: list[ast.stmt]) -> ast.expr | None:
    """Return the iterable from the text of a loop (up to 3.12) or its own text (since 3.13)."""
    match statements:
        case [ast.For(iter=iterable)]:
            return iterable
        case [ast.Expr(ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp())]:
            return None
        case [ast.Expr(iterable)]:
            return iterable
    return None


def _short(expression: ast.expr) -> str:
    text = ast.unparse(expression)
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."
