"""The progress of a trace, by which loops without operations are detected."""

from __future__ import annotations

from typing import Any

from attrs import define
from stator_bytecode import Frame

from stator_variables._trace._capture_state import Notes


@define(eq=False)
class Progress(Notes):
    """The instructions of the program that were interpreted; a rollback leaves their number."""

    begun: int = 0
    """The number of all instructions."""
    steps: int = 0
    """The instructions since the graph was last seen to grow."""
    waited: tuple[Any, list[Frame]] | None = None
    """The mark of the graph, and the frames, when patience was last lost."""
    looping: int = 0
    """The depth of the frame whose loop was given up."""
