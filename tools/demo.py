"""``nox -s demo``: a 12-layer transformer of a public library, compiled; what was captured; three
ways side by side.

Each way runs in a process of its own, with an empty compiler cache of its own: whatever ran second
in one process would find what the first had built. The backend is AOTAutograd without a compiler,
whose minutes of C++ are the same for both; ``nox -s demo -- inductor`` has that, too.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

DEPTH, WIDTH, WORDS = 12, 256, 500
WAYS = ("plain", "torch.compile", "stator")
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
CALLS = 2
"""The calls until all is compiled: stator compiles nothing for a call that no other one is like,
such as the first one here, which warns of something once."""
TITLES = ("first 2 calls", "next calls", "largest difference")
MEASURED = """
Each way ran once, in its own process with its own empty compiler cache. "first 2 calls" are seconds
of processors, from the import of the compiler on, in all processes that it starts; "next calls" is
the time of the fastest of ten that follow. The difference is that of any logit from the plain
model, which compiles nothing. Each way has one thread."""


def main(backend: str = "aot_eager") -> None:
    print(f"GPT-2, {DEPTH} layers of width {WIDTH}, random weights; {backend}\n", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        found = {way: _run_alone(way, backend, pathlib.Path(folder)) for way in WAYS}

    print("\n{:14} {:>13} {:>12} {:>20}".format("", *TITLES))
    for way, results in found.items():
        print(_row(way, results, found["plain"]))
    print(MEASURED)


def _make() -> tuple[Any, dict[str, Any]]:
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
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
    text = torch.randint(3, WORDS, (2, 64))
    return model, {"input_ids": text}


def _run_alone(way: str, backend: str, folder: pathlib.Path) -> dict[str, Any]:
    """Return the results of one way, from a new process; what it prints is printed."""
    own = folder / way
    own.mkdir()
    settings = {name: str(own / name.lower()) for name in CACHES} | ONE_THREAD
    results = own / "results.json"
    subprocess.run(
        [sys.executable, __file__, way, backend, str(results)],
        env={**os.environ, **settings},
        check=True,
    )
    found: dict[str, Any] = json.loads(results.read_text())
    return found


def run(way: str, backend: str, results: pathlib.Path) -> None:
    """Run the model one way, in this process, and save what there is to compare."""
    warnings.filterwarnings("ignore", module="torch|transformers")
    model, inputs = _make()
    model.requires_grad_(False)

    start = _processor_seconds()
    compiled = _compile(way, model, backend)
    for _ in range(CALLS):
        output = compiled(**inputs)
    first = _processor_seconds() - start

    best = min(_timed(compiled, inputs) for _ in range(10))

    logits = output.logits.flatten().tolist()
    results.write_text(json.dumps({"first": first, "best": best, "logits": logits}))
    if way == "stator":
        _show_report(compiled.report)


def _compile(way: str, model: Any, backend: str) -> Any:
    if way == "plain":
        return model
    if way == "torch.compile":
        import torch

        return torch.compile(model, backend=backend)

    import stator

    return stator.compile(model, backend=backend)


def _processor_seconds() -> float:
    """Return the time of this process and of those that it started and that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _timed(compiled: Callable[..., Any], inputs: dict[str, Any]) -> float:
    start = time.perf_counter()
    compiled(**inputs)
    return time.perf_counter() - start


def _row(way: str, found: dict[str, Any], plain: dict[str, Any]) -> str:
    """One line of the table; plain is what the others are compared with."""
    pairs = zip(found["logits"], plain["logits"], strict=True)
    difference = max(abs(ours - theirs) for ours, theirs in pairs)
    times = f"{found['first']:11.1f} s {found['best'] * 1e3:9.2f} ms"
    return f"{way:14} {times} {difference:20.1e}"


def _show_report(report: Any) -> None:
    print(report)
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
        main(*sys.argv[1:])
