"""Calls of compiled steps of optimizers beside torch.compile's: what they add to their graph.

``python -m integration_tests.benchmarks.optimizer_steps`` measures these rows alone and rewrites
the page of benchmarks with them. Each compiler has a process of its own; processes alternate.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from integration_tests.benchmarks.cases import Row

ROUNDS = 2
COUNTS = (16, 50)
OPTIMIZERS = {
    "Adam": "Adam(parameters, lr=1e-3)",
    "AdamW": "AdamW(parameters, lr=1e-3)",
    "SGD with momentum": "SGD(parameters, lr=1e-3, momentum=0.9)",
    "RMSprop": "RMSprop(parameters, lr=1e-3)",
    "Adagrad": "Adagrad(parameters, lr=1e-3)",
}
STEP = """
import gc, warnings, torch, stator
from torch import nn, optim
from integration_tests.benchmarks.interleaved import best_times
from integration_tests.benchmarks.real_models._replay import Replay
warnings.simplefilter("ignore")
torch.set_num_threads(1)
parameters = [nn.Parameter(torch.randn(4, 4)) for _ in range({count})]
for each in parameters:
    each.grad = torch.randn(4, 4)
optimizer = optim.{optimizer}
replay = Replay()
step = {compiler}.compile(optimizer.step, backend=replay)
for _ in range(8):
    step()
replay.record_next_call()
step()
replay.end_call()
for _ in range(300):
    step()
gc.collect()
print(best_times({{"": step}}, rounds=60, repeats=100)[""] - replay.seconds_per_call())
"""


def _measured(compiler: str, optimizer: str, count: int) -> float:
    text = STEP.format(compiler=compiler, optimizer=optimizer, count=count)
    command = [sys.executable, "-W", "ignore", "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def rows() -> Iterator[Row]:
    for name, optimizer in OPTIMIZERS.items():
        for count in COUNTS:
            rounds = [
                [_measured(compiler, optimizer, count) for compiler in ("stator", "torch")]
                for _ in range(ROUNDS)
            ]
            ours, theirs = (min(found) for found in zip(*rounds, strict=True))
            title = f"call of a step of {name}, {count} parameters"
            yield Row(title, ours / theirs, None, "<= 1")


def main() -> None:
    from integration_tests.benchmarks import __main__ as pages

    pages.replace_costs("call of a step", rows())


if __name__ == "__main__":
    main()
