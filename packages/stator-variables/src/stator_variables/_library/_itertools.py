"""itertools: lazy ones run `_applevel._itertools` behind an iterator of the class; combinations are made at once."""

import itertools
from typing import Any

from stator_bytecode import HandlerTable, operation, settle

from stator_variables import _kinds as k
from stator_variables._applevel import _itertools as app
from stator_variables._builtin._arity import Args, Arity, Kwargs, signature_arity
from stator_variables._builtin._results import app_level
from stator_variables._model import _iteration
from stator_variables._torch import _symbolic
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING

handlers: HandlerTable[Any, Any] = HandlerTable("itertools function")
_LAZY = (
    "count cycle repeat chain islice takewhile dropwhile filterfalse starmap compress pairwise accumulate "
    "zip_longest batched groupby"
).split()


def _lazy(real: Any, function: Any, cls: type) -> None:
    arity = signature_arity(function)

    @handlers.handles(real)
    def make(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
        if real is itertools.islice:
            args = [*args[:1], *(_symbolic.as_constant(t, bound) for bound in args[1:])]
        _check(t, real, arity, args, kwargs)
        return _made(t, function, cls, args, kwargs, real)


def _check(t: Tracing, real: Any, arity: Arity, args: Args, kwargs: Kwargs) -> None:
    bad: Any = not arity.accepts(args, kwargs)
    if real is itertools.islice:
        bad = not 2 <= len(args) <= 4 or bool(kwargs) or any(_is_no_bound(bound) for bound in args[1:])
        bad = bad or (len(args) == 4 and args[3].constant() == 0)
    if real in (itertools.repeat, itertools.count):
        numbers = args[1:] if real is itertools.repeat else [*args, *kwargs.values()]
        bad = (
            bad
            or not (args or kwargs or real is itertools.count)
            or any(not issubclass(vt.cls, int if real is itertools.repeat else int | float) for vt in numbers)
        )
    if bad:
        raise t.unsupported("bad-arguments", f"a call of itertools.{real.__name__} that it does not accept")


def _is_no_bound(vt: Any) -> bool:
    value = vt.constant()
    return not (value is None or (type(value) is int and value >= 0))


@operation
def _made(t: Tracing, function: Any, cls: type, args: Args, kwargs: Kwargs, real: Any) -> Any:
    inner = yield from settle(app_level(t, function, args, kwargs))
    return k.IteratorTracker(cls, "application", [inner, args, kwargs, real])


for _name in _LAZY:
    if hasattr(itertools, _name):
        _lazy(getattr(itertools, _name), getattr(app, _name), getattr(itertools, _name))


@handlers.handles(itertools.chain.from_iterable)
def chain_from_iterable(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return chain_of_class(t, [k.ClassTracker(itertools.chain), *args], kwargs)


@handlers.handles(itertools.chain.__dict__["from_iterable"])
def chain_of_class(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    cls = args[0].value
    return _made(t, app.chain_from_iterable, cls, args[1:], {}, cls.from_iterable)


@handlers.handles(itertools.tee)
def tee(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if not 1 <= len(args) <= 2 or kwargs or (len(args) == 2 and _is_no_bound(args[1])):
        raise t.unsupported("bad-arguments", "a call of itertools.tee that it does not accept")
    return _teed(t, args)


@operation
def _teed(t: Tracing, args: Args) -> Any:
    made = yield from settle(app_level(t, app.tee, args, {}))
    return k.TupleTracker([k.IteratorTracker(itertools._tee, "shared", [inner]) for inner in made.items], tuple)  # type: ignore[attr-defined]


# -- made at once -----------------------------------------------------------------------------------------------------
def _eager(real: Any, pools: int | None, numbers: int) -> None:
    """`pools`: how many iterables come first (None: all); then at most `numbers` ints."""

    @handlers.handles(real)
    def make(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
        count = len(args) if pools is None else pools
        rest = [_symbolic.as_constant(t, vt).constant() for vt in (*args[count:], *kwargs.values())]
        known = {"repeat"} if real is itertools.product else {"r"}
        if len(args) < count or len(rest) > 1 or not kwargs.keys() <= known or any(_bad_count(value) for value in rest):
            raise t.unsupported("bad-arguments", f"a call of itertools.{real.__name__} that it does not accept")
        if numbers and not rest and real is not itertools.permutations:
            raise t.unsupported("bad-arguments", f"a call of itertools.{real.__name__} that it does not accept")
        named = {"repeat": rest[0]} if rest and real is itertools.product else {}
        return _combined(t, real, args, kwargs, count, [] if named else [v for v in rest if v is not None], named)


def _bad_count(value: Any) -> bool:
    return value is MISSING or not (value is None or (type(value) is int and value >= 0))


@operation
def _combined(
    t: Tracing, real: Any, args: Args, kwargs: Kwargs, count: int, numbers: list[int], named: dict[str, int]
) -> Any:
    pools = []
    for iterable in args[:count]:
        pools.append((yield from settle(_iteration.drain(t, iterable))))
    rows = [k.TupleTracker(row, tuple) for row in real(*pools, *numbers, **named)]
    drained = [k.TupleTracker(pool, tuple) for pool in pools]
    return k.IteratorTracker(real, "made", [rows, drained + args[count:], kwargs, real])


_eager(itertools.product, None, 0)
_eager(itertools.permutations, 1, 1)
_eager(itertools.combinations, 1, 1)
_eager(itertools.combinations_with_replacement, 1, 1)

CLASSES = tuple(
    dict.fromkeys(
        (
            *(getattr(itertools, name) for name in _LAZY if hasattr(itertools, name)),
            *(itertools.product, itertools.permutations, itertools.combinations),
            *(itertools.combinations_with_replacement, itertools._tee),  # type: ignore[attr-defined]
        )
    )
)


@handlers.handles(*(cls.__next__ for cls in CLASSES))
def next_item(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    if not isinstance(args[0], k.IteratorTracker):
        raise t.unsupported("existing-iterator", f"an itertools.{args[0].cls.__name__} from outside")
    from stator_variables._builtin._iterator_functions import handle_next

    return handle_next(t, args[:1], {})


@handlers.handles(*(cls.__iter__ for cls in CLASSES))
def itself(t: Tracing, args: Args, kwargs: Kwargs) -> Any:
    return args[0]
