"""types.SimpleNamespace (`Objects/namespaceobject.c`): a class of C whose instances are nothing but
a `__dict__`."""

import operator
import types
from typing import Any

from stator_bytecode import HandlerTable, Result

from stator_variables import _trackers as k
from stator_variables._objects import _dictionary
from stator_variables._objects._method_table import app_level
from stator_variables._space import Space
from stator_variables._tracker import Args, Kwargs, VariableTracker

handlers: HandlerTable[Any, Any] = HandlerTable("method of SimpleNamespace")


@handlers.handles(types.SimpleNamespace.__init__)
def initialise(t: Space, args: Args, kwargs: Kwargs) -> k.ConstantTracker:
    for name, value in kwargs.items():
        _dictionary.set_name(t, args[0].namespace, name, value)
    return k.NONE


def _compared(test: Any, left: VariableTracker, right: VariableTracker) -> Any:
    return (
        test(left.__dict__, right.__dict__)
        if issubclass(type(right), types.SimpleNamespace)
        else NotImplemented
    )


@handlers.handles_each(
    {types.SimpleNamespace.__eq__: operator.eq, types.SimpleNamespace.__ne__: operator.ne}
)
def compared(t: Space, args: Args, kwargs: Kwargs, of: object) -> Result:
    return app_level(t, _compared, [k.BuiltinTracker(of), *args], kwargs)
