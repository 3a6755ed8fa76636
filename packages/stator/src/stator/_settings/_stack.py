"""The layers that a compilation runs through, and the tables of their handlers.

A `Stack` names the parts. Its tables are merged once per process for the default parts, and once
for each stack with parts of its own.
"""

import functools
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

import attrs
import torch
from stator_bytecode import HandlerTable
from stator_guards import Guard, GuardSet, compile_guards
from stator_variables import DEFAULT_HANDLERS, BuilderTable, Space, SymbolicDomain

from stator._program import _module
from stator._settings import _captures, _comptime
from stator._settings._captures import Tables
from stator._settings._deferred_warning import defer_warning


def output_graph(places: Any, capture_data: bool = False) -> object:
    """The default graph layer, imported by the first trace: it brings sympy, half the time of
    importing everything."""
    from stator_subgraphs import OutputGraph

    return OutputGraph(places, capture_data=capture_data)


@functools.cache  # installed distributions are enumerated once per process
def _points() -> Any:
    return entry_points()


@functools.cache
def _installed(group: str) -> tuple[Any, ...]:
    """Return the tables that installed distributions announce under an entry point group.

    One that cannot be imported is reported in a warning and left out: it need not concern this
    program.
    """
    tables = []
    for point in _points().select(group=group):
        try:
            tables.append(point.load())
        except Exception as error:  # importing a distribution of somebody else may raise anything
            kind = group.removeprefix("stator_")
            text = f"the {kind} {point.name!r} ({point.value}) are not available: {error!r}"
            defer_warning(UserWarning(text))
    return tuple(tables)


def default_operators() -> HandlerTable[Any, Any]:
    """Return the higher-order operators of the default graph layer, with those of installed
    distributions (entry point group `stator_operators`)."""
    from stator_subgraphs import OPERATORS

    return OPERATORS.merged_with(*_installed("stator_operators"))


def default_handlers() -> HandlerTable[Any, Any]:
    """Return the handlers of callables in C, with those of installed distributions (entry point
    group `stator_handlers`)."""
    own = DEFAULT_HANDLERS.merged_with(_module.handlers, _comptime.handlers)
    return own.merged_with(*_installed("stator_handlers"))


def default_builders() -> BuilderTable:
    """Return the builders of trackers of installed distributions (entry point group
    `stator_builders`), which take precedence over those of stator."""
    return BuilderTable().merged_with(*_installed("stator_builders"))


def guard_set(guards: list[Guard], parameters: tuple[str, ...]) -> GuardSet:
    """The default guard layer: of root objects, modules and optimizers are likely to be given to
    the next calls again."""
    return compile_guards(guards, parameters, is_lasting=is_lasting)


def is_lasting(value: object) -> bool:
    return issubclass(type(value), torch.nn.Module | torch.optim.Optimizer)


@attrs.frozen
class Stack:
    """The layers a compilation runs through; a fork passes one with its own parts.

    `handlers`, `operators` and `builders` are made by the first trace. One's own are merged with
    the defaults: `lambda: default_handlers().merged_with(mine)`.
    """

    guards: Callable[[list[Guard], tuple[str, ...]], GuardSet] = guard_set
    graph: Callable[..., Any] = output_graph
    domain: Callable[[Space], Any] = SymbolicDomain
    handlers: Callable[[], Mapping[Any, Any]] = default_handlers
    operators: Callable[[], Mapping[Any, Any]] = default_operators
    builders: Callable[[], BuilderTable] = default_builders
    _all: dict[tuple[str, ...], Tables] = attrs.field(
        factory=dict, init=False, eq=False, repr=False
    )

    def tables(self, without: tuple[str, ...] = ()) -> Tables:
        """Return handlers and operators, merged by the first trace, and the builders; those of the
        captures that are switched off are missing."""
        own = (self.handlers, self.operators, self.builders)
        if own == (default_handlers, default_operators, default_builders):
            return _default_tables(_sizes(), without)

        if () not in self._all:
            self._all[()] = _merged(self.handlers, self.operators, self.builders)
        if without not in self._all:
            self._all[without] = _captures.without_captures(self._all[()], without)
        return self._all[without]


def list_captures() -> tuple[str, ...]:
    """Return the names of all captures: values of `options={"without": [...]}`."""
    return _captures.names_of(Stack().tables())


def _merged(
    handlers: Callable[[], Mapping[Any, Any]],
    operators: Callable[[], Mapping[Any, Any]],
    builders: Callable[[], BuilderTable],
) -> Tables:
    merged: HandlerTable[Any, Any] = HandlerTable("callable", dict(handlers()))
    return merged.merged_with(operators()), builders()


@functools.lru_cache(maxsize=8)
def _default_tables(sizes: tuple[int, ...], without: tuple[str, ...]) -> Tables:
    """Merge the default tables, once per process, and again when one of them has grown."""
    if without:
        return _captures.without_captures(_default_tables(sizes, ()), without)
    return _merged(default_handlers, default_operators, default_builders)


def _sizes() -> tuple[int, ...]:
    """Return the sizes of the tables that the defaults are merged from: handlers are only ever
    added to a table, by whoever imported it."""
    from stator_subgraphs import OPERATORS

    tables: list[Any] = [DEFAULT_HANDLERS, _module.handlers, _comptime.handlers, OPERATORS]
    tables += [*_installed("stator_handlers"), *_installed("stator_operators")]
    for builders in _installed("stator_builders"):
        tables += [builders.by_class, builders.by_base]
    return tuple(map(len, tables))
