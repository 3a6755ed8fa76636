"""Oracle mode finds what differs, and changes nothing when nothing does."""

from __future__ import annotations

from typing import Any

import pytest
import stator
import torch

X = torch.arange(3.0)


def checked(function: Any, backend: Any = "eager") -> Any:
    return stator.compile(function, backend=backend, options={"oracle": True})


def off_by_one(graph: Any, inputs: Any) -> Any:
    return lambda *args: [each + 1 for each in graph(*args)]


def test_same_results_effects_and_random_numbers_pass() -> None:
    def collect(x: Any, seen: list[Any]) -> Any:
        seen.append(x)
        return {"x": x, "noise": torch.rand(3), "seen": seen}

    compiled = checked(collect)
    for _ in range(3):
        seen: list[Any] = []
        torch.manual_seed(1)
        result = compiled(X, seen)
        assert result["x"] is X
        assert result["seen"] is seen
        assert seen == [X]
        torch.manual_seed(1)
        assert torch.equal(result["noise"], torch.rand(3))


def test_instances_of_classes_that_the_function_makes_are_compared() -> None:
    def made(x: Any) -> Any:
        class Pair:
            def __init__(self) -> None:
                self.left = x * 2

        return Pair(), type("Other", (), {})(), Pair

    for _ in range(2):
        assert torch.equal(checked(made)(X)[0].left, X * 2)
    with pytest.raises(stator.OracleMismatch, match=r"values of the result\[0\]\.left"):
        checked(made, off_by_one)(X)


def test_wrong_value_is_reported_with_the_users_function() -> None:
    with pytest.raises(stator.OracleMismatch, match=r"values of the result\['y'\]") as error:
        checked(lambda x: {"y": x * 2}, off_by_one)(X)
    assert error.value.where.filename == __file__


def test_wrong_effect_on_an_argument_is_reported() -> None:
    def store(x: Any, into: dict[str, Any]) -> None:
        into["y"] = x * 2

    with pytest.raises(stator.OracleMismatch, match=r"the argument into\['y'\]"):
        checked(store, off_by_one)(X, {})


def test_exception_of_the_program_is_its_outcome() -> None:
    def raises(x: Any) -> Any:
        raise ValueError("of the program")

    with pytest.raises(ValueError, match="of the program"):
        checked(raises)(X)


def test_arguments_with_a_history_are_copied() -> None:
    y = torch.ones(3, requires_grad=True) * 2
    assert torch.equal(checked(lambda y: y * 2)(y), y * 2)


def test_argument_that_cannot_be_copied_is_said() -> None:
    class Stubborn:
        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("never")

    with pytest.warns(UserWarning, match="never"):
        assert checked(lambda s, x: x + 1)(Stubborn(), X)[0] == 1


def test_environment_turns_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATOR_ORACLE", "1")
    with pytest.raises(stator.OracleMismatch):
        stator.compile(lambda x: x * 2, backend=off_by_one)(X)
