"""Suspended generators that run code of the program when they are closed: see
`stator_bytecode.observes_close`.

The names that their `except` clauses test are read when a generator is made, and guarded there: an
entry that omits the end of a generator relies on `except IndexError` not catching GeneratorExit.
"""

from typing import Any

from stator_bytecode import (
    Frame,
    GeneratorState,
    GeneratorStatus,
    names_in_handlers,
    observes_close,
)

from stator_variables._space import Space
from stator_variables._tracker import MISSING, real_of, realize


def has_clean_up(state: GeneratorState) -> bool:
    """Return whether code of the program runs when a suspended generator is closed."""
    if state.status is not GeneratorStatus.SUSPENDED:
        return False
    return observes_close(state.frame.code, state.frame.pc, _tested_classes(state.frame))


def may_clean_up(t: Space, state: GeneratorState) -> bool:
    """Return whether there is a place in the generator's code where that is so: in most, there is
    none."""
    code, classes = state.frame.code, _tested_classes(state.frame)
    if not code.raw.co_exceptiontable:
        return False
    if not state.frame.hidden:
        for name in classes:
            _rely_on(t, state.frame, name)
    return any(observes_close(code, pc, classes) for pc in range(len(code.instructions)))


def _tested_classes(frame: Frame) -> dict[str, Any]:
    """Return what the names refer to that the `except` clauses of a generator test."""
    return {name: _value_of(frame, name) for name in names_in_handlers(frame.code)}


def _value_of(frame: Frame, name: str) -> Any:
    """Return the value of a name of the module, None where it is unknown."""
    for namespace in map(real_of, (frame.globals, frame.builtins)):
        if namespace is not MISSING and name in namespace:
            return namespace[name]
    return None


def _rely_on(t: Space, frame: Frame, name: str) -> None:
    """Guard the value of a name of the module."""
    found = t.lookup(frame.globals, name)
    if found is MISSING:
        found = t.lookup(frame.builtins, name)
    realize(found)  # which guards its identity
