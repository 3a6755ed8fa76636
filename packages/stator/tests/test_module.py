"""A compiled module is the same module to its owner."""

from __future__ import annotations

import copy
import functools
import pathlib
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from stator._torch_compat import RELEASE

X = torch.arange(3.0)
Compile = Callable[..., Any]


class Affine(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("offset", torch.ones(3))
        self.scale = 2

    def forward(self, x: Any) -> Any:
        return self.linear(x) * self.scale + self.offset


@pytest.fixture
def model() -> Affine:
    return Affine()


@pytest.fixture
def compiled(model: Affine, compile_: Compile) -> Any:
    return compile_(model)


def test_gives_what_the_module_gives(model: Affine, compiled: Any) -> None:
    assert torch.equal(compiled(X), model(X))
    assert compiled.report.graph_count == 1


def test_is_of_the_same_class_with_the_same_state(model: Affine, compiled: Any) -> None:
    assert isinstance(compiled, Affine)
    assert repr(compiled) == repr(model)
    assert list(compiled.state_dict()) == list(model.state_dict())
    assert [id(p) for p in compiled.parameters()] == [id(p) for p in model.parameters()]


def test_attributes_set_on_either_are_seen_by_both(model: Affine, compiled: Any) -> None:
    compiled(X)
    compiled.scale = 3
    assert model.scale == 3
    assert torch.equal(compiled(X), model(X))
    model.linear = torch.nn.Linear(3, 3)
    assert torch.equal(compiled(X), model(X))
    del compiled.offset
    assert not hasattr(model, "offset")


def test_hooks_added_to_either_run(model: Affine, compiled: Any) -> None:
    compiled(X)
    expected = model(X)
    for owner in (model, compiled):
        handle = owner.register_forward_hook(lambda module, args, output: output + 1)
        assert torch.equal(compiled(X), expected + 1)
        handle.remove()
        assert torch.equal(compiled(X), expected)


def test_train_to_and_load_state_dict_reach_the_module(model: Affine, compiled: Any) -> None:
    assert compiled.eval() is compiled
    assert not model.linear.training
    compiled.load_state_dict({name: value * 2 for name, value in model.state_dict().items()})
    assert torch.equal(compiled(X), model(X))
    compiled.to(torch.float64)
    assert model.linear.weight.dtype is torch.float64
    assert torch.equal(compiled(X.double()), model(X.double()))


def test_is_pickled_as_the_module_it_was_made_from(model: Affine, compiled: Any) -> None:
    restored = pickle.loads(pickle.dumps(compiled))
    assert type(restored) is Affine
    assert torch.equal(restored(X), model(X))


def test_copies_are_compiled_and_share_what_copies_share(model: Affine, compiled: Any) -> None:
    deep, shallow = copy.deepcopy(compiled), copy.copy(compiled)
    assert deep.linear is not model.linear
    assert shallow.linear is model.linear
    for each in (deep, shallow):
        assert torch.equal(each(X), model(X))
    deep.scale = 5
    assert model.scale == 2
    assert deep.report.graph_count >= 1


def test_as_a_submodule(model: Affine, compiled: Any, compile_: Compile) -> None:
    outer = torch.nn.Sequential(compiled, torch.nn.ReLU())
    assert list(outer.state_dict()) == [f"0.{name}" for name in model.state_dict()]
    expected = torch.relu(model(X))
    assert torch.equal(outer(X), expected)
    whole = compile_(outer)
    assert torch.equal(whole(X), expected)
    assert whole.report.graph_count == 1


def test_compiling_a_compiled_module_starts_from_the_original(
    compiled: Any, model: Affine, compile_: Compile
) -> None:
    again = compile_(compiled)
    assert again._stator_model is model
    assert torch.equal(again(X), model(X))


def test_own_call_of_the_users_class_runs(compile_: Compile) -> None:
    class Called(Affine):
        def __call__(self, x: Any) -> Any:
            return super().__call__(x) + 100

    model = Called()
    assert torch.equal(compile_(model)(X), model(X))


def test_slots_and_attributes_called_report(compile_: Compile) -> None:
    class Slotted(Affine):
        __slots__ = ("extra",)
        report = "mine"

        def forward(self, x: Any) -> Any:
            return x * self.extra

    model = Slotted()
    setattr(model, "extra", 3)
    compiled = compile_(model)
    compiled.extra = 4
    assert model.extra == 4
    assert torch.equal(compiled(X), X * 4)
    assert compiled.report == "mine"


def test_users_class_is_told_of_no_subclass(compile_: Compile) -> None:
    class Registered(Affine):
        known: list[type] = []

        def __init_subclass__(cls) -> None:
            Registered.known.append(cls)

    compile_(Registered())
    assert Registered.known == []


def test_scripted_module_is_refused(compile_: Compile) -> None:
    with pytest.raises(stator.InvalidUse, match=r"torch\.jit"):
        compile_(torch.jit.ScriptModule())


def test_in_place_keeps_the_object(model: Affine) -> None:
    expected = model(X)
    assert stator.compile_in_place(model, backend="eager") is model
    assert torch.equal(model(X), expected)
    in_place: Any = model._compiled_call_impl
    assert in_place.call.report.graph_count == 1
    assert type(model) is Affine
    assert list(model.state_dict()) == list(Affine().state_dict())


def test_in_place_copies_run_plainly(model: Affine) -> None:
    stator.compile_in_place(model, backend="eager")
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(other(X), model(X))
        assert other._compiled_call_impl is None


def test_in_place_is_inlined_by_compiled_code(model: Affine, compile_: Compile) -> None:
    stator.compile_in_place(model, backend="eager")
    outer = compile_(torch.nn.Sequential(model, torch.nn.ReLU()))
    assert torch.equal(outer(X), torch.relu(model(X)))
    assert outer.report.graph_count == 1


def test_in_place_refuses_what_would_not_look_for_it() -> None:
    class Called(Affine):
        def __call__(self, x: Any) -> Any:
            return super().__call__(x)

    with pytest.raises(stator.InvalidUse, match="__call__ of its own"):
        stator.compile_in_place(Called(), backend="eager")
    with pytest.raises(stator.InvalidUse, match=r"no torch\.nn\.Module"):
        stator.compile_in_place(len, backend="eager")  # type: ignore[type-var]


@pytest.mark.filterwarnings("ignore:Guards may run slower on Python:RuntimeWarning")
def test_forward_of_a_compiled_module_under_torch_compile() -> None:
    # since 2.14 Dynamo reads its marks at functions only, so that the bound wrapper runs as it is
    is_replaced = RELEASE.startswith("2.13.")
    model = torch.nn.Linear(2, 2)
    compiled = stator.compile(model, backend="eager")
    x = torch.ones(3, 2)
    for _ in range(2):
        torch.compiler.reset()
        outer: Any = torch.compile(compiled.forward, backend="eager", fullgraph=is_replaced)
        assert torch.equal(outer(x), model(x))
        assert torch.equal(compiled.forward(x), model(x))
    torch.compiler.reset()


def test_every_form_of_a_compiled_module_and_callable_can_be_dumped(
    model: Affine, compiled: Any, compile_: Compile, tmp_path: pathlib.Path
) -> None:
    class Scaled:
        def times(self, x: Any, k: int = 2) -> Any:
            return x * k

        @staticmethod
        def double(x: Any) -> Any:
            return x * 2

    class Whole(Affine):
        pass

    partial = compile_(functools.partial(Scaled().times, k=3))
    static = compile_(staticmethod(Scaled.double))
    compile_(Whole)
    in_place = stator.compile_in_place(Affine(), backend="eager")
    subjects = [compiled, compile_(Scaled().times), partial, static, in_place, Whole()]
    for number, subject in enumerate(subjects):
        subject(X)
        folder = stator.dump(subject, tmp_path / str(number))
        assert "sizes (3)" in (folder / "report.txt").read_text()
