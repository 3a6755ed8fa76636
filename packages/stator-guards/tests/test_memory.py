"""The word of a dict changes whenever the dict does, on every CPython that has watches."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from stator_guards._memory import detach, give_dict_version, layout, word

found = layout()
needs_words = pytest.mark.skipif(found is None, reason="this interpreter keeps no versions")


class Holder:
    def __init__(self) -> None:
        self.x = 1


def store_global(mapping: dict[str, Any]) -> None:
    exec("def write():\n    global x\n    x = object()\nwrite()", mapping)


def store_attribute(mapping: dict[str, Any]) -> None:
    holder = Holder()
    holder.__dict__ = mapping
    for number in range(20):  # specialized by then
        holder.x = number


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "new key": lambda mapping: mapping.__setitem__("new", 1),
    "other value": lambda mapping: mapping.__setitem__("x", 2),
    "deleted key": lambda mapping: mapping.__delitem__("x"),
    "update": lambda mapping: mapping.update(x=2),
    "merge": lambda mapping: mapping.__ior__({"other": 1}),
    "pop": lambda mapping: mapping.pop("x"),
    "popitem": lambda mapping: mapping.popitem(),
    "setdefault": lambda mapping: mapping.setdefault("other", 1),
    "clear": lambda mapping: mapping.clear(),
    "global": store_global,
    "attribute": store_attribute,
}
READS: dict[str, Callable[[dict[str, Any]], object]] = {
    "item": lambda mapping: mapping["x"],
    "get": lambda mapping: mapping.get("missing"),
    "copy": lambda mapping: {**mapping},
    "loop": lambda mapping: [*mapping.items()],
}


def version_of(mapping: dict[str, Any]) -> int:
    assert found is not None
    return word(id(mapping) + found.dict_version)


@needs_words
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_a_dict_changes_its_word(name: str) -> None:
    assert found is not None
    mapping: dict[str, Any] = {"x": 1, "__builtins__": __builtins__}
    give_dict_version(found, mapping)
    before = version_of(mapping)
    CHANGES[name](mapping)
    assert version_of(mapping) != before


@needs_words
@pytest.mark.parametrize("name", READS)
def test_a_read_of_a_dict_keeps_its_word(name: str) -> None:
    assert found is not None
    mapping: dict[str, Any] = {"x": 1}
    give_dict_version(found, mapping)
    before = version_of(mapping)
    READS[name](mapping)
    give_dict_version(found, mapping)
    assert version_of(mapping) == before


@needs_words
def test_attributes_of_an_instance_are_seen_once_they_are_in_its_dict() -> None:
    assert found is not None
    holder = Holder()
    detach(holder)
    give_dict_version(found, vars(holder))
    before = version_of(vars(holder))
    holder.x = 2
    assert version_of(vars(holder)) != before


AT_EXIT = """
import sys
from stator_guards._memory import give_dict_version, layout
class Late:
    def __del__(self):
        try:
            vars(self)["x"] = self.kept.pop("x")
        except KeyError:
            pass
def fails(mapping):
    local = {"x": 1}
    give_dict_version(found, local)
    mapping["missing"]
found = layout()
late = Late()
late.kept = {"x": 1}
for mapping in (vars(late), late.kept, vars(sys), globals()):
    give_dict_version(found, mapping)
for _ in range(20):
    try:
        fails({})
    except KeyError:
        pass
print("works")
"""


@needs_words
def test_dicts_die_while_exceptions_are_pending_and_the_interpreter_ends() -> None:
    command = [sys.executable, "-c", AT_EXIT]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "works\n"), done.stderr
