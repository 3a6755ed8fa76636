"""The step of a small GPT, forward to optimizer, beside torch.compile's.

``python -m integration_tests.benchmarks.training_step`` measures these rows alone and rewrites the
page of benchmarks with them. Each compiler has a process of its own; processes alternate.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from integration_tests.benchmarks.cases import Row

ROUNDS = 2
STEP = """
import time, warnings, torch, stator
from integration_tests.training.scripts import SCRIPTS
warnings.simplefilter("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)
script = SCRIPTS["GPT"](width=64, layers=4, length=32)
graphs = 0
def counting(graph, inputs):
    global graphs
    graphs += 1
    return graph.forward
step = {compiler}.compile(script.step, backend={backend})
counts, times = [], []
for number in range({steps}):
    batch = script.batch(number)
    start = time.process_time()
    step(*batch)
    times.append(time.process_time() - start)
    counts.append(graphs)
    script.after(number)
print(min(times), counts[0], counts[-1] - counts[0])
"""
BACKENDS = {"eager": ("counting", 40), "inductor": ("'inductor'", 20)}
"""The argument of the compiler, and the number of steps."""


def _measured(compiler: str, backend: str, steps: int) -> list[float]:
    """Return the time of the fastest step, graphs of the first step, and those added later."""
    text = STEP.format(compiler=compiler, backend=backend, steps=steps)
    command = [sys.executable, "-W", "ignore", "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(number) for number in done.stdout.split()[-3:]]


def rows() -> Iterator[Row]:
    for name, (backend, steps) in BACKENDS.items():
        rounds = [
            [_measured(compiler, backend, steps) for compiler in ("stator", "torch")]
            for _ in range(ROUNDS)
        ]
        ours, theirs = (min(found) for found in zip(*rounds, strict=True))
        counts = [f"{found[1]:.0f} + {found[2]:.0f}" for found in (ours, theirs)]
        numbers = f"; graphs + recompiled: {', '.join(counts)}" if name == "eager" else ""
        yield Row(f"training step of a GPT, {name}{numbers}", ours[0] / theirs[0], None, "<= 1")


def main() -> None:
    from integration_tests.benchmarks import __main__ as pages

    pages.replace_costs("training step", rows())


if __name__ == "__main__":
    main()
