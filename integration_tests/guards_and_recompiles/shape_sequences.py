"""How many graphs a sequence of sizes costs: stator beside torch.compile, measured in one run.

``python -m integration_tests.guards_and_recompiles.shape_sequences`` rewrites
``docs/reference/compile-counts.md``, which a test reads.
"""

from __future__ import annotations

import math
import pathlib
from collections.abc import Callable
from typing import Any

import stator
import torch
from torch._dynamo import decorators

from integration_tests.support.counting import Counting

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "reference" / "compile-counts.md"
Function = Callable[..., Any]
Calls = list[tuple[Any, ...]]


def numbered(*shape: int) -> torch.Tensor:
    return torch.arange(1.0, 1.0 + math.prod(shape)).reshape(shape)


def of_sizes(*shapes: Any) -> Calls:
    """One tensor for each call; an int is a vector's size."""
    return [(numbered(*(shape if isinstance(shape, tuple) else (shape,))),) for shape in shapes]


def of_pairs(*pairs: tuple[Any, Any]) -> Calls:
    return [of_sizes(left)[0] + of_sizes(right)[0] for left, right in pairs]


def with_numbers(*numbers: Any) -> Calls:
    return [(numbered(4), number) for number in numbers]


def of_values(*values: Any) -> Calls:
    return [(torch.tensor(value),) for value in values]


