"""``nox -s demo``: a 12-layer transformer of a public library, compiled; what was captured; three
ways side by side.

Each way runs in a process of its own, with an empty compiler cache of its own: whatever ran second
in one process would find the kernels that the first had built. Inductor compiles where there is a
C++ compiler, else the AOT eager backend does.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

DEPTH, WIDTH, WORDS = 12, 64, 500
WAYS = ("plain", "torch.compile", "stator")
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
CALLS = 2
"""The calls until all is compiled: stator compiles nothing for a call that no other one is like,
such as the first one here, which warns of something once."""
TITLES = ("first 2 steps", "next calls", "loss", "largest difference", "same gradients")
MEASURED = """
Each way ran once, in its own process with its own empty compiler cache. "first 2 steps" is the time
from calling the compiler to the gradients of the second step, all compilation included; "next
calls" is the fastest of ten that follow. Loss, logits and gradients are those of the second step,
compared with the plain model, which compiles nothing."""


def main() -> None:
    backend = "inductor" if _has_compiler() else "aot_eager"
    parameters = sum(p.numel() for p in _make()[0].parameters())
    print(
        f"GPT-2, {DEPTH} layers, random weights, {parameters:,} parameters; {backend}\n", flush=True
    )

    with tempfile.TemporaryDirectory() as folder:
        found = {way: _run_alone(way, backend, pathlib.Path(folder)) for way in WAYS}

    print("\n{:14} {:>13} {:>12} {:>10} {:>20} {:>15}".format("", *TITLES))
    for way, results in found.items():
        print(_row(way, results, found["plain"]))
    print(MEASURED)


def _has_compiler() -> bool:
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++", "cl"]
    return any(name and shutil.which(name.split()[0]) for name in names)


def _make() -> tuple[Any, dict[str, torch.Tensor]]:
    import transformers

    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=WORDS,
        n_embd=WIDTH,
        n_layer=DEPTH,
        n_head=4,
        n_positions=64,
        bos_token_id=1,
        eos_token_id=2,
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    text = torch.randint(3, WORDS, (2, 32))
    return model, {"input_ids": text, "labels": text}


def _run_alone(way: str, backend: str, folder: pathlib.Path) -> dict[str, Any]:
    """Return the results of one way, from a new process; what it prints is printed."""
    own = folder / way
    own.mkdir()
    caches = {name: str(own / name.lower()) for name in CACHES}
    results = own / "results.pt"
    subprocess.run(
        [sys.executable, __file__, way, backend, str(results)],
        env={**os.environ, **caches},
        check=True,
    )
    found: dict[str, Any] = torch.load(results)
    return found


def run(way: str, backend: str, results: pathlib.Path) -> None:
    """Run the model one way, in this process, and save what there is to compare."""
    warnings.filterwarnings("ignore", module="torch|transformers")
    model, inputs = _make()

    start = time.perf_counter()
    compiled = _compile(way, model, backend)
    for _ in range(CALLS):
        model.zero_grad()
        output = compiled(**inputs)
        output.loss.backward()
    first = time.perf_counter() - start

    gradients = [p.grad.clone() for p in model.parameters()]
    best = min(_timed(compiled, inputs) for _ in range(10))

    found = {
        "first": first,
        "best": best,
        "loss": output.loss.item(),
        "logits": output.logits.detach(),
    }
    torch.save({**found, "gradients": gradients}, results)
    if way == "stator":
        _show_report(compiled.report)


def _compile(way: str, model: Any, backend: str) -> Any:
    if way == "plain":
        return model
    if way == "torch.compile":
        return torch.compile(model, backend=backend)

    import stator

    return stator.compile(model, backend=backend)


def _timed(compiled: Callable[..., Any], inputs: dict[str, torch.Tensor]) -> float:
    start = time.perf_counter()
    compiled(**inputs)
    return time.perf_counter() - start


def _row(way: str, found: dict[str, Any], plain: dict[str, Any]) -> str:
    """One line of the table; plain is what the others are compared with."""
    difference = (found["logits"] - plain["logits"]).abs().max().item()
    pairs = zip(found["gradients"], plain["gradients"], strict=True)
    same = all(torch.allclose(ours, theirs, 1e-3, 1e-4) for ours, theirs in pairs)
    times = f"{found['first']:11.2f} s {found['best'] * 1e3:9.2f} ms"
    return f"{way:14} {times} {found['loss']:10.4f} {difference:20.1e} {same!s:>15}"


def _show_report(report: Any) -> None:
    print(f"graphs: {report.graph_count} ({report.op_count} operations)")
    print(f"breaks: {len(report.breaks)}")
    for reason in report.breaks:
        print("  " + str(reason).replace("\n", "\n  "))
    for number, entry in enumerate(report.entries):
        print(f"entry {number}: {entry.target}, {len(entry.guards)} guards, for example")
        for guard in entry.guards[:: max(1, len(entry.guards) // 5)][:5]:
            what = guard.source.name if guard.source is not None else "global state"
            print(
                f"  {what} must be {guard.kind.needed}, "
                f"needed by line {guard.where.line} of {guard.where.function}"
            )


if __name__ == "__main__":
    if len(sys.argv) == 4:
        run(sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]))
    else:
        main()
