"""Oracle mode: each call runs the original function in a copied world, then the compiled one, and
compares.

Compared are the result with its structure, types, values and sharing, or the exception; the final
state of arguments, globals, closures, classes and functions; random streams and modes. The original
run has no effects and no output, except outside of the process and on objects that cannot be
copied.
"""

import contextlib
import contextvars
import io
import pickle
import random
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import torch
from stator_backends import AmbientState
from stator_bytecode import FlatState, passed_over
from torch.utils.hooks import RemovableHandle

from stator._oracle_mode._comparison import Comparison
from stator._oracle_mode._copied_world import CannotCopy, CopiedWorld
from stator._program._traceback import OWN_CODES
from stator._regions._region import NOTHING, Region
from stator._regions._region_runner import RegionRunner
from stator.errors import OracleMismatch, OracleWarning, SourceSpan, StatorError


def _accelerator() -> list[Any]:
    return (
        [state.tolist() for state in torch.cuda.get_rng_state_all()]
        if torch.cuda.is_available()
        else []
    )


def _numpy() -> Any:
    return sys.modules["numpy"].random if "numpy" in sys.modules else None


# What belongs to the process: how it is read, in a form that can be compared, and put back.
PROCESS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "torch's random numbers": (
        lambda: torch.get_rng_state().tolist(),
        lambda state: torch.set_rng_state(torch.tensor(state, dtype=torch.uint8)),
    ),
    "the accelerator's random numbers": (
        _accelerator,
        lambda states: torch.cuda.set_rng_state_all(
            [torch.tensor(state, dtype=torch.uint8) for state in states]
        ),
    ),
    "Python's random numbers": (random.getstate, random.setstate),
    "NumPy's random numbers": (
        lambda: pickle.dumps(_numpy() and _numpy().get_state()),
        lambda state: _numpy() and _numpy().set_state(pickle.loads(state)),
    ),
    "the number of the next hook": (
        lambda: RemovableHandle.next_id,
        lambda number: setattr(RemovableHandle, "next_id", number),
    ),
    "grad mode and autocast": (AmbientState.capture, AmbientState.install),
    "the default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "deterministic algorithms": (
        torch.get_deterministic_debug_mode,
        torch.set_deterministic_debug_mode,
    ),
}


def _process() -> dict[str, Any]:
    return {name: read() for name, (read, _) in PROCESS.items()}


@attrs.frozen(eq=False)
class RunOutcome:
    """The result of one run and the state it left."""

    result: Any = None
    error: BaseException | None = None
    process: dict[str, Any] = attrs.field(factory=_process)


@attrs.define(eq=False)
class Oracle:
    """Stands where a wrapper has the runner of its region: never a fast hit, and `run` compares."""

    runner: RegionRunner
    fn: Any  # a function; mypy takes an attribute of that type for a method
    newest: list[Any] = attrs.field(factory=lambda: [NOTHING])

    @property
    def region(self) -> Region:
        return self.runner.region

    @property
    def finish(self) -> Any:
        return self.runner.finish

    @property
    def _function(self) -> tuple[Any, ...]:
        """The part of a state before the arguments."""
        return (self.fn,) if self.region.pool.root.fn is None else ()

    def run(self, state: FlatState) -> Any:
        # no exception of ours is being handled while the program runs
        if (beside := self._beside(state)) is None:
            return self.runner.run(state)
        world, expected = beside
        try:
            result = self.runner.run(state)
        except StatorError:
            raise
        except Exception as error:
            if world.cuts_history:
                _leave_out(_ANOTHER_HISTORY.format(error), 2)
            else:
                self._compare(expected, RunOutcome(error=error), world)
            raise
        self._compare(expected, RunOutcome(result), world)
        return result

    def _beside(self, state: FlatState) -> tuple[CopiedWorld, RunOutcome] | None:
        """Run the original function in a copied world; return None, with a warning, without a
        faithful copy.

        Frames of `run` are skipped: the warning concerns its caller.
        """
        try:
            world = CopiedWorld(self.fn, state[len(self._function) :])
            return world, self._plain(world)
        except CannotCopy as reason:
            _leave_out(reason, 3)
            return None

    def _plain(self, world: CopiedWorld) -> RunOutcome:
        with _muted(), _process_kept(), world.installed():
            try:
                plain = self.region.root.target.plain()
                context = contextvars.copy_context()
                return RunOutcome(context.run(plain, *self._function, *world.state))
            except Exception as error:  # whatever the program raises is its outcome
                if world.cuts_history:
                    raise CannotCopy(_ANOTHER_HISTORY.format(error)) from error
                return RunOutcome(error=error)

    def _compare(self, expected: RunOutcome, found: RunOutcome, world: CopiedWorld) -> None:
        names = self.region.root.target.parameters[len(self._function) :]
        parts = [
            ("the exception", _described(expected.error), _described(found.error)),
            ("the result", expected.result, found.result),
            *(
                (f"the argument {name}", *pair)
                for name, *pair in zip(names, world.state, world.arguments, strict=True)
            ),
            *world.variables(),
        ]

        comparison = Comparison()
        differences = [one for name, a, b in parts for one in comparison.differences(a, b, name)]
        changed = [name for name, state in expected.process.items() if found.process[name] != state]
        for where, left, right in [
            *differences,
            *((name, "one state", "another one") for name in changed),
        ]:
            raise OracleMismatch(where, left, right, self._where(expected)) from found.error

    def _where(self, expected: RunOutcome) -> SourceSpan:
        """The line that raised, else the function."""
        if expected.error is not None:
            frame = traceback.extract_tb(expected.error.__traceback__)[-1]
            return SourceSpan(frame.filename, frame.name, frame.lineno)
        code = self.fn.__code__
        return SourceSpan(code.co_filename, self.fn.__qualname__, code.co_firstlineno)


_ANOTHER_HISTORY = "its copies of computed tensors have another history, and it raised {}"


def _leave_out(reason: object, level: int) -> None:
    warnings.warn(f"oracle: this call is not compared: {reason}", OracleWarning, stacklevel=level)


def _described(error: BaseException | None) -> Any:
    return None if error is None else (type(error).__name__, str(error))


@contextlib.contextmanager
def _muted() -> Iterator[None]:
    """Discard the output and the warnings of the original run: the compiled one repeats them."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(record=True),
    ):
        yield


@contextlib.contextmanager
def _process_kept() -> Iterator[None]:
    before = _process()
    try:
        yield
    finally:
        for name, (_, restore) in PROCESS.items():
            restore(before[name])


OWN_CODES.update(passed_over(Oracle.run))
