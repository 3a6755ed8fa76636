"""operator's getters and the C parts of functools."""

from __future__ import annotations

import functools
import operator
from typing import Any

from stator_bytecode import HandlerTable

from stator_variables import _calls
from stator_variables import _kinds as k
from stator_variables._applevel import _functools as app
from stator_variables._builtins import app_level
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

handlers: HandlerTable[Any, Any] = HandlerTable("functools function")
Args = list[Any]
Kwargs = dict[str, Any]
_GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)


def _maker(cls: type) -> None:
    @handlers.handles(cls)
    def make(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
        names = args if cls is operator.attrgetter else args[:1]
        bad = not args or (kwargs and cls is not operator.methodcaller)
        if bad or (cls is not operator.itemgetter and not all(isinstance(vt.constant(), str) for vt in names)):
            raise t.unsupported("bad-arguments", f"a call of operator.{cls.__name__} that it does not accept")
        return k.RecipeTracker(cls, args, kwargs)


for _cls in _GETTERS:
    _maker(_cls)


@handlers.handles(*(cls.__call__ for cls in _GETTERS))
def use_getter(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    getter = args[0]
    if len(args) != 2 or kwargs:
        raise t.unsupported("bad-arguments", f"a call of an operator.{getter.cls.__name__} that it does not accept")
    if not isinstance(getter, k.RecipeTracker):
        raise t.unsupported("builtin", f"a call of an operator.{getter.cls.__name__} of objects")
    parts = k.TupleTracker(getter.args, tuple)
    if getter.cls is operator.itemgetter:
        return app_level(t, app.get_items, [parts, args[1]], {})
    if getter.cls is operator.attrgetter:
        return app_level(t, app.get_attributes, [parts, args[1]], {})
    rest = k.TupleTracker(getter.args[1:], tuple)
    return app_level(t, app.call_method, [getter.args[0], rest, _calls.new_dict(t, getter.kwargs), args[1]], {})


@handlers.handles(functools.cmp_to_key)
def cmp_to_key(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return app_level(t, app.cmp_to_key, args, kwargs)


def _folded_or(real: Any, function: Any) -> None:
    @handlers.handles(real)
    def run(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
        if len(args) != 2 or kwargs:
            raise t.unsupported("bad-arguments", f"a call of operator.{real.__name__} that it does not accept")
        folded = _calls.fold(t, real, args, kwargs)
        return app_level(t, function, args, kwargs) if folded is MISSING else folded


_folded_or(operator.concat, app.concat)
_folded_or(operator.countOf, app.count_of)
_folded_or(operator.indexOf, app.index_of)
