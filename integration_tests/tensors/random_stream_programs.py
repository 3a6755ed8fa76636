"""Programs that draw random numbers, for `test_random_streams`.

`series` calls one several times with streams of its own, and returns the results with the states of
all streams after each call: those of the argument, and those of the process.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

Program = Callable[[Tensor, Any], Any]
CAPTURED: dict[str, Program] = {}
BROKEN: dict[str, tuple[int, Program]] = {}
"""With the number of graphs of the first call."""


def captured(fn: Program) -> Program:
    CAPTURED[fn.__name__.replace("_", " ")] = fn
    return fn


def broken(graphs: int) -> Callable[[Program], Program]:
    def register(fn: Program) -> Program:
        BROKEN[fn.__name__.replace("_", " ")] = graphs, fn
        return fn

    return register


class Named(random.Random):
    """A subclass that adds nothing to how numbers are drawn."""


class Halved(random.Random):
    """A subclass that draws in its own way, also for the methods that it inherits."""

    def random(self) -> float:
        return super().random() / 2


class Streams:
    def __init__(self) -> None:
        self.python = random.Random(3)
        self.same = self.python
        self.named = Named(4)
        self.halved = Halved(5)
        self.table = {"a": [random.Random(6)]}
        self.torch = torch.Generator().manual_seed(7)
        self.numpy = np.random.default_rng(8)
        self.legacy = np.random.RandomState(9)
        self.kept: list[Any] = []


def state_of(stream: Any) -> Any:
    if isinstance(stream, random.Random):
        return stream.getstate(), vars(stream)
    if isinstance(stream, torch.Generator):
        return stream.get_state().tolist()
    if isinstance(stream, np.random.RandomState):
        return repr(stream.get_state(legacy=False))
    return repr(stream.bit_generator.state)


def states_of(streams: Streams) -> list[Any]:
    own = [streams.python, streams.named, streams.halved, streams.table["a"][0]]
    of_process = [random.getstate(), repr(np.random.get_state(legacy=False))]
    others = [streams.torch, streams.numpy, streams.legacy]
    return [*map(state_of, [*own, *others]), *of_process, torch.get_rng_state().tolist()]


def plain_values(result: Any) -> list[Any]:
    """The result as values that compare: tensors and arrays as lists, with their dtypes."""
    found: list[Any] = []
    for leaf in pytree.tree_leaves(result):
        if isinstance(leaf, Tensor | np.ndarray):
            found.append((type(leaf), leaf.dtype, leaf.tolist()))
        elif isinstance(leaf, random.Random | torch.Generator | np.random.Generator):
            found.append(state_of(leaf))
        else:
            found.append((type(leaf), leaf))
    return found


def seed_process() -> None:
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return plain_values(call())
    except Exception as error:
        return type(error), str(error)


def series(fn: Program, inputs: list[Tensor]) -> Any:
    """Results and states of a series of calls."""
    seed_process()
    streams, seen = Streams(), []
    for x in inputs:
        seen.append(outcome(functools.partial(fn, x.clone(), streams)))
        seen.append(states_of(streams))
    return seen, plain_values(streams.kept)


# -- random ----------------------------------------------------------------------------------------
@captured
def a_random_object(x: Tensor, s: Any) -> Any:
    return x * s.python.random()


@captured
def one_stream_by_two_names(x: Tensor, s: Any) -> Any:
    return x * s.python.random() + s.same.random()


@captured
def a_stream_in_containers(x: Tensor, s: Any) -> Any:
    return x * s.table["a"][0].random()


@captured
def a_subclass(x: Tensor, s: Any) -> Any:
    return x * s.named.uniform(1, 2) + s.named.random()


@captured
def a_subclass_that_draws_in_its_own_way(x: Tensor, s: Any) -> Any:
    return x * s.halved.random() + s.halved.uniform(1, 2)


@captured
def functions_of_the_module(x: Tensor, s: Any) -> Any:
    return x * random.random() + random.uniform(1, 2) * random.randint(3, 5)


@captured
def every_distribution(x: Tensor, s: Any) -> Any:
    r = s.python
    first = r.triangular(0, 1), r.expovariate(2.0), r.vonmisesvariate(0, 4), r.gammavariate(2, 1)
    return x, first, r.betavariate(1, 2), r.paretovariate(3), r.weibullvariate(1, 2)


@captured
def gauss_keeps_half_of_what_it_draws(x: Tensor, s: Any) -> Any:
    """Of each pair of numbers one is kept for the next call."""
    return x * s.python.gauss(0, 1)


@captured
def integers(x: Tensor, s: Any) -> Any:
    r = s.python
    return x * r.randrange(9), r.randint(1, 9), r.getrandbits(5), r.randrange(1, 9, 3)


@captured
def choices_among_numbers(x: Tensor, s: Any) -> Any:
    r = s.python
    return x * r.choice([1.5, 2.5]), r.sample(range(9), 3), r.choices((1, 2, 3), k=2)


@captured
def a_stream_made_in_the_region(x: Tensor, s: Any) -> Any:
    made = random.Random(11)
    made.mark = "kept"  # type: ignore[attr-defined]
    s.kept.append(made)
    return x * made.random(), made.random(), made


@captured
def seeding(x: Tensor, s: Any) -> Any:
    s.python.seed(4)
    random.seed("a text")
    return x * s.python.random() + random.random()


@captured
def draws_in_a_loop_and_a_comprehension(x: Tensor, s: Any) -> Any:
    for _ in range(3):
        x = x * s.python.random()
    return x, [s.python.random() for _ in range(2)], sum(s.python.randint(0, 3) for _ in "ab")


@captured
def draws_in_a_helper_and_a_closure(x: Tensor, s: Any) -> Any:
    draw = functools.partial(s.python.uniform, 1)

    def helper(y: Tensor) -> Any:
        return y * draw(2) * s.python.random()

    return helper(helper(x))


@captured
def draws_around_an_exception(x: Tensor, s: Any) -> Any:
    try:
        a = s.python.random()
        raise ValueError("a")
    except ValueError:
        x = x * a
    finally:
        x = x + s.python.random()
    return x * s.python.random()


@captured
def numbers_that_are_computed_with(x: Tensor, s: Any) -> Any:
    a, n = s.python.random(), s.python.randint(2, 9)
    return x * (a * 2 + 1), int(a * 10), n // 2, -n, a**2, f"{a:.3f} {n}", torch.full((2,), a)


@captured
def numbers_that_are_kept(x: Tensor, s: Any) -> Any:
    s.kept.append(s.python.random())
    s.last = s.python.randint(1, 3)
    return x + s.last


@captured
def a_size(x: Tensor, s: Any) -> Any:
    return torch.zeros(s.python.randint(2, 4)) + 1, x


@captured
def augmentations_of_images(x: Tensor, s: Any) -> Any:
    image, top, left = x.repeat(6, 2), s.python.randrange(3), s.python.randint(0, 2)
    cut = image.clone()
    cut[top : top + 2, left : left + 2] = 0
    shade = s.python.uniform(0.8, 1.2) + s.python.gauss(0, 0.1)
    return cut, image[top : top + 3, left : left + 3], image.roll(left, -1), image * shade


@captured
def a_number_that_nothing_uses(x: Tensor, s: Any) -> Any:
    s.python.random()
    return x + 1


@captured
def inside_a_transform(x: Tensor, s: Any) -> Any:
    grad = torch.func.grad(lambda v: (v * v * s.python.random()).sum())
    return grad(x), torch.vmap(lambda v: v * s.python.random())(x)


# -- numpy -----------------------------------------------------------------------------------------
@captured
def a_numpy_generator(x: Tensor, s: Any) -> Any:
    return x * s.numpy.random() + torch.from_numpy(s.numpy.normal(size=3)), s.numpy.normal()


@captured
def legacy_functions(x: Tensor, s: Any) -> Any:
    array = np.random.randn(2, 3)
    array += 1
    return x * np.random.rand() * np.random.randint(1, 9), array, torch.from_numpy(array)


@captured
def a_legacy_stream(x: Tensor, s: Any) -> Any:
    return x * s.legacy.rand(), s.legacy.permutation(4), s.legacy.choice(5)


@captured
def arrays_of_several_dtypes(x: Tensor, s: Any) -> Any:
    r = s.numpy
    return x, r.integers(0, 9, size=(2, 2)), r.standard_normal(3, dtype=np.float32), r.integers(9)


@captured
def a_numpy_stream_made_in_the_region(x: Tensor, s: Any) -> Any:
    made = np.random.default_rng(3)
    return x * made.random() * np.random.RandomState(4).rand(), made


@captured
def seeding_numpy(x: Tensor, s: Any) -> Any:
    np.random.seed(4)
    s.legacy.seed(5)
    return x * np.random.rand() + s.legacy.rand()


# -- torch -----------------------------------------------------------------------------------------
@captured
def a_generator(x: Tensor, s: Any) -> Any:
    return x + torch.randn(3, generator=s.torch) + torch.randint(0, 5, (3,), generator=s.torch)


@captured
def a_generator_made_in_the_region(x: Tensor, s: Any) -> Any:
    made = torch.Generator()
    made.manual_seed(3)
    s.kept.append(made)
    return x + torch.randn(3, generator=made)


@captured
def filling_in_place(x: Tensor, s: Any) -> Any:
    spread = torch.empty(4, 5).t().normal_(generator=s.torch)
    row = (x * 2).uniform_(1, 2, generator=s.torch)
    flags = torch.empty(3).bernoulli_(0.3, generator=s.torch)
    return spread, row, flags, x.exponential_(generator=s.torch)


@captured
def operators_that_take_tensors(x: Tensor, s: Any) -> Any:
    drawn = torch.normal(x, 1.0, generator=s.torch)
    return drawn, torch.normal(0.0, 1.0, (3,), generator=s.torch), torch.bernoulli(drawn.sigmoid())


@captured
def initialisers(x: Tensor, s: Any) -> Any:
    weight = torch.empty(3, 3)
    torch.nn.init.kaiming_uniform_(weight, generator=s.torch)
    torch.nn.init.normal_(weight[0], generator=s.torch)
    torch.nn.init.xavier_normal_(weight[1:])
    return x @ weight


@captured
def the_state_of_a_generator_put_back(x: Tensor, s: Any) -> Any:
    state = s.torch.get_state()
    a = torch.rand(3, generator=s.torch)
    s.torch.set_state(state)
    return x * (a == torch.rand(3, generator=s.torch)), state, s.torch.initial_seed()


@captured
def a_copy_of_a_generator(x: Tensor, s: Any) -> Any:
    other = s.torch.clone_state()
    return x * torch.rand(3, generator=other) + torch.rand(3, generator=s.torch)


@captured
def seeding_before_draws(x: Tensor, s: Any) -> Any:
    torch.manual_seed(3)
    return x * torch.rand(3) + torch.nn.functional.dropout(x)


@captured
def seeding_after_draws(x: Tensor, s: Any) -> Any:
    a = torch.rand(3)
    torch.manual_seed(3)
    return x * a, torch.initial_seed()


@captured
def the_state_of_torch_put_back(x: Tensor, s: Any) -> Any:
    state = torch.get_rng_state()
    a = torch.rand(3)
    torch.set_rng_state(state)
    return x * a


@captured
def a_fork_of_torchs_streams(x: Tensor, s: Any) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        x = x * torch.rand(3)
    return x


@captured
def a_layer_made_after_seeding(x: Tensor, s: Any) -> Any:
    torch.manual_seed(0)
    return torch.nn.Linear(3, 3)(x).detach()


@captured
def a_state_that_is_kept(x: Tensor, s: Any) -> Any:
    a = torch.rand(3)
    s.kept.append(torch.get_rng_state())
    return x * a


@captured
def torchs_own_generator_as_an_argument(x: Tensor, s: Any) -> Any:
    return x + torch.rand(3, generator=torch.default_generator) + torch.rand(3)


@captured
def all_streams_in_turn(x: Tensor, s: Any) -> Any:
    a = torch.rand(3) * s.python.random() + torch.rand(3, generator=s.torch)
    return x * a * s.numpy.random() + torch.rand(3) * random.random() + np.random.rand()


class Noisy(torch.autograd.Function):
    """Reads the state of torch's generator in its forward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, s: Any) -> Any:
        s.kept.append(torch.get_rng_state())
        return x * torch.rand(3) * s.python.random()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0] * 2, None


