"""Small programs with a limit of their own: calls, dispatch among entries, and graph breaks."""

from __future__ import annotations

import functools
import logging
import os
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from integration_tests.benchmarks.real_models._workload import Figure, Program, Workload, always

_WIDTH = 8


def _add(x: Tensor, y: Tensor) -> Tensor:
    return x + y


def _two_tensors() -> Program:
    return Program(_add, always(torch.ones(2), torch.ones(2)))


def _perceptron(layers: int = 50) -> Program:
    parts = [part for _ in range(layers) for part in (nn.Linear(_WIDTH, _WIDTH), nn.ReLU())]
    return Program(nn.Sequential(*parts), always(torch.ones(2, _WIDTH)))


def _read_three(table: dict[str, Tensor]) -> Tensor:
    return table["key 3"] + table["key 50"] + table["key 97"]


def _large_dict() -> Program:
    return Program(_read_three, always({f"key {i}": torch.ones(2) for i in range(100)}))


class Attention(nn.Module):
    """One transformer block, written in plain torch."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.first_norm = nn.LayerNorm(width)
        self.second_norm = nn.LayerNorm(width)
        self.projection = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.projection(self.first_norm(x)).view(batch, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        x = x + self.output(mixed.transpose(1, 2).reshape(batch, length, width))
        x = x + self.feed_forward(self.second_norm(x))
        return x


def _attention_blocks() -> Program:
    return Program(
        nn.Sequential(*(Attention() for _ in range(12))).eval(), always(torch.ones(2, 8, 32))
    )


def _batch_norm_loss(model: nn.Module, x: Tensor, wanted: Tensor) -> Tensor:
    """A loss that may refuse the values of its targets, after the running statistics were
    written."""
    return nn.functional.cross_entropy(model(x), wanted)


def _batch_norm_training() -> Program:
    parts = [
        part for _ in range(10) for part in (nn.Linear(_WIDTH, _WIDTH), nn.BatchNorm1d(_WIDTH))
    ]
    model = nn.Sequential(*parts).train()
    return Program(
        _batch_norm_loss, always(model, torch.randn(4, _WIDTH), torch.tensor([1, 0, 3, 2]))
    )


def _scaled(x: Tensor, mode: str) -> Tensor:
    return x * len(mode) + 1


def _each_mode(count: int, compiled: Callable[..., Any]) -> Callable[..., Any]:
    modes = ["m" * (i + 1) for i in range(count)]

    def run(x: Tensor) -> None:
        for mode in modes:
            compiled(x, mode)

    return run


def _entries(count: int) -> Program:
    return Program(_scaled, always(torch.ones(2)), functools.partial(_each_mode, count))


def _beyond_limit() -> Program:
    """Eight modes have an entry each; the measured calls are those of a ninth.

    The mode is read last, so that an entry which does not fit fails in its last guard.
    """
    model = nn.Sequential(*(nn.Linear(_WIDTH, _WIDTH) for _ in range(4)))

    def fn(x: Tensor, mode: str) -> Tensor:
        return _scaled(model(x), mode)

    def driver(compiled: Callable[..., Any]) -> Callable[..., Any]:
        _each_mode(8, compiled)(torch.ones(2, _WIDTH))
        return compiled

    return Program(fn, always(torch.ones(2, _WIDTH), "another mode"), driver)


# A C function that neither compiler knows, so that calling it breaks the graph.
_opaque = os.getpid


def _straight(x: Tensor) -> Tensor:
    y = x + 1
    _opaque()
    return y * 2


def _inner(x: Tensor) -> Tensor:
    y = x + 1
    _opaque()
    return y * 2


def _middle(x: Tensor) -> Tensor:
    return _inner(x + 1) + 1


def _nested(x: Tensor) -> Tensor:
    return _middle(x) * 2


def _in_loop(x: Tensor) -> Tensor:
    for i in range(10):
        x = x + 1
        if i in (3, 7):
            _opaque()
    return x


def _in_try(x: Tensor) -> Tensor:
    try:
        y = x + 1
        _opaque()
        return y * 2
    except ValueError:
        return x


def _in_with(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x + 1
        _opaque()
        return y * 2


# Of fewer operators than two for each graph, the function would run natively.
def _around_timers(x: Tensor) -> tuple[Tensor, float]:
    start = time.perf_counter()
    y = (x + 1).sin().relu() * 3
    return y * 2, time.perf_counter() - start


_logger = logging.Logger("integration_tests.benchmarks")
_logger.addHandler(logging.NullHandler())


def _around_logging(x: Tensor) -> Tensor:
    y = x + 1
    _logger.info("in the middle")
    return y * 2


def _breaking(title: str, fn: Callable[..., Any], breaks: int) -> Workload:
    return Workload(
        f"break {title}",
        lambda: Program(fn, always(torch.ones(2))),
        figure=Figure.OVER_EAGER,
        breaks=breaks,
        target="4 us over eager",
    )


def _make_generate() -> Program:
    from integration_tests.benchmarks.real_models._language import generation

    return generation()


MICRO = (
    Workload("two tensors", _two_tensors, target="0.10"),
    Workload("50-layer MLP", _perceptron, target="0.25"),
    Workload("dict of 100 keys, 3 read", _large_dict, target="0.33"),
    Workload("8 entries", lambda: _entries(8), target="0.33"),
    Workload("64 entries", lambda: _entries(64), recompile_limit=64, target="0.25"),
    Workload("at the recompile limit", _beyond_limit, figure=Figure.OVER_EAGER, target="1.0"),
    Workload("12 attention blocks", _attention_blocks, target="early below 1"),
    Workload(
        "40 generate calls",
        _make_generate,
        ("transformers",),
        first_calls=40,
        target="early below 1",
    ),
    _breaking("in straight-line code", _straight, 1),
    _breaking("two calls deep", _nested, 1),
    _breaking("twice in a loop of ten", _in_loop, 2),
    _breaking("in try", _in_try, 1),
    _breaking("in with", _in_with, 1),
    _breaking("around two timers", _around_timers, 2),
    _breaking("around a logging call", _around_logging, 1),
)

BATCH_NORM = Workload("batch-norm training, loss", _batch_norm_training, gradients=True)
