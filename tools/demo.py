"""``nox -s demo``: a 12-layer transformer of a public library, compiled; what was captured; three ways side by side.

Inductor compiles where there is a C++ compiler, else the AOT eager backend does.
"""

from __future__ import annotations

import os
import shutil
import time
import warnings
from collections.abc import Callable
from typing import Any

import stator
import torch
import transformers

DEPTH, WIDTH, WORDS = 12, 64, 500


def main() -> None:
    warnings.filterwarnings("ignore", module="torch|transformers")
    backend = "inductor" if _has_compiler() else "aot_eager"
    model, inputs = _make()
    compiled = stator.compile(model, backend=backend)
    print(
        f"GPT-2, {DEPTH} layers, random weights, {sum(p.numel() for p in model.parameters()):,} parameters; {backend}\n"
    )
    ways = {"plain": _make()[0], "torch.compile": torch.compile(_make()[0], backend=backend), "stator": compiled}
    rows = _side_by_side(inputs, ways)
    _show_report(compiled.report)
    titles = ("first call", "next calls", "loss", "largest difference", "same gradients")
    print("\n{:14} {:>12} {:>12} {:>10} {:>20} {:>15}".format("", *titles))
    print("\n".join(rows))


def _has_compiler() -> bool:
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++", "cl"]
    return any(name and shutil.which(name.split()[0]) for name in names)


def _make() -> tuple[Any, dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=WORDS, n_embd=WIDTH, n_layer=DEPTH, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    text = torch.randint(3, WORDS, (2, 32))
    return model, {"input_ids": text, "labels": text}


def _side_by_side(inputs: dict[str, torch.Tensor], ways: dict[str, Any]) -> list[str]:
    """One line for each way of running the model; the first is what the others are compared with."""
    rows, expected = [], None
    for name, way in ways.items():
        first, output = _timed(way, inputs)
        output.loss.backward()
        gradients = [p.grad.clone() for p in way.parameters()]
        best = min(_timed(way, inputs)[0] for _ in range(10))
        expected = expected or (output.logits.detach(), gradients)
        off = (output.logits - expected[0]).abs().max().item()
        pairs = zip(gradients, expected[1], strict=True)
        same = all(torch.allclose(ours, theirs, 1e-3, 1e-4) for ours, theirs in pairs)
        rows.append(f"{name:14} {first:10.2f} s {best * 1e3:9.2f} ms {output.loss:10.4f} {off:20.1e} {same!s:>15}")
    return rows


def _timed(way: Callable[..., Any], inputs: dict[str, torch.Tensor]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = way(**inputs)
    return time.perf_counter() - start, result


def _show_report(report: Any) -> None:
    print(f"graphs: {report.graph_count} ({report.op_count} operations)")
    print(f"breaks: {len(report.breaks)}")
    for reason in report.breaks:
        print("  " + str(reason).replace("\n", "\n  "))
    for number, entry in enumerate(report.entries):
        print(f"entry {number}: {entry.target}, {len(entry.guards)} guards, for example")
        for guard in entry.guards[:: max(1, len(entry.guards) // 5)][:5]:
            what = guard.source.name if guard.source is not None else "global state"
            print(f"  {what} must be {guard.kind.needed}, needed by line {guard.where.line} of {guard.where.function}")


if __name__ == "__main__":
    main()
