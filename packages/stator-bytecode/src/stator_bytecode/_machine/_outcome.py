"""Outcomes of a run of the Machine."""

from typing import Any

from attrs import frozen

from stator_bytecode._machine._frame import Snapshot
from stator_bytecode.errors import Unsupported


@frozen(eq=False)
class Returned:
    """The outermost frame returned `value`."""

    value: Any


@frozen(eq=False)
class Broke:
    """An instruction could not be captured: go on natively from `snapshot`."""

    snapshot: Snapshot
    reason: Unsupported


@frozen(eq=False)
class Escaped:
    """An exception left the outermost frame; `snapshot` stands before the instruction that raised
    it. It may not leave that one natively, where it was caught inside of it and raised again later:
    then `leaves` is False."""

    exception: Any
    snapshot: Snapshot
    leaves: bool = True


@frozen(eq=False)
class Yielded:
    """A generator that was resumed alone yielded `value`."""

    value: Any


Outcome = Returned | Broke | Escaped
