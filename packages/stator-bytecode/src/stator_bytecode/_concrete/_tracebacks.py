"""A traceback entry that shows where an interpreted frame stands.

An entry needs a native frame object; the one made here is that of a tiny function with the name, file and line of the
user's. Only the frame that raises gets one: the frames that the exception passes through on its way out are not shown.
"""

import functools
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from stator_bytecode._machine._frame import Frame


def traceback_at(frame: Frame, rest: TracebackType | None) -> TracebackType:
    instr = frame.code.instructions[frame.pc]
    raw = frame.code.raw
    line = instr.positions[0] or raw.co_firstlineno
    shown = _stand_in(raw, line)(frame.globals)
    return TracebackType(rest, shown, 0, line)


@functools.lru_cache(maxsize=4096)
def _stand_in(code: CodeType, line: int) -> Callable[[dict[str, Any]], FrameType]:
    shown = _frame_of_me.__code__.replace(
        co_filename=code.co_filename, co_name=code.co_name, co_qualname=code.co_qualname, co_firstlineno=line
    )

    def stand_in(names: dict[str, Any]) -> FrameType:
        function: Any = FunctionType(shown, {"_current": _current, "__name__": names.get("__name__")})
        frame: FrameType = function()
        return frame

    return stand_in


def _frame_of_me() -> FrameType:
    return _current()


def _current() -> FrameType:
    import inspect

    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back
