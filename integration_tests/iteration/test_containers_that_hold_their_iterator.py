"""A new container that holds an iterator over itself, which has been moved on: both are rebuilt,
each for the other."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same


class Holder:
    held: Any = None


class Deque(deque[Any]):
    pass


def _second(holder: Any, it: Any) -> Any:
    next(it)
    holder[1] = it
    return holder


def _deeper(holder: Any, it: Any) -> Any:
    next(it)
    inside = Holder()
    inside.held = [it]
    holder[1] = {"inside": inside}
    return holder


def _several(holder: Any, it: Any) -> Any:
    others = [iter(holder), it]
    for other in others:
        next(other)
    holder[1] = others
    return holder


def _dict() -> Any:
    return {0: 5, 1: 6, 2: 7}


HOLDERS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "a list": (lambda: [5, 6, 7], iter),
    "a list, backwards": (lambda: [5, 6, 7], reversed),
    "a deque": (lambda: deque([5, 6, 7]), iter),
    "a deque, backwards": (lambda: deque([5, 6, 7]), reversed),
    "a full deque": (lambda: deque([5, 6, 7], 3), iter),
    "a deque of a class": (lambda: Deque([5, 6, 7]), iter),
    "keys": (_dict, iter),
    "values": (_dict, lambda holder: iter(holder.values())),
    "items": (_dict, lambda holder: iter(holder.items())),
    "keys, backwards": (_dict, reversed),
    "an ordered dict": (lambda: OrderedDict(_dict()), iter),
    "a dict with defaults": (lambda: defaultdict(int, _dict()), iter),
}


@pytest.mark.parametrize("is_broken", [False, True])
@pytest.mark.parametrize("hold", [_second, _deeper, _several])
@pytest.mark.parametrize("name", HOLDERS)
def test_a_container_that_holds_an_iterator_over_itself(
    name: str, hold: Any, is_broken: bool
) -> None:
    make, iterate = HOLDERS[name]

    def fn(x: Tensor) -> Any:
        holder = make()
        it = iterate(holder)
        hold(holder, it)
        if is_broken:
            stator.graph_break()
        return holder, next(it), x + 1

    assert_same(
        fn, stator.compile(fn, backend="eager", fullgraph=not is_broken), lambda: (torch.ones(2),)
    )


@pytest.mark.parametrize("is_broken", [False, True])
@pytest.mark.parametrize("cls", [dict, OrderedDict])
def test_a_key_that_holds_an_iterator_over_its_dict(cls: Any, is_broken: bool) -> None:
    def fn(x: Tensor) -> Any:
        key = Holder()
        holder = cls([(1, 2), (key, 3), (4, 5)])
        key.held = iter(holder)
        next(key.held)
        if is_broken:
            stator.graph_break()
        return next(key.held) is key, list(key.held), x + 1

    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2),))
