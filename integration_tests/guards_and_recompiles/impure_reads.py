"""Reads of what no argument holds: clocks, streams, the process and its settings. A row for each,
with its policy.

*guard*: read while tracing; what the program does with it is relied on, and compared by every call
before its entry runs. *re-read*: the entry, or its graph, reads it each time. *break*: it runs
natively, where it stands. What is in no table of handlers is of the last kind.
"""

from __future__ import annotations

import contextvars
import datetime
import gc
import logging
import os
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import torch
import torch.backends.mkldnn

GUARD, REREAD, BREAK = "guard", "re-read", "break"
LOG = logging.getLogger("integration_tests.guards_and_recompiles.impure_reads")
SET: contextvars.ContextVar[int] = contextvars.ContextVar("SET")
UNSET: contextvars.ContextVar[int] = contextvars.ContextVar("UNSET", default=3)

STREAMS: list[Any] = [random.Random(), np.random.RandomState()]


def seed_all(seed: int) -> None:
    """Seed torch's generators and the streams that programs read."""
    torch.manual_seed(seed)
    for stream in STREAMS:
        stream.seed(seed)


@attrs.frozen
class Read:
    """`change` changes what is read, and gives what undoes that."""

    name: str
    policy: str
    read: Callable[[torch.Tensor], Any]
    change: Callable[[], Callable[[], object]] | None = None


def _environment() -> Callable[[], object]:
    os.environ["STATOR_ANYTHING"] = "set"
    return lambda: os.environ.pop("STATOR_ANYTHING")


def _limit() -> Callable[[], object]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + 1)
    return lambda: sys.setrecursionlimit(before)


def _variable() -> Callable[[], object]:
    token = SET.set(7)
    return lambda: SET.reset(token)


def _threads() -> Callable[[], object]:
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    return lambda: torch.set_num_threads(before)


def _level() -> Callable[[], object]:
    LOG.setLevel(logging.DEBUG)
    return lambda: LOG.setLevel(logging.NOTSET)


def _grad() -> Callable[[], object]:
    torch._C._set_grad_enabled(False)
    return lambda: torch._C._set_grad_enabled(True)


def _dtype() -> Callable[[], object]:
    torch.set_default_dtype(torch.float64)
    return lambda: torch.set_default_dtype(torch.float32)


def _deterministic() -> Callable[[], object]:
    torch.use_deterministic_algorithms(True)
    return lambda: torch.use_deterministic_algorithms(False)


def _benchmark() -> Callable[[], object]:
    # set in no other way once torch's kit of tests is imported
    flags = torch.backends.cudnn.flags(benchmark=True)
    flags.__enter__()
    return lambda: flags.__exit__(None, None, None)


READS = (
    Read("`os.environ`, `os.getenv`", GUARD, lambda x: os.getenv("STATOR_ANYTHING"), _environment),
    Read("`sys.getrecursionlimit()`", GUARD, lambda x: sys.getrecursionlimit(), _limit),
    Read("a context variable that is set", GUARD, lambda x: SET.get(), _variable),
    Read("levels of loggers", GUARD, lambda x: LOG.getEffectiveLevel(), _level),
    Read("grad mode, inference mode, autocast", GUARD, lambda x: torch.is_grad_enabled(), _grad),
    Read("the default dtype and device", GUARD, lambda x: torch.get_default_dtype(), _dtype),
    Read(
        "deterministic algorithms",
        GUARD,
        lambda x: torch.are_deterministic_algorithms_enabled(),
        _deterministic,
    ),
    Read("flags of `torch.backends`", GUARD, lambda x: torch.backends.cudnn.benchmark, _benchmark),
    Read("`torch.get_num_threads()`", GUARD, lambda x: torch.get_num_threads(), _threads),
    Read("`threading.get_ident()`", REREAD, lambda x: threading.get_ident()),
    Read("`id(x)`", REREAD, id),
    Read("torch's random numbers", REREAD, lambda x: torch.rand(2)),
    Read("`random`", REREAD, lambda x: STREAMS[0].random()),
    Read("`numpy.random`", REREAD, lambda x: STREAMS[1].random()),
    Read("`torch.initial_seed()`, `get_rng_state()`", REREAD, lambda x: torch.initial_seed()),
    Read("`time.time()`, `perf_counter()`, …", BREAK, lambda x: time.time()),
    Read("`datetime.now()`", BREAK, lambda x: datetime.datetime.now()),
    Read("`uuid.uuid4()`", BREAK, lambda x: uuid.uuid4()),
    Read("`os.getpid()`, `os.getcwd()`, files", BREAK, lambda x: os.getpid()),
    Read("`gc.isenabled()`", BREAK, lambda x: gc.isenabled()),
)
