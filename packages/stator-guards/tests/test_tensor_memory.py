"""Metadata of tensors that is watched: a change shows in the next check, whatever made it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from stator_guards import (  # noqa: E402  # noqa: E402
    AllDistinct,
    Custom,
    DictItemSource,
    DistinctStorages,
    GradientSource,
    Guard,
    GuardSet,
    InstanceDictSource,
    Is,
    ParameterSource,
    TensorMatch,
    compile_guards,
    history_words,
    unhooked_words,
)
from stator_guards._tensor_memory import (  # noqa: E402
    can_be_watched,
    implementation_of,
    implementations_of,
    tensor_layout,
)

COUNT = 40


class Holder:
    """An object with many parameters, as a module has."""

    def __init__(self) -> None:
        for i in range(COUNT):
            setattr(self, f"p{i}", torch.nn.Parameter(torch.ones(3, 3)))


SELF, ARGUMENT = ParameterSource("self"), ParameterSource("x")


def source(i: int) -> Any:
    return DictItemSource(InstanceDictSource(SELF), f"p{i}")


def guards_on(holder: Holder, x: Any) -> list[Guard]:
    found = [Guard(source(i), TensorMatch(getattr(holder, f"p{i}"))) for i in range(COUNT)]
    storages = DistinctStorages((*(source(i) for i in range(COUNT)),), ARGUMENT)
    return [*found, Guard(ARGUMENT, TensorMatch(x)), Guard(ARGUMENT, storages)]


@pytest.fixture
def holder() -> Holder:
    return Holder()


@pytest.fixture
def x() -> Any:
    return torch.zeros(2)


@pytest.fixture(params=[True, False], ids=["watched", "read"])
def checked(request: pytest.FixtureRequest, holder: Holder, x: Any) -> GuardSet:
    made = compile_guards(guards_on(holder, x), ("self", "x"), watch=request.param)
    for _ in range(3):
        assert made.check(holder, x)
    if request.param and tensor_layout() is not None:
        assert "words" in made.watched
    return made


def _set_data(tensor: Any) -> None:
    tensor.data = torch.ones(3, 3, dtype=torch.float64)


def _resize(tensor: Any) -> None:
    tensor.requires_grad_(False)
    tensor.resize_(4)
    tensor.requires_grad_(True)


def _transpose(tensor: Any) -> None:
    tensor.data = torch.ones(3, 3).t()


def _another_class(tensor: Any) -> None:
    tensor.__class__ = type("Other", (torch.nn.Parameter,), {})


CHANGES: dict[str, Callable[[Any], object]] = {
    "requires_grad": lambda tensor: tensor.requires_grad_(False),
    "data of another type": _set_data,
    "other sizes": _resize,
    "other strides": _transpose,
    "another class": _another_class,
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_metadata_is_detected(
    checked: GuardSet, holder: Holder, x: Any, change: str
) -> None:
    CHANGES[change](holder.p7)
    assert not checked.check(holder, x)
    assert not checked.mirror(holder, x)


def test_written_values_are_no_change(checked: GuardSet, holder: Holder, x: Any) -> None:
    with torch.no_grad():
        holder.p3.add_(1)
    holder.p3.grad = torch.ones(3, 3)
    holder.p3.data = torch.full((3, 3), 2.0)
    assert checked.check(holder, x)


def test_flag_that_is_set_back_holds_again(checked: GuardSet, holder: Holder, x: Any) -> None:
    for _ in range(5):
        holder.p5.requires_grad_(False)
        assert not checked.check(holder, x)
        holder.p5.requires_grad_(True)
        assert checked.check(holder, x)


def test_shared_storage_is_detected(checked: GuardSet, holder: Holder, x: Any) -> None:
    holder.p1.data = holder.p2.data
    assert not checked.check(holder, x)
    holder.p1.data = torch.ones(3, 3)
    assert checked.check(holder, x)
    assert not checked.check(holder, holder.p1.data.view(-1)[:2])


LEAF = Custom("{value}.is_leaf", lambda tensor: bool(tensor.is_leaf), "a leaf", history_words)


def test_a_history_is_detected_by_its_words(holder: Holder) -> None:
    for i in range(COUNT):
        getattr(holder, f"p{i}").requires_grad_(i % 2 == 0)
    made = compile_guards([Guard(source(i), LEAF) for i in range(COUNT)], ("self",))
    for _ in range(3):
        assert made.check(holder)
    if tensor_layout() is not None:
        assert "is_leaf" not in made.watched

    for i in (2, 3):
        tensor = getattr(holder, f"p{i}").requires_grad_(False)
        tensor.mul_(torch.ones((), requires_grad=True))
        assert not made.check(holder)
        tensor.detach_()
        assert made.check(holder)
    holder.p4.sum().backward()
    assert made.check(holder)
    holder.p5 = holder.p4 * 2
    assert not made.check(holder)


UNHOOKED = Custom(
    "not ({value}._backward_hooks or {value}._post_accumulate_grad_hooks)",
    lambda tensor: not (tensor._backward_hooks or tensor._post_accumulate_grad_hooks),
    "without hooks",
    unhooked_words,
)


@pytest.mark.parametrize("kind", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hooks_are_detected_by_words(kind: str, holder: Holder) -> None:
    made = compile_guards([Guard(source(i), UNHOOKED) for i in range(COUNT)], ("self",))
    for _ in range(3):
        assert made.check(holder)
    if tensor_layout() is not None:
        assert "_backward_hooks" not in made.watched

    for _ in range(3):  # from the second time on, a dict for hooks is there
        handle = getattr(holder.p4, kind)(lambda gradient: None)
        assert not made.check(holder)
        handle.remove()
        assert made.check(holder)


def test_a_gradient_is_detected_by_words(holder: Holder) -> None:
    guards = [Guard(GradientSource(source(i)), Is(None)) for i in range(COUNT)]
    made = compile_guards(guards, ("self",))
    for _ in range(3):
        assert made.check(holder)
    if tensor_layout() is not None:
        assert ".grad" not in made.watched

    for i in range(6):
        tensor = getattr(holder, f"p{i}")
        tensor.grad = torch.ones_like(tensor)
        assert not made.check(holder)
        tensor.grad = None
        assert made.check(holder)
    holder.p2 = torch.nn.Parameter(torch.ones(2))
    assert made.check(holder)
    holder.p2.sum().backward()
    assert not made.check(holder)


def test_the_history_of_a_view_has_no_words(holder: Holder) -> None:
    for i in range(COUNT):
        setattr(holder, f"p{i}", torch.ones(2, 3)[0])
    made = compile_guards([Guard(source(i), LEAF) for i in range(COUNT)], ("self",))
    for _ in range(3):
        assert made.check(holder)
    assert not made.watched or "is_leaf" in made.watched
    holder.p6._base.mul_(torch.ones((), requires_grad=True))
    assert not made.check(holder)


def test_pinned_objects_stay_distinct_without_a_test(holder: Holder) -> None:
    others = tuple(source(i) for i in range(1, COUNT))
    matches = [Guard(source(i), TensorMatch(getattr(holder, f"p{i}"))) for i in range(COUNT)]
    made = compile_guards([*matches, Guard(source(0), AllDistinct(others, source(0)))], ("self",))
    for _ in range(3):
        assert made.check(holder)
    kept, holder.p3 = holder.p3, holder.p4
    assert not made.check(holder)
    assert not made.mirror(holder)
    holder.p3 = kept
    assert made.check(holder)


def test_tensors_with_storages_of_their_own_are_not_compared_besides(
    holder: Holder, x: Any
) -> None:
    made = compile_guards(guards_on(holder, x), ("self", "x"))
    for _ in range(3):
        assert made.check(holder, x)
    assert "identities" not in made.watched
    assert not made.check(holder, holder.p0)


def test_one_tensor_in_two_places_is_detected(checked: GuardSet, holder: Holder, x: Any) -> None:
    kept, holder.p1 = holder.p1, holder.p2
    assert not checked.check(holder, x)
    holder.p1 = kept
    assert checked.check(holder, x)


def test_keys_of_the_thread_are_checked(checked: GuardSet, holder: Holder, x: Any) -> None:
    with torch._C._ExcludeDispatchKeyGuard(
        torch._C.DispatchKeySet(torch._C.DispatchKey.AutogradCPU)
    ):
        assert not checked.check(holder, x)
    assert checked.check(holder, x)


def test_other_objects_have_words_of_their_own(checked: GuardSet, holder: Holder, x: Any) -> None:
    other = Holder()
    assert checked.check(other, x)
    other.p0.requires_grad_(False)
    assert not checked.check(other, x)
    assert checked.check(holder, x)


def test_watched_tensors_die_with_their_holder(x: Any) -> None:
    holder = Holder()
    made = compile_guards(guards_on(holder, x), ("self", "x"))
    assert all(made.check(holder, x) for _ in range(3))
    reference = weakref.ref(holder.p0)
    del holder
    gc.collect()
    assert reference() is None


def test_replaced_tensor_is_not_kept_alive_for_long(x: Any) -> None:
    holder = Holder()
    made = compile_guards(guards_on(holder, x), ("self", "x"))
    assert all(made.check(holder, x) for _ in range(3))
    reference = weakref.ref(holder.p0)
    holder.p0 = torch.nn.Parameter(torch.ones(3, 3))
    assert made.check(holder, x)
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.ones(2), True),
        (torch.ones((1,) * 6), False),
        (torch.ones(2).to_sparse(), False),
    ],
)
def test_tensors_with_metadata_elsewhere_are_not_watched(tensor: Any, expected: bool) -> None:
    assert can_be_watched(tensor) is (expected and tensor_layout() is not None)


def test_the_trial_of_the_layout_saves_no_tensor() -> None:
    """It runs in the first call of a program, which may count what is saved."""
    saved: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        assert tensor_layout.__wrapped__() == tensor_layout()
    assert saved == []


def test_a_tensor_whose_words_are_read_keeps_its_implementation() -> None:
    x, other = torch.ones(2).requires_grad_(), torch.zeros(2).requires_grad_()
    held = implementation_of(x)
    with pytest.raises(RuntimeError, match="use_count"):
        torch.utils.swap_tensors(x, other)  # type: ignore[no-untyped-call]
    del held
    torch.utils.swap_tensors(x, other)  # type: ignore[no-untyped-call]
    assert torch.equal(x, torch.zeros(2))


def test_implementations_that_are_held_at_once_are_held_apart() -> None:
    x, y = torch.ones(2).requires_grad_(), torch.ones(2, 3).requires_grad_()
    first, second = implementations_of([x, y])
    del first
    torch.utils.swap_tensors(x, torch.zeros(2).requires_grad_())  # type: ignore[no-untyped-call]
    with pytest.raises(RuntimeError, match="use_count"):
        torch.utils.swap_tensors(y, torch.zeros(2))  # type: ignore[no-untyped-call]
    del second
    torch.utils.swap_tensors(y, torch.zeros(2, 3))  # type: ignore[no-untyped-call]
    assert torch.equal(x, torch.zeros(2))
    assert torch.equal(y, torch.zeros(2, 3))


def test_no_implementation_is_held_of_no_tensor() -> None:
    assert implementations_of([]) == []


def test_no_words_are_read_where_modules_swap_their_parameters() -> None:
    x = torch.ones(2)
    assert can_be_watched(x)
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        assert not can_be_watched(x)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
