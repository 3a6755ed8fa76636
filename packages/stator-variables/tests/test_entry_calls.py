"""Values that calls of an entry give, and states of random streams, saved and put back."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from stator_guards import CallSource, ItemSource, ParameterSource
from stator_variables import is_entry_value
from stator_variables._library._random._streams import saved
from stator_variables._trace._entry_calls import EntryValue

STREAMS: list[tuple[Any, Callable[[Any], Any]]] = [
    (random.Random(1), lambda r: (r.gauss(0, 1), r.random())),
    (np.random.default_rng(1), lambda r: (r.normal(), r.integers(5))),
    (np.random.RandomState(1), lambda r: (r.normal(), r.rand())),
    (torch.Generator().manual_seed(1), lambda r: torch.randn(3, generator=r).tolist()),
]


@pytest.mark.parametrize(("stream", "draw"), STREAMS)
def test_a_stream_that_is_put_back_gives_the_same_numbers(stream: Any, draw: Any) -> None:
    draw(stream)
    restore = saved(stream)
    first = draw(stream)
    assert draw(stream) != first
    restore()
    assert draw(stream) == first


def test_what_is_read_of_the_value_of_a_call_is_no_value_of_the_start() -> None:
    value = EntryValue(0)
    assert is_entry_value(value)
    assert is_entry_value(ItemSource(value, 1))
    assert is_entry_value(CallSource(len, value))
    assert not is_entry_value(ItemSource(ParameterSource("x"), 1))
    assert not is_entry_value(None)
