"""Nothing lives longer for having been compiled: with the collector off, things die as they do in
plain Python.

Each program is given objects of `Mark`, and leaves some; plainly and compiled, on first and later
calls, the same of them are alive after the call and after its result is dropped; and a compiled
function dies with all it made.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import linecache
import pathlib
import subprocess
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from stator._entries._entry_pool import forget_pools
from torch import Tensor

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS: dict[str, Callable[[Tensor, Marks], Any]] = {}


class Mark:
    """An object that can be watched, and that a program can do something with."""

    def __init__(self, factor: int = 2) -> None:
        self.factor = factor
        self.tensor = torch.ones(2)


class Marks:
    """Makes marks and knows which of them are alive."""

    def __init__(self) -> None:
        self.made: list[weakref.ref[Any]] = []
        self.kept: list[Any] = []
        self.given = self.watch(Mark())
        self.watch(self.given.tensor)

    def watch(self, thing: Any) -> Any:
        self.made.append(weakref.ref(thing))
        return thing

    def alive(self) -> list[bool]:
        return [ref() is not None for ref in self.made]


def program(fn: Callable[[Tensor, Marks], Any]) -> Callable[[Tensor, Marks], Any]:
    PROGRAMS[fn.__name__.replace("_", " ")] = fn
    return fn


@program
def an_object_of_its_own(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(3))
    return x * mark.factor


@program
def an_object_that_is_returned(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(3))
    return x * mark.factor, mark


@program
def an_object_that_is_kept(x: Tensor, marks: Marks) -> Any:
    marks.kept.append(marks.watch(Mark(4)))
    return x * marks.kept[-1].factor


@program
def a_module_made_inside(x: Tensor, marks: Marks) -> Any:
    module = marks.watch(torch.nn.Linear(2, 2))
    return module(x) * 2


@program
def an_argument_that_is_let_go(x: Tensor, marks: Marks) -> Any:
    y = x * marks.given.factor
    marks.given = None
    return y


@program
def a_tensor_that_is_let_go(x: Tensor, marks: Marks) -> Any:
    y = marks.given.tensor + x
    marks.made.append(weakref.ref(marks.given.tensor))
    marks.given.tensor = None
    return y


@program
def a_local_that_is_deleted_early(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(5))
    y = x * mark.factor
    del mark
    return y, marks.alive()[-1]


class Place(Mark):
    """One that Python tells when it dies."""

    def __init__(self, marks: Marks) -> None:
        marks.watch(self)

    def __index__(self) -> int:
        return 1

    def __del__(self) -> None:
        self.factor = 0


@program
def an_index_in_a_slice(x: Tensor, marks: Marks) -> Any:
    part = slice(Place(marks))
    found = [2, 3, 4][part]
    return found


class Point:
    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y


@program
def an_input_beside_an_object_that_holds_what_nobody_looked_at(x: Tensor, marks: Marks) -> Any:
    point = Point(marks.given.factor, 2)
    y = marks.given.tensor * point.y
    marks.given.tensor = None
    return y


@program
def a_closure_that_escapes(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(3))
    return lambda y: y * mark.factor


@program
def a_generator_under_an_error_that_a_finally_clause_lets_by(x: Tensor, marks: Marks) -> Any:
    kept = marks.kept

    def parts() -> Iterator[Tensor]:
        mark = marks.watch(Mark(3))
        try:
            stator.graph_break()
            yield x * mark.factor
        finally:
            kept.append("closed")

    for _ in parts():
        try:
            int("no number")
        finally:
            kept.append("let by")


@program
def an_object_under_an_error_that_no_clause_takes(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(3))
    stator.graph_break()
    try:
        stator.graph_break()
        return int("no number" * mark.factor)
    except KeyError:
        return x


@program
def a_generator_that_escapes(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(3))
    parts = (x * i * mark.factor for i in range(3))
    next(parts)
    return parts


@program
def a_generator_with_clean_up(x: Tensor, marks: Marks) -> Any:
    def produce() -> Iterator[Tensor]:
        mark = marks.watch(Mark(3))
        try:
            yield x * mark.factor
        finally:
            marks.kept.append("closed")

    return next(produce())


@program
def an_exception_that_leaves(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(3))
    raise ValueError(x * mark.factor, mark)


@program
def an_exception_with_a_suspended_generator(x: Tensor, marks: Marks) -> Any:
    def produce() -> Iterator[Tensor]:
        mark = marks.watch(Mark(3))
        try:
            yield x * mark.factor
        finally:
            marks.kept.append("closed")

    parts = produce()
    raise ValueError(next(parts))


@program
def an_exception_that_is_handled(x: Tensor, marks: Marks) -> Any:
    try:
        raise ValueError(marks.watch(Mark(3)))
    except ValueError as error:
        return x * error.args[0].factor


@program
def an_operator_that_fails(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(3))
    return x @ mark.tensor.repeat(mark.factor)


@program
def an_operator_that_fails_and_is_handled(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(3))
    try:
        return x @ mark.tensor.repeat(mark.factor)
    except RuntimeError:
        return x * mark.factor


@program
def intermediates(x: Tensor, marks: Marks) -> Any:
    y = marks.watch(x * 2)
    z = marks.watch(y + 1)
    del y
    return z.sum(), marks.alive()


@program
def intermediates_across_a_break(x: Tensor, marks: Marks) -> Any:
    y = marks.watch(x * 2)
    stator.graph_break()
    z = y + 1
    del y
    stator.graph_break()
    return z, marks.alive()


@program
def a_cell_that_is_bound_again(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(3))

    def scale() -> Any:
        return x * mark.factor

    y = scale()
    mark = marks.watch(Mark(4))
    return y + scale(), marks.alive()


@program
def a_container_of_its_own(x: Tensor, marks: Marks) -> Any:
    table: dict[str, Any] = {"a": [marks.watch(Mark(2))], "b": (marks.watch(Mark(3)),)}
    table["a"].append(marks.watch(Mark(4)))
    first = table.pop("b")
    return x * first[0].factor, table["a"].pop(0), marks.alive()


@program
def a_container_that_is_emptied(x: Tensor, marks: Marks) -> Any:
    marks.kept.extend(marks.watch(Mark(i)) for i in range(3))
    y = x * marks.kept[1].factor
    del marks.kept[1:]
    return y


@program
def a_context_manager_of_its_own(x: Tensor, marks: Marks) -> Any:
    @contextlib.contextmanager
    def scope() -> Iterator[Mark]:
        mark = marks.watch(Mark(3))
        try:
            yield mark
        finally:
            marks.kept.append("left")

    with scope() as mark:
        y = x * mark.factor
        del mark
    return y


@program
def a_partial_and_a_bound_method(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(3))
    bound = mark.__init__
    part = functools.partial(bound, 5)
    part()
    return x * mark.factor, part


@program
def an_object_whose_attribute_is_replaced(x: Tensor, marks: Marks) -> Any:
    marks.given.child = marks.watch(Mark(2))
    y = x * marks.given.child.factor
    marks.given.child = marks.watch(Mark(3))
    stator.graph_break()
    return y * marks.given.child.factor, marks.alive()


@program
def a_finally_that_returns(x: Tensor, marks: Marks) -> Any:
    mark = marks.watch(Mark(3))
    try:
        raise KeyError(mark)
    finally:
        stator.graph_break()
        return x * mark.factor  # noqa: B012


@pytest.fixture(autouse=True)
def _without_collector() -> Iterator[None]:
    """And what is there already is gone through by none of these tests that collect."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()


