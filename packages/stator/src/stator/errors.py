"""Every error stator raises, under one roof, and the table that maps those of the backend layer
onto it."""

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import stator_backends
from stator_bytecode import hide_own_modules
from stator_bytecode.errors import InternalError, InvalidUse, SourceSpan, StatorError, Unsupported

from stator._long_text import shorten

__all__ = [
    "InternalError",
    "InvalidUse",
    "OracleMismatch",
    "OracleWarning",
    "SourceSpan",
    "StatorError",
    "UncompiledWarning",
    "Unsupported",
]
__all__ += ["BackendFailed", "InvalidOption", "UnknownBackend", "backend_boundary"]


@attrs.define(eq=False)
class BackendFailed(StatorError):
    """A backend raised, or gave back something that cannot be called. What it raised is the
    `__cause__`."""

    name: str
    reason: str
    stage: str = "compiling the graph"
    repro: str = ""  # the path of a script that shows the failure, or why there is none
    log: str = ""  # the path of a file with the whole reason, if that is long
    operator: str = ""  # the operator that the backend had come to, if that is known
    program: tuple[str, ...] = ()  # its line of the program, as a traceback has it

    def __str__(self) -> str:
        hint = next((hint for text, hint in _REMEDIES.items() if text in self.reason), _REMEDY)
        lines = [*self._place(), *self._files(), f"try: {hint}", _SHOWS_MORE]
        head = f"backend {self.name!r} failed while {self.stage}: {self._shown_reason()}"
        return "\n".join([head, *(f"  {line}" for line in lines)])

    def _shown_reason(self) -> str:
        if self.log:
            return self.reason.splitlines()[0]
        # an interpreter of fx adds what the lines below say
        return self.reason.partition("\n\nWhile executing %")[0] if self.operator else self.reason

    def _place(self) -> Iterator[str]:
        """Yield the operator, and its line of the program with the source below."""
        if not self.operator:
            return
        yield f"at the operator {self.operator}"
        place, *source = self.program or ("",)
        if place:
            yield place
            yield from (f"  {line}" for line in source)

    def _files(self) -> Iterator[str]:
        if self.log:
            yield f"all of it: {self.log}"
        if self.repro:
            reduces = "; `python -m stator minify` reduces it"
            yield f"script: {self.repro}{reduces if self.repro.endswith('.py') else ''}"


_SHOWS_MORE = "STATOR_FULL_TRACEBACK=1 shows where in the backend"
_REMEDY = "backend='eager', which shows if the graph itself is sound; or options={'fallback': True}"
_REMEDIES = {
    "InvalidCxxCompiler": "install a C++ compiler such as g++, or set CXX to the path of one; "
    "backend='aot_eager' needs none",
    "cannot find -ltorch": "install torch into a folder without spaces in its path, which Inductor "
    "does not quote; backend='aot_eager' needs no compiler",
}


@attrs.define(eq=False)
class UnknownBackend(InvalidUse):
    """No backend of that name is registered, or announced by an installed distribution."""

    name: str = ""
    known: tuple[str, ...] = ()


@attrs.define(eq=False)
class InvalidOption(InvalidUse):
    """A mode or an option that does not exist, or has a value of the wrong type; a mode together
    with options of a backend."""

    option: str = ""


@attrs.define(eq=False)
class OracleMismatch(StatorError):
    """Oracle mode: the compiled function did not do what the plain one does. This is our bug."""

    what: str
    expected: str
    found: str
    where: SourceSpan

    def __str__(self) -> str:
        return (
            f"the compiled function differs from the plain one in {self.what}\n  at {self.where}\n"
            f"  plain: {self.expected}\n  compiled: {self.found}\n"
            "  this is our bug: please report it with the function and its inputs"
        )


class OracleWarning(UserWarning):
    """Oracle mode: a call was not compared, as something that it can reach has no faithful copy."""


class UncompiledWarning(UserWarning):
    """Operators of a graph run as they are, since the compiler would change what they mean, or does
    not take them."""


def _unknown_backend(error: stator_backends.BackendNotFound) -> StatorError:
    close = f"did you mean {' or '.join(map(repr, error.close))}? " if error.close else ""
    hint = f"{close}there are: {', '.join(error.known)}"
    return UnknownBackend(f"no backend is called {error.name!r}", hint, error.name, error.known)


def _invalid_option(error: stator_backends.InvalidBackendOption) -> StatorError:
    problem = f"backend {error.backend!r}: {error.option}={error.value!r} is not valid"
    return InvalidOption(problem, f"expected {error.expected}", error.option)


_BOUNDARY: dict[type[Exception], Callable[..., StatorError]] = {
    stator_backends.BackendNotFound: _unknown_backend,
    stator_backends.InvalidBackendOption: _invalid_option,
    stator_backends.BackendError: lambda error: BackendFailed(
        error.name,
        error.reason,
        error.stage,
        error.repro,
        error.log,
        error.operator,
        error.program,
    ),
    stator_backends.MalformedGraph: lambda error: InternalError(str(error)),
}


class backend_boundary:
    """Around every call into the backend layer: its errors leave as ours, with the original cause.
    No generator: the frame of one, in the traceback, would keep what called it with the first
    error, a cycle."""

    def __enter__(self) -> None: ...

    def __exit__(self, cls: Any, error: Any, traceback: Any) -> None:
        if (ours := _BOUNDARY.get(type(error))) is None:
            return
        cause = error.__cause__
        if cause is not None:
            hide_own_modules(cause, and_torch=True)
            if getattr(error, "log", ""):
                shorten(cause)
        raise ours(error) from cause
