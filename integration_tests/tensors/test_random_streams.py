"""Streams of random numbers: the values of plain Python, the state that it leaves, and how many
graphs that takes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same
from integration_tests.tensors.random_stream_programs import BROKEN, CAPTURED, Streams, series

INPUTS = [torch.linspace(-1, 1, 3) + i for i in range(4)]


@pytest.fixture(autouse=True)
def _streams_of_the_process() -> Iterator[None]:
    before = random.getstate(), np.random.get_state(legacy=False), torch.get_rng_state()
    yield
    random.setstate(before[0])
    np.random.set_state(before[1])
    torch.set_rng_state(before[2])


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("title", CAPTURED)
def test_draws_are_those_of_plain_python(title: str, backend: str) -> None:
    fn = CAPTURED[title]
    compiled = stator.compile(fn, backend=backend, fullgraph=True)
    assert series(compiled, INPUTS) == series(fn, INPUTS)


@pytest.mark.parametrize("title", CAPTURED)
def test_draws_are_captured_in_one_graph(title: str) -> None:
    counting = Counting()
    compiled: Any = stator.compile(CAPTURED[title], backend=counting, fullgraph=True)
    streams = Streams()
    for x in INPUTS:
        streams.kept.clear()
        compiled(x.clone(), streams)
    assert counting.count <= 1
    assert compiled.report.entry_count == 1


@pytest.mark.parametrize("title", BROKEN)
def test_a_break_leaves_the_streams_as_plain_python_does(title: str) -> None:
    graphs, fn = BROKEN[title]
    counting = Counting()
    compiled = stator.compile(fn, backend=counting)
    compiled(INPUTS[0].clone(), Streams())
    assert counting.count == graphs
    assert series(compiled, INPUTS) == series(fn, INPUTS)


TAKEN = ["a random object", "a numpy generator", "a generator", "augmentations of images"]
"""The last one with breaks: Inductor has no kernels for all of it."""


@pytest.mark.parametrize("title", TAKEN)
def test_inductor_takes_what_is_drawn(title: str) -> None:
    fn = CAPTURED[title]
    found = series(stator.compile(fn, backend="inductor"), INPUTS[:2])
    expected = series(fn, INPUTS[:2])
    assert found[0][1::2] == expected[0][1::2]


# -- sizes and numbers that change -----------------------------------------------------------------
def sized(x: Tensor, s: Any) -> Any:
    by_numpy = torch.from_numpy(s.numpy.normal(0, 1, (x.shape[0], 2))).sum(1)
    return x + torch.randn(x.shape[0], generator=s.torch) + by_numpy + s.python.uniform(0, len(x))


def test_a_symbolic_size_needs_no_further_graph() -> None:
    counting = Counting()
    compiled = stator.compile(sized, backend=counting)
    inputs = [torch.ones(size) for size in (3, 4, 5, 6, 7)]
    assert series(compiled, inputs) == series(sized, inputs)
    assert counting.count == 2


def test_another_stream_needs_no_further_graph() -> None:
    counting = Counting()
    compiled = stator.compile(CAPTURED["a random object"], backend=counting)
    for _ in range(4):
        compiled(torch.ones(3), Streams())
    assert counting.count == 1


def test_torchs_own_generator_in_place_of_another_is_drawn_from_in_order() -> None:
    def fn(x: Tensor, generator: torch.Generator) -> Any:
        a = torch.rand(3)
        return x + a - torch.rand(3, generator=generator), torch.rand(3)

    compiled = stator.compile(fn, backend="eager")
    generators = [torch.Generator().manual_seed(2), torch.default_generator]
    for generator in [*generators, *generators]:
        found = []
        for call in (compiled, fn):
            torch.manual_seed(1)
            found.append([call(torch.ones(3), generator), torch.get_rng_state()])
            generators[0].manual_seed(2)
        assert repr(found[0]) == repr(found[1])


def test_a_symbolic_seed_needs_no_further_graph() -> None:
    def fn(x: Tensor, seed: int) -> Any:
        torch.manual_seed(seed)
        return x * torch.rand(3)

    counting = Counting()
    compiled = stator.compile(fn, backend=counting)
    for seed in range(3, 9):
        assert torch.equal(compiled(torch.ones(3), seed), fn(torch.ones(3), seed))
    assert counting.count == 1  # the entry with a symbolic seed has an equal graph


def test_a_seed_too_long_to_be_written_down_is_captured() -> None:
    def fn(x: Tensor) -> Any:
        return x + random.Random((1 << 80_000) - 1).random()

    counting = Counting()
    compiled = stator.compile(fn, backend=counting)
    assert torch.equal(compiled(torch.ones(3)), fn(torch.ones(3)))
    assert counting.count == 1


def test_methods_call_the_random_that_the_region_gave_the_object() -> None:
    def fn(x: Tensor, g: random.Random) -> Any:
        made = random.Random()
        made.random = [0.25, 0.5, 0.75].pop  # type: ignore[method-assign]
        g.random = lambda: 0.125  # type: ignore[method-assign]
        found = x * made.uniform(1.0, 3.0), made.uniform(0.0, 2.0), g.triangular(0.0, 1.0)
        del g.random
        return *found, g.uniform(0.0, 1.0)

    compiled = stator.compile(fn, backend="eager")
    for seed in range(3):
        expected = fn(torch.ones(3), random.Random(seed))
        found = compiled(torch.ones(3), random.Random(seed))
        assert torch.equal(found[0], expected[0])
        assert found[1:] == expected[1:]


# -- graphs that raise -----------------------------------------------------------------------------
def raising(x: Tensor, s: Any) -> Any:
    a = s.python.random()
    s.kept.append(a)
    y = torch.ones(3)[x.long()]
    return y * a * s.python.random() + torch.rand(3, generator=s.torch)


def handling(x: Tensor, s: Any) -> Any:
    made = random.Random(5)
    a = made.random() + s.numpy.random()
    try:
        y = torch.ones(3)[x.long()]
    except IndexError:
        y = torch.ones(3) * made.random()
        s.kept.append(a)
    return y * made.random() * torch.rand(3) + s.numpy.random()


def seeding_behind(x: Tensor, s: Any) -> Any:
    torch.manual_seed(5)
    a = s.legacy.rand()
    y = torch.ones(3)[x.long()]
    torch.manual_seed(6)
    return y * a * torch.rand(3)


def copying(x: Tensor, s: Any) -> Any:
    """What is drawn from a copy before the index cannot be drawn again where the graph goes on."""
    a = torch.rand(3, generator=s.torch)
    other = s.torch.clone_state()
    b = torch.rand(3, generator=other)
    y = torch.ones(3)[x.long()]
    return y * a + b + torch.rand(3, generator=other)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", [copying, raising, handling, seeding_behind])
def test_a_graph_that_raises_leaves_the_streams_as_plain_python_does(fn: Any, backend: str) -> None:
    compiled = stator.compile(fn, backend=backend)
    inputs = [torch.full((3,), float(i)) for i in (0, 1, 9, 2, 9, 0)]
    assert series(compiled, inputs) == series(fn, inputs)


def test_states_are_saved_only_where_an_operator_may_refuse_its_values(tmp_path: Any) -> None:
    """A state is copied on each call of such an entry alone."""

    def text_of(fn: Any) -> Any:
        compiled = stator.compile(fn, backend="eager")
        compiled(torch.zeros(3), Streams())
        stator.dump(compiled, tmp_path / fn.__name__)
        return (tmp_path / fn.__name__ / "entry_0.py").read_text()

    assert ".before(" in text_of(raising)
    assert ".before(" not in text_of(CAPTURED["all streams in turn"])


def test_a_dumped_entry_draws_as_well(tmp_path: Any) -> None:
    compiled = stator.compile(CAPTURED["functions of the module"], backend="eager")
    compiled(torch.ones(3), Streams())
    stator.dump(compiled, tmp_path)
    loaded: Any = stator.load(tmp_path)
    random.seed(2)
    found = loaded(torch.ones(3), Streams())
    random.seed(2)
    assert torch.equal(found, CAPTURED["functions of the module"](torch.ones(3), None))


# -- operators with bodies -------------------------------------------------------------------------
def test_a_checkpointed_body_draws_natively() -> None:
    def fn(x: Tensor, s: Any) -> Any:
        leaf = x.clone().requires_grad_()
        drawn = torch.utils.checkpoint.checkpoint(
            lambda y: y * s.python.random() * 2, leaf, use_reentrant=False
        )
        drawn.sum().backward()
        return leaf.grad

    compiled = stator.compile(fn, backend="eager")
    assert series(compiled, INPUTS) == series(fn, INPUTS)


def test_a_generator_inside_of_vmap_raises_as_in_eager() -> None:
    def fn(x: Tensor, s: Any) -> Any:
        return torch.vmap(lambda v: v + torch.rand(1, generator=s.torch))(x)

    compiled = stator.compile(fn, backend="eager")
    assert series(compiled, INPUTS[:2]) == series(fn, INPUTS[:2])


def a_seed(x: Tensor, streams: Any) -> Any:
    torch.manual_seed(3)
    drawn = torch.rand(3)
    return drawn, torch.initial_seed() % 5 + x


def a_state_in_the_graph(x: Tensor, streams: Any) -> Any:
    return torch.rand(3), torch.get_rng_state() + 0


def a_state_for_another(x: Tensor, streams: Any) -> Any:
    drawn, generator = torch.rand(3), streams["torch"]
    generator.set_state(torch.get_rng_state())
    return drawn, torch.rand(3, generator=generator)


def a_generator_in_inference_mode(x: Tensor, streams: Any) -> Any:
    with torch.inference_mode():
        return torch.rand(3, generator=streams["torch"])


def a_generator_and_out(x: Tensor, streams: Any) -> Any:
    return torch.rand(3, generator=streams["torch"], out=torch.empty(3))


def devices(x: Tensor, streams: Any) -> Any:
    return x + 1, torch.Generator().device, streams["torch"].device


class Constant(random.Random):
    def getrandbits(self, k: int) -> int:
        return 1


def a_stream_of_its_own(x: Tensor, streams: Any) -> Any:
    stream, order = streams["python"], [1, 2, 3]
    stream.seed(3)
    stream.shuffle(order)
    return x + stream.gauss(0, 1), order, stream.randint(1, 5)


def numbers_of_numpy(x: Tensor, streams: Any) -> Any:
    stream, older = streams["numpy"], streams["older"]
    return x + stream.integers(5), x * older.randint(4, dtype="i4")


def given_streams() -> tuple[Tensor, dict[str, Any]]:
    return torch.arange(3.0), {
        "python": Constant(1),
        "numpy": np.random.default_rng(1),
        "older": np.random.RandomState(1),
        "torch": torch.Generator().manual_seed(1),
    }


NATIVE = (
    *(a_seed, a_state_in_the_graph, a_state_for_another, a_generator_in_inference_mode),
    *(a_generator_and_out, devices, a_stream_of_its_own, numbers_of_numpy),
)


@pytest.mark.parametrize("fn", NATIVE, ids=lambda fn: fn.__name__)
def test_streams_beside_the_graph(fn: Any) -> None:
    assert_same(fn, stator.compile(fn, backend="eager"), given_streams)
