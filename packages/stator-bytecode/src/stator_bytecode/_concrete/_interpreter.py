"""The concrete domain: values are the objects themselves, so the Machine is a plain Python
interpreter.

Python functions called from interpreted frames become frames; whatever C code calls
(`sorted(key=f)`, an operator's method) runs natively. Start with `interpret`; the operations are in
the `_concrete_*.py` files, one per family.
"""

from collections.abc import Callable
from traceback import walk_tb
from types import FunctionType, TracebackType
from typing import Any, ParamSpec, TypeVar

from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._concrete._calls import Calls, is_internal
from stator_bytecode._concrete._exceptions import Exceptions, traceback_at
from stator_bytecode._concrete._generators import Generators, value_of
from stator_bytecode._concrete._matching import Matching
from stator_bytecode._concrete._names import NameOperations
from stator_bytecode._concrete._operations import NamedArgs
from stator_bytecode._concrete._values import Values
from stator_bytecode._fields import exception_field, set_exception_field
from stator_bytecode._handlers._all import DEFAULT
from stator_bytecode._machine._domain import Invoke, Raised, Resume
from stator_bytecode._machine._frame import Frame
from stator_bytecode._machine._machine import Machine
from stator_bytecode._machine._outcome import Outcome, Yielded
from stator_bytecode.errors import InvalidUse, StatorError

P = ParamSpec("P")
R = TypeVar("R")
DEPTH_LIMIT = 20_000


class ConcreteDomain(NameOperations, Values, Calls, Generators, Exceptions, Matching):
    """Nothing is journaled: a program either runs, or stops at an instruction that no Machine runs.

    `interprets` selects which Python functions become frames; the others are called natively.
    """

    def __init__(
        self,
        interprets: Callable[[FunctionType], bool] = lambda function: True,
        make_machine: Callable[[Any], Machine] = lambda domain: Machine(
            domain, DEFAULT, depth_limit=DEPTH_LIMIT
        ),
    ) -> None:
        self.interprets = interprets
        self.active = make_machine(self)

    def mark(self) -> None:
        return None

    def rollback(self, mark: None) -> None:
        return None

    def at(self, frame: Frame, instruction: Instruction) -> None:
        return None

    def as_raised(self, error: BaseException) -> Raised | None:
        """Return what an operation, or code that it called, raised; None for a fault of the
        Machine."""
        traceback = exception_field(error, "__traceback__")
        if isinstance(error, StatorError) or _is_ours(traceback):
            return None
        rest = _beyond_us(traceback)
        rest = traceback_at(self.active.frames[-1], rest) if self.active.frames else rest
        set_exception_field(error, "__traceback__", rest)
        if isinstance(exception_field(error, "__context__"), Raised):
            set_exception_field(error, "__context__", None)
        return Raised(error)

    def constant(self, value: object) -> Any:
        return value

    def run(self, start: list[Frame] | Resume) -> Outcome | Yielded:
        outer = self.active
        self.active = machine = outer.nested()
        try:
            return machine.run(start) if isinstance(start, list) else machine.resume(start)
        finally:
            self.active = outer


_OPERATIONS = frozenset(
    f"{__package__}._{family}"
    for family in (
        "calls classes context_methods exceptions generators matching names values".split()
    )
)


def _is_ours(traceback: TracebackType | None) -> bool:
    """Return True if it was raised in this package itself, outside the operations."""
    frames = [frame for frame, _ in walk_tb(traceback)]
    names = frames[-1].f_globals if frames else {}
    return is_internal(names) and names["__name__"] not in _OPERATIONS


def _beyond_us(traceback: TracebackType | None) -> TracebackType | None:
    """The entries of the program's own native frames."""
    while traceback is not None and is_internal(traceback.tb_frame.f_globals):
        traceback = traceback.tb_next
    return traceback


def interpret(fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call `fn` through the Machine: the same result, or exception, as calling it."""
    return interpret_in(ConcreteDomain(), fn, args, kwargs)  # type: ignore[no-any-return]


def interpret_in(
    domain: ConcreteDomain, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: NamedArgs
) -> Any:
    result = domain.call(fn, args, kwargs)
    if not isinstance(result, Invoke) or result.then.kind != "value":
        raise InvalidUse(
            f"{fn!r} is no Python function", "interpret a function, or call it directly"
        )
    return value_of(domain.run([result.frame]))
