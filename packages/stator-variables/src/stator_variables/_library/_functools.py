"""Functions and getters of operator, and the C parts of functools."""

import functools
import inspect
import math
import operator
import sys
import threading
import types
from typing import Any

from stator_bytecode import OperationSteps, Result, operation, settle
from stator_guards import CallSource, CapturedSource, Equals, Is, IsNone, Source

from stator_variables._applevel import _functools as app
from stator_variables._objects import _exceptions, _new_values
from stator_variables._objects._lookup import defines
from stator_variables._objects._method import MethodTracker
from stator_variables._objects._method_table import (
    COMPARISONS,
    app_level,
    as_constant,
    folded,
    then,
)
from stator_variables._objects._partial import PartialTracker
from stator_variables._objects._program_error import throw
from stator_variables._objects._recipe import KEY_WRAPPER, RecipeTracker
from stator_variables._objects._tuple import TupleTracker
from stator_variables._objects._wrap import new_namespace
from stator_variables._protocols import (
    _c_fields,
    _consumption,
    _containers,
    _folding,
    _operators,
)
from stator_variables._space import Space
from stator_variables._tracker import (
    MISSING,
    Args,
    FunctionTable,
    Kwargs,
    VariableTracker,
    is_a,
    is_pending,
)
from stator_variables._trackers import (
    NONE,
    BuiltinTracker,
    ClassTracker,
    ConstantTracker,
    NewClassTracker,
    is_none,
)

handlers = FunctionTable("functools function")
_GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)


@handlers.handles_each(_GETTERS)
def make(t: Space, args: Args, kwargs: Kwargs, of: type) -> RecipeTracker:
    names = args if of is operator.attrgetter else args[:1]
    if of is not operator.itemgetter and not all(isinstance(vt.constant(), str) for vt in names):
        raise t.unsupported(
            "bad-arguments", f"a call of operator.{of.__name__} that it does not accept"
        )
    return RecipeTracker(of, args, kwargs)


@handlers.handles(*(cls.__call__ for cls in _GETTERS))
def use_getter(t: Space, args: Args, kwargs: Kwargs) -> Result:
    getter = args[0]
    if not is_a(getter, RecipeTracker):
        raise t.unsupported("builtin", f"a call of an operator.{getter.cls.__name__} of objects")
    parts = TupleTracker(getter.args)
    if getter.cls is operator.itemgetter:
        return app_level(t, app.get_items, [parts, args[1]])
    if getter.cls is operator.attrgetter:
        return app_level(t, app.get_attributes, [parts, args[1]])
    rest = TupleTracker(getter.args[1:])
    return app_level(
        t, app.call_method, [getter.args[0], rest, _new_values.new_dict(getter.kwargs), args[1]]
    )


