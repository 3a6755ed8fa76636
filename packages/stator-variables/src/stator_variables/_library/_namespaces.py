"""types.SimpleNamespace (`Objects/namespaceobject.c`): a class of C whose instances are nothing but
a `__dict__`."""

import operator
from types import SimpleNamespace
from typing import Any

from stator_bytecode import Result

from stator_variables import _trackers as k
from stator_variables._objects import _dict_entries
from stator_variables._objects._method_table import app_level
from stator_variables._space import Space
from stator_variables._tracker import Args, FunctionTable, Kwargs, VariableTracker

handlers = FunctionTable("method of SimpleNamespace")


@handlers.handles(SimpleNamespace.__init__)
def initialise(t: Space, args: Args, kwargs: Kwargs) -> k.ConstantTracker:
    for name, value in kwargs.items():
        _dict_entries.set_name(t, args[0].namespace, name, value)
    return k.NONE


def _compared(test: Any, left: VariableTracker, right: VariableTracker) -> Any:
    return (
        test(left.__dict__, right.__dict__)
        if issubclass(type(right), SimpleNamespace)
        else NotImplemented
    )


@handlers.handles_each({SimpleNamespace.__eq__: operator.eq, SimpleNamespace.__ne__: operator.ne})
def compared(t: Space, args: Args, kwargs: Kwargs, of: object) -> Result:
    return app_level(t, _compared, [k.BuiltinTracker(of), *args], kwargs)
