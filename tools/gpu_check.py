"""Check CUDA graphs on a GPU and print a table of times: ``python tools/gpu_check.py``.

Needs a CUDA device, torch 2.11 to 2.14 and wheels of our packages, nothing else; takes at most four
minutes. Each program is run eagerly and compiled in three ways; results must be equal, and the time
per call is the least of several rounds. Exits with 1 for a wrong result, with 2 without a device.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from typing import Any

import stator
import stator_backends
import torch
from torch import Tensor, nn

SECONDS = 200
"""No further program is begun after that."""

WAYS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda fn: fn,
    "torch reduce-overhead": lambda fn: torch.compile(fn, mode="reduce-overhead"),
    "stator reduce-overhead": lambda fn: stator.compile(
        fn, backend="inductor", mode="reduce-overhead"
    ),
    "stator cudagraphs": lambda fn: stator.compile(fn, backend="cudagraphs"),
}


def layers(count: int) -> nn.Module:
    """Return a model of small layers, which the overhead of calls dominates."""
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(32, 32) for _ in range(count))).cuda()


class Inference:
    """Call a model without gradients."""

    name = "50 small layers, inference"

    def __init__(self, way: Callable[[Any], Any]) -> None:
        self.call = way(layers(50).eval())

    def step(self, x: Tensor) -> list[Tensor]:
        with torch.no_grad():
            return [self.call(x).clone()]


class TrainingStep:
    """Forward, backward and an update; the loss of a step lives on in the next."""

    name = "20 small layers, training step"

    def __init__(self, way: Callable[[Any], Any]) -> None:
        self.model = layers(20)
        self.call = way(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.losses: list[Tensor] = []

    def step(self, x: Tensor) -> list[Tensor]:
        loss = self.call(x).square().mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.losses = [*self.losses[-1:], loss.detach()]
        return [*self.losses]


class BreakInside:
    """Two graphs in one call: the second is recorded as a child of the first."""

    name = "a break between two graphs"

    def __init__(self, way: Callable[[Any], Any]) -> None:
        first, second = layers(5), layers(5)

        def broken(x: Tensor) -> Tensor:
            between = first(x)
            print(end="")
            result: Tensor = second(between) + between
            return result

        self.call = way(broken)

    def step(self, x: Tensor) -> list[Tensor]:
        with torch.no_grad():
            return [self.call(x).clone()]


PROGRAMS: tuple[Any, ...] = (Inference, TrainingStep, BreakInside)


def inputs() -> Iterator[Tensor]:
    """Yield the inputs of successive calls, at other addresses each."""
    generator = torch.Generator("cuda").manual_seed(1)
    kept = [torch.randn(8, 32, device="cuda", generator=generator) for _ in range(8)]
    while True:
        yield from kept


def is_right(program: Any, way: Callable[[Any], Any]) -> bool:
    """Compare twelve steps with the eager ones."""
    plain, other = program(WAYS["eager"]), program(way)
    for _, x in zip(range(12), inputs(), strict=False):
        expected = copy.deepcopy(plain.step(x))
        for one, reference in zip(other.step(x), expected, strict=True):
            if not torch.allclose(one, reference, rtol=1e-3, atol=1e-4):
                return False
    return True


def microseconds(program: Any, way: Callable[[Any], Any]) -> float:
    """Return the least time per step over ten rounds of fifty steps."""
    made, given = program(way), inputs()
    rounds = []
    for _ in range(11):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _, x in zip(range(50), given, strict=False):
            made.step(x)
        torch.cuda.synchronize()
        rounds.append((time.perf_counter() - start) / 50 * 1e6)
    return min(rounds[1:])


def main() -> int:
    if not torch.cuda.is_available():
        print("no CUDA device: nothing was checked")
        return 2
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, us per step\n")
    print(f"| program | {' | '.join(WAYS)} |\n|---|{'---:|' * len(WAYS)}")
    began, wrong = time.monotonic(), 0
    for program in PROGRAMS:
        cells = []
        for name, way in WAYS.items():
            if time.monotonic() - began > SECONDS:
                cells.append("no time")
                continue
            right = is_right(program, way)
            wrong += not right
            cells.append(f"{microseconds(program, way):.0f}" if right else f"WRONG ({name})")
        print(f"| {program.name} | {' | '.join(cells)} |", flush=True)

    for reason, count in stator_backends.cudagraphs.rejected.items():
        print(f"not recorded: {count} graphs: {reason}")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
