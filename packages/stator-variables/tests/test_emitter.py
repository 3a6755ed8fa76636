"""Rebuilding is a slot of each tracker: what can be rebuilt does not depend on the modules that
were imported."""

import ast
import importlib
import pathlib
import pkgutil
from collections.abc import Iterator

import pytest
import stator_variables
from stator_variables import VariableTracker

ROOT = pathlib.Path(stator_variables.__file__).parent

# Trackers of existing things only: an entry loads them, and makes none.
NEVER_NEW = {"HandleKeyTracker", "WrittenClass"}


def tracker_classes() -> list[type[VariableTracker]]:
    for module in pkgutil.walk_packages([str(ROOT)], "stator_variables."):
        importlib.import_module(module.name)
    found: list[type[VariableTracker]] = []
    waiting: list[type[VariableTracker]] = [VariableTracker]
    while waiting:
        classes = waiting.pop().__subclasses__()
        found += [cls for cls in classes if cls.__module__.startswith("stator_variables.")]
        waiting += classes
    return found


def test_each_tracker_of_a_new_value_has_the_slot() -> None:
    rejecting = {
        cls.__name__ for cls in tracker_classes() if cls.rebuild is VariableTracker.rebuild
    }
    assert rejecting == NEVER_NEW | {"HashedTracker", "SequenceTracker"}


def registrations(tree: ast.Module) -> Iterator[str]:
    """Yield the name of each table that a module registers something in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("handles", "handles_each"):
            yield ast.unparse(node.value).partition(".")[0]


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: path.stem)
def test_importing_a_module_fills_no_table_of_another(path: pathlib.Path) -> None:
    tree = ast.parse(path.read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    imported = {alias.asname or alias.name for node in imports for alias in node.names}
    assert imported.isdisjoint(registrations(tree))
