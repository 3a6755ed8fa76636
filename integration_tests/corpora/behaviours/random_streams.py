"""NumPy and torch random numbers: seeding, drawing, Generators, shuffles: the same numbers, the
same final state, on the first call as on later ones."""

# mypy: ignore-errors

from __future__ import annotations

import random

import numpy as np
import torch

from integration_tests.corpora.behaviours import program


@program
def drawing_advances_the_stream(x, n, box):
    return x + torch.rand(3), torch.randn(2, 3), torch.randint(0, 10, (4,)), torch.randperm(5)


@program(breaks="random-stream")
def seeding_inside(x, n, box):
    torch.manual_seed(n)
    a = torch.rand(3)
    torch.manual_seed(n)
    return a, torch.rand(3), torch.initial_seed()


@program
def drawing_in_place(x, n, box):
    y = torch.empty(4)
    return y.uniform_(), y.normal_(0, n), y.bernoulli_(0.5), torch.bernoulli(torch.full((3,), 0.5))


@program
def dropout_draws(x, n, box):
    return torch.nn.functional.dropout(x, 0.5), torch.nn.functional.dropout(x, 0.5, training=False)


@program
def like_functions_draw(x, n, box):
    return (
        torch.rand_like(x),
        torch.randn_like(x),
        torch.randint_like(x, n),
        x.new_empty(2).exponential_(),
    )


GENERATOR = torch.Generator().manual_seed(3)


@program
def a_global_generator_advances(x, n, box):
    return torch.rand(3, generator=GENERATOR) + n, torch.randn(2, generator=GENERATOR)


@program
def a_generator_is_made_here(x, n, box):
    g = torch.Generator()
    g.manual_seed(n)
    return torch.rand(3, generator=g), x + 1


@program
def a_generator_in_an_argument(x, n, box):
    box.generator = torch.Generator().manual_seed(n)
    first = torch.randperm(4, generator=box.generator)
    return first, torch.rand(2, generator=box.generator), box.generator.initial_seed()


@program
def a_generator_state_is_saved_and_restored(x, n, box):
    state = GENERATOR.get_state()
    first = torch.rand(3, generator=GENERATOR)
    GENERATOR.set_state(state)
    return first, torch.rand(3, generator=GENERATOR), x * n


@program(breaks="random-stream")
def the_state_is_saved_and_restored(x, n, box):
    state = torch.get_rng_state()
    first = torch.rand(3)
    torch.set_rng_state(state)
    return first, torch.rand(3), x * n


@program(breaks="random-stream")
def fork_leaves_the_stream(x, n, box):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(n)
        inner = torch.rand(2)
    return inner, torch.rand(2), x


@program(breaks="exception-object")
def an_error_inside_fork(x, n, box):
    try:
        with torch.random.fork_rng(devices=[]):
            torch.rand(2)
            raise ValueError("inside")
    except ValueError:
        return torch.rand(2), x * n


@program
def numpy_global_stream(x, n, box):
    np.random.seed(n)
    a = np.random.rand(3)
    b = np.random.randint(0, 10)
    return torch.tensor(a), int(b), x + float(np.random.uniform())


NUMPY = np.random.default_rng(5)
LEGACY = np.random.RandomState(5)


@program
def numpy_generators(x, n, box):
    return (
        x * float(NUMPY.random()),
        torch.from_numpy(NUMPY.permutation(4)),
        int(LEGACY.randint(100)) + n,
    )


@program(breaks="builtin")
def numpy_shuffle(x, n, box):
    items = np.arange(5)
    np.random.shuffle(items)
    return torch.from_numpy(items) * n, x + 1


@program(breaks="data-dependent-branch")
def python_and_torch_streams_together(x, n, box):
    if random.random() < 0.5:
        return torch.rand(2) + x.sum(), "low"
    return torch.rand(3) + x.sum(), random.choice(["a", "b"])


@program
def draws_on_one_branch_only(x, n, box):
    if n > 2:
        x = x + torch.rand(3)
    return x, torch.rand(1)


@program
def multinomial_and_distributions(x, n, box):
    weights = torch.tensor([0.2, 0.3, 0.5])
    normal = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
    return (
        torch.multinomial(weights, n, replacement=True),
        normal.sample(),
        torch.normal(0.0, 1.0, (2,)),
    )


@program
def a_module_is_initialised(x, n, box):
    model = torch.nn.Linear(3, n)
    return model(x), torch.rand(1)


@program(breaks="not-inlined")
def a_loader_with_a_sampler(x, n, box):
    data = torch.utils.data.TensorDataset(torch.arange(4))
    loader = torch.utils.data.DataLoader(data, batch_size=2, shuffle=True)
    return [batch[0] * n for batch in loader], torch.rand(1)
