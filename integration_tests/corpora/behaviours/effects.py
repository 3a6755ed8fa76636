"""Effects done before an uncaught raise are visible; `print`, `warnings.warn` and logging give the
same text in the same order; random streams of Python, NumPy and torch give the same numbers and end
in the same state."""

# mypy: ignore-errors

from __future__ import annotations

import io
import logging
import random
import sys
import warnings

import numpy as np
import torch

from integration_tests.corpora.behaviours import program


class Remembering(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append((record.levelname, record.getMessage(), record.funcName))


HANDLER = Remembering()
LOGGER = logging.Logger("behaviours")
LOGGER.addHandler(HANDLER)
STATE = {"count": 0, "items": []}


@program
def what_was_done_before_a_raise_is_visible(x, n, box):
    STATE["count"] += n
    box.items.append(x * 2)
    box.tensor.add_(n)
    box.note = "set"
    raise ValueError(STATE["count"])


@program
def what_was_done_in_a_callee_before_a_raise_is_visible(x, n, box):
    def inner(items):
        items.append(n)
        with torch.no_grad():
            box.tensor.mul_(2)
        return {}["none"]

    try:
        inner(box.items)
    finally:
        box.log.append(x + 1)


@program(breaks="operator-error")
def what_was_done_before_an_operator_error_is_visible(x, n, box):
    box.items.append(n)
    STATE["items"].append(n)
    box.tensor.add_(1)
    return (x + 1) @ torch.ones(9, n)


@program(breaks="builtin")
def print_in_order(x, n, box):
    print("start", n, x.shape, sep="|")
    y = x + 1
    print(f"{box.items}", end="!\n")
    for i in range(2):
        print(i, *box.items)
    return y


@program(breaks="construction")
def print_to_a_stream(x, n, box):
    stream = io.StringIO()
    print("hello", n, file=stream)
    stream.write("more")
    sys.stdout.write(f"{n}\n")
    return stream.getvalue(), x + 1


@program
def warnings_are_shown_in_order(x, n, box):
    warnings.warn("first", UserWarning, stacklevel=1)
    y = x * 2
    warnings.warn(f"n is {n}", RuntimeWarning, stacklevel=2)
    return y


@program(breaks="not-inlined")
def warnings_are_caught_and_recorded(x, n, box):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn(f"inside {n}", stacklevel=1)
        y = x + 1
    return [str(w.message) for w in caught], y


@program(breaks="builtin")
def logging_in_order(x, n, box):
    HANDLER.lines.clear()
    LOGGER.warning("n is %s", n)
    y = x * 2
    LOGGER.error("shape %s", tuple(y.shape))
    LOGGER.debug("never" if LOGGER.level else "debug")
    return list(HANDLER.lines), y


@program(breaks="builtin")
def logging_below_the_level_does_nothing(x, n, box):
    LOGGER.setLevel(logging.ERROR)
    HANDLER.lines.clear()
    LOGGER.info("quiet %s", n)
    LOGGER.warning("quiet")
    enabled = LOGGER.isEnabledFor(logging.DEBUG)
    LOGGER.setLevel(logging.NOTSET)
    return enabled, len(HANDLER.lines), x + 1


@program(breaks="random-value")
def pythons_random_stream(x, n, box):
    random.seed(n)
    a = (
        random.random(),
        random.randint(0, 10),
        random.uniform(1, 2),
        random.choice(box.items),
        random.gauss(0, 1),
    )
    random.shuffle(box.items)
    return (
        a,
        box.items,
        random.sample(range(10), 3),
        random.choices("abc", k=n),
        random.getrandbits(8),
        x * random.random(),
    )


@program(breaks="builtin")
def pythons_random_stream_unseeded(x, n, box):
    return random.random(), x + random.randint(0, 100), random.getstate()[1][:2]


GENERATOR = random.Random(7)


@program(breaks="random-value")
def random_objects(x, n, box):
    mine = random.Random(n)
    items = [1, 2, 3, 4]
    mine.shuffle(items)
    return (
        mine.random(),
        items,
        GENERATOR.random(),
        GENERATOR.randint(0, 9),
        mine.choice("abc"),
        x + 1,
    )


@program(breaks="builtin")
def the_state_is_saved_and_restored(x, n, box):
    state = random.getstate()
    a = random.random()
    random.setstate(state)
    return a == random.random(), x + 1


TORCH_GENERATOR = torch.Generator()


@program
def torch_generators(x, n, box):
    TORCH_GENERATOR.manual_seed(n)
    a = torch.rand(2, generator=TORCH_GENERATOR)
    b = torch.randperm(4, generator=TORCH_GENERATOR)
    torch.manual_seed(n)
    return a, b, torch.rand(2), torch.randn(2) + x.sum(), torch.nn.functional.dropout(x, 0.5)


@program(breaks="data-dependent-branch")
def streams_are_mixed(x, n, box):
    a = torch.rand(2)
    b = random.random()
    c = np.random.rand()
    if b > 2:
        print("never")
    return a, b, c, torch.rand(1), random.random()
