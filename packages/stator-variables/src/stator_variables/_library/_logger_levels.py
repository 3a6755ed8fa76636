"""Levels of `logging`: whether one is enabled is evaluated again by the guards.

A logger keeps what it finds out for a level, under a lock and in the handler of a KeyError. To
trace that would be breaks on the first call, and a guard on whether the cache is filled.
"""

import logging
from collections.abc import Iterator

from stator_bytecode import Result
from stator_guards import CallSource, CapturedSource

from stator_variables._space import Space
from stator_variables._trace._heap import owner_of
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, source_of

handlers = FunctionTable("logging")


@handlers.handles(logging.Logger.isEnabledFor)
def is_enabled_for(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Return what `Logger.isEnabledFor(level)` gives; MISSING where it depends on the region."""
    logger, level = args[0].real, args[-1].constant()
    source = source_of(args[0])
    if kwargs or source is None or type(level) is not int or not _is_settled(t, logger):
        return MISSING

    found = CallSource(logging.Logger.isEnabledFor, source, CapturedSource(str(level), level))
    return t.wrap(logging.Logger.isEnabledFor(logger, level), found)


def _is_settled(t: Space, logger: logging.Logger) -> bool:
    """Return True if the region has changed nothing that the level depends on, and no class of the
    program decides it."""
    changed = {id(owner_of(vt).real) for vt in t.heap.changed.values()}
    return all(
        id(part) not in changed
        and type(part) in (logging.Logger, logging.RootLogger, logging.Manager)
        for part in _parts(logger)
    )


def _parts(logger: logging.Logger) -> Iterator[object]:
    """Yield the logger, its manager, and the loggers from which it inherits a level."""
    yield logger
    if isinstance(logger, logging.Logger):
        yield logger.manager
        if logger.parent is not None:
            yield from _parts(logger.parent)
