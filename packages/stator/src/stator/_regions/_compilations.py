"""Compilations beside the program: the graphs of tiered entries, one at a time, in one thread.

    call:     trace, entry with the graph as it is, ... returns       -> `start`
    thread:   lower the graph, with the lock of compilations held     -> `TierChange.apply`

What a call has made waits until it has returned, so that its continuations are traced first: a
thread that compiles has the lock that a trace needs. A call that needs a trace meanwhile does not
wait for it, but runs plainly (`found_or_made`).

The thread ends when nothing waits. One that compiles when the interpreter exits is interrupted; in
a child that was forked there is none, and the entries that waited are made again.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Protocol

import attrs
from stator_backends import one_at_a_time
from stator_bytecode import FlatState, passed_over
from stator_guards import Cache, Entry

from stator._capture._compilation_flag import compiling
from stator._entries._entry_pool import EntryPool
from stator._entries._graph_lowering import FloatsNeeded, Outdated, SeparationNeeded
from stator._program._traceback import OWN_CODES
from stator._regions._compiled_target import CompiledTarget
from stator._settings._deferred_warning import defer_warning, deferred_warnings
from stator.errors import StatorError

AT_EXIT = 10.0
"""The seconds that the exit of the interpreter waits for a compilation that is interrupted."""


class Interrupted(BaseException):
    """Raised in the thread that compiles when the interpreter exits."""


class Owner(Protocol):
    """A compiled object, as its compilations need it."""

    def forget_newest(self) -> None: ...


@attrs.define(eq=False)
class TierJob:
    """The compilation of the graph of one entry, for the place of one compiled object."""

    entry: Entry
    place: CompiledTarget
    pool: EntryPool
    owner: Owner
    is_dropped: bool = False

    def run(self) -> None:
        """Compile, and let the entry change over. A failure is reported, and leaves it as it is."""
        change, started = self.entry.data.change, time.time()
        tier = change.tier
        tier.state = "compiles"
        try:
            self._changed(change)
            tier.end("compiled", started)
        except (FloatsNeeded, SeparationNeeded, Outdated) as reason:
            self._again(reason)
            tier.end("dropped", started, type(reason).__name__)
        except Exception as error:  # of the backend, or a fault of ours: both are reported
            name = "" if isinstance(error, StatorError) else f"{type(error).__name__}: "
            tier.end("failed", started, f"{name}{error}")
            defer_warning(UserWarning(f"{self.entry.data.target.name} {tier}"))
        finally:
            self.entry.data.change = None

    def _changed(self, change: Any) -> None:
        with compiling(), one_at_a_time:
            change.later.check_process()
            graph = change.later.lower()
            change.later.check_process()
        if self.is_dropped:
            return
        change.later.remember(graph)
        if (stricter := change.apply(graph)) is not None:
            with self.pool.lock:
                self.place.shared.add(stricter)
            change.retire()

    def _again(self, reason: Exception) -> None:
        """Let the next call trace again, in another way."""
        if isinstance(reason, FloatsNeeded):
            self.place.shared.shapes.need_floats()
        elif isinstance(reason, SeparationNeeded):
            self.place.shared.shapes.separates_steps = True
        self.entry.data.change.retire()


@attrs.define(eq=False)
class Compilations:
    """The compilations that wait, and the thread that makes them."""

    queue: deque[TierJob] = attrs.field(factory=deque)
    running: TierJob | None = None
    thread: threading.Thread | None = None
    warnings: list[Warning] = attrs.field(factory=list)
    """Warnings of the thread, which a call of the program is to show."""
    made: threading.local = attrs.field(factory=threading.local)
    """The compilations of calls that have not returned, by thread."""
    changed: threading.Condition = attrs.field(factory=threading.Condition)

    def note(self, entry: Entry, place: CompiledTarget, pool: EntryPool, owner: Owner) -> None:
        """Let the backend compile the graph of a tiered entry when this call has returned."""
        if entry.data.tier is not None:
            self._made().append(TierJob(entry, place, pool, owner))

    def start(self) -> None:
        """Start what the calls of this thread have added."""
        if not (made := self._made()):
            return
        with self.changed:
            self.queue.extend(made)
            made.clear()
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="stator", daemon=True)
                self.thread.start()

    def wait(self, owner: object | None, timeout: float | None) -> bool:
        """Wait until no compilation of `owner` (None: none at all) is under way; return False if
        the time was over before."""
        self.start()
        with self.changed:
            done = self.changed.wait_for(lambda: not self._of(owner), timeout)
        return done

    def drop(self, owner: object) -> None:
        """Drop what waits for `owner`, and the result of what is compiled for it."""
        with self.changed:
            for each in self._of(owner):
                each.is_dropped = True
                if each is not self.running:
                    self.queue.remove(each)
                    each.entry.data.change = None
            self.changed.notify_all()

    def show_warnings(self) -> None:
        """Hand the warnings of the thread to the runner of this one."""
        while self.warnings:
            defer_warning(self.warnings.pop(0))

    def interrupt(self) -> None:
        """Stop the thread, for the exit of the interpreter."""
        with self.changed:
            self.queue.clear()
            thread = self.thread
        end = time.monotonic() + AT_EXIT
        while thread is not None and thread.is_alive() and time.monotonic() < end:
            ident, error = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Interrupted)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, error)
            thread.join(0.2)

    def release_in_child(self) -> None:
        """Let the entries that waited be made again in a child: the thread does not exist there."""
        for each in (*self._made(), *self.queue, self.running):
            if each is None:
                continue
            if (change := each.entry.data.change) is not None:
                change.retire()
                each.entry.data.change = None
        self.queue, self.running, self.thread = deque(), None, None
        self.changed, self.made = threading.Condition(), threading.local()

    def _made(self) -> list[TierJob]:
        made: list[TierJob] = self.made.__dict__.setdefault("list", [])
        return made

    def _of(self, owner: object | None) -> list[TierJob]:
        under_way = [*self.queue] if self.running is None else [self.running, *self.queue]
        living = [each for each in under_way if not each.is_dropped]
        return living if owner is None else [each for each in living if each.owner is owner]

    def _run(self) -> None:
        try:
            while (job := self._next()) is not None:
                job.run()
                if deferred_warnings.waiting:
                    self._hand_over(job.owner)
        except Interrupted:
            return

    def _hand_over(self, owner: Owner) -> None:
        """Let the next call of a compiled object show the warnings of this thread."""
        self.warnings += deferred_warnings.waiting
        deferred_warnings.waiting.clear()
        owner.forget_newest()

    def _next(self) -> TierJob | None:
        with self.changed:
            self.running = self.queue.popleft() if self.queue else None
            if self.running is None:
                self.thread = None
            self.changed.notify_all()
            return self.running


COMPILATIONS = Compilations()
atexit.register(COMPILATIONS.interrupt)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=COMPILATIONS.release_in_child)


def found_or_made(
    cache: Cache,
    key: Hashable,
    state: FlatState,
    make: Callable[[], Entry | None],
    *,
    waits: bool,
) -> Entry | None:
    """Return the entry for a state, made if there is none; None for a call that must not wait for
    a compilation."""
    if waits:
        return cache.get_or_make(key, state, make)
    if not one_at_a_time.acquire(blocking=False):
        return None
    try:
        return cache.get_or_make(key, state, make)
    finally:
        one_at_a_time.release()


@attrs.frozen(eq=False)
class TieredRunner:
    """Stands where a wrapper has the runner of its region: what a call has made is compiled when
    it has returned."""

    runner: Any

    @property
    def newest(self) -> list[Entry]:
        newest: list[Entry] = self.runner.newest
        return newest

    def finish(self, result: object) -> Any:
        try:
            return self.runner.finish(result)
        finally:
            COMPILATIONS.start()

    def run(self, state: FlatState) -> Any:
        if COMPILATIONS.warnings:
            COMPILATIONS.show_warnings()
        try:
            return self.runner.run(state)
        finally:
            COMPILATIONS.start()


OWN_CODES.update(passed_over(TieredRunner.run, TieredRunner.finish))
