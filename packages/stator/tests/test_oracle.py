"""Oracle mode finds what differs, and changes nothing when nothing does."""

from __future__ import annotations

import contextvars
import random
import sys
import warnings
from typing import Any

import numpy as np
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
    assert not checked(lambda y: y.is_leaf)(y)
    with torch.no_grad():
        assert checked(lambda y: (y.is_leaf, y.requires_grad))(y) == (False, True)


def test_what_autograd_refuses_a_computed_argument_is_said_not_to_be_compared() -> None:
    """Its copy is no view of a leaf."""
    view = torch.ones(2, 3, requires_grad=True)[0]
    with (
        pytest.warns(stator.OracleWarning, match="another history"),
        pytest.raises(RuntimeError, match="a view of a"),
    ):
        checked(lambda y: y.mul_(2))(view)


def view_without_readable_history(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        view = x[0]
        x.mul_(2)
    return view


def test_a_view_without_readable_history_is_compared_as_a_result_and_not_copied() -> None:
    view = checked(view_without_readable_history)(torch.ones(2, 3, requires_grad=True))
    with pytest.warns(stator.OracleWarning, match="whose base was written to"):
        assert checked(lambda view: view.detach() * 2)(view).tolist() == [4, 4, 4]


def test_argument_that_cannot_be_copied_is_said() -> None:
    class Stubborn:
        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("never")

    with pytest.warns(stator.OracleWarning, match="never") as warned:
        assert checked(lambda s, x: x + 1)(Stubborn(), X)[0] == 1
    assert warned[0].filename == __file__


def test_what_is_not_compared_is_not_the_context_of_what_it_raises() -> None:
    class Stubborn:
        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("never")

    def raises(s: Stubborn, x: Any) -> Any:
        raise ValueError(sys.exc_info()[1])

    with pytest.warns(stator.OracleWarning), pytest.raises(ValueError, match="None") as raised:
        checked(raises)(Stubborn(), X)
    assert raised.value.__context__ is None


@pytest.mark.parametrize("makes_graph", [False, True])
def test_parameters_are_copied_with_their_gradients(makes_graph: bool) -> None:
    layer = torch.nn.Linear(3, 1)
    (layer.weight.grad,) = torch.autograd.grad(
        (layer(X) ** 2).sum(), layer.weight, create_graph=makes_graph
    )
    before = layer.weight.grad.detach().clone()
    checked(lambda x: layer(x) + layer.weight.grad.sum())(X)
    assert torch.equal(layer.weight.grad, before)
    layer.zero_grad()
    with pytest.raises(stator.OracleMismatch, match=r"layer\.weight\.grad|the variable layer"):
        checked(lambda x: setattr(layer.weight, "grad", layer.weight.detach() * x), off_by_one)(X)


def test_copy_that_is_another_is_said() -> None:
    class Doubling(dict[str, int]):
        def __setitem__(self, key: str, value: int) -> None:
            super().__setitem__(key, value * 2)

    mapping = Doubling(a=1)
    with pytest.warns(stator.OracleWarning, match=r"in a copy, a .*Doubling\['a'\] is 2 for 1"):
        assert checked(lambda d, x: x + d["a"])(mapping, X)[0] == 1


HASHED: list[str] = []


class Meta(type):
    def __eq__(cls, other: object) -> bool:
        HASHED.append("compared a class")
        return cls is other

    __hash__ = type.__hash__


class Compared(metaclass=Meta):
    pass


class Named(str):
    def __hash__(self) -> int:
        HASHED.append(f"hashed {self}")
        return str.__hash__(self)

    def __eq__(self, other: object) -> bool:
        HASHED.append(f"compared {self}")
        return str.__eq__(self, other)


NAMES = {Named("a"): 1}
MEMBERS = {Named("b")}


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: (x + 1, len(NAMES), len(MEMBERS)),
        lambda x: (x + 1, NAMES["a"], "b" in MEMBERS),
        lambda x: (x + 1, Compared == int),  # noqa: E721  # the metaclass runs
    ],
)
def test_hashes_and_comparisons_of_keys_happen_once(fn: Any) -> None:
    HASHED.clear()
    fn(X)
    expected = [*HASHED]
    HASHED.clear()

    checked(fn)(X)
    assert expected == HASHED


COUNT = 0
SEEN: list[int] = []
VARIABLE: contextvars.ContextVar[int] = contextvars.ContextVar("VARIABLE", default=0)


class Counter:
    made = 0
    all: list[Counter] = []

    def __init__(self) -> None:
        Counter.made += 1
        Counter.all.append(self)


def count(to: list[int] = []) -> int:  # noqa: B006  # a default that is written
    to.append(len(to))
    return len(to)


