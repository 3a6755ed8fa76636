"""The operators and modules of torch's own tests (OpInfo, ModuleInfo) with their samples, compiled
beside plain Python.

``python -m integration_tests.corpora.torch_databases.comparison`` runs all samples of one dtype in
one process and appends a line of JSON per entry to ``--output``; a run that was interrupted
continues there. ``--page`` writes the figures of a finished file to
``docs/reference/torch-databases.md``.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import functools
import json
import pathlib
import signal
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs
import stator
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.utils._pytree import tree_map

from integration_tests.corpora.models import Call
from integration_tests.support.oracle import EXACT, Tolerance, assert_same

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "reference" / "torch-databases.md"
UNDEFINED = frozenset(
    "empty empty_like empty_permuted empty_strided new_empty new_empty_strided resize_ resize_as_".split()
)
"""Operators whose results contain memory as it was found."""
WARNING = frozenset(
    "cholesky triangular_solve index_reduce searchsorted sparse.sampled_addmm sparse.mm".split()
)
"""Operators whose kernels alone warn, which no fake does: the graph then names a line of its
own."""
ROUNDED = frozenset(("linalg.lstsq",))
"""Operators whose kernels round differently where their arguments lie elsewhere in memory."""
OPERATORS = {f"{op.name} {op.variant_test_name}".strip(): op for op in op_db}
MODULES = {info.name: info for info in module_db}
Function = Callable[..., Any]


class NotCopied:
    """Holds a sparse tensor, of which torch makes no deep copy."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __deepcopy__(self, memo: dict[int, Any]) -> NotCopied:
        copied = self.tensor.detach().clone()
        return NotCopied(copied.requires_grad_(self.tensor.requires_grad))


@attrs.frozen(eq=False)
class Sample:
    """One call: the plain function and a compiled copy of it, with the arguments of both."""

    plain: Function
    compiled: Function
    call: Call
    owners: tuple[Any, Any] | None = None
    tolerance: Tolerance = EXACT

    def check(self, calls: int = 2) -> None:
        """Compare both sides, gradients included."""
        assert_same(
            self.plain,
            self.compiled,
            functools.partial(copy.copy, self.call),
            calls,
            tolerance=self.tolerance,
            owners=self.owners,
        )

    @property
    def raises(self) -> bool:
        """Return True if the plain function raises."""
        call = copy.deepcopy(self.call)
        try:
            self.plain(*call.args, **call.kwargs)
        except Exception:
            return True
        return False


@contextlib.contextmanager
def warning_each_time() -> Iterator[None]:
    """Let the warnings that torch gives once be given in both runs."""
    torch.set_warn_always(True)
    try:
        yield
    finally:
        torch.set_warn_always(False)


def operator_samples(op: Any, dtype: torch.dtype) -> Iterator[Sample]:
    """Yield the samples of one operator, with gradients where it has them."""
    gradients = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    function = op.op

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    plain = _comparable(op.name, call)
    for sample in op.sample_inputs("cpu", dtype, requires_grad=gradients):
        stator.reset()  # else sizes that differ from those of other samples are symbolic
        compiled = _comparable(op.name, stator.compile(call, backend="eager"))
        arguments = _as_leaves(Call((sample.input, *sample.args), sample.kwargs))
        tolerance = Tolerance(1e-4, 1e-4) if op.name in ROUNDED else EXACT
        yield Sample(plain, compiled, arguments, tolerance=tolerance)


def module_samples(info: Any, training: bool) -> Iterator[Sample]:
    """Yield the samples of one module; each has two equal modules of its own."""
    made = info.module_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
    )
    for sample in made:
        constructor, forward = sample.constructor_input, sample.forward_input
        torch.manual_seed(0)
        with warnings.catch_warnings(action="ignore"):
            plain = info.module_cls(*constructor.args, **constructor.kwargs)
        plain = plain.to(torch.float32).train(training)  # as torch's own tests do

        other = copy.deepcopy(plain)
        stator.reset()
        compiled = stator.compile(other, backend="eager")
        arguments = _as_leaves(Call(forward.args, forward.kwargs))
        yield Sample(plain, compiled, arguments, (plain, other))


