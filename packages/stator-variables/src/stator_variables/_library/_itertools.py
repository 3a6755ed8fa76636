"""itertools: `_applevel._itertools` runs behind an iterator of the class; combinations are made at
once."""

import itertools
import math
import sys
from typing import Any

from stator_bytecode import OperationSteps, Result, after, operation, settle

from stator_variables._applevel import _itertools as app
from stator_variables._objects import _number
from stator_variables._objects._arity import signature_arity
from stator_variables._objects._iterators._itertools import (
    COMBINATIONS,
    CombinationsTracker,
    ItertoolsTracker,
)
from stator_variables._objects._list import ListTracker
from stator_variables._objects._method_table import app_level, settle_all
from stator_variables._objects._program_error import throw
from stator_variables._objects._sequence_methods import iterate
from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs

handlers = FunctionTable("itertools function")
_NAMES = (
    "count cycle repeat islice takewhile dropwhile filterfalse starmap compress pairwise "
    "accumulate zip_longest batched groupby"
)
_LAZY = [getattr(itertools, name) for name in _NAMES.split() if hasattr(itertools, name)]


@handlers.handles_each(_LAZY)
def make_lazy(t: Space, args: Args, kwargs: Kwargs, of: type) -> Result:
    if of is itertools.islice:
        args = [*args[:1], *(_number.as_constant(t, bound) for bound in args[1:])]
    _check(t, of, args, kwargs)
    return _made(t, of, args, kwargs, of)


def _check(t: Space, real: type, args: Args, kwargs: Kwargs) -> None:
    bad: Any = not signature_arity(getattr(app, real.__name__)).accepts(args, kwargs)
    if real is itertools.islice:
        bad = any(_is_no_bound(bound.constant()) for bound in args[1:])
        bad = bad or (len(args) == 4 and args[3].constant() == 0)
    if real is itertools.count:
        bad = bad or not all(issubclass(vt.cls, int | float) for vt in (*args, *kwargs.values()))
    if real is itertools.repeat:
        times = [*args[1:], *(vt for name, vt in kwargs.items() if name == "times")]
        bad = bad or not all(issubclass(vt.cls, int) for vt in times)
    if not bad and real.__name__ == "batched":
        size = (kwargs["n"] if "n" in kwargs else args[1]).constant()
        if size is not MISSING and size < 1:
            throw(ValueError, "n must be at least one")
    _check_given(t, real, bad)


def _check_given(t: Space, real: Any, is_wrong: bool) -> None:
    if is_wrong:
        raise t.unsupported(
            "bad-arguments", f"a call of itertools.{real.__name__} that it does not accept"
        )


def _is_no_bound(value: Any) -> bool:
    return not (value is None or (type(value) is int and value >= 0))


@operation
def _made(t: Space, cls: type, args: Args, kwargs: Kwargs, of: type) -> OperationSteps:
    args, at = [*args], _ITERATED.get(of, slice(1))
    args[at] = yield from settle_all(map(t.get_iterator, args[at]))
    named = [name for name in ("iterable", "data", "selectors") if name in kwargs]
    found = yield from settle_all(t.get_iterator(kwargs[name]) for name in named)
    inner = yield from settle(
        app_level(t, getattr(app, of.__name__), args, kwargs | dict(zip(named, found, strict=True)))
    )
    return ItertoolsTracker(cls, inner)


_ITERATED: dict[Any, slice] = {itertools.compress: slice(2), itertools.zip_longest: slice(None)}
_ITERATED |= dict.fromkeys(
    (itertools.takewhile, itertools.dropwhile, itertools.filterfalse, itertools.starmap),
    slice(1, 2),
)
_ITERATED |= dict.fromkeys((itertools.count, itertools.repeat), slice(0))
"""The arguments that C takes iterators of at once, if it is not the first."""


