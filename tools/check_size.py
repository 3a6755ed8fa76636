"""Report the size of the packages in nodes of the syntax tree, and check the length and density of
their parts.

``python tools/check_size.py [ROOT]`` prints the sizes. Totals are not limited.
It fails when a package has a function of more than 40 lines, a file of more than 500, more than 22
nodes in one of ten statements, or ``Any`` for more than 15 % of its annotations. What does not keep
these limits yet is recorded in ``tools/ratchets.toml`` and may only go down: see ``ratchet.py``,
also for ``--update``.

It also fails when the kernel of a package, which is what is left without its captures (see
``captures.py``), has grown by more than 2 % over the nodes that ``tools/kernel.toml`` records.
These are changed together with the decision record that states them. And it fails where the kernel
reaches a module with handlers of a capture.
"""

from __future__ import annotations

import ast
import pathlib
import sys
import tomllib
from collections.abc import Iterator
from itertools import chain
from typing import Any

import captures
import ratchet
from package_source import NOT_COUNTED, Source, annotations_of, count_nodes, read_packages

_MAX_FUNCTION_LINES = 40
_MAX_FILE_LINES = 500
_MAX_STATEMENT_NODES = 22
_MAX_ANY_PERCENT = 15
_MAX_KERNEL_GROWTH = 2
"""In percent."""


def long_functions(source: Source) -> Iterator[str]:
    """Yield a description of every function that has more than 40 lines, decorators excluded."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue

        end = node.end_lineno or node.lineno
        lines = end - node.lineno + 1
        if lines > _MAX_FUNCTION_LINES:
            yield f"{source.path}:{node.lineno}: {node.name} has {lines} lines"


def long_files(sources: list[Source]) -> Iterator[str]:
    """Yield a description of every file that has more than 500 lines."""
    for source in sources:
        if source.line_count > _MAX_FILE_LINES:
            yield f"{source.path}: {source.line_count} lines"


def statement_nodes(sources: list[Source]) -> int:
    """Return the number of nodes that nine of ten statements do not exceed.

    A compound statement counts without the statements in it.
    """
    trees = [node for source in sources for node in ast.walk(source.tree)]
    sizes = sorted(_nodes_of(node) for node in trees if isinstance(node, ast.stmt))
    return sizes[len(sizes) * 9 // 10] if sizes else 0


def _nodes_of(statement: ast.stmt) -> int:
    count = 1
    waiting = list(ast.iter_child_nodes(statement))
    while waiting:
        node = waiting.pop()
        if not isinstance(node, (ast.stmt, *NOT_COUNTED)):
            count += 1
            waiting += ast.iter_child_nodes(node)
    return count


def any_percent(sources: list[Source]) -> int:
    """Return the share of annotations that are ``Any``, in percent and rounded up."""
    found = [annotation for source in sources for annotation in annotations_of(source.tree)]
    loose = [each for each in found if isinstance(each, ast.Name) and each.id == "Any"]
    return -(-100 * len(loose) // len(found)) if found else 0


def measures(package: str, sources: list[Source]) -> list[ratchet.Measure]:
    """Measure length and density of one package."""
    functions = tuple(chain.from_iterable(map(long_functions, sources)))
    files = tuple(long_files(sources))
    nodes, loose = statement_nodes(sources), any_percent(sources)
    return [
        ratchet.Measure("long functions", package, len(functions), places=functions),
        ratchet.Measure("long files", package, len(files), places=files),
        ratchet.Measure("nodes of a statement", package, nodes, _MAX_STATEMENT_NODES),
        ratchet.Measure("percent of Any", package, loose, _MAX_ANY_PERCENT),
    ]


def read_kernel_record(root: pathlib.Path) -> dict[str, Any]:
    """Return the recorded nodes of kernels, and the decision that states them."""
    path = root / "tools" / "kernel.toml"
    return tomllib.loads(path.read_text()) if path.exists() else {"nodes": {}}


def grown_kernels(sizes: dict[str, int], recorded: dict[str, int]) -> Iterator[str]:
    """Yield a text for each kernel that is larger than its record allows."""
    for package, nodes in sizes.items():
        allowed = recorded.get(package, nodes) * (100 + _MAX_KERNEL_GROWTH) // 100
        if nodes > allowed:
            grown = f"{package}: the kernel has {nodes:,} nodes, allowed are {allowed:,}"
            yield f"{grown}: see tools/kernel.toml"


def main(root: pathlib.Path, update: bool = False) -> int:
    """Print the sizes under ``root``, check them and return the exit status."""
    division = captures.divide(root)
    found: list[ratchet.Measure] = []
    kernels: dict[str, int] = {}
    total = 0
    print(f"{'':20}{'nodes':>9}{'kernel':>9}  functions  files  per statement  Any")
    for package, sources in read_packages(root).items():
        nodes = sum(count_nodes(source.tree) for source in sources)
        total += nodes
        kernels[package] = kernel = division.sizes(package)[0]
        here = measures(package, sources)
        found += here
        functions, files, dense, loose = (measure.value for measure in here)
        sizes = f"{nodes:9,}{kernel:9,}"
        print(f"{package:20}{sizes}{functions:11}{files:7}{dense:15}{loose:4} %")

    print(f"{'all':20}{total:9,}{sum(kernels.values()):9,}")
    grown = list(grown_kernels(kernels, read_kernel_record(root)["nodes"]))
    mixed = [f"{name}: a module of the kernel has handlers" for name in division.mixed]
    for fault in [*grown, *mixed]:
        print(fault)
    return ratchet.run(root, found, update) or int(bool(grown or mixed))


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument != "--update"]
    sys.exit(main(pathlib.Path(given[0] if given else "."), "--update" in sys.argv))