def _as_leaves(call: Call) -> Call:
    """Only leaves can be copied with what they share."""

    def leaf(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if not value.is_leaf:
            value = value.detach().requires_grad_()
        compressed = value.layout not in (torch.strided, torch.sparse_coo)
        return NotCopied(value) if compressed else value

    return Call(tree_map(leaf, tuple(call.args)), tree_map(leaf, call.kwargs))


def _comparable(name: str, function: Function) -> Function:
    """Return ``function`` with results, arguments and warnings that the oracle can compare."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(_held, args), tree_map(_held, kwargs)
        with warnings.catch_warnings():
            if name in WARNING:
                warnings.simplefilter("ignore")
            result = function(*args, **kwargs)

        if name in UNDEFINED:
            result.detach().zero_()
        if name == "chalf":  # for which torch has no comparison
            return result.to(torch.complex64)
        return result

    return called


def _held(value: Any) -> Any:
    return value.tensor if isinstance(value, NotCopied) else value


@attrs.define
class Finding:
    """The figures of one entry over all of its samples."""

    name: str
    samples: int = 0
    captured: int = 0
    raising: int = 0  # of those that were not captured
    breaks: dict[str, int] = attrs.field(factory=dict)
    incorrect: list[str] = attrs.field(factory=list)
    late: int = 0

    @property
    def has_no_graph(self) -> bool:
        return self.samples > 0 and not self.captured

    def run(self, samples: Iterable[Sample], seconds: int) -> None:
        """Check every sample and count what was captured of it."""
        for sample in samples:
            self.samples += 1
            try:
                with _limited_to(seconds):
                    sample.check(calls=1)
            except _LateError:
                self.late += 1
            except AssertionError as error:
                self.incorrect.append(f"sample {self.samples}: {error}"[:1000])
            except Exception as error:  # of ours, or of an object that the oracle cannot describe
                self.incorrect.append(f"sample {self.samples}: {error!r}"[:1000])
            self._count(sample)

    def _count(self, sample: Sample) -> None:
        report = sample.compiled.report  # type: ignore[attr-defined]
        if report.graph_count:
            self.captured += 1
        else:
            self.raising += sample.raises
        counts = collections.Counter(self.breaks)
        counts.update({f"{reason.reason}: {reason.detail}"[:200] for reason in report.breaks})
        self.breaks = dict(counts)


class _LateError(BaseException):
    """Raised where a sample runs for longer than it may; nothing that runs catches it."""


@contextlib.contextmanager
def _limited_to(seconds: int) -> Iterator[None]:
    def stop(number: int, frame: types.FrameType | None) -> None:
        raise _LateError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def entries(dtype: torch.dtype) -> Iterator[tuple[str, Iterator[Sample]]]:
    """Yield the name and the samples of every entry; a module is one entry, training and
    evaluating."""
    for name, op in OPERATORS.items():
        if op.supports_dtype(dtype, "cpu"):
            yield name, operator_samples(op, dtype)
    if dtype == torch.float32:
        for name, info in MODULES.items():
            yield name, _both_modes(info)


def _both_modes(info: Any) -> Iterator[Sample]:
    yield from module_samples(info, training=True)
    yield from module_samples(info, training=False)


def read(path: pathlib.Path) -> dict[str, Finding]:
    """Return the findings that a file of a run has so far."""
    lines = path.read_text().splitlines() if path.exists() else []
    findings = [Finding(**json.loads(line)) for line in lines]
    return {finding.name: finding for finding in findings}


def run(path: pathlib.Path, dtype: torch.dtype, seconds: int, only: str = "") -> list[Finding]:
    """Run the entries that the file has not, append a line for each, and return all findings."""
    known = read(path)
    with path.open("a") as output, warnings.catch_warnings(action="ignore"), warning_each_time():
        for name, samples in entries(dtype):
            if name in known or only not in name:
                continue

            torch.manual_seed(0)
            finding = Finding(name)
            finding.run(samples, seconds)
            print(json.dumps(attrs.asdict(finding)), file=output, flush=True)
            _print_finding(finding)
    return [*read(path).values()]


def _print_finding(finding: Finding) -> None:
    notes = f"{finding.captured} of {finding.samples} with a graph"
    if finding.incorrect:
        notes += f"; {len(finding.incorrect)} INCORRECT: {finding.incorrect[0]}"
    if finding.late:
        notes += f"; {finding.late} too late"
    if finding.has_no_graph:
        notes += f"; NO GRAPH: {finding.breaks}"
    print(f"{finding.name}: {notes}", flush=True)


# The page.

INTRODUCTION = """\
# Operators and modules of torch's own tests

<!-- generated by python -m integration_tests.corpora.torch_databases.comparison --page -->

All float32 samples that OpInfo and ModuleInfo of torch {version} make for the CPU, a fresh compilation and one call for
each, with the `eager` backend and default options. Results, gradients, effects and exceptions are compared with those
of plain Python on copies of the arguments. A module is one entry, in training and in evaluation.

| | |
|---|---|
| entries | {entries} |
| samples | {samples} |
| entries with an incorrect sample | {incorrect} |
| entries without a graph | {without} |
| samples without a graph, in all other entries | {others} |

## Entries without a graph

| entry | samples | reason |
|---|---|---|
"""


def page(findings: list[Finding]) -> str:
    """Return the page for the findings of a finished run."""
    without = [finding for finding in findings if finding.has_no_graph]
    others = [finding for finding in findings if not finding.has_no_graph]
    text = INTRODUCTION.format(
        version=torch.__version__.partition("+")[0],
        entries=len(findings),
        samples=f"{sum(finding.samples for finding in findings):,}",
        incorrect=sum(bool(finding.incorrect) for finding in findings),
        without=len(without),
        others=sum(finding.samples - finding.captured for finding in others),
    )
    rows = [f"| `{each.name}` | {each.samples} | {_reason(each)} |" for each in without]
    return text + "\n".join(rows) + "\n"


def _reason(finding: Finding) -> str:
    if finding.raising == finding.samples:
        return "plain Python raises: the operator is for GPUs"
    slugs = sorted({text.partition(":")[0] for text in finding.breaks})
    return ", ".join(f"[{slug}](unsupported/{slug}.md)" for slug in slugs)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=pathlib.Path, default="torch_databases.jsonl")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--seconds", type=int, default=60, help="limit of one sample")
    parser.add_argument("--only", default="", help="a part of the names of the entries to run")
    parser.add_argument("--page", action="store_true", help="write the page")
    options = parser.parse_args(arguments)

    found = run(options.output, getattr(torch, options.dtype), options.seconds, options.only)
    incorrect = sum(bool(finding.incorrect) for finding in found)
    print(f"{len(found)} entries, {sum(finding.samples for finding in found)} samples")
    print(
        f"{sum(finding.has_no_graph for finding in found)} without a graph, {incorrect} incorrect"
    )
    if options.page:
        PAGE.write_text(page(found))
    return int(incorrect > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
