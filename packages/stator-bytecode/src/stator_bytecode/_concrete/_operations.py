"""The operations of the concrete domain that its families use of each other.

    class ConcreteDomain(NameOperations, Values, Calls, Generators, Exceptions, Matching)

A family that uses another extends `ConcreteOperations` and imports neither the other nor the
domain.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from stator_bytecode._machine._domain import Result, Resume
from stator_bytecode._machine._frame import Frame
from stator_bytecode._machine._machine import Machine
from stator_bytecode._machine._outcome import Outcome, Yielded

NamedArgs = dict[str, Any]


class ConcreteOperations(ABC):
    """`active` is the Machine that runs now; `interprets` selects the Python functions that become
    frames."""

    active: Machine
    interprets: Callable[[FunctionType], bool]

    @abstractmethod
    def run(self, start: list[Frame] | Resume) -> Outcome | Yielded:
        """Run frames, or a generator, while another Machine of this domain may be in the middle of
        a call."""

    @abstractmethod
    def call(self, function: Any, args: Sequence[Any], kwargs: NamedArgs) -> Result: ...

    @abstractmethod
    def runs_as_frame(self, function: FunctionType) -> bool: ...

    @abstractmethod
    def frame_of(self, function: FunctionType, args: Sequence[Any], kwargs: NamedArgs) -> Frame: ...