def even_or_odd(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if x.shape[0] % 2 == 0 else x - 1


def above_five(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if x.shape[0] > 5 else x - 1


def row_by_row(x: torch.Tensor) -> torch.Tensor:
    total = x[0]
    for row in x[1:]:
        total = total * 2 + row
    return total


def halves(x: torch.Tensor) -> Any:
    steps, n = 0, x.shape[0]
    while n > 1:
        n, steps = n // 2, steps + 1
    return x + steps


def attention(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ k


def breaking(x: torch.Tensor) -> torch.Tensor:
    y = x * x.shape[0]
    stator.graph_break()
    torch._dynamo.graph_break()
    return y + y.shape[0]


def branching_on_data(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if x.sum() > 7 else x - 1


def asserting(x: torch.Tensor) -> torch.Tensor:
    if not (x < 50).all():
        raise ValueError("too big")
    return x * 2


def marked(mark: Any, *sizes: int, **bounds: int) -> Calls:
    """Vectors whose dimension is marked."""
    made = of_sizes(*sizes)
    for (x,) in made:
        mark(x, 0, **bounds)
    return made


class Bag:
    """An object that knows a size."""

    def __init__(self, x: torch.Tensor) -> None:
        self.x, self.n = x, x.shape[0]

    def scaled(self) -> torch.Tensor:
        return self.x * self.n


def bags(*sizes: int) -> Calls:
    return [(Bag(numbered(n)),) for n in sizes]


def noted(bag: Bag) -> Any:
    bag.last = bag.x.shape[0]  # type: ignore[attr-defined]
    return bag.x * 2


def named(bag: Bag) -> Any:
    bag.name = f"bag of {bag.x.shape}"  # type: ignore[attr-defined]
    return bag.x * 2


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def required(x: torch.Tensor) -> torch.Tensor:
    require(x.dim() == 1, f"no vector but {x.shape}")
    return x + 1


def with_strides(*strides: int) -> Calls:
    return [(numbered(64).as_strided((3, 4), (n, 1)),) for n in strides]


def padded(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(x, (0, -x.shape[0] % 4))


mark_unbacked: Any = decorators.mark_unbacked  # torch leaves these without types
mark_dynamic: Any = torch._dynamo.mark_dynamic
mark_static: Any = torch._dynamo.mark_static
maybe_mark_dynamic: Any = torch._dynamo.maybe_mark_dynamic

SEQUENCES: dict[str, tuple[Function, Calls]] = {
    "one size": (lambda x: x * 2, of_sizes(4, 4, 4)),
    "a size that grows": (lambda x: x * 2, of_sizes(4, 5, 6, 7)),
    "down to one and zero": (lambda x: x * 2 + x.shape[0], of_sizes(4, 5, 6, 1, 0, 2)),
    "from one": (lambda x: x * 2, of_sizes(1, 2, 3, 1)),
    "from zero": (lambda x: x * 2, of_sizes(0, 3, 4, 0)),
    "batch": (lambda x: x @ x.t(), of_sizes((4, 3), (5, 3), (6, 3))),
    "both dimensions": (lambda x: x.t() * 2, of_sizes((4, 3), (5, 6), (7, 8))),
    "one dimension, then the other": (lambda x: x + 1, of_sizes((4, 3), (5, 3), (5, 4), (6, 7))),
    "a square stays one": (lambda x: x @ x, of_sizes((3, 3), (4, 4), (5, 5))),
    "a square, then not": (lambda x: x + 1, of_sizes((3, 3), (4, 4), (5, 6), (7, 8))),
    "another rank": (lambda x: x * 2, of_sizes((4,), (4, 4), (5,), (5, 5), (6,))),
    "two equal sizes": (lambda x, y: x + y, of_pairs((4, 4), (5, 5), (6, 6))),
    "broadcasting": (lambda x, y: x + y, of_pairs((4, 4), (5, 5), (6, 1), (7, 1))),
    "two sizes apart": (lambda x, y: x.sum() + y, of_pairs((4, 5), (6, 7), (8, 9))),
    "one of two sizes": (lambda x, y: torch.cat([x, y]), of_pairs((4, 5), (6, 5), (8, 5), (8, 7))),
    "a product": (
        lambda x, y: x @ y,
        of_pairs(((2, 4), (4, 3)), ((2, 5), (5, 3)), ((2, 6), (6, 3))),
    ),
    "len and range": (lambda x: x * len(range(len(x))), of_sizes(4, 5, 6)),
    "arange": (lambda x: x + torch.arange(x.shape[0]), of_sizes(4, 5, 6)),
    "slices": (lambda x: (x[1:-1], x[: x.shape[0] // 2], x[-1]), of_sizes(4, 5, 6, 7)),
    "an index from a size": (lambda x: x[x.shape[0] - 1], of_sizes(4, 5, 6)),
    "reshape": (
        lambda x: (x.reshape(-1), x.view(x.shape[1], -1)),
        of_sizes((4, 3), (5, 3), (6, 3)),
    ),
    "views of views": (lambda x: x.t()[1:].reshape(-1, 2), of_sizes((4, 3), (6, 3), (8, 3))),
    "math": (lambda x: x * math.sqrt(x.shape[0]) + math.floor(x.shape[0] / 2), of_sizes(4, 5, 6)),
    "a comparison": (above_five, of_sizes(4, 5, 6, 7, 8)),
    "even or odd": (even_or_odd, of_sizes(4, 5, 6, 7)),
    "a limit": (lambda x: x * min(x.shape[0], 5), of_sizes(4, 5, 6, 7)),
    "halving": (halves, of_sizes(4, 5, 8, 9)),
    "a loop over rows": (row_by_row, of_sizes((4, 2), (5, 2), (6, 2), (5, 2))),
    "a key": (lambda x: x + {x.shape[0]: 1}[x.shape[0]], of_sizes(4, 5, 6)),
    "strides": (
        lambda x: x * 2,
        [(numbered(64).as_strided((4, 4), (n, 1)),) for n in (4, 5, 6, 7)],
    ),
    "offsets": (lambda x: x * 2, [(numbered(9)[k : k + 4],) for k in (1, 2, 3)]),
    "a list of tensors": (
        lambda x: [y * y.shape[0] for y in x],
        [([*of_pairs((n, n + 1))[0]],) for n in (3, 4, 5)],
    ),
    "an int": (lambda x, n: x * n, with_numbers(2, 3, 4, 1, 0, -3, 2**40)),
    "a float": (lambda x, f: x * f, with_numbers(2.5, 3.5, 4.5, 0.0, 5.5)),
    "a bool": (lambda x, b: x * b, with_numbers(True, False, True)),
    "ints in a tuple": (lambda x, p: x * p[0] + p[1], with_numbers((2, 3), (4, 3), (5, 6), (7, 8))),
    "a number of each class": (lambda x, n: x * n, with_numbers(2, 2.5, True, 3, 3.5)),
    "attention": (
        attention,
        of_pairs(((4, 8), (4, 8)), ((5, 8), (5, 8)), ((6, 8), (7, 8)), ((8, 8), (9, 8))),
    ),
    "a break": (breaking, of_sizes(4, 5, 6, 7)),
    "a branch on data": (branching_on_data, of_values([3.0], [9.0], [4.0], [8.0])),
    "an assertion on data": (asserting, of_values([3.0], [9.0], [4.0, 5.0], [4.0, 5.0, 6.0])),
    "item": (lambda x: x * x.item(), of_values(3, 4, 0, 1, 5)),
    "nonzero": (lambda x: x.nonzero() + 1, of_values([3, 0, 1], [1, 1, 1], [0, 0, 1], [0, 0, 0])),
    "a float that comes back": (lambda x, f: x * f, with_numbers(2.5, 3.5, 2.5, 3.5)),
    "a float in arithmetic": (lambda x, f: x * (f * 2 + 1), with_numbers(2.5, 3.5, 4.5)),
    "a float and an int": (
        lambda x, p: x * p[0] + p[1],
        with_numbers((2.5, 2), (3.5, 3), (4.5, 4)),
    ),
    "a bool that chooses": (
        lambda x, b: x + 1 if b else x - 1,
        with_numbers(True, False, True, False),
    ),
    "a bool in arithmetic": (lambda x, b: x * (b + 1), with_numbers(True, False, True)),
    "marked dynamic": (lambda x: x * 2, marked(mark_dynamic, 4, 5, 6, 2)),
    "marked with a range": (lambda x: x * 2, marked(mark_dynamic, 4, 5, 8, min=2, max=8)),
    "marked static": (lambda x: x * 2, marked(mark_static, 4, 5, 6)),
    "marked if possible": (
        lambda x: x if x.shape[0] == 5 else x * 2,
        marked(maybe_mark_dynamic, 4, 6, 7),
    ),
    "marked unbacked": (lambda x: x * 2, marked(mark_unbacked, 4, 5, 1, 0)),
    "unbacked and reshaped": (lambda x: x.reshape(-1, 2), marked(mark_unbacked, 4, 6, 8)),
    "unbacked and summed": (lambda x: x.sum() + 1, marked(mark_unbacked, 4, 6, 0)),
    "a stride that grows": (lambda x: x.sum(), with_strides(5, 6, 7)),
    "a stride that is asked for": (lambda x: x * x.stride(0), with_strides(5, 6, 7)),
    "expanded": (lambda x: x * 2, [(numbered(1, 3).expand(n, 3),) for n in (4, 5, 6)]),
    "views of one base": (
        lambda x, y: x + y,
        [(numbered(12)[:4], numbered(12)[k : k + 4]) for k in (4, 5, 6)],
    ),
    "a key that is absent": (lambda x: x + {3: 1}.get(x.shape[0], 2), of_sizes(4, 5, 6, 3)),
    "two sizes as keys": (
        lambda x: {x.shape[0]: x, x.shape[1]: x * 2}[x.shape[1]],
        of_sizes((4, 3), (5, 3), (6, 3)),
    ),
    "a size in a set": (lambda x: x + (x.shape[0] in {3, 4}), of_sizes(4, 5, 6)),
    "an f-string": (lambda x: (x * 2, f"{x.shape[0]} rows"), of_sizes(4, 5, 6)),
    "a text in an error": (required, of_sizes(4, 5, 6, 7)),
    "a text on an attribute": (named, bags(4, 5, 6)),
    "a text that is compared": (lambda x: x + (f"{x.shape[0]}" == "5"), of_sizes(4, 5, 6)),
    "a break that asked for the size": (
        lambda x: (x + 1, torch.combinations(x, 3)),
        of_sizes(4, 5, 6, 7),
    ),
    "a user class": (lambda x: Bag(x).scaled(), of_sizes(4, 5, 6)),
    "a user class as argument": (lambda bag: bag.scaled(), bags(4, 5, 6)),
    "a size on an attribute": (noted, bags(4, 5, 6)),
    "rounding": (lambda x: x * round(x.shape[0] / 3), of_sizes(4, 5, 6, 9)),
    "sums of sizes": (
        lambda xs: torch.cat(xs) * sum(map(len, xs)),
        [(of_pairs((n, n + 2))[0],) for n in (3, 4, 6)],
    ),
    "sorted by size": (
        lambda xs: sorted(xs, key=len)[0] * 2,
        [([*of_pairs((n, n + 2))[0]],) for n in (3, 4, 6)],
    ),
    "a shape in parts": (
        lambda x: torch.zeros((*x.shape[:-1], 2)) + 1,
        of_sizes((4, 3), (5, 3), (6, 3)),
    ),
    "unflattened": (lambda x: x.unflatten(0, (2, -1)), of_sizes(4, 6, 8)),
    "chunks": (lambda x: x.chunk(2), of_sizes(4, 6, 8, 10)),
    "padding to a multiple": (padded, of_sizes(5, 6, 7, 8)),
    "cut to another's size": (
        lambda x, y: x[: y.shape[0]] + y,
        of_pairs((4, 3), (5, 3), (6, 4), (7, 5)),
    ),
}


def counts(compiler: Any, name: str) -> list[int]:
    """How many graphs there were after each call."""
    fn, calls = SEQUENCES[name]
    backend, seen = Counting(), []
    compiled = compiler(fn, backend=backend)
    for args in calls:
        compiled(*args)
        seen.append(backend.count)
    return seen


def torchs(name: str) -> list[int]:
    torch.compiler.reset()
    return counts(torch.compile, name)


def recorded() -> dict[str, tuple[list[int], list[int]]]:
    """The rows of the page: what stator and what torch.compile took."""
    rows = [
        line.strip("| ").split(" | ")
        for line in PAGE.read_text().splitlines()
        if line.startswith("| ")
    ][1:]
    return {name: (_numbers(ours), _numbers(theirs)) for name, ours, theirs in rows}


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split()]


def page() -> str:
    rows = [
        f"| {name} | {_shown(counts(stator.compile, name))} | {_shown(torchs(name))} |"
        for name in SEQUENCES
    ]
    head = [
        "# Compile counts",
        "",
        "<!-- generated by python -m integration_tests.guards_and_recompiles.shape_sequences -->",
        "",
    ]
    lead = "Graphs that there are after each call of a sequence, in one run with the same backend."
    about = (
        "Programs and calls are in `integration_tests/guards_and_recompiles/shape_sequences.py`; "
        f"torch is {torch.__version__}."
    )
    return (
        "\n".join(
            [
                *head,
                lead,
                about,
                "",
                "| sequence | stator | torch.compile |",
                "|---|---|---|",
                *rows,
            ]
        )
        + "\n"
    )


def _shown(numbers: list[int]) -> str:
    return " ".join(map(str, numbers))


if __name__ == "__main__":
    PAGE.write_text(page())
