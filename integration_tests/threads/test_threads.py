"""Threads: first calls together, recompiles beside hits, breaks and generators, and nothing of a
trace seen outside it.

Each program gets arguments that are its thread's own, so that what plain Python gives is what every
thread has to get. The interpreter changes threads every few instructions here, and every case runs
several rounds.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import gc
import os
import pathlib
import random
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.description import EXACT, describe, differences

ROOT = pathlib.Path(__file__).parents[2]
ROUNDS = 4
THREADS = 8
PROGRAMS: dict[str, Callable[..., Any]] = {}

X = torch.arange(6.0).reshape(2, 3)


@pytest.fixture(autouse=True)
def _changes_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(*jobs: Callable[[], Any], seconds: float = 60) -> list[Any]:
    """What the jobs give, each in a thread of its own, all started at one moment. A deadlock fails
    with all stacks."""
    barrier, results = threading.Barrier(len(jobs)), dict[int, Any]()

    def work(number: int, job: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            results[number] = job()
        except Exception as error:
            results[number] = error

    crew = [threading.Thread(target=work, args=pair, daemon=True) for pair in enumerate(jobs)]
    for member in crew:
        member.start()
    deadline = time.monotonic() + seconds
    for member in crew:
        member.join(max(0.0, deadline - time.monotonic()))
    stuck = [member.ident for member in crew if member.is_alive()]
    assert not stuck, "\n".join(
        "".join(traceback.format_stack(sys._current_frames()[i])) for i in stuck if i
    )
    return [results[number] for number in range(len(jobs))]


def outcome(fn: Callable[..., Any], *args: Any) -> Any:
    """The value, or the exception with the lines it went through."""
    try:
        return fn(*args)
    except ValueError as error:
        frames = traceback.extract_tb(error.__traceback__)
        return repr(error), [frame.lineno for frame in frames if frame.filename == __file__][1:]


def assert_equal(actual: Any, expected: Any) -> None:
    found = differences(describe(result=expected), describe(result=actual), EXACT)
    assert not found, "\n".join(found[:9])


# -- programs --------------------------------------------------------------------------------------
def program(fn: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS[fn.__name__.replace("_", " ")] = fn
    return fn


def opaque(value: Any) -> Any:
    """Runs natively: a break."""
    stator.graph_break()
    return value


@program
def one_graph(x: Tensor, n: int) -> Any:
    return (x * n).sin() + n


@program
def a_break_in_the_middle(x: Tensor, n: int) -> Any:
    y = x + n
    n = opaque(n * 2)
    return y * n


@program
def breaks_in_a_loop_in_a_called_function(x: Tensor, n: int) -> Any:
    def step(y: Tensor, i: int) -> Any:
        return y * opaque(i + 1) + n

    for i in range(3):
        x = step(x, i)
    return x


@program
def a_generator_alive_across_a_break(x: Tensor, n: int) -> Any:
    def parts() -> Iterator[Tensor]:
        for i in range(3):
            yield x * (i + n)

    made = parts()
    first = next(made)
    opaque(n)
    return first, list(made)


@program
def an_exception_handled_after_a_break(x: Tensor, n: int) -> Any:
    try:
        opaque(n)
        raise KeyError(n)
    except KeyError as error:
        return x * error.args[0]


@program
def an_exception_that_leaves(x: Tensor, n: int) -> Any:
    y = x.sum() * 0 + n
    if n % 2:
        raise ValueError(f"odd: {n}")
    return y


@program
def a_grad_mode_of_its_own(x: Tensor, n: int) -> Any:
    x = x.clone().requires_grad_()
    with torch.set_grad_enabled(n % 2 == 0):
        y = x * n
        opaque(n)
        z = y + 1
    return z.requires_grad, torch.is_grad_enabled(), z.detach()


@program
def writes_to_what_it_was_given(x: Tensor, n: int) -> Any:
    seen: list[int] = []
    table = {"n": n}

    def note(k: int) -> None:
        seen.append(k)
        table["n"] += k

    note(n)
    x = x.clone()
    x += n
    opaque(0)
    note(n + 1)
    x.mul_(2)
    return x, seen, table


@program
def symbolic_sizes(x: Tensor, n: int) -> Any:
    y = x.new_ones(n + 2, n + 3)
    return y.sum() * y.shape[0], torch.cat([x, x[:1]], 0).shape


# -- first calls -----------------------------------------------------------------------------------
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("title", PROGRAMS)
def test_first_calls_of_eight_threads(title: str, backend: str) -> None:
    fn = PROGRAMS[title]
    numbers = [i % 3 for i in range(THREADS)]
    expected = [outcome(fn, X, n) for n in numbers]
    alone = stator.compile(fn, backend=backend, recompile_limit=16)
    for n in numbers:
        outcome(alone, X, n)
    for _ in range(ROUNDS if backend == "eager" else 1):
        compiled = stator.compile(fn, backend=backend, recompile_limit=16)
        results = together(*(lambda n=n, call=compiled: outcome(call, X, n) for n in numbers))
        assert_equal(results, expected)
        assert compiled.report.entry_count <= max(alone.report.entry_count, 2 * len(set(numbers)))


def test_threads_with_the_same_argument_make_one_entry() -> None:
    for _ in range(ROUNDS):
        compiled = stator.compile(PROGRAMS["a break in the middle"], backend="eager")
        together(*[lambda compiled=compiled: compiled(X, 2)] * THREADS)
        assert compiled.report.entry_count == 2  # the start, and what follows the break


def test_all_programs_at_once() -> None:
    for _ in range(ROUNDS):
        functions = [(fn, stator.compile(fn, backend="eager")) for fn in PROGRAMS.values()]
        results = together(*(lambda f=compiled: outcome(f, X, 2) for _, compiled in functions))
        assert_equal(results, [outcome(fn, X, 2) for fn, _ in functions])


# -- entries that come and go ----------------------------------------------------------------------
def test_recompiles_beside_hits() -> None:
    kinds = [X, X.double(), X[0], X.int(), X.t()]
    fn = PROGRAMS["a break in the middle"]

    def calls(compiled: Any, seed: int) -> list[Any]:
        order = random.Random(seed)
        return [compiled(kinds[order.randrange(len(kinds))], order.randrange(3)) for _ in range(30)]

    for _ in range(ROUNDS):
        compiled = stator.compile(fn, backend="eager", recompile_limit=32)
        results = together(
            *(lambda seed=seed, call=compiled: calls(call, seed) for seed in range(THREADS))
        )
        assert_equal(results, [calls(fn, seed) for seed in range(THREADS)])


def test_past_the_limit_in_every_thread() -> None:
    def fn(x: Tensor, name: str) -> Tensor:
        return x * len(name) + ord(name[0])

    compiled = stator.compile(fn, backend="eager", recompile_limit=3)
    names = ["a", "bb", "ccc", "d", "ee", "fff", "g", "hh"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = together(*(lambda n=n: [compiled(X, n) for _ in range(5)] for n in names))
    assert_equal(results, [[fn(X, n) for _ in range(5)] for n in names])
    assert compiled.report.entry_count <= 3


@pytest.mark.parametrize(
    "title", ["one graph", "a generator alive across a break", "an exception that leaves"]
)
def test_reset_while_others_call(title: str) -> None:
    fn = PROGRAMS[title]
    compiled = stator.compile(fn, backend="eager")
    done = threading.Event()

    def reset() -> None:
        while not done.wait(0.002):
            compiled.report._region.reset()

    def calls() -> list[Any]:
        return [outcome(compiled, X, n % 3) for n in range(12)]

    resetting = threading.Thread(target=reset)
    resetting.start()
    try:
        results = together(*[calls] * 4)
    finally:
        done.set()
        resetting.join()
    assert_equal(results, [[outcome(fn, X, n % 3) for n in range(12)] for _ in range(4)])
    region = compiled.report._region
    region.reset()
    assert not any(place.cache.all_entries() for place in region.all_places())


# -- what is read, changed by another thread -------------------------------------------------------
class Settings:
    factor = 1

    def __init__(self) -> None:
        self.names = {"a": 1}
        self.items = [1]


SETTINGS = Settings()


def reads_settings(x: Tensor) -> Tensor:
    return x * SETTINGS.factor + SETTINGS.names["a"] + sum(SETTINGS.items)


def test_changes_by_another_thread_between_calls_are_seen() -> None:
    compiled = stator.compile(reads_settings, backend="eager", recompile_limit=64)
    with ThreadPoolExecutor(1) as other:
        for n in range(1, 25):
            change: list[tuple[Any, ...]] = [
                (setattr, SETTINGS, "factor", n % 3),
                (SETTINGS.names.__setitem__, "a", n % 3),
                (SETTINGS.items.append, n % 3),
                (SETTINGS.items.clear,),
                (setattr, Settings, "factor", n),
                (SETTINGS.__dict__.pop, "factor", None),
            ]
            other.submit(*change[n % 6]).result()
            for _ in range(3):
                assert_equal(compiled(X), reads_settings(X))


def test_changes_by_another_thread_during_calls() -> None:
    compiled = stator.compile(reads_settings, backend="eager", recompile_limit=64)
    done = threading.Event()
    SETTINGS.names, SETTINGS.items = {"a": 0}, [0]

    def change() -> None:
        n = 0
        while not done.is_set():
            n += 1
            SETTINGS.factor = n % 3
            SETTINGS.names[f"k{n % 5}"] = n
            SETTINGS.names.pop(f"k{(n + 2) % 5}", None)
            time.sleep(0.0003)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        results = together(*[lambda: [compiled(X) for _ in range(100)]] * 3)
    finally:
        done.set()
        changing.join()
    if failed := [result for result in results if isinstance(result, BaseException)]:
        raise failed[0]
    assert all(any(torch.equal(y, X * n) for n in range(3)) for ys in results for y in ys), results
    assert_equal(compiled(X), reads_settings(X))


class Named(dict[Any, Any]): ...


class Members(set[Any]): ...


class Items(list[Any]): ...


class Recent(collections.deque[Any]): ...


class Shelf:
    """Containers of every kind with a hundred things."""

    def __init__(
        self,
        *,
        dicts: Any = dict,
        sets: Any = set,
        lists: Any = list,
        deques: Any = collections.deque,
    ):
        self.names = dicts({f"k{i}": i for i in range(100)})
        self.pairs: dict[tuple[int, ...], int] = dicts({(i,): i for i in range(50)})
        self.members = sets(range(100))
        self.items = lists(range(100))
        self.recent = deques(range(100))

    def grow(self) -> None:
        self.names["new"] = self.pairs[1, 2] = 1
        self.members.add(-1)
        self.items.append(1)
        self.recent.append(1)

    def shrink(self) -> None:
        del self.names["new"], self.pairs[1, 2]
        self.members.discard(-1)
        self.items.pop()
        self.recent.pop()


READS: dict[str, Callable[[Tensor, Shelf], Any]] = {
    "some keys": lambda x, shelf: sum([shelf.names[f"k{i}"] for i in range(20)]) - 90,
    "all keys": lambda x, shelf: len(sorted(shelf.names)),
    "keys that are no constants": lambda x, shelf: len(shelf.pairs) + 50,
    "a set": lambda x, shelf: len(shelf.members),
    "a list": lambda x, shelf: len(shelf.items),
    "a deque": lambda x, shelf: len(shelf.recent),
}


SHELVES: dict[str, Callable[[], Shelf]] = {
    "builtin classes": Shelf,
    "subclasses": lambda: Shelf(dicts=Named, sets=Members, lists=Items, deques=Recent),
    "an OrderedDict": lambda: Shelf(dicts=collections.OrderedDict),
}


@pytest.mark.filterwarnings("ignore::stator_guards.RecompileLimitWarning")
@pytest.mark.parametrize("kind", SHELVES)
@pytest.mark.parametrize("title", READS)
def test_container_that_another_thread_keeps_changing_is_read_at_once(
    title: str, kind: str
) -> None:
    """Traced, guarded and watched while it grows and shrinks, with nobody told that it does."""
    shelf, done = SHELVES[kind](), threading.Event()
    sys.setswitchinterval(1e-6)

    def change() -> None:
        while not done.is_set():
            for step in (shelf.grow, shelf.shrink) * 25:
                step()

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(12):
            compiled = stator.compile(READS[title], backend="eager", recompile_limit=3)
            assert {compiled(X, shelf) for _ in range(8)} <= {0, 1, 100, 101}
    finally:
        done.set()
        changing.join()


class Scale(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(3.0))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        y = x * self.weight
        opaque(0)
        return y.sum() * 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_shared_module_with_backward(backend: str) -> None:
    plain, shared = Scale(), Scale()
    compiled: Any = stator.compile(shared, backend=backend)

    def train(module: Any) -> list[float]:
        losses = []
        for i in range(6):
            loss = module(X + i)
            loss.backward()
            losses.append(loss.item())
        return losses

    expected = [train(plain) for _ in range(4)]
    assert together(*[lambda: train(compiled)] * 4) == expected
    assert_equal(shared.weight.grad, plain.weight.grad)


# -- modes and state of the process ----------------------------------------------------------------
def test_grad_mode_and_autocast_are_each_threads_own() -> None:
    weight = torch.ones(3, 3, requires_grad=True)

    def fn(x: Tensor) -> Any:
        y = x @ weight
        return y.requires_grad, y.dtype, torch.is_grad_enabled(), y

    def under(call: Any, grad: bool, cast: bool) -> list[Any]:
        with torch.set_grad_enabled(grad), torch.autocast("cpu", torch.bfloat16, enabled=cast):
            return [call(X)[:3] for _ in range(10)]

    cases = [(grad, cast) for grad in (True, False) for cast in (True, False)] * 2
    for _ in range(ROUNDS):
        compiled = stator.compile(fn, backend="eager")
        results = together(*(lambda case=case, call=compiled: under(call, *case) for case in cases))
        assert results == [under(fn, *case) for case in cases]


def state_of_the_process() -> dict[str, Any]:
    """What a thread that compiles nothing may look at."""
    import logging

    from torch.utils import _python_dispatch

    return {
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "function modes": torch._C._len_torch_function_stack(),
        "compiling": bool(torch.compiler.is_compiling()),
        "tensors": type(torch.ones(1) + torch.tensor([1.0])),
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "dtype": torch.get_default_dtype(),
        "context": torch._guards.TracingContext.try_get() is None,
        "recursion": sys.getrecursionlimit(),
        "python dispatcher": torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)
        is None,
        "loggers": logging.getLogger("torch._subclasses.fake_tensor").isEnabledFor(logging.ERROR),
        "kernels": torch.ones(2, 3).sum().item(),
        "nothing": _python_dispatch is None,
    }


def left_in_the_process() -> dict[str, Any]:
    """What a compilation sets for a moment, and must have set back when the last one is over."""
    from torch.fx import traceback as fx_traceback
    from torch.utils import _python_dispatch

    return {
        "showwarning": warnings.showwarning,
        "filters": list(warnings.filters),
        "dispatch": _python_dispatch.is_in_torch_dispatch_mode(),
        "modes": _python_dispatch.is_in_any_mode_without_ignore_compile_internals(),
        "meta": dict(fx_traceback.current_meta),
        "preserve": fx_traceback.should_preserve_node_meta,
        "random": torch.get_rng_state().tolist(),
        "python random": random.getstate(),
        "threads": torch.get_num_threads(),
    }


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_thread_that_runs_plainly_sees_nothing_of_a_trace(backend: str) -> None:
    expected, before, done = state_of_the_process(), left_in_the_process(), threading.Event()

    def watch() -> list[Any]:
        seen = []
        while not done.is_set():
            now = state_of_the_process()
            if now != expected:
                seen.append({name: value for name, value in now.items() if value != expected[name]})
        return seen

    def fails(x: Tensor, n: int) -> Any:
        try:
            return x @ x.sum(0, keepdim=True) * n
        except RuntimeError:
            return x.exp().requires_grad_() * n

    def compile_all() -> None:
        for fn in [*PROGRAMS.values(), fails]:
            outcome(stator.compile(fn, backend=backend), X.clone().requires_grad_() * 2, 2)

    with ThreadPoolExecutor(1) as other:
        seen = other.submit(watch)
        try:
            together(*[compile_all] * (4 if backend == "eager" else 2))
        finally:
            done.set()
        assert seen.result() == []
    after = left_in_the_process()
    # what AOTAutograd made looks at its operators in a mode of its own when it first runs
    if backend == "aot_eager":
        after |= {name: before[name] for name in ("dispatch", "modes")}
    assert after == before


def test_shapes_that_become_symbolic_in_many_threads_leave_nothing_in_the_process() -> None:
    """Views of different sizes: what is known of their shapes is worked out with fake tensors at
    the end."""
    before = left_in_the_process()

    def calls() -> None:
        for fn in (PROGRAMS["one graph"], PROGRAMS["symbolic sizes"]):
            compiled = stator.compile(fn, backend="eager")
            assert_equal([compiled(X[:n], 3) for n in (1, 2)], [fn(X[:n], 3) for n in (1, 2)])

    for _ in range(ROUNDS):
        assert together(*[calls] * THREADS) == [None] * THREADS
        assert left_in_the_process() == before


# -- threads and calls inside each other -----------------------------------------------------------
def test_thread_started_by_a_compiled_call_calls_compiled_functions() -> None:
    inner = stator.compile(PROGRAMS["a break in the middle"], backend="eager")

    def fn(x: Tensor, n: int) -> Any:
        y = x * n
        found: list[Tensor] = []
        worker = threading.Thread(target=lambda: found.append(inner(x, n)))
        worker.start()
        mine = inner(x + 1, n)
        worker.join()
        return y, found, mine

    for _ in range(ROUNDS):
        outer = stator.compile(fn, backend="eager")
        results = together(*[lambda outer=outer: outer(X, 2)] * 4)
        assert_equal(results, [fn(X, 2) for _ in range(4)])


def test_compiled_function_calls_itself_in_another_thread() -> None:
    def fn(x: Tensor, n: int) -> Any:
        if n == 0:
            return x
        found: list[Tensor] = []
        worker = threading.Thread(target=lambda: found.append(compiled(x * 2, n - 1)))
        worker.start()
        worker.join()
        return found[0] + n

    # a thread's name counts the threads
    compiled: Any = stator.compile(fn, backend="eager", recompile_limit=99)
    assert_equal(together(*[lambda: compiled(X, 3)] * 3), [fn(X, 3) for _ in range(3)])


def test_backends_that_call_what_the_other_thread_compiles() -> None:
    """Each backend waits for the moment that the other compiles, and calls the other's function
    then."""
    meeting = threading.Barrier(2)
    functions: list[Any] = []

    def backend(mine: int) -> Any:
        def compile_graph(graph: Any, inputs: Any) -> Any:
            with_other = functions[1 - mine]
            with contextlib.suppress(threading.BrokenBarrierError):
                meeting.wait(0.5)
            assert torch.equal(with_other(X), X + 2 - mine)
            return graph.forward

        return compile_graph

    for number in range(2):
        functions.append(stator.compile(lambda x, n=number: x + 1 + n, backend=backend(number)))
    results = together(*(lambda f=f: f(X) for f in functions))
    assert_equal(results, [X + 1, X + 2])


def test_generator_of_one_thread_is_finished_by_another() -> None:
    def produce(x: Tensor, n: int) -> Any:
        made = (x * i for i in range(n))
        first = next(made)
        opaque(n)
        return first, made

    for _ in range(ROUNDS):
        compiled = stator.compile(produce, backend="eager")
        made = together(*[lambda compiled=compiled: compiled(X, 4)] * 4)
        results = together(*(lambda pair=pair: [pair[0], *pair[1]] for pair in made))
        assert_equal(results, [[X * i for i in range(4)] for _ in range(4)])


def test_lru_cache_and_context_variables_and_thread_locals() -> None:
    import contextvars
    import functools

    local, variable = threading.local(), contextvars.ContextVar("v", default=0)

    @functools.lru_cache
    def cached(n: int) -> int:
        return n * 2

    def fn(x: Tensor) -> Any:
        y = x * local.n + variable.get()
        opaque(0)
        return y + local.n * cached(local.n) + variable.get()

    def work(call: Any, n: int) -> list[Any]:
        results = []
        for i in range(4):
            local.n = n + i % 2
            variable.set(n * 10)
            results.append(call(X))
        return results

    expected = together(*(lambda n=n: work(fn, n) for n in range(4)))
    for _ in range(ROUNDS):
        compiled = stator.compile(fn, backend="eager", recompile_limit=64)
        assert_equal(
            together(*(lambda n=n, call=compiled: work(call, n) for n in range(4))), expected
        )


# -- endurance -------------------------------------------------------------------------------------
def soak(seconds: float) -> int:
    """All programs, compiled, called, reset and dropped by eight threads; how many calls that
    were."""
    end, shared = (
        time.monotonic() + seconds,
        [stator.compile(fn, backend="eager") for fn in PROGRAMS.values()],
    )
    plain = list(PROGRAMS.values())

    def work(seed: int) -> int:
        order, calls = random.Random(seed), 0
        while time.monotonic() < end:
            which, n, x = (
                order.randrange(len(plain)),
                order.randrange(4),
                X[: order.randrange(1, 3)],
            )
            fresh = order.random() < 0.05
            call, backend = shared[which], order.choice(["eager", "eager", "aot_eager"])
            call = stator.compile(plain[which], backend=backend) if fresh else call
            assert_equal(outcome(call, x, n), outcome(plain[which], x, n))
            if order.random() < 0.01:
                shared[which].report._region.reset()
            calls += 1
        return calls

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = together(
            *(lambda seed=seed: work(seed) for seed in range(THREADS)), seconds=seconds + 120
        )
    failed = [result for result in results if isinstance(result, BaseException)]
    if failed:
        raise failed[0]
    return sum(results)


def soaked(seconds: float) -> None:
    """What is kept stops growing: less than 2 KB for each of the compilations, a twentieth of the
    calls."""
    sys.setswitchinterval(1e-5)
    for backend in (
        "eager",
        "aot_eager",
    ):  # what torch imports and sets up on first use is no growth
        together(
            *(
                lambda fn=fn, b=backend: outcome(stator.compile(fn, backend=b), X, 2)
                for fn in PROGRAMS.values()
            )
        )
    before = left_in_the_process()
    soak(seconds / 4)
    early = in_use()
    calls = soak(3 * seconds / 4)
    kept = in_use() - early
    assert calls > seconds / 4
    assert kept < (2 << 20) + 100 * calls, f"{calls} calls kept {kept} bytes"
    after = left_in_the_process()
    assert not {
        name: (before[name], after[name])
        for name in after
        if name not in RACY and after[name] != before[name]
    }


RACY = ("dispatch", "modes")
"""Flags of torch's for the process, of modes that are a thread's. AOTAutograd enters one when a
graph runs first, in whatever thread that is; where two enter and leave in turns, the flags stay
set."""


@pytest.mark.slow
def test_soak() -> None:
    """As long as STATOR_SOAK_SECONDS says: two minutes, or an hour on demand. In a process of its
    own: what runs these tests keeps what torch logs, with all that the records refer to."""
    seconds = float(os.environ.get("STATOR_SOAK_SECONDS", "120"))
    code = f"from integration_tests.threads.test_threads import soaked; soaked({seconds})"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert ran.returncode == 0, ran.stderr


class Mallinfo(ctypes.Structure):
    """Of glibc, summed over the heaps of all threads."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


def in_use() -> int:
    """Bytes that somebody holds: by malloc, where the system tells, and by Python, whose blocks are
    80 bytes on the whole. Pages of the process say less: the heaps of eight threads have holes,
    more of them the busier the machine."""
    gc.collect()
    held = sys.getallocatedblocks() * 80
    mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None) if sys.platform == "linux" else None
    if mallinfo is None:
        return held
    mallinfo.restype = Mallinfo
    found = mallinfo()
    return held + int(found.uordblks) + int(found.hblkhd)


def test_short_soak() -> None:
    soak(4)
