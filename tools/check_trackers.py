"""Check how the packages test for classes of trackers: where knowledge about a type belongs, and
after realizing.

``python tools/check_trackers.py [ROOT]`` prints what it finds and fails

- when code of ``stator_variables`` outside the folders that model types and libraries has 40 tests
  or more: protocols call the slots of a tracker, whatever class it has (docs/decisions/0029);
- for each ``isinstance`` with such a class. An existing value that was not looked at is none of its
  instances: ``is_a`` realizes it first.

The classes are those that derive from ``VariableTracker``, and names that modules give to tuples or
unions of them.
"""

from __future__ import annotations

import ast
import pathlib
import sys
from collections.abc import Collection, Iterator

from package_source import Source, read_packages

_MAX_TESTS = 39
_PACKAGE = "stator-variables"
_HOMES = frozenset({"_objects", "_tensors", "_library", "_distributed"})
_REALIZES = "_tracker.py"  # has `is_a`


def tracker_classes(sources: Collection[Source]) -> set[str]:
    """Return the names of the classes that derive from VariableTracker, and of tuples of them."""
    found = {"VariableTracker"}
    nodes = [node for source in sources for node in ast.walk(source.tree)]
    bases = {node.name: node.bases for node in nodes if isinstance(node, ast.ClassDef)}
    before = 0
    while before < len(found):
        before = len(found)
        found |= {
            name for name, given in bases.items() if any(_names(each) & found for each in given)
        }

    for node in (node for source in sources for node in source.tree.body):
        if not isinstance(node, ast.Assign):
            continue

        is_group = isinstance(node.value, ast.Tuple | ast.BinOp)
        if is_group and _names(node.value) & found:
            found |= _names(node.targets[0])
    return found


def _names(tree: ast.AST) -> set[str]:
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def class_tests(source: Source, classes: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the function and the place of each test for one of these classes."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call) or len(node.args) != 2:
            continue

        function = ast.unparse(node.func).rpartition(".")[2]
        is_test = function in ("isinstance", "is_a", "issubclass") and not _names(
            node.args[1]
        ).isdisjoint(classes)
        if is_test:
            yield function, f"{source.path}:{node.lineno}: {ast.unparse(node)}"


def main(root: pathlib.Path) -> int:
    """Check the tests under ``root`` and return the exit status."""
    packages = read_packages(root)
    sources = [source for found in packages.values() for source in found]
    classes = tracker_classes(sources)
    outside, unrealized = [], []
    for source in sources:
        for function, place in class_tests(source, classes):
            if function == "isinstance" and source.path.name != _REALIZES:
                unrealized.append(place)
            if source.path.parts[1] == _PACKAGE and _HOMES.isdisjoint(source.path.parts):
                outside.append(place)

    print(f"tests for classes of trackers outside their homes: {len(outside)}")
    if len(outside) > _MAX_TESTS:
        print(f"allowed are {_MAX_TESTS}", *outside, sep="\n  ")
    if unrealized:
        print("isinstance does not realize, is_a does:", *unrealized, sep="\n  ")
    return int(len(outside) > _MAX_TESTS or bool(unrealized))


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
