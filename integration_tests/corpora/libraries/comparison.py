"""Functions of other people's libraries as programs: each public one is called with random
arguments of the first kinds that it takes, plainly and compiled, in sizes that change.

    pip install --no-deps torchmetrics lightning-utilities
    python -m integration_tests.corpora.libraries.comparison torchmetrics.functional.regression

Prints a line for each function: what kinds of arguments it took, how it was captured, where it
differs.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import itertools
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import stator
import torch

from integration_tests.support.description import Tolerance
from integration_tests.support.oracle import assert_same

CLOSE = Tolerance(1e-5, 1e-6)
KINDS = 2
"""Of the kinds of arguments that a function takes, how many are tried."""
SECONDS = 120


def arguments(more: int) -> list[tuple[Any, ...]]:
    """One set of arguments of each kind; `more` makes the sizes larger."""
    random = torch.Generator().manual_seed(more)
    n = 8 + more

    def real(*sizes: int) -> torch.Tensor:
        return torch.rand(*sizes, generator=random)

    def whole(below: int, *sizes: int) -> torch.Tensor:
        return torch.randint(below, sizes, generator=random)

    image, matrices = real(2, 3, 12 + more, 16), torch.eye(3).repeat(2, 1, 1)
    labels, classes = whole(2, n), whole(3, n)
    return [
        *(
            (image,),
            (image, real(2, 3, 12 + more, 16)),
            (image, 3),
            (image, (3, 3), (1.5, 1.5)),
            (image, 0.5),
        ),
        *(
            (image, real(2)),
            (image, torch.ones(3, 3)),
            (image, (4, 4)),
            (image, 0.1, 0.2),
            (image, matrices),
        ),
        *(
            (image, matrices[:, :2], (8, 8)),
            (matrices,),
            (matrices, matrices),
            (real(2, 3, 3), real(2, 3, 1)),
        ),
        *(
            (real(n), real(n)),
            (real(n), labels),
            (labels, whole(2, n)),
            (classes, whole(3, n)),
            (classes, classes, 3),
        ),
        *(
            (real(n, 3).softmax(-1), classes, 3),
            (real(n, 3), whole(2, n, 3), 3),
            (real(n, 4), real(n, 4)),
            (real(n, 4),),
        ),
        *(
            (real(2, 5, 2), matrices),
            (real(2, 5, 3), real(2, 5, 3)),
            (real(2, 40 + more), real(2, 40 + more)),
        ),
        *((real(2, 3, 8, 8), whole(3, 2, 8, 8)), (real(2, 8, 8, 2),), (8, 8), (5, 1.5), (3,)),
        *(
            (["a cat sat"], ["a cat sat down"]),
            (["a cat", "b"], [["a cat"], ["c b"]]),
            ([1, 2, 3], [1, 2]),
        ),
    ]


def kinds_taken(function: Callable[..., Any]) -> Iterator[int]:
    for kind, given in enumerate(arguments(0)):
        try:
            function(*copy.deepcopy(given))
        except Exception:  # whatever it raises, it does not take them
            continue
        yield kind


def check(function: Callable[..., Any]) -> Iterator[Any]:
    """Compare calls with arguments of some kinds, and give the report on each. Raises
    AssertionError."""
    for kind in itertools.islice(kinds_taken(function), KINDS):
        sizes = itertools.cycle((0, 1, 3))
        compiled = stator.compile(function, backend="eager")
        assert_same(
            function,
            compiled,
            lambda kind=kind, sizes=sizes: arguments(next(sizes))[kind],  # type: ignore[misc]
            tolerance=CLOSE,
        )
        yield compiled.report


def functions(module: str) -> dict[str, Callable[..., Any]]:
    found = vars(importlib.import_module(module)).items()
    return {
        name: value
        for name, value in found
        if not name.startswith("_") and inspect.isfunction(value)
    }


def _said(function: Callable[..., Any]) -> str:
    reports = list(check(function))
    reasons = sorted(
        {str(reason).partition("\n")[0] for report in reports for reason in report.breaks}
    )
    return f"{len(reports)} kinds of arguments, {sum(report.graph_count for report in reports)} graphs {reasons or ''}"


def main(modules: list[str]) -> None:
    """A process for each function: none finds what another one left."""
    warnings.simplefilter("ignore")
    for module in modules:
        for name, function in functions(module).items():
            if child := os.fork():
                os.waitpid(child, 0)
                continue
            signal.alarm(SECONDS)
            try:
                print(f"{module}.{name}: {_said(function)}", flush=True)
            except Exception as error:  # also a fault of ours
                print(f"{module}.{name}: WRONG {error!r}", flush=True)
            os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
