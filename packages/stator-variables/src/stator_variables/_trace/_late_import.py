"""Imports of modules that are not loaded when a trace reaches them.

The module is loaded then, outside of the trace, which is made again: it finds the module as the
next call would. That is done where nothing that the program did before could be seen by the
module's code, and where a break would be an error.
"""

import importlib.util
import sys
from collections.abc import Sequence

import attrs

from stator_variables._trace._capture_state import Notes


@attrs.frozen
class LateImport:
    """A module to load, with parts of it that may be modules."""

    name: str
    parts: tuple[str, ...]

    @staticmethod
    def of(name: str, parts: Sequence[str]) -> "LateImport | None":
        """Return the import, unless it is known to fail: the program raises that itself."""
        missing = [name[:end] for end, text in enumerate(name + ".") if text == "."]
        missing = [each for each in missing if each not in sys.modules]
        if not missing or _is_found(missing[0]):
            return LateImport(name, tuple(parts))
        return None

    def load(self) -> None:
        try:
            __import__(self.name, fromlist=self.parts)
        except Exception:  # of the module: it raises again when the program imports it, traced
            return


@attrs.define(eq=False)
class LateImports(Notes):
    """The import that a trace broke at, to be made again with the module loaded."""

    wanted: LateImport | None = None


def _is_found(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
