"""The tracker of generators whose frames the Machine holds."""

import types

from stator_bytecode import (
    GeneratorFactory,
    GeneratorState,
    GeneratorStatus,
    Result,
    Resume,
    Then,
    layout_of_generator,
)

from stator_variables._emitter import Emitter, StillRunning
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker


class GeneratorTracker(VariableTracker, references=("state",)):
    """A generator whose frame the Machine holds."""

    cls = types.GeneratorType
    steps_to_null = True

    def __init__(self, state: GeneratorState) -> None:
        self.state = state

    def iter(self, t: Space) -> "GeneratorTracker":
        return self

    def next(self, t: Space) -> Result:
        state = self.state
        # In the place of C, which may be entered again.
        if state.frame.hidden and state.status is GeneratorStatus.RUNNING:
            raise t.unsupported(
                "running-generator", "an iterator of C that is advanced while it runs"
            )
        return Resume(state, then=Then("next"))

    def rebuild(self, e: Emitter) -> str:
        """A generator object that stands where the traced one stood."""
        if self.state.status is GeneratorStatus.RUNNING:
            raise StillRunning(self.state, e.refuse(self))
        if self.state.frame.hidden:  # it represents an iterator of C, of another class
            raise e.refuse(self)
        e.generators.append(self.state)
        layout, values = layout_of_generator(self.state, lambda frame: frame.globals.real)
        make = e.capture(GeneratorFactory(layout), f"make_{layout.raw.co_name}")
        parts = "".join(f"{e.expr(value)}, " for value in values)
        name = e.bind(self, f"{make}(({parts}))")
        if (renamed := names_of(self.state)) is not None:
            e.lines.append(f"{name}.__name__, {name}.__qualname__ = {renamed[0]!r}, {renamed[1]!r}")
        return name


def generator_state(vt: object) -> GeneratorState | None:
    """Return the state of a generator that was made while tracing, and consists of its frame alone,
    without realizing a value."""
    return vt.state if type(vt) is GeneratorTracker and names_of(vt.state) is None else None


def names_of(state: GeneratorState) -> tuple[str, str] | None:
    """`__name__` and `__qualname__` of a generator, when its function was given others than its
    code has."""
    real, code = getattr(state.frame.function, "real", MISSING), state.frame.code.raw
    if real is MISSING or (real.__name__, real.__qualname__) == (code.co_name, code.co_qualname):
        return None
    return real.__name__, real.__qualname__