def test_effects_outside_of_the_arguments_happen_once(capsys: pytest.CaptureFixture[str]) -> None:
    calls = 0

    def fn(x: Any) -> Any:
        nonlocal calls
        global COUNT
        calls += 1
        COUNT += 1
        SEEN.append(COUNT)
        Counter()
        VARIABLE.set(VARIABLE.get() + 1)
        setattr(fn, "last", calls)
        print("call", calls)
        warnings.warn("said once", stacklevel=1)
        return (
            x + calls,
            count(),
            random.random(),
            np.random.rand(),
            Counter.made,
            getattr(fn, "last"),
        )

    compiled = checked(fn)
    for number in (1, 2, 3):
        with pytest.warns(UserWarning, match="said once") as warned:
            result = compiled(X)
        assert len(warned) == 1
        assert result[0][0] == calls == COUNT == len(SEEN) == number
        assert (
            result[1]
            == Counter.made
            == len(Counter.all)
            == VARIABLE.get()
            == getattr(fn, "last")
            == number
        )
    assert capsys.readouterr().out == "call 1\ncall 2\ncall 3\n"


STATE: dict[str, Any] = {}


class Kept:
    value: Any = None


def _into_global(x: Any) -> None:
    STATE["y"] = x * 2


def _into_class(x: Any) -> None:
    Kept.value = x * 2


def _into_gradient(x: Any) -> None:
    x.grad = x.detach() * 2


@pytest.mark.parametrize(
    ("function", "where"),
    [
        (_into_global, r"the global STATE\['y'\]"),
        (_into_class, r"Kept's value"),
        (_into_gradient, r"the argument x.grad"),
    ],
)
def test_wrong_effect_elsewhere_is_reported(function: Any, where: str) -> None:
    with pytest.raises(stator.OracleMismatch, match=where):
        checked(function, off_by_one)(X.clone().requires_grad_())


def test_wrong_effect_on_a_variable_of_a_closure_is_reported() -> None:
    held = [X]

    def store(x: Any) -> None:
        held[0] = x * 2

    with pytest.raises(stator.OracleMismatch, match=r"the variable held\[0\]"):
        checked(store, off_by_one)(X)


def test_random_numbers_that_were_drawn_too_often_are_reported() -> None:
    def drawing(graph: Any, inputs: Any) -> Any:
        return lambda *args: (graph(*args), torch.rand(1))[0]

    with pytest.raises(stator.OracleMismatch, match="torch's random numbers"):
        checked(lambda x: x * 2, drawing)(X)


def test_environment_turns_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATOR_ORACLE", "1")
    with pytest.raises(stator.OracleMismatch):
        stator.compile(lambda x: x * 2, backend=off_by_one)(X)


def test_exception_with_another_effect_is_reported_with_its_line() -> None:
    def store(x: Any, into: dict[str, Any]) -> None:
        into["y"] = x * 2
        raise ValueError("of the program")

    with pytest.raises(stator.OracleMismatch, match=r"the argument into\['y'\]") as error:
        checked(store, off_by_one)(X, {})
    assert error.value.where.line == store.__code__.co_firstlineno + 2


def test_exception_of_a_copy_with_another_history_is_not_compared() -> None:
    weight = torch.ones(3, requires_grad=True)

    def gradient(y: Any) -> Any:
        return torch.autograd.grad(y.sum(), weight)[0]

    with pytest.warns(stator.OracleWarning, match="another history"):
        assert checked(gradient)(weight * 2).tolist() == [2, 2, 2]


def test_failure_of_the_backend_is_no_outcome_of_the_program() -> None:
    def failing(graph: Any, inputs: Any) -> Any:
        raise ValueError("of the backend")

    with pytest.raises(stator.BackendFailed, match="of the backend"):
        checked(lambda x: x + 1, failing)(X)


def doubles(graph: Any, inputs: Any) -> Any:
    return lambda *args: [each.double() for each in graph(*args)]


def one_result(graph: Any, inputs: Any) -> Any:
    return lambda *args: [graph(*args)[0]] * 2


def same_when_plain(x: Any) -> Any:
    y = x + 1
    return y, y.clone() if stator.is_compiling() else y


def other_keys(x: Any) -> Any:
    return {"compiled" if stator.is_compiling() else "plain": x}


@pytest.mark.parametrize(
    ("function", "backend", "where"),
    [
        (lambda x: x + 1, doubles, "the dtype of the result"),
        (lambda x: (x + 1, x + 1), one_result, r"the identity of the result\[1\]"),
        (same_when_plain, "eager", r"the identity of the result\[1\]"),
        (other_keys, "eager", "the parts of the result"),
    ],
)
def test_other_structure_of_a_result_is_reported(function: Any, backend: Any, where: str) -> None:
    with pytest.raises(stator.OracleMismatch, match=where):
        checked(function, backend)(X)


def test_cell_without_a_value_is_copied() -> None:
    def fn(x: Any, late: bool = False) -> Any:
        return absent if late else x + 1

    assert torch.equal(checked(fn)(X), X + 1)
    absent = 1