@program
def a_generator_that_another_one_was_looping_over_when_it_failed(x: Tensor, marks: Marks) -> Any:
    def inner() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            marks.kept.append("done")

    def outer() -> Iterator[int]:
        for item in inner():
            marks.kept.append(marks.kept[item + 5])
            yield item

    try:
        for item in outer():
            marks.kept.append(str(item))
    except IndexError:
        marks.kept.append("caught")
    return x + 1


def observed(fn: Callable[[Tensor, Marks], Any]) -> list[Any]:
    """Who is alive, and what happened, at each stage of three calls."""
    stages: list[Any] = []
    for _ in range(3):
        marks = Marks()
        try:
            result = fn(torch.ones(2), marks)
            stages.append(marks.alive())
            del result
        except Exception as error:
            stages.append((type(error), marks.alive()))
        stages.append((marks.alive(), [kept for kept in marks.kept if isinstance(kept, str)]))
        marks.kept.clear()
        stages.append(marks.alive())
    return stages


@pytest.mark.parametrize("title", PROGRAMS)
def test_objects_die_as_they_do_plainly(title: str) -> None:
    fn = PROGRAMS[title]
    assert observed(stator.compile(fn, backend="eager")) == observed(fn)


@pytest.mark.parametrize("title", PROGRAMS)
def test_compiled_function_dies_with_all_it_made(title: str) -> None:
    before = {name for name in linecache.cache if name.startswith("<stator")}
    compiled = stator.compile(PROGRAMS[title], backend="eager")
    observed(compiled)
    dead = [weakref.ref(compiled), weakref.ref(compiled.report._region)]
    del compiled
    assert [each() for each in dead] == [None, None]
    forget_pools()  # which has the entries for the next compilation of the function
    assert {name for name in linecache.cache if name.startswith("<stator")} <= before


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_module_with_its_parameters_dies(backend: str) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    compiled = stator.compile(module, backend=backend)
    compiled(torch.ones(3, 2)).sum().backward()
    dead = [
        weakref.ref(part) for part in (*module.modules(), *module.parameters(), *module.buffers())
    ]
    del module, compiled
    assert not any(each() is not None for each in dead)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("breaks", [False, True])
