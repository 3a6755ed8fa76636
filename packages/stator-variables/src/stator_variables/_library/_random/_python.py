"""`random`: draws from a `random.Random`, each one native call per call of the entry.

Methods in Python (`uniform`, `gauss`, `randint`) are drawn as a whole: some loop until a number
fits, which is nothing to trace. What gives something else than numbers (`shuffle`, a choice among
strings) runs natively, as a break.
"""

import random
from typing import Any

from stator_bytecode import Result

from stator_variables import _trackers as k
from stator_variables._library._random import _streams
from stator_variables._objects import _number
from stator_variables._objects._wrap import attributes_of
from stator_variables._runtime._contents import plain_lookup
from stator_variables._space import Space
from stator_variables._tensors import _entry_values
from stator_variables._tracker import (
    MISSING,
    Args,
    FunctionTable,
    Kwargs,
    VariableTracker,
)

handlers = FunctionTable("random number")

_NAMES = """randrange randint choice choices sample uniform triangular normalvariate gauss
lognormvariate expovariate vonmisesvariate gammavariate betavariate paretovariate weibullvariate
binomialvariate""".split()
_TAKE_SYMBOLS = [
    vars(random.Random)[name]
    for name in ("uniform", "triangular", "normalvariate", "gauss", "lognormvariate")
]
"""Functions that take every float, so a symbolic one stays symbolic; others may raise for a
value."""
_OVERRIDABLE = ("random", "getrandbits", "_randbelow", "seed")
"""Methods that others call."""

_BASE = random.Random.__mro__[1]  # the class of C
_IN_C = (vars(_BASE)["random"], vars(_BASE)["getrandbits"])
_IN_PYTHON = [vars(random.Random)[name] for name in _NAMES if name in vars(random.Random)]


@handlers.handles_each([*_IN_C, *_IN_PYTHON])
def draw(t: Space, args: Args, kwargs: Kwargs, of: object) -> Any:
    """A method that draws. Returns MISSING where a subclass draws in its own way: that is
    interpreted."""
    receiver, *given = args
    if of not in _IN_C and not _draws_by_c(receiver):
        return MISSING
    if of not in _TAKE_SYMBOLS:
        given = [_number.as_constant(t, vt) for vt in given]
    values = [_copy_of(receiver), *map(_entry_values.example_of, given)]
    example = _streams.tried(t, of, values, kwargs)
    step = _streams.step(t, _streams.owner(t, receiver), of, [receiver, *given], kwargs)
    return _entry_values.result(t, step, example)


@handlers.handles(random.Random.seed, vars(_BASE)["seed"])
def seed(t: Space, args: Args, kwargs: Kwargs) -> Result:
    receiver, *given = args
    if not _draws_by_c(receiver):
        return MISSING
    values = [_copy_of(receiver), *map(_entry_values.example_of, given)]
    _streams.tried(t, random.Random.seed, values, kwargs)
    _streams.step(t, _streams.owner(t, receiver), random.Random.seed, args, kwargs)
    return k.NONE


@handlers.handles(random.Random.shuffle)
def shuffle(t: Space, args: Args, kwargs: Kwargs) -> Result:
    if not _draws_by_c(args[0]):
        return MISSING
    raise t.unsupported("random-value", "a list in an order that is drawn at random")


@handlers.handles(random.Random)
def make(t: Space, args: Args, kwargs: Kwargs) -> k.ObjectTracker:
    _streams.tried(t, random.Random, [*map(_entry_values.example_of, args)], kwargs)
    step = _streams.step(t, _streams.NEW, random.Random, args, kwargs)
    return _entry_values.made(step, random.Random)


def _draws_by_c(receiver: VariableTracker) -> bool:
    """Return True if what methods of `Random` call is that of `Random`, also of an object that was
    written to in the region."""
    names = [*_OVERRIDABLE, *_NAMES, "shuffle"]
    own = {} if receiver.namespace is None else attributes_of(receiver)
    return own.keys().isdisjoint(names) and all(
        plain_lookup(receiver.cls, name) is plain_lookup(random.Random, name) for name in names
    )


def _copy_of(receiver: VariableTracker) -> random.Random:
    copy = random.Random(0)
    if receiver.real is not MISSING:
        copy.setstate(random.Random.getstate(receiver.real))
    return copy
