"""Methods of `re` patterns that are no functions of constants: they give an iterator, or call the
program."""

import re
from typing import Any

from stator_bytecode import Result

from stator_variables import _trackers as k
from stator_variables._applevel import _patterns as app
from stator_variables._objects import _new_values
from stator_variables._objects._lookup import defines
from stator_variables._objects._method_table import MethodTable, app_level
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, Kwargs, VariableTracker

methods = MethodTable("pattern method")
_COMPILE = vars(re)["_compile"]
_ALL = k.ConstantTracker(0)


@methods.handlers.handles(_COMPILE)
def compiled(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Fold the compilation in `re.search` and its kin; it is interpreted if not all is constant."""
    return t.fold(_COMPILE, args, kwargs)


@methods.handles(re.Pattern.finditer)
def finditer(
    t: Space, pattern: VariableTracker, *args: VariableTracker, **kwargs: VariableTracker
) -> Result:
    """All are found at once, as nothing can change them, and given one by one."""
    return app_level(t, app.one_by_one, [_all_matches(t, pattern, *args, **kwargs)])


def _all_matches(t: Space, *args: VariableTracker, **kwargs: Any) -> VariableTracker:
    values, named = (
        [arg.constant() for arg in args],
        {name: arg.constant() for name, arg in kwargs.items()},
    )
    if MISSING in (*values, *named.values()):
        raise t.unsupported("builtin", "matches of a pattern in what is not known while tracing")
    return _new_values.computed(
        t, lambda *given, **by_name: (*re.Pattern.finditer(*given, **by_name),), *values, **named
    )


@methods.handles_each({re.Pattern.sub: app.sub, re.Pattern.subn: app.subn})
def substitute(
    t: Space,
    pattern: VariableTracker,
    repl: VariableTracker,
    string: VariableTracker,
    count: VariableTracker = _ALL,
    *,
    of: object,
) -> Result:
    """Interpret `sub` with a function, which is called for each match. A constant call has been
    folded before."""
    is_known = type(string.constant()) in (str, bytes) and type(count.constant()) is int
    if not (is_known and defines(t, repl.cls, "__call__")):
        raise t.unsupported("builtin", "a substitution in what is not known while tracing")
    return app_level(t, of, [repl, string, count, _all_matches(t, pattern, string)])
