"""Special methods that a class gets from descriptors: CPython passes over some errors of asking
them."""

from __future__ import annotations

import collections
import functools
import operator
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch

DESCRIPTORS: dict[str, Callable[[], Any]] = {
    "a property without a getter": property,
    "a property that raises": lambda: property(lambda self: 1 // 0),
    "a property that answers": lambda: property(lambda self: lambda *args: NotImplemented),
    "a cached property": lambda: functools.cached_property(len),
    "a partial method": lambda: functools.partialmethod(lambda *args: 9),
    "a static method": lambda: staticmethod(lambda *args: 1),
    "None": lambda: None,
    "a number": lambda: 3,
}
METHODS = "eq ne lt iter repr str hash bool len contains add radd setitem delitem call index format".split()
USES: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "== 1": lambda a, b: a == 1,
    "!=": operator.ne,
    "<": operator.lt,
    "in a list": lambda a, b: a in [b],
    "sorted": lambda a, b: sorted([a, b])[0] is a,
    "unpacked": lambda a, b: [*a],
    "looped over": lambda a, b: [(item, 1) for item in a],
    "joined": lambda a, b: "".join(a),
    "in": lambda a, b: 1 in a,
    "repr": lambda a, b: len(repr(a)) > 20,
    "str": lambda a, b: len(str(a)) > 20,
    "f-string": lambda a, b: len(f"{a}") > 20,
    "a key": lambda a, b: {a: 1}[a],
    "truth": lambda a, b: not a,
    "len": lambda a, b: len(a),
    "+": lambda a, b: a + 1,
    "1 +": lambda a, b: 1 + a,
    "written to": lambda a, b: operator.setitem(a, 0, 1),
    "deleted from": lambda a, b: operator.delitem(a, 0),
    "called": lambda a, b: a(),
    "an index": lambda a, b: [1, 2, 3, 4][a],
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("descriptor", DESCRIPTORS)
def test_uses_of_an_object_whose_method_is_a_descriptor(descriptor: str, method: str) -> None:
    cls: Any = type("Described", (), {f"__{method}__": DESCRIPTORS[descriptor]()})
    a, b = cls(), cls()
    for use in USES.values():

        def program(x: torch.Tensor, use: Any = use) -> Any:
            return use(a, b), x + 1

        compiled = stator.compile(program, backend="eager")
        assert [_outcome(compiled) for _ in range(2)] == [_outcome(program) for _ in range(2)]


def _outcome(fn: Callable[..., Any]) -> Any:
    try:
        result, y = fn(torch.ones(2))
    except Exception as error:
        return type(error), str(error)
    return result, y.tolist()


class Keyed:
    """A mapping that tells what it is asked."""

    def __init__(self, seen: list[Any], keys: Any) -> None:
        self.seen, self.given = seen, keys

    def keys(self) -> Any:
        return self.given if isinstance(self.given, int) else self.listed()

    def listed(self) -> Any:
        for key in self.given:
            self.seen.append(("key", key))
            yield key

    def __getitem__(self, key: str) -> Any:
        self.seen.append(("item", key))
        return key * 2


@pytest.mark.parametrize("make", [dict, collections.OrderedDict, lambda keyed: {**keyed}])
@pytest.mark.parametrize("keys", [["a", "b"], [], 6])
def test_keys_of_a_mapping_are_asked_for_as_c_does(make: Callable[[Any], Any], keys: Any) -> None:
    def program(x: torch.Tensor) -> Any:
        seen: list[Any] = []
        try:
            found = make(Keyed(seen, keys))
        except TypeError as error:
            return str(error), x
        return (list(found.items()), seen), x

    assert _outcome(stator.compile(program, backend="eager", fullgraph=True)) == _outcome(program)


class Hashed:
    pass


def test_a_class_that_cannot_be_hashed_now_may_be_later(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: torch.Tensor) -> Any:
        try:
            return len({Hashed()}), x
        except TypeError as error:
            return str(error), x

    compiled = stator.compile(program, backend="eager")
    with monkeypatch.context() as patch:
        patch.setattr(Hashed, "__hash__", None)
        assert _outcome(compiled) == _outcome(program)
    assert _outcome(compiled) == _outcome(program) == (1, [1.0, 1.0])
