"""Arguments are bound, and refused in the same words, as CPython does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stator_bytecode import BindingError, bind_arguments, interpret

SIGNATURES = (
    "",
    "a",
    "a, b",
    "a, b=1",
    "a=1, b=2",
    "a, /, b",
    "a, b=2, /, c=3",
    "*, k",
    "a, *, k, j=5",
    "*args",
    "a, *args, k=1",
    "**names",
    "a, /, **names",
    "a, b, *args, k, **names",
    "a, b, c, d, *, first, second, third",
)


def function(signature: str) -> Callable[..., Any]:
    names: dict[str, Any] = {}
    exec(f"def f({signature}): return locals()", names)
    return names["f"]  # type: ignore[no-any-return]


FUNCTIONS = {signature: function(signature) for signature in SIGNATURES}


def _ending(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except TypeError as error:
        return str(error)


@settings(max_examples=400, deadline=None)
@given(
    signature=st.sampled_from(SIGNATURES),
    args=st.lists(st.integers(), max_size=6),
    kwargs=st.dictionaries(
        st.sampled_from(["a", "b", "c", "k", "j", "first", "secnd", "other"]),
        st.integers(),
        max_size=4,
    ),
)
def test_any_call_binds_as_natively(
    signature: str, args: list[int], kwargs: dict[str, int]
) -> None:
    fn = FUNCTIONS[signature]
    assert _ending(lambda: interpret(fn, *args, **kwargs)) == _ending(lambda: fn(*args, **kwargs))


def test_keywords_must_be_strings() -> None:
    fn: Any = FUNCTIONS["**names"]
    odd: Any = {1: 2}
    assert _ending(lambda: interpret(lambda: fn(**odd))) == _ending(lambda: fn(**odd))


def test_packers_build_what_the_domain_wants() -> None:
    code = FUNCTIONS["a, *args, k=1"].__code__
    bound = bind_arguments(code, "f", (), {"k": 1}, [1, 2, 3], {}, pack_args=list)
    assert bound == [1, 1, [2, 3]]


def test_misfit_is_a_binding_error() -> None:
    with pytest.raises(BindingError, match="missing 1 required positional argument: 'a'"):
        bind_arguments(FUNCTIONS["a"].__code__, "f", (), {}, [], {})
