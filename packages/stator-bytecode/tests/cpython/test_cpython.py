"""Each selected method of CPython's own tests ends through the Machine as it does natively."""

from __future__ import annotations

import importlib.util

import pytest
from methods import Method, interpreted, methods, natively
from selection import EXCLUDED, MODULES, excluded, is_slow

# some distributions leave them out, or package them apart
if importlib.util.find_spec("test.test_list") is None:
    pytest.skip("this CPython was installed without its own tests", allow_module_level=True)

KNOWN = {name: case for module in MODULES for name, case in methods(module).items()}
PARAMETERS = [
    pytest.param(case, id=name, marks=[pytest.mark.slow] if is_slow(name) else [])
    for name, case in KNOWN.items()
    if excluded(name) is None
]


@pytest.mark.parametrize("case", PARAMETERS)
def test_method_ends_as_natively(case: Method) -> None:
    assert interpreted(case) == natively(case)


def test_every_module_is_there() -> None:
    assert {name.partition(".")[0] for name in KNOWN} == set(MODULES)


def test_exclusions_have_reasons() -> None:
    assert all(EXCLUDED.values())