def test_arguments_and_results_die(backend: str, breaks: bool) -> None:
    def fn(x: Tensor, holder: Mark) -> tuple[Tensor, Tensor]:
        y = x * holder.tensor
        if breaks:
            stator.graph_break()
        return y + 1, y.sum()

    compiled: Any = stator.compile(fn, backend=backend)
    for differentiable in (False, True, True):
        x, holder = torch.ones(2, requires_grad=differentiable), Mark()
        results = compiled(x, holder)
        if differentiable:
            results[1].backward()
        dead = [weakref.ref(thing) for thing in (x, holder, holder.tensor, *results)]
        del x, holder, results
        assert [each() for each in dead] == [None] * 5


def _entries(compiled: Any) -> list[weakref.ref[Any]]:
    entries = [
        entry
        for place in compiled.report._region.all_places()
        for entry in place.cache.all_entries()
    ]
    return [
        weakref.ref(part)
        for entry in entries
        for part in (entry.data, entry.data.graph)
        if part is not None
    ]


def test_entries_die_on_reset() -> None:
    compiled = stator.compile(PROGRAMS["intermediates across a break"], backend="eager")
    observed(compiled)
    dead = _entries(compiled)
    assert dead
    compiled.report._region.reset()
    gc.collect()  # graphs are cycles of torch's
    assert not [each() for each in dead if each() is not None]


def test_function_that_was_an_argument_dies() -> None:
    def fn(x: Tensor, scale: Callable[[Tensor], Tensor]) -> Tensor:
        return scale(x) + 1

    compiled: Any = stator.compile(fn, backend="eager", recompile_limit=32)
    for i in range(12):
        made = eval(f"lambda x: x * {i}")
        assert torch.equal(compiled(torch.ones(2), made), torch.ones(2) * i + 1)
        gone = weakref.ref(made)
        del made
        assert gone() is None


@pytest.mark.parametrize("fullgraph", [False, True])
def test_refused_compilation_keeps_nothing(fullgraph: bool) -> None:
    def fn(x: Tensor, mark: Mark) -> Tensor:
        y = x * mark.factor
        stator.graph_break()
        return y

    compiled = stator.compile(fn, backend="eager", fullgraph=fullgraph)
    for _ in range(2):
        x, mark = torch.ones(2), Mark()
        dead = [weakref.ref(thing) for thing in (x, mark, mark.tensor)]
        try:
            compiled(x, mark)
        except stator.Unsupported:
            assert fullgraph
        del x, mark
        assert [each() for each in dead] == [None] * 3


def test_backend_that_fails_keeps_nothing() -> None:
    def backend(graph: Any, inputs: Any) -> Any:
        raise RuntimeError("no")

    for fallback in (False, True):
        compiled = stator.compile(
            lambda x, m: x * m.factor, backend=backend, options={"fallback": fallback}
        )
        x, mark = torch.ones(2), Mark()
        dead = [weakref.ref(thing) for thing in (x, mark, mark.tensor)]
        try:
            compiled(x, mark)
        except stator.BackendFailed:
            assert not fallback
        del x, mark
        assert [each() for each in dead] == [None] * 3


