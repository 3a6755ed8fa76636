"""Recovery from an exception that a compiled graph raises, or lets pass.

An entry applies its side effects after its graph. When the graph raises, the effects that precede
the operator are still to be applied, and the exception belongs to the program's line. No operator,
hook or function of the program runs twice. In this order:

1. Nothing observable has happened, and an operator of torch raised: the program itself runs, and
   raises in its own words. Not if a saved-tensor hook may have run, or if Python code of the
   program or of a backend raised.
2. The graph ran in program order: the program goes on at the operator (`_resumption.py`), with the
   effects before it. The same exception object is raised there. An operator of torch without
   effects runs there again, natively, since the program may word its error in another way.
3. The program may catch the exception, and the entry has copied what the graph writes to
   (`RollbackPlan`): as 1.
4. The exception goes through as it is.

Nothing of this costs a call that does not raise, except for the copies of 3.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import torch
from stator_backends import AmbientState, one_at_a_time
from stator_bytecode import (
    FlatState,
    Point,
    Site,
    exception_field,
    is_own_module,
    passed_over,
    set_exception_field,
)

from stator._capture._retrace import Retrace
from stator._entries._calls_ahead import CallsAhead, Save
from stator._entries._graph_effects import GraphEffects
from stator._entries._late_inputs import LateInputs
from stator._entries._program_order import is_foreign
from stator._entries._resumption import (
    NodeFailure,
    Resumption,
    Unavailable,
    has_saved_tensor_hooks,
)
from stator._entries._saved_tensor import SavedTensor, save
from stator._program._fallback import EagerFallback
from stator._program._target import Continuation, Target
from stator._program._traceback import OWN_CODES
from stator.errors import BackendFailed, InvalidUse, Unsupported


@attrs.frozen
class RollbackPlan:
    """Copies that an entry makes before its graph runs: where nothing else can bring the program to
    its handler.

    `written` are positions among the tensor inputs of the graph.
    """

    written: tuple[int, ...]
    random: bool
    saves: tuple[Save, ...] = ()
    """Functions that save what calls ahead of the graph change."""

    @classmethod
    def of(
        cls, effects: GraphEffects, calls: CallsAhead, runs_in_order: bool, forgives: bool
    ) -> RollbackPlan | None:
        """Plan copies for graphs whose effects may have to be undone; what is written behind the
        graph needs none (`effects` are what the graph itself does)."""
        if effects.may_be_undone(runs_in_order, forgives):
            return cls(effects.written, effects.draws or None in calls.saved, calls.saves)
        return cls((), None in calls.saved, calls.saves) if calls.saved else None


@attrs.frozen
class Before:
    """State that the graph may change, as it was before."""

    rng: torch.Tensor | None
    saved: tuple[SavedTensor, ...]
    restores: tuple[Callable[[], object], ...] = ()

    def restore(self) -> bool:
        """Return False, with nothing changed, if that is not possible."""
        if not all(one.can_be_restored for one in self.saved):
            return False
        for one in self.saved:
            one.restore()
        if self.rng is not None:
            torch.set_rng_state(self.rng)
        for restore in self.restores:
            restore()
        return True


@attrs.frozen(eq=False)
class Made:
    """Results of the calls ahead of the graph, and the state before them."""

    results: Sequence[Any]
    before: Before | None


@attrs.define(eq=False)
class Recovery:
    """Called by an entry whose graph raised. `failures` holds the text of the last error, for the
    report."""

    target: Target
    ambient: AmbientState
    effects: GraphEffects
    plan: RollbackPlan | None
    failures: list[str]
    forgives: bool  # a backend that is at fault
    settings: tuple[tuple[Any, Any], ...] = ()  # that the graph changes, as they are before it
    calls: CallsAhead = attrs.field(factory=CallsAhead)
    module: Any = None  # the graph; None for an entry that was loaded from a dump
    ran: Any = None  # the equal graph whose code runs
    retrace: Retrace | None = None
    late: LateInputs = attrs.field(factory=LateInputs)  # effects that the graph leaves to the entry
    resumptions: dict[str, Resumption | None] = attrs.field(factory=dict)  # by the name of the node
    continuations: dict[Point, Continuation] = attrs.field(factory=dict)

    def __reduce__(self) -> Any:
        """Leave out the graph and what traces it: an entry that was dumped recovers without."""
        kept = (
            self.target,
            self.ambient,
            self.effects,
            self.plan,
            self.failures,
            self.forgives,
            self.settings,
        )
        return Recovery, kept

    def before(self, *inputs: torch.Tensor, objects: Sequence[Any] = ()) -> Before:
        """Copy what the plan lists; `inputs` are the tensor inputs of the graph that exist
        already, `objects` those whose state calls ahead of the graph change."""
        assert self.plan is not None
        rng = torch.get_rng_state() if self.plan.random else None
        written = [inputs[position] for position in self.plan.written]
        saved = save([tensor for tensor in written if tensor is not None])
        pairs = zip(self.plan.saves, objects, strict=True)
        return Before(rng, saved, tuple(save_state(each) for save_state, each in pairs))

    def after(
        self,
        error: BaseException,
        state: FlatState,
        before: Before | None = None,
        results: Sequence[Any] = (),
    ) -> EagerFallback:
        """Return how the program goes on; raise `error` where nothing but that is left."""
        self.failures[:] = [f"{type(error).__name__}: {error}"]
        failure = self._failure(error)
        is_of_operator = self._is_of_operator(error, failure)
        for setting, start in self.settings:
            setting.set(start)
        self.ambient.install()

        can_repeat = is_of_operator and not self._has_run_foreign(failure)
        has_effects = self.late.left_to_graph(self.effects).is_observable
        if can_repeat and not has_effects and self._undo_calls(before, results):
            return self._run_natively(error, state)
        if self.late.writes and failure is not None:
            if can_repeat and before is not None and self._restore(before):
                return self._run_natively(error, state)
            named = dict(zip(self.target.parameters, state, strict=True))
            failure = self.late.applied(failure, named)

        resumed = None
        is_undone = can_repeat and before is not None and self._would_wait()
        if failure is not None and not failure.is_half_done and not is_undone:
            made = Made(results, before)
            resumed = self._resume(error, failure, state, made, is_of_operator)
        if resumed is not None:
            return resumed
        if can_repeat and before is not None and self._restore(before):
            return self._run_natively(error, state)

        try:
            raise error
        finally:
            del error, failure, before  # the traceback holds this frame

    def _would_wait(self) -> bool:
        """Return True if another thread compiles, so that the trace of a resumption would have to
        wait, for an entry that is never to wait for it."""
        if self.retrace is None or not self.retrace.options.tiered:
            return False
        is_free = one_at_a_time.acquire(blocking=False)
        if is_free:
            one_at_a_time.release()
        return not is_free

    def _failure(self, error: BaseException) -> NodeFailure | None:
        """Return what is known of the operator that raised."""
        if self.module is None:
            return None
        failure = NodeFailure.of(error, self.module, self.ran)
        if failure is None and self.effects.catches_foreign and isinstance(error, Exception):
            failure = NodeFailure.of_compiled(error, self.module)
        return failure

    def _has_run_foreign(self, failure: NodeFailure | None) -> bool:
        """Return True if an operator of another library has run: it must not run again."""
        return failure is not None and any(map(is_foreign, failure.before()))

    def _is_of_operator(self, error: BaseException, failure: NodeFailure | None) -> bool:
        """Return True if an operator of torch raised, so that it raises again when it runs
        again."""
        if isinstance(error, BackendFailed):
            return self.forgives
        if not isinstance(error, Exception) or has_saved_tensor_hooks():
            return False
        if failure is not None and failure.is_foreign:
            return False
        return not _is_raised_by_program(error)

    def _run_natively(self, error: BaseException, state: FlatState) -> EagerFallback:
        # its frames hold modes that the graph entered
        set_exception_field(error, "__traceback__", None)
        return EagerFallback(self.target, state)

    def _restore(self, before: Before) -> bool:
        with torch.inference_mode(self.ambient.inference):
            return before.restore()

    def _undo_calls(self, before: Before | None, results: Sequence[Any]) -> bool:
        """Return False if calls were made ahead of the graph, and no state was saved."""
        return not results or (before is not None and self._restore(before))

    def _resume(
        self,
        error: BaseException,
        failure: NodeFailure,
        state: FlatState,
        made: Made,
        is_of_operator: bool,
    ) -> EagerFallback | None:
        resumption = self._resumption(failure, state)
        if resumption is None or not self._rewind(resumption, made):
            return None
        try:
            goto = resumption.resume(self.target, state, failure, made.results)
        except Unavailable:
            return None

        runs_again = is_of_operator and resumption.is_exact and not failure.has_effect
        assert isinstance(goto.site, Site)
        rest = _behind_machinery(failure.rest) if len(failure.nodes) > 1 else failure.rest
        set_exception_field(error, "__traceback__", rest)
        failure.forget_frame()
        if runs_again and failure.is_simple:
            site = goto.site
        else:
            site = Throwing(goto.site, error)
        return EagerFallback(Resumed(site, self.continuations), tuple(goto.state))

    def _rewind(self, resumption: Resumption, made: Made) -> bool:
        """Put the states back that calls after the operator changed; the resumption makes those
        before it again."""
        made_anew = {call.value for call in self.calls.calls if call.key is call.value}
        rewound = resumption.rewound - made_anew
        if not rewound:
            return True
        saved = self.calls.saved
        if made.before is None or not rewound <= set(saved):
            return False
        if None in rewound and made.before.rng is not None:
            torch.set_rng_state(made.before.rng)
        for each, restore in zip(self.calls.objects, made.before.restores, strict=True):
            if each in rewound:
                restore()
        return True

    def _resumption(self, failure: NodeFailure, state: FlatState) -> Resumption | None:
        name = failure.node.name
        if self.retrace is None or "began" not in failure.node.meta:
            return None
        if name not in self.resumptions:
            try:
                self.resumptions[name] = Resumption.of(self.retrace, state, failure, self.calls)
            except (InvalidUse, Unsupported):  # the graph may have given an input other dimensions
                self.resumptions[name] = None
        return self.resumptions[name]


@attrs.frozen(eq=False)
class Resumed:
    """A target that starts with the step of a site. What follows an exception runs natively: it is
    rare."""

    site: Site
    continuations: dict[Point, Continuation]  # that were needed before: their code is made once

    def plain(self) -> Resumed:
        return self

    def consume(self, state: list[Any]) -> object:
        """Run the target, and keep nothing of the state."""
        point, after = self.site.step(*state)
        state.clear()
        if (continuation := self.continuations.get(point)) is None:
            continuation = self.continuations[point] = Continuation(point)
        rest = EagerFallback(continuation, tuple(after))
        del after
        return rest.run()


class Throwing(Site):
    """A site where an exception is raised that was raised already, in a graph."""

    def __init__(self, site: Site, error: BaseException) -> None:
        super().__init__(site.point)
        self.site = site
        self.errors = [error]

    def step(self, *state: Any) -> Any:
        try:
            return self.site.throw(self.errors.pop(), *state)
        finally:
            del state  # it may hold an exception whose traceback holds this frame


def _is_raised_by_program(error: BaseException) -> bool:
    """Return True if a frame of other code than torch's, stator's, or generated code is the
    innermost."""
    entry: Any = exception_field(error, "__traceback__")
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    return entry is not None and not _is_machinery(entry.tb_frame.f_code.co_filename)


def _behind_machinery(entry: Any) -> Any:
    """Return a traceback without the frames of compiled code that it begins with."""
    while entry is not None and _is_machinery(entry.tb_frame.f_code.co_filename):
        entry = entry.tb_next
    return entry


_PACKAGES = [name for name in sys.modules if "." not in name and is_own_module(name)]
# with a separator, as torch_geometric is not of torch
_OWN_FOLDERS = tuple(
    str(Path(str(sys.modules[name].__file__)).parent) + os.sep for name in ("torch", *_PACKAGES)
)


def _is_machinery(filename: str) -> bool:
    return filename.startswith(("<", *_OWN_FOLDERS, *_folders_of_generated_code()))


def _folders_of_generated_code() -> Sequence[str]:
    """Return the folder that Inductor writes its code to, if it is in use."""
    folders: Any = sys.modules.get("torch._inductor.runtime.cache_dir_utils")
    return () if folders is None else (folders.cache_dir(),)


OWN_CODES.update(passed_over(Recovery.after, Resumed.consume, Throwing.step))
