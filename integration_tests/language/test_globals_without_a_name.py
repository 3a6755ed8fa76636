"""A function whose globals have no `__name__`, or one that is no name."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import stator
import torch

TEXT = """
import warnings


class Pair:
    def both(self, x):
        return x + 1


def doubled(x):
    return x * 2


def fn(x):
    found = [doubled(x), Pair().both(x), doubled.__module__, Pair.__module__, (lambda: 1).__module__]
    try:
        doubled(1, 2)
    except TypeError as error:
        found.append(str(error))
    stator.graph_break()
    warnings.warn("said once the call is over")
    (x * x).grad
    return found, doubled(x)
"""
NAMES = {
    "missing": {},
    "a number": {"__name__": 3},
    "bytes": {"__name__": b"name"},
    "a name": {"__name__": "named"},
}
MODES: dict[str, dict[str, Any]] = {
    "": {},
    "breaking": {"break_everywhere": 1},
    "oracle": {"oracle": True},
}


@pytest.mark.parametrize("options", MODES.values(), ids=MODES)
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_what_a_module_is_called_matters_to_nothing(
    name: dict[str, Any], options: dict[str, Any]
) -> None:
    def outcome(compiles: bool) -> Any:
        namespace: dict[str, Any] = {"stator": stator, **name}
        exec(compile(TEXT, "<text>", "exec"), namespace)
        fn = namespace["fn"]
        run = stator.compile(fn, backend="eager", options=options) if compiles else fn
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = [repr(run(torch.ones(3, requires_grad=True))) for _ in range(2)]
        return found, [str(each.message) for each in said], namespace.get("__name__", "missing")

    assert outcome(compiles=True) == outcome(compiles=False)