def _objects() -> Counter[str]:
    gc.collect()
    return Counter(str(type(thing)) for thing in gc.get_objects())


def grown() -> dict[str, int]:
    """What there is more of after compiling, recompiling, resetting and dropping every program
    twice more."""

    def again(fn: Callable[[Tensor, Marks], Any]) -> None:
        compiled: Any = stator.compile(fn, backend="eager")
        for size in (2, 3, 4):
            with contextlib.suppress(ValueError, RuntimeError):
                compiled(torch.ones(size), Marks())
        compiled.report._region.reset()
        with contextlib.suppress(ValueError, RuntimeError):
            compiled(torch.ones(2), Marks())

    for fn in PROGRAMS.values():
        again(fn)
    before, lines = _objects(), len(linecache.cache)
    for fn in [*PROGRAMS.values()] * 2:
        again(fn)
    more = Counter(_objects() - before)
    more["lines"] = len(linecache.cache) - lines
    # torch's caches keep the last
    return {kind: count for kind, count in more.items() if count > 6 * len(PROGRAMS)}


def test_compiling_again_and_again_keeps_nothing() -> None:
    """In a process of its own: what runs these tests keeps what torch logs."""
    code = "from integration_tests.lifetimes.test_object_lifetime import grown; print(grown())"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert ran.stdout.strip() == "{}", ran.stdout + ran.stderr


def test_the_first_trace_of_a_process_keeps_nothing() -> None:
    code = """if True:
        import gc, weakref, stator, torch
        gc.disable()
        class Mark: pass
        def call():
            mark, x = Mark(), torch.ones(3)
            alive.extend([weakref.ref(mark), weakref.ref(x)])
            compiled(x, mark)
        alive, compiled = [], stator.compile(lambda x, mark: (x + 1, mark), backend="eager")
        call()
        print([ref() for ref in alive])
    """
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert ran.stdout == "[None, None]\n", ran.stderr


def test_a_trace_that_is_made_again_keeps_nothing() -> None:
    """What broke had learned of sizes, so the trace is made once more, up to there."""

    def fn(x: Tensor, n: int) -> list[str]:
        out: list[str] = []

        def producer() -> Iterator[int]:
            try:
                yield 2
            finally:
                out.append("done")

        for _ in producer():
            with contextlib.suppress(RuntimeError):
                torch.maximum(x.sin(), torch.ones(n % 4))
            break
        return out

    compiled = stator.compile(fn, backend="eager", options={"break_everywhere": "operations"})
    gc.disable()
    try:
        assert [
            compiled(torch.ones(size, size), n) for size, n in ((1, 1 << 65), (3, 2), (3, 6))
        ] == [["done"]] * 3
    finally:
        gc.enable()


KEYS: dict[str, Callable[[], Any]] = {
    "object": Mark,
    "parameter": lambda: torch.nn.Parameter(torch.ones(2)),
    "module": lambda: torch.nn.Linear(1, 1),
}
USES_OF_KEYS: dict[str, Callable[[Any, Any, Tensor], Any]] = {
    "item": lambda table, key, x: x * table[key]["factor"],
    "items": lambda table, key, x: sum((value["factor"] * x for _, value in table.items()), x),
    "keys": lambda table, key, x: (x, len([*table])),
    "in": lambda table, key, x: x + (key in table),
    "get": lambda table, key, x: (x, table.get(key), table.get(len)),
    "key of the table": lambda table, key, x: (x, next(iter(table)) is key),
}


@pytest.mark.parametrize("use", USES_OF_KEYS)
@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_dicts_die_and_are_not_mistaken_for_others(kind: str, use: str) -> None:
    compiled = stator.compile(USES_OF_KEYS[use], backend="eager")
    gc.disable()
    try:
        for _ in range(3):  # a new key may get the address of the last one
            key = KEYS[kind]()
            table = {key: {"factor": 2}}
            for size in (2, 3, 2) * 7:
                plainly, found = (
                    USES_OF_KEYS[use](table, key, torch.ones(size)),
                    compiled(table, key, torch.ones(size)),
                )
                assert str(found) == str(plainly)
            alive = weakref.ref(key)
            del key
            table.clear()
            assert alive() is None
    finally:
        gc.enable()