@handlers.handles_each({itertools.chain: False, itertools.chain.from_iterable: True})
def chain(t: Space, args: Args, kwargs: Kwargs, of: bool) -> Result:
    return _made(t, itertools.chain, args if of else [TupleTracker(args)], {}, itertools.chain)


@handlers.handles(itertools.chain.__dict__["from_iterable"])
def chain_of_class(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return _made(t, args[0].value, args[1:], {}, itertools.chain)


@handlers.handles(app.group_of)
def group(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return after(
        app_level(t, app._grouper, args),
        lambda inner: ItertoolsTracker(itertools._grouper, inner),  # type: ignore[attr-defined]
    )


@handlers.handles(itertools.tee)
@operation
def tee(t: Space, args: Args, kwargs: Kwargs) -> OperationSteps:
    bad = len(args) == 2 and (args[1].constant() is None or _is_no_bound(args[1].constant()))
    _check_given(t, itertools.tee, bad)
    count = 2 if len(args) == 1 else args[1].constant()
    if not count:
        return TupleTracker([])
    it = yield from settle(t.get_iterator(args[0]))
    it = yield from settle(t.get_iterator(it))  # which C does twice
    shared = yield from settle(app_level(t, app.Shared, [it]))
    found = yield from settle_all(app_level(t, app._tee, [shared]) for _ in range(count))
    cls: Any = itertools._tee  # type: ignore[attr-defined]
    return TupleTracker([ItertoolsTracker(cls, inner) for inner in found])


# -- made at once ----------------------------------------------------------------------------------
@handlers.handles_each(COMBINATIONS)
def make_eager(t: Space, args: Args, kwargs: Kwargs, of: type) -> Result:
    """Iterables come first, one for all but `product`; then at most one int."""
    is_product = of is itertools.product
    count = len(args) if is_product else 1
    rest = [_number.as_constant(t, vt).constant() for vt in (*args[count:], *kwargs.values())]
    fewest = 0 if is_product or of is itertools.permutations else 1
    named = kwargs.keys() <= {"repeat" if is_product else "r"}

    bounded = (
        not any(map(_is_no_bound, rest))
        and all(value is None or value <= sys.maxsize for value in rest)
        and (None not in rest or of is itertools.permutations)
    )
    if len(args) < count or not named or not fewest <= len(rest) <= 1 or not bounded:
        raise t.unsupported(
            "bad-arguments", f"a call of itertools.{of.__name__} that it does not accept"
        )

    repeat = {"repeat": rest[0]} if rest and is_product else {}
    return _combined(
        t, of, args, kwargs, count, [] if repeat else [v for v in rest if v is not None], repeat
    )


MOST = 10_000
"""The limit of tuples of items that are made ahead."""


def _count(real: object, lengths: list[int], r: int | None = None, repeat: int = 1) -> int:
    """Return the number of tuples, or one above the limit; `r`, `repeat`: the arguments of
    itertools."""
    if real is itertools.product:
        return 0 if 0 in lengths else math.prod(lengths) ** min(repeat, MOST)
    (n,) = lengths
    wanted = n if r is None else r
    if real is itertools.combinations_with_replacement:
        n += wanted - 1 if n else 0
    return math.perm(n, wanted) if real is itertools.permutations else math.comb(n, wanted)


@operation
def _combined(
    t: Space,
    real: type,
    args: Args,
    kwargs: Kwargs,
    count: int,
    numbers: list[int],
    named: dict[str, int],
) -> OperationSteps:
    pools = yield from settle_all(t.drain(iterable, calls_len=True) for iterable in args[:count])
    if _count(real, [*map(len, pools)], *numbers, **named) > MOST:
        raise t.unsupported(
            "long-container", f"an itertools.{real.__name__} of more than {MOST} tuples"
        )
    rows = ListTracker([TupleTracker(row) for row in real(*pools, *numbers, **named)])
    drained = [TupleTracker(pool) for pool in pools]
    return CombinationsTracker(
        real, (*kwargs,), iterate(t, rows), *drained, *args[count:], *kwargs.values()
    )
