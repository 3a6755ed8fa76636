"""Tensor guards: each fact of the metadata on its own, native and slow check alike, nothing kept
alive."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from stator_guards import (  # noqa: E402
    AttrSource,
    Guard,
    GuardSet,
    IsNone,
    ParameterSource,
    SameObject,
    ShapeExpression,
    SizeSource,
    TensorMatch,
    compile_guards,
)

X, Y = ParameterSource("x"), ParameterSource("y")


class Sub(torch.Tensor):
    pass


def base() -> Any:
    return torch.arange(12.0).reshape(3, 4)


def check(guard_set: GuardSet, *state: object) -> bool:
    """The answer of the predicate, the mirror and the explanation, which must be one."""
    answer = guard_set.check(*state)
    assert guard_set.mirror(*state) is answer
    assert (guard_set.explain(*state) == []) is answer
    return answer


DIFFERENT: dict[str, Callable[[], Any]] = {
    "no tensor": lambda: 1,
    "none": lambda: None,
    "dtype": lambda: base().double(),
    "device": lambda: base().to("meta"),
    "requires grad": lambda: base().requires_grad_(),
    "size": lambda: torch.zeros(3, 5),
    "rank": lambda: torch.zeros(3, 4, 1),
    "stride": lambda: torch.zeros(4, 3).t(),
    "subclass": lambda: base().as_subclass(Sub),
    "parameter": lambda: torch.nn.Parameter(base(), requires_grad=False),
    "layout": lambda: base().to_sparse(),
    "negative bit": lambda: torch._neg_view(base()),
    "inference tensor": torch.inference_mode()(base),
}
EQUAL: dict[str, Callable[[], Any]] = {
    "other values": lambda: torch.zeros(3, 4),
    "a view of another": lambda: torch.zeros(20)[8:].view(3, 4),
    "with a grad_fn or not": lambda: base().clone(),
}


@pytest.mark.parametrize("make", DIFFERENT.values(), ids=DIFFERENT)
def test_each_fact_of_the_metadata_is_guarded(make: Callable[[], Any]) -> None:
    x = base()
    guard_set = compile_guards([Guard(X, TensorMatch(x))], ["x"])
    assert check(guard_set, x)
    assert not check(guard_set, make())
    (failure,) = guard_set.explain(make())
    assert failure.found
    assert failure.found != failure.needed


@pytest.mark.parametrize("make", EQUAL.values(), ids=EQUAL)
def test_nothing_else_is_guarded(make: Callable[[], Any]) -> None:
    assert check(compile_guards([Guard(X, TensorMatch(base()))], ["x"]), make())


def of_inference() -> Any:
    with torch.inference_mode():
        return base()


NATIVE: dict[str, Callable[[], Any]] = {
    "plain": base,
    "with gradients": lambda: base().requires_grad_(),
    "a parameter": lambda: torch.nn.Parameter(base()),
    "a constant parameter": lambda: torch.nn.Parameter(base(), requires_grad=False),
    "a subclass": lambda: base().as_subclass(Sub),
    "an inference tensor": of_inference,
    "a conjugate": lambda: base().to(torch.complex64).conj(),
    "of integers": lambda: base().int(),
}


@pytest.mark.parametrize("make", NATIVE.values(), ids=NATIVE)
def test_the_native_check_is_used_though_the_tensor_is_dead(make: Callable[[], Any]) -> None:
    native = compile_guards([Guard(X, TensorMatch(make()))], ["x"])
    gc.collect()
    assert "TensorGuards" in repr(native.walk.written().__globals__["tensors_match"])
    assert check(native, make())
    for other in NATIVE.values():
        assert check(native, other()) == (other is make)


def test_a_guarded_tensor_has_no_weak_reference() -> None:
    x = base()
    guard_set = compile_guards([Guard(X, TensorMatch(x))], ["x"])
    for _ in range(3):
        assert check(guard_set, x)
    assert not weakref.getweakrefcount(x)


@pytest.mark.parametrize("make", [*DIFFERENT.values()], ids=[*DIFFERENT])
def test_the_check_of_dead_tensors_says_the_same(make: Callable[[], Any]) -> None:
    x, y = base(), base()
    guards = [Guard(X, TensorMatch(x)), Guard(Y, TensorMatch(y))]
    del x, y
    guard_set = compile_guards(guards, ["x", "y"])
    assert check(guard_set, base(), base())
    assert not check(guard_set, base(), make())


def test_a_guarded_tensor_is_not_kept_alive() -> None:
    x = base()
    guard_set = compile_guards([Guard(X, TensorMatch(x))], ["x"])
    dead = weakref.ref(x)
    assert check(guard_set, x)
    del x
    gc.collect()
    assert dead() is None
    assert check(guard_set, base())


def test_a_dynamic_dimension_may_change_and_takes_outer_strides_along() -> None:
    x = base()
    guard_set = compile_guards([Guard(X, TensorMatch(x, frozenset({1})))], ["x"])
    assert check(guard_set, torch.zeros(3, 9))
    assert not check(guard_set, torch.zeros(4, 9))
    first = compile_guards([Guard(X, TensorMatch(x, frozenset({0})))], ["x"])
    assert check(first, torch.zeros(9, 4))
    assert not check(first, torch.zeros(4, 9).t())


def test_distinct_tensors_must_stay_distinct() -> None:
    x, y = base(), base()
    guard_set = compile_guards([Guard(X, TensorMatch(x)), Guard(Y, TensorMatch(y))], ["x", "y"])
    assert check(guard_set, x, y)
    assert not check(guard_set, x, x)
    assert "one object in two" in str(guard_set.explain(x, x)[0])


def test_one_tensor_in_two_places_may_be_two_unless_guarded() -> None:
    x = base()
    matches = [Guard(X, TensorMatch(x)), Guard(Y, TensorMatch(x))]
    loose = compile_guards(matches, ["x", "y"])
    assert check(loose, x, x)
    assert check(loose, x, base())
    tight = compile_guards([*matches, Guard(X, SameObject(Y))], ["x", "y"])
    assert check(tight, x, x)
    assert not check(tight, x, base())


def test_gradients_and_shapes_are_sources() -> None:
    x = base().requires_grad_()
    y = base()
    sizes = {
        "s0": SizeSource(X, "size", 0),
        "s1": SizeSource(Y, "size", 1),
        "o": SizeSource(X, "storage_offset"),
    }
    guards = [
        Guard(X, TensorMatch(x, frozenset({0}))),
        Guard(Y, TensorMatch(y, frozenset({1}))),
        Guard(AttrSource(X, "grad"), IsNone()),
        Guard(
            None,
            ShapeExpression("max(s0, s1) <= limit and o == 0", sizes, {"limit": 10, "max": max}),
        ),
    ]
    guard_set = compile_guards(guards, ["x", "y"])
    assert check(guard_set, x, y)
    assert not check(guard_set, x, torch.zeros(3, 11))
    x.sum().backward()
    assert not check(guard_set, x, y)


def test_metadata_changed_in_place_is_seen() -> None:
    x = base()
    guard_set = compile_guards([Guard(X, TensorMatch(x))], ["x"])
    for _ in range(4):
        assert check(guard_set, x)
    x.t_()
    assert not check(guard_set, x)


def test_attributes_of_tensors_are_read_after_the_tensor_check() -> None:
    x = base()
    x.note = None
    guard_set = compile_guards(
        [Guard(AttrSource(X, "note"), IsNone()), Guard(X, TensorMatch(x))], ["x"]
    )
    assert guard_set.source.index("tensors_match") < guard_set.source.index("note")
    assert not check(guard_set, base())


def test_weights_of_a_watched_module() -> None:
    from stator_guards import DictItemSource, InstanceDictSource, Truth, TypeIs

    model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(4)])
    modules = DictItemSource(InstanceDictSource(X), "_modules")
    guards = []
    for name, layer in model._modules.items():
        source = DictItemSource(modules, name)
        hooks = DictItemSource(InstanceDictSource(source), "_forward_hooks")
        guards += [Guard(source, TypeIs(torch.nn.Linear)), Guard(hooks, Truth(False))]
        for key, parameter in layer._parameters.items():
            held = DictItemSource(DictItemSource(InstanceDictSource(source), "_parameters"), key)
            guards.append(Guard(held, TensorMatch(parameter)))
    guard_set = compile_guards(guards, ["x"])
    for _ in range(5):
        assert check(guard_set, model)
    handle = model[1].register_forward_hook(lambda *args: None)
    assert not check(guard_set, model)
    handle.remove()
    assert check(guard_set, model)
    model[2].weight.data = torch.zeros(4, 5)
    assert not check(guard_set, model)
    model[2].weight = torch.nn.Parameter(torch.zeros(4, 4))
    assert check(guard_set, model)
    model[2].weight.requires_grad_(False)
    assert not check(guard_set, model)
    model[2].weight.requires_grad_()
    model[3].weight = model[2].weight
    assert not check(guard_set, model)
