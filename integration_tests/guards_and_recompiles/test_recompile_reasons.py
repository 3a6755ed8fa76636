"""What stator says of the guard that failed runs no code of the program and bears what other
threads do meanwhile."""

from __future__ import annotations

import collections
import functools
import threading
import types
from typing import Any

import pytest
import stator
import torch
from stator_guards._object_ref import short

RAN: list[int] = []


class Said:
    def __repr__(self) -> str:
        RAN.append(1)
        return "said"

    def method(self) -> None: ...


class Sequence(tuple[Any, ...]):
    def __repr__(self) -> str:
        RAN.append(1)
        return "sequence"


HOLDERS = {
    "deque": collections.deque([Said()]),
    "OrderedDict": collections.OrderedDict(a=Said()),
    "defaultdict": collections.defaultdict[str, Any](list, a=Said()),
    "values of a dict": {1: Said()}.values(),
    "mappingproxy": types.MappingProxyType({1: Said()}),
    "exception": ValueError(Said()),
    "namespace": types.SimpleNamespace(a=Said()),
    "slice": slice(Said()),
    "partial": functools.partial(print, Said()),
    "bound method": Said().method,
    "list of dicts": [{"a": collections.deque([Said()])}],
    "tuple subclass": Sequence((Said(),)),
    "itself": Said(),
}


def absent(x: torch.Tensor, option: Any) -> torch.Tensor:
    return x if option is None or option == 1 else x + 1


@pytest.mark.parametrize("holder", HOLDERS)
def test_no_repr_of_the_program_runs(holder: str) -> None:
    RAN.clear()
    compiled = stator.compile(absent, backend="eager")
    for option in (1, None, HOLDERS[holder], 2):
        compiled(torch.ones(2), option)
    assert not RAN


CONSTANTS = [
    3.5,
    -0.0,
    "a",
    b"a",
    True,
    None,
    ...,
    range(3),
    slice(1, None),
    torch.float32,
    torch.device("cpu"),
]


@pytest.mark.parametrize("value", CONSTANTS, ids=repr)
def test_what_holds_no_other_object_is_said_as_it_is(value: Any) -> None:
    assert short(value) == repr(value)
    assert short([value]) == f"[{value!r}]"


@pytest.mark.parametrize("kind", [set, list, dict])
def test_containers_that_other_threads_change_are_described(kind: Any) -> None:
    changed, done = kind(), threading.Event()
    add = {set: "add", list: "append", dict: "setdefault"}[kind]

    def change() -> None:
        while not done.is_set():
            for n in range(30):
                getattr(changed, add)(n)
            changed.clear()

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(20000):
            short(changed, 1000)
    finally:
        done.set()
        changing.join()
