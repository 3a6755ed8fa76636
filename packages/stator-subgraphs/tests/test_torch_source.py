"""Sources of ours in torch's hands."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from stator_guards import CallSource, ParameterSource
from stator_subgraphs._torch_source import NamedSource, TorchSource, WrappedFloatSource


def reader(fn: Callable[..., Any]) -> Callable[..., Any]:
    """One that no pickle can hold."""

    def read(*args: Any) -> Any:
        return fn(*args)

    return read


@pytest.mark.parametrize("kind", [TorchSource, WrappedFloatSource])
def test_a_pickled_source_is_its_name(kind: type[TorchSource]) -> None:
    source = kind(CallSource(reader(len), ParameterSource("x")))
    again = pickle.loads(pickle.dumps(source))
    assert type(again) is NamedSource
    assert (again.name, again.guard_source) == (source.name, source.guard_source)


def test_equal_names_are_equal_keys_of_a_cache() -> None:
    one, other = (TorchSource(CallSource(reader(len), ParameterSource("x"))) for _ in range(2))
    assert one != other
    assert pickle.dumps(one) == pickle.dumps(other)
