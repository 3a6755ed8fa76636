"""Imports inside a compiled function: of parts that a module computes, of entries of `sys.modules`
that are no modules, and of modules under another name."""

# mypy: ignore-errors

from __future__ import annotations

import email
import email.mime
import sys
import types

import pytest
import stator
import torch

from integration_tests.support.oracle import assert_same


class Plain:
    attribute = 3

    def __getattr__(self, name):
        if name == "computed":
            return 5
        raise AttributeError(name)


class Slotted:
    __slots__ = ("attribute",)


def computed(name):
    if name == "refused":
        raise ValueError(name)
    if name == "computed":
        return 7
    raise AttributeError(name)


@pytest.fixture(autouse=True)
def modules(monkeypatch):
    module, part = types.ModuleType("imported"), types.ModuleType("imported.part")
    module.__getattr__, part.value, module.function = computed, 2, computed
    slotted = Slotted()
    slotted.attribute = 4
    made = {
        "imported": module,
        "imported.part": part,
        "imported.function": types.ModuleType("imported.function"),
        "imported.function.part": types.ModuleType("imported.function.part"),
        "imported_object": Plain(),
        "imported_slots": slotted,
        "imported_alias": email,
    }
    for name, value in made.items():
        monkeypatch.setitem(sys.modules, name, value)


def a_computed_part(x):
    from imported import computed

    return x + computed


def a_part_of_sys_modules(x):
    from imported import part

    return x + part.value


def a_part_that_is_missing(x):
    from imported import missing

    return x + missing


def a_part_that_raises(x):
    from imported import refused

    return x + refused


def a_handled_error(x):
    try:
        from imported import missing
    except ImportError as error:
        return x + 1, error.args, error.name, error.path, error.__context__
    return missing


def a_part_of_a_function(x):
    import imported.function.part as part  # noqa: PLR0402

    return x + 1, part.__name__


def an_attribute_of_an_object(x):
    from imported_object import attribute, computed

    return x + attribute + computed


def a_missing_attribute_of_an_object(x):
    from imported_object import missing

    return x + missing


def an_object_with_slots(x):
    import imported_slots
    from imported_slots import attribute

    return x + attribute + imported_slots.attribute


def another_name(x):
    import imported_alias
    from imported_alias import mime

    return x + 1, imported_alias is email, imported_alias.__name__, mime.__name__


PROGRAMS = (
    *(a_computed_part, a_part_of_sys_modules, a_part_that_is_missing, a_part_that_raises),
    *(a_handled_error, a_part_of_a_function, an_attribute_of_an_object),
    *(a_missing_attribute_of_an_object, an_object_with_slots, another_name),
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_an_import_gives_what_plain_python_gives(program):
    compiled = stator.compile(program, backend="eager")
    assert_same(program, compiled, lambda: (torch.arange(3.0),))


@pytest.mark.parametrize("program", [a_computed_part, a_part_of_sys_modules, another_name])
def test_an_import_of_a_loaded_module_is_captured(program):
    compiled = stator.compile(program, backend="eager", fullgraph=True)
    assert_same(program, compiled, lambda: (torch.arange(3.0),))
