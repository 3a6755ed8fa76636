"""Dicts whose keys are hashed by their address are watched; those with hashes of user code are
not."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
import torch
from stator_guards._cells import Cells
from stator_guards._memory import layout, word

needs_words = pytest.mark.skipif(layout() is None, reason="this interpreter keeps no versions")


class Plain:
    pass


class Equal:
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)

    def __hash__(self) -> int:
        return 7


def cells() -> Cells:
    found = layout()
    assert found is not None
    return Cells(found)


@needs_words
@pytest.mark.parametrize("make", [dict, lambda: defaultdict(dict)])
@pytest.mark.parametrize("key", [Plain(), torch.ones(2), torch.nn.Parameter(torch.ones(1)), "a"])
def test_lookup_of_keys_hashed_by_address(make: Any, key: Any) -> None:
    mapping = make()
    mapping[key] = 1
    assert cells().lookup(mapping, key)
    assert cells().lookup(mapping, Plain())


@needs_words
def test_no_lookup_of_keys_hashed_by_user_code() -> None:
    assert not cells().lookup({Equal(): 1}, "a")
    assert not cells().lookup({"a": 1}, Equal())


@needs_words
def test_no_code_of_a_key_runs() -> None:
    ran = []

    class Meta(type):
        def __hash__(cls) -> int:
            ran.append(cls)
            return 1

        def __eq__(cls, other: object) -> bool:
            ran.append(cls)
            return cls is other

    class Key(metaclass=Meta):
        def __hash__(self) -> int:
            ran.append(self)
            return 1

    mapping = {Key(): 1}
    ran.clear()
    assert not cells().mapping(mapping)
    assert ran == []


@needs_words
def test_an_address_that_another_function_gives_is_no_address() -> None:
    globals_of_hash = {"id": lambda key: 1}
    exec("class Key:\n def __hash__(self): return id(self)", globals_of_hash)
    assert not cells().mapping({globals_of_hash["Key"](): 1})


@needs_words
def test_a_new_hash_of_a_class_changes_a_word() -> None:
    class Key:
        pass

    watched = cells()
    assert watched.lookup({Key(): 1}, "a")
    before = dict(watched.words)
    Key.__hash__ = lambda self: 7  # type: ignore[method-assign]
    again = cells()
    assert not again.lookup({Key(): 1}, "a")
    from stator_guards._memory import word

    assert any(word(address) != value for address, value in before.items())


@needs_words
@pytest.mark.parametrize("make", [Plain, lambda: torch.ones(2)])
def test_attributes_of_an_instance_are_watched(make: Any) -> None:
    instance, found = make(), cells()
    instance.flag = 1
    assert found.own_attributes(instance)
    address = id(vars(instance)) + found.layout.dict_version
    before = word(address)
    assert found.words[address] == before
    instance.flag = 2
    assert word(address) != before


@needs_words
@pytest.mark.parametrize("thing", [Plain, 1, object()])
def test_attributes_of_what_has_no_dict_of_its_own_are_not_watched(thing: object) -> None:
    assert not cells().own_attributes(thing)