@captured
def the_forward_of_an_autograd_function(x: Tensor, s: Any) -> Any:
    apply: Any = Noisy.apply
    return apply(x, s)


# -- breaks ----------------------------------------------------------------------------------------
@broken(2)
def a_break_between_draws(x: Tensor, s: Any) -> Any:
    x = x * s.python.random() + torch.rand(3, generator=s.torch)
    print(end="")
    return x * s.python.random() + torch.rand(3, generator=s.torch)


@broken(2)
def a_branch_on_a_draw(x: Tensor, s: Any) -> Any:
    if s.python.random() < 0.5:
        return x + 1
    return x - s.python.random()


@broken(2)
def an_order_that_is_drawn(x: Tensor, s: Any) -> Any:
    x = x * s.python.random()
    items = [1, 2, 3, 4]
    s.python.shuffle(items)
    return x * s.python.random(), items


@broken(2)
def a_choice_among_texts(x: Tensor, s: Any) -> Any:
    x = x + 1
    text = s.python.choice(["a", "bb"])
    return x * s.python.random(), text


@broken(2)
def the_state_of_a_random_object(x: Tensor, s: Any) -> Any:
    x = x + 1
    state = s.python.getstate()
    a = s.python.random()
    s.python.setstate(state)
    return x * a + s.python.random()


@broken(2)
def draws_after_a_state_was_put_back(x: Tensor, s: Any) -> Any:
    state = torch.get_rng_state()
    a = torch.rand(3)
    torch.set_rng_state(state)
    return x * a - torch.rand(3)


@broken(2)
def draws_after_a_fork(x: Tensor, s: Any) -> Any:
    with torch.random.fork_rng(devices=[]):
        x = x * torch.rand(3)
    return x * torch.rand(3)


@broken(2)
def probabilities_that_are_computed(x: Tensor, s: Any) -> Any:
    return torch.bernoulli(x.sigmoid(), generator=s.torch) + 1


@broken(1)
def arguments_that_are_refused(x: Tensor, s: Any) -> Any:
    try:
        s.python.randint(5, 1)
    except ValueError as error:
        return x * s.python.random(), str(error)


@broken(1)
def children_of_a_numpy_generator(x: Tensor, s: Any) -> Any:
    child = np.random.default_rng(3).spawn(1)[0]
    return x * child.random()