@handlers.handles(functools.cached_property.__get__)
def in_python(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return app_level(t, app.cached_property_get, args, kwargs)


@handlers.handles_each(vars(functools.partial)[name] for name in ("func", "args", "keywords"))
def part_of_partial(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Any:
    vt = args[0]
    if vt.source is not None:
        found = _c_fields.read_existing_field(t, of, vt, of.__name__)
        if of.__name__ == "keywords":
            t.journal.assign(vt, existing=found)
        return found
    if of.__name__ == "func":
        return vt.function
    if of.__name__ == "keywords":
        if vt.keywords is None:
            t.journal.assign(vt, keywords=_new_values.new_dict(vt.given))
        return vt.keywords
    if vt.args_tuple is None:
        t.journal.assign(vt, args_tuple=TupleTracker([*vt.args]))
    return vt.args_tuple


@handlers.handles(functools.cmp_to_key)
def make_key(t: Space, args: Args, kwargs: Kwargs) -> RecipeTracker:
    return RecipeTracker(KEY_WRAPPER, [*args, *kwargs.values()], {})


@handlers.handles(KEY_WRAPPER.__call__)
def use_key(t: Space, args: Args, kwargs: Kwargs) -> RecipeTracker:
    if not is_a(args[0], RecipeTracker):
        raise t.unsupported("builtin", "a call of what functools.cmp_to_key gave outside")
    return RecipeTracker(KEY_WRAPPER, [args[0].args[0], *args[1:], *kwargs.values()], {})


@handlers.handles_each(
    {
        getattr(KEY_WRAPPER, f"__{name}__"): getattr(operator, name)
        for name in "lt le eq ne gt ge".split()
    }
)
def compare_keys(t: Space, args: Args, kwargs: Kwargs, of: object) -> Result:
    if any(vt.cls is not KEY_WRAPPER for vt in args):
        throw(TypeError, "other argument must be K instance")
    if not all(is_a(vt, RecipeTracker) and len(vt.args) > 1 for vt in args):
        raise t.unsupported(
            "builtin", "a comparison of what functools.cmp_to_key gave outside, or of no object"
        )
    given = [BuiltinTracker(of), args[0].args[0], *(vt.args[1] for vt in args)]
    return app_level(t, app.compare_keys, given)


DISPATCH_CODE = functools.singledispatch(lambda value: value).dispatch.__code__


def dispatched(dispatch: Any, cls: type) -> object:
    """The implementation that a single-dispatch function has for a class."""
    return dispatch(cls)


@handlers.handles(DISPATCH_CODE)
def dispatch(t: Space, args: Args, kwargs: Kwargs) -> VariableTracker:
    """Evaluate `dispatch(cls)` of an existing single-dispatch function, which guards repeat on
    every call."""
    function, cls = args
    if not is_a(cls, ClassTracker):
        raise t.unsupported("bad-arguments", "a dispatch on something that is no class")
    parts = inspect.getclosurevars(function.real).nonlocals
    known = [
        t.heap.trackers.get(id(part))
        for part in (parts["registry"], getattr(parts["dispatch_cache"], "data", None))
    ]
    if any(found is not None and not is_pending(found) for found in known):
        raise t.unsupported(
            "builtin", "a dispatch by implementations that were just read, or registered"
        )

    held = (
        cls.source if cls.source is not None else CapturedSource(cls.value.__qualname__, cls.value)
    )
    try:
        found = function.real(cls.value)
    except Exception as error:  # no implementation is closer than another
        raise t.unsupported("builtin", f"a dispatch that raises {error!r}") from None
    source: Source = CallSource(dispatched, function.source, held)
    if is_a(cls, NewClassTracker):  # each call makes its own, after it has read what it reads
        t.guard(source, Is(found))
        source = CapturedSource("implementation", found)
    return t.wrap(found, source)


@handlers.handles(types.MethodType)
def make_method(t: Space, args: Args, kwargs: Kwargs) -> MethodTracker:
    if is_none(args[1]) or not defines(t, args[0].cls, "__call__"):
        raise t.unsupported("bad-arguments", "a call of MethodType that it does not accept")
    return MethodTracker(args[0], args[1])


@handlers.handles(threading.get_ident)
def get_ident(t: Space, args: Args, kwargs: Kwargs) -> ConstantTracker:
    t.guard(CallSource(threading.get_ident), Equals(threading.get_ident()))
    return ConstantTracker(threading.get_ident())


@handlers.handles(sys.exception)
def handled(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """The exception that the innermost frame which handles one is handling; outside of ours there
    must be none."""
    if (found := t.machine.handled()) is not None:
        return found
    if sys.exception() is not None:
        raise t.unsupported("handled-outside", "sys.exc_info() inside a handler outside the region")
    t.guard(CallSource(sys.exception), IsNone())
    return NONE


@handlers.handles(sys.exc_info)
def exc_info(t: Space, args: Args, kwargs: Kwargs) -> TupleTracker:
    if is_none(found := handled(t, args, kwargs)):
        return TupleTracker([NONE, NONE, NONE])
    return TupleTracker([t.class_of(found), found, _exceptions.traceback_of(t, found)])


@handlers.handles_each((math.prod, math.fsum))
@operation
def over_items(t: Space, args: Args, kwargs: Kwargs, of: Any) -> OperationSteps:
    items = TupleTracker((yield from settle(t.drain(args[0]))))
    found = (_folding.fold if of is math.prod else _folding.fold_numbers)(t, of, [items], kwargs)
    if found is not MISSING:
        return found
    if of is math.prod:
        return (
            yield from settle(
                app_level(t, app.prod, [items, kwargs.get("start", ConstantTracker(1))])
            )
        )
    raise t.unsupported("builtin", f"math.{of.__name__} of values that are not known while tracing")


@handlers.handles_each((vars(int)["from_bytes"], vars(float)["fromhex"], vars(bytes)["fromhex"]))
def made_from_text(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Any:
    """A class method of a number or bytes: pure where the class is the builtin one."""
    cls = args[0].value
    if cls not in (int, float, bytes):
        raise t.unsupported("construction", f"making an instance of {cls.__qualname__}")
    return folded(t, getattr(cls, of.__name__), args[1:], kwargs)


@handlers.handles(operator.concat)
def concat(t: Space, args: Args, kwargs: Kwargs) -> Result:
    found = t.fold(operator.concat, args, kwargs)
    return app_level(t, app.concat, args, kwargs) if found is MISSING else found


_SEARCHES: dict[Any, Any] = {operator.countOf: app.count_of, operator.indexOf: app.index_of}


@handlers.handles_each([*_SEARCHES])
@operation
def search(t: Space, args: Args, kwargs: Kwargs, of: object) -> OperationSteps:
    if (found := t.fold(of, args, kwargs)) is not MISSING:
        return found
    iterator = yield from _consumption.iterator_to_search(t, args[0])
    return (yield from settle(app_level(t, _SEARCHES[of], [iterator, args[1]])))


# Handlers of the functions of the operator module, and `functools.partial`.


@handlers.handles(functools.partial)
def make_partial(t: Space, args: Args, kwargs: Kwargs) -> PartialTracker:
    function, *rest = args
    if not defines(t, function.cls, "__call__"):
        throw(TypeError, "the first argument must be callable")

    if (
        is_a(function, PartialTracker)
        and function.cls is functools.partial
        and not _has_fields(function)
    ):
        function, rest, kwargs = (
            function.function,
            [*function.args, *rest],
            {**function.kwargs, **kwargs},
        )

    made = PartialTracker(functools.partial, function, rest, kwargs)
    new_namespace(made)
    return made


def _has_fields(vt: VariableTracker) -> bool:
    """A partial object that was given attributes is not taken apart."""
    if vt.real is not MISSING and functools.partial.__reduce__(vt.real)[2][3] is not None:
        return True
    return bool(vt.namespace is not None and vt.namespace.entries)


def _register(function: object, run: Any) -> None:
    handlers.handles(function)(lambda t, args, kwargs: run(t, *args))


def _register_symbols(run: Any, functions: dict[str, Any]) -> None:
    for symbol, function in functions.items():
        _register(function, lambda t, *vts, symbol=symbol: run(t, symbol, *vts))


_register_symbols(
    _operators.binary, {symbol: plain for symbol, (_, plain, _) in _operators.ARITHMETIC.items()}
)
_register_symbols(
    _operators.binary, {f"{symbol}=": own for symbol, (_, _, own) in _operators.ARITHMETIC.items()}
)
_register_symbols(
    _operators.compare, {symbol: test for symbol, (_, _, test) in COMPARISONS.items()}
)
_register_symbols(
    _operators.unary, {symbol: function for symbol, (_, function) in _operators.UNARY.items()}
)
_register(operator.getitem, _operators.get_item)
_register(operator.setitem, lambda t, *vts: then(_containers.set_item(t, *vts)))
_register(operator.delitem, lambda t, *vts: then(_containers.delete_item(t, *vts)))
_register(operator.is_, lambda t, left, right: t.identical(left, right, False))
_register(operator.is_not, lambda t, left, right: t.identical(left, right, True))
_register(operator.not_, _operators.negated)
_register(operator.truth, lambda t, vt: as_constant(t.truth(vt)))
_register(operator.contains, lambda t, container, item: t.contains(container, item, False))
_register(operator.index, _containers.as_index)
