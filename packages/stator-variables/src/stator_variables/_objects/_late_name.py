"""Functions of modules that need not be loaded, as keys of handlers: by their names.

    @handlers.handles(*late_names("torch.distributed.tensor._api", "DTensor.to_local"))

A module that is slow to import is not imported for its handlers. `functools.wraps` gives its name
to other functions, so what the name leads to is compared.
"""

import operator
import sys
import types
from typing import Any

import attrs


@attrs.frozen
class LateName:
    """A function by its module and its qualified name."""

    module: str
    qualname: str

    def leads_to(self, function: Any) -> bool:
        """Return True if the name is that of the function, or of the property that it reads."""
        try:
            found = operator.attrgetter(self.qualname)(sys.modules.get(self.module))
        except AttributeError:
            return False
        return found is function or getattr(found, "fget", None) is function


def late_names(module: str, *names: str) -> tuple[LateName, ...]:
    """Return the keys of functions of one module."""
    return tuple(LateName(module, name) for name in names)


def late_name(function: types.FunctionType) -> LateName | None:
    """Return the key of an existing function; None where its name leads to another."""
    name = LateName(function.__module__, function.__qualname__)
    return name if name.leads_to(function) else None
