"""`importlib.import_module`, of a module that is loaded."""

import importlib
import sys

from stator_bytecode import Result

from stator_variables._protocols._imports import late_import, loaded_module
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs

handlers = FunctionTable("import")


@handlers.handles(getattr(importlib, "_bootstrap")._find_and_load)
def find_and_load(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """The end of `importlib.import_module`."""
    if (name := args[0].constant()) is MISSING:
        raise t.unsupported("import", "a module whose name is not known while tracing")
    if name in sys.modules:
        return loaded_module(t, name)
    raise late_import(t, name, (), f"the import of {name}, which is not loaded yet")
