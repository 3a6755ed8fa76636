"""Errors at the border to a backend, as data first and text second.

The facade maps these onto its own hierarchy, so each carries what a message needs instead of a
finished sentence.
"""

from typing import Any

from attrs import define

__all__ = [
    "BackendError",
    "BackendNotFound",
    "InvalidBackendOption",
    "MalformedGraph",
    "NoFault",
    "Unwritable",
]


@define(eq=False)
class BackendError(Exception):
    """A backend raised, or gave back something that cannot be called; the cause is chained with
    `from`."""

    name: str
    reason: str
    stage: str = "compiling the graph"
    repro: str = ""  # the path of a script that shows the failure, or why there is none
    log: str = ""  # the path of a file with the whole reason, if that is long
    operator: str = ""  # the operator that the backend had come to, if that is known
    program: tuple[str, ...] = ()  # its line of the program, as a traceback has it

    def __str__(self) -> str:
        return f"backend {self.name!r} failed while {self.stage}: {self.reason}"


@define(eq=False)
class BackendNotFound(LookupError):
    """No backend of that name is registered, or announced by an installed distribution."""

    name: str
    known: tuple[str, ...]
    close: tuple[str, ...] = ()

    def __str__(self) -> str:
        hint = f"; did you mean {' or '.join(map(repr, self.close))}?" if self.close else ""
        return f"no backend is called {self.name!r}{hint} (there are: {', '.join(self.known)})"


@define(eq=False)
class InvalidBackendOption(ValueError):
    """A mode or an option that this backend does not have, or a value of the wrong type for it."""

    backend: str
    option: str
    value: Any
    expected: str

    def __str__(self) -> str:
        return f"backend {self.backend!r}: {self.option}={self.value!r}, expected {self.expected}"


@define(eq=False)
class MalformedGraph(Exception):
    """The graph violates a rule that every backend relies on: a bug of the front end, never of the
    backend."""

    faults: tuple[str, ...]

    def __str__(self) -> str:
        return "this graph must not reach a backend: " + "; ".join(self.faults)


@define(eq=False)
class Unwritable(ValueError):
    """Something in a graph that has no text which gives it back in another process."""

    thing: str
    why: str

    def __str__(self) -> str:
        return f"{self.thing} cannot be written down: {self.why}"


@define(eq=False)
class NoFault(ValueError):
    """Nothing to reduce: the backend does on this graph what eager execution does."""

    name: str
    accuracy: str
    after: str

    def __str__(self) -> str:
        return f"backend {self.name!r} has no fault here (accuracy {self.accuracy}, {self.after})"
