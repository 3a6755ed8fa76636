"""``assert_same``: a compiled function does what the plain one does, in everything that a program
can see.

Both sides start from equal worlds and equal copies of the arguments. Afterwards one description of
each is compared: the result or the exception with its traceback, what the arguments and the owning
modules have become, who shares memory with whom, what was printed and warned, random streams,
modes; then the gradients, and the same again after them.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import io
import pathlib
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import stator
import torch
from stator_guards import RecompileLimitWarning

from integration_tests.support.arguments import Call
from integration_tests.support.description import (
    EXACT,
    Description,
    Tolerance,
    asked,
    describe,
    differences,
)
from integration_tests.support.world import World

__all__ = ["EXACT", "Tolerance", "assert_same", "refusing", "run"]

CHECKS = (
    "RuntimeError: Expected Tensor with single nonzero value, but got zero",
    "RuntimeError: Runtime assertion failed",
    "OverflowError: int too big to convert",  # a symbolic int in `torch.tensor([n])`
)
"""How a check in the graph fails, for which the program raises something of its own."""
OURS = (RecompileLimitWarning, stator.OracleWarning)
HERE = pathlib.Path(__file__).resolve()
MACHINERY = (
    "stator",
    "stator_backends",
    "stator_bytecode",
    "stator_guards",
    "stator_subgraphs",
    "stator_variables",
)


@attrs.define
class Outcome:
    """What one call left behind."""

    arguments: Call
    owner: Any
    before: World
    after: World | None = None
    result: Any = None
    error: dict[str, Any] | None = None
    printed: str = ""
    warned: list[tuple[type, str]] = attrs.field(factory=list)

    def description(self) -> Description:
        return describe(
            args=self.arguments.args,
            kwargs=self.arguments.kwargs,
            owner=self.owner,
            result=self.result,
            error=self.error,
            printed=self.printed,
            warned=self.warned,
            world=self.after,
        )


def assert_same(
    plain: Callable[..., Any],
    compiled: Callable[..., Any],
    make_args: Callable[[], Any],
    calls: int = 3,
    *,
    tolerance: Tolerance = EXACT,
    gradients: bool = True,
    owners: tuple[Any, Any] | None = None,
    graphs_may_raise: bool = False,
) -> None:
    """Call both ``calls`` times and compare everything. Unless ``graphs_may_raise``, no graph
    raises when it runs what the program does not raise, though the program itself runs then. (``if
    bad: raise`` is a check in the graph.)

    ``make_args`` gives a ``Call``, a tuple or a dict. ``owners`` are what the two functions may
    change besides their arguments (a module, a namespace: two equal copies); a module that is
    called directly is its own owner.
    """
    ours, theirs = owners or (_owner(plain), _owner(compiled))
    reporting: Any = inspect.unwrap(compiled, stop=lambda fn: hasattr(fn, "report"))
    for number in range(calls):
        arguments, start = _call(make_args()), World.now()
        raised, known = set[str](), _failures(reporting)
        with _noting_errors(raised):
            expected = run(plain, arguments, ours, start)
        actual = run(compiled, arguments, theirs, start)
        _compare(expected, actual, tolerance, f"call {number + 1}")
        if gradients and expected.error is None and _backward(expected) and _backward(actual):
            _compare(expected, actual, tolerance, f"gradients of call {number + 1}")
        found = [text for text in _failures(reporting) if not any(text is one for one in known)]
        new = [
            text
            for text in found
            if text not in raised and not (raised and text.startswith(CHECKS))
        ]
        assert graphs_may_raise or not new, f"a graph raised what the program does not: {new}"
        missed = getattr(getattr(reporting, "report", None), "missed", ())
        assert not missed, f"expected to raise, and did not: {missed}"


def _failures(compiled: Any) -> list[str]:
    report: Any = getattr(compiled, "report", None)
    return list(getattr(report, "failures", ()))


@contextlib.contextmanager
def _noting_errors(raised: set[str]) -> Iterator[None]:
    """Also those that the program handles. Its own classes are not asked what they say: that could
    be seen."""

    def trace(frame: Any, event: str, found: Any) -> Any:
        frame.f_trace_lines = False
        if event == "exception" and not isinstance(type(found[1]).__str__, types.FunctionType):
            # as of a module that holds itself: what is raised here, the program gets
            with contextlib.suppress(Exception):
                raised.add(f"{found[0].__name__}: {found[1]}")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def run(fn: Callable[..., Any], arguments: Call, owner: Any, start: World) -> Outcome:
    """Call ``fn`` in the world ``start`` with a copy of the arguments that keeps what they
    share."""
    start.restore()
    outcome = Outcome(_copy(arguments), owner, start)
    printed = io.StringIO()
    with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            outcome.result = fn(*outcome.arguments.args, **outcome.arguments.kwargs)
        except Exception as error:  # whatever the function raises is its outcome
            outcome.error = dict(_exception(error))
    outcome.after = World.now()
    outcome.printed = printed.getvalue()
    outcome.warned = list(_compared(warned))
    start.restore()
    return outcome


def refusing(
    compiled: Callable[..., Any], plain: Callable[..., Any], refused: list[stator.Unsupported]
) -> Callable[..., Any]:
    """Calls what was compiled with `fullgraph=True`; where it refuses, notes that and runs the
    plain function."""

    @functools.wraps(compiled)  # its report is that of the call
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return compiled(*args, **kwargs)
        except stator.Unsupported as error:
            refused.append(error)
        return plain(*args, **kwargs)

    return call


def as_first_run(fn: Any) -> Callable[..., Any]:
    """Errors of reads that CPython has specialised, since 3.12, do not say what was looked for."""

    def call(*args: Any) -> Any:
        code = fn.__code__
        try:
            fn.__code__ = _fresh(code)
            return fn(*args)
        finally:
            fn.__code__ = code

    return call


def _fresh(code: types.CodeType) -> types.CodeType:
    return code.replace(
        co_consts=tuple(_fresh(c) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    )


def _copy(arguments: Call) -> Call:
    """A deep copy; that of a parameter forgets its gradient."""
    memo: dict[int, Any] = {}
    copied = copy.deepcopy(arguments, memo)
    for original in list(memo.get(id(memo), ())):
        if isinstance(original, torch.nn.Parameter) and original.grad is not None:
            memo[id(original)].grad = copy.deepcopy(original.grad, memo)
    return copied


def _call(made: Any) -> Call:
    if isinstance(made, Call):
        return made
    return Call(kwargs=made) if isinstance(made, dict) else Call(args=tuple(made))


def _owner(fn: Callable[..., Any]) -> Any:
    target = getattr(fn, "__self__", fn)
    if not isinstance(target, torch.nn.Module):
        return None
    return getattr(target, "_orig_mod", target)


def _compare(expected: Outcome, actual: Outcome, tolerance: Tolerance, when: str) -> None:
    found = differences(expected.description(), actual.description(), tolerance)
    if found:
        found.sort(key=lambda text: not text.startswith("error"))  # what raised explains the rest
        more = [f"… and {len(found) - 20} more"] if len(found) > 20 else []
        raise AssertionError(
            "\n  ".join([f"{when}: not what plain Python gives", *found[:20], *more])
        )


def _backward(outcome: Outcome) -> bool:
    """Send fixed gradients into every differentiable tensor of the result; False when there is
    none.

    That autograd refuses (a tensor it needs was written to since) is an outcome too, and so is what
    a hook raises.
    """
    roots = [
        t
        for t in _tensors(outcome.result, set())
        if t.requires_grad and asked(t, "is_leaf") is False
    ]
    if roots:
        weights = [
            torch.linspace(0.5, 1.5, t.numel(), dtype=t.dtype).reshape(t.shape) for t in roots
        ]
        try:
            torch.autograd.backward(roots, weights)
        except Exception as error:
            outcome.error = {"backward raised": str(error)}
        outcome.before.restore()
    return bool(roots)


def _tensors(value: Any, seen: set[int]) -> Iterator[torch.Tensor]:
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        yield value
    parts = (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, list | tuple)
        else ()
    )
    for part in (
        (*parts, *getattr(value, "__dict__", {}).values())
        if not isinstance(value, torch.Tensor)
        else ()
    ):
        yield from _tensors(part, seen)


def _exception(error: BaseException | None) -> Iterator[tuple[str, Any]]:
    if error is None:
        return
    yield "type", type(error)
    yield (
        "args",
        list(error.args),
    )  # a copy: CPython passes the very tuple on in KeyError(*other.args), by accident
    yield "attributes", dict(vars(error))
    yield (
        "traceback",
        [
            _place(frame)
            for frame in traceback.extract_tb(error.__traceback__)
            if _is_the_users(frame.filename)
        ],
    )
    yield "cause", dict(_exception(error.__cause__))
    yield "context", dict(_exception(error.__context__))
    yield "suppressed", error.__suppress_context__


def _place(frame: traceback.FrameSummary) -> str:
    return f"{frame.filename}:{frame.lineno} in {frame.name}"


def _compared(warned: list[warnings.WarningMessage]) -> Iterator[tuple[type[Warning], str]]:
    """Yield the warnings of the program. Those of C++ name the line that calls a kernel, also of a
    graph: where torch gives them each time, they are compared once, from any line."""
    internal = set()
    for warning in warned:
        text = str(warning.message)
        if "(Triggered internally at" in text and torch.is_warn_always_enabled():
            is_first = text not in internal
            internal.add(text)
        else:
            is_first = _is_the_users(warning.filename)
        if is_first and warning.category not in OURS:
            yield warning.category, text


def _is_the_users(filename: str) -> bool:
    """Frames of torch, of what compiles, of this file and of generated code are not part of the
    user's traceback."""
    path = pathlib.Path(filename).resolve()
    return (
        path.exists()
        and path != HERE
        and not any(path.is_relative_to(folder) for folder in _machinery())
    )


def _machinery() -> list[pathlib.Path]:
    modules = [sys.modules.get(name) for name in ("torch", *MACHINERY)]
    return [pathlib.Path(str(module.__file__)).parent for module in modules if module is not None]
