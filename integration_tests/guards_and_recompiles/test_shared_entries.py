"""Compilations of one function, and modules of one class, share entries where the guards of these
hold."""

from __future__ import annotations

import copy
import functools
import gc
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor
from torch.nn.utils.parametrizations import weight_norm

from integration_tests.support.counting import Counting

X = torch.linspace(-1.0, 2.0, 8).reshape(2, 4)


class Block(torch.nn.Module):
    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(4)
        self.linear = torch.nn.Linear(4, 4)
        self.dropout = torch.nn.Dropout(1.0)
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.linear(self.norm(x))
        if self.training:
            y = self.dropout(y)
        return x + y * self.scale


class Halved(Block):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) / 2


def plus(x: Tensor, shift: float = 1.0) -> Tensor:
    return x.sin() + shift


def double(x: Tensor) -> Tensor:
    return x * 2


def compiled_by(counting: Counting) -> Callable[[Any], Any]:
    return lambda subject: stator.compile(subject, backend=counting)


# -- what is shared --------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [stator.compile, stator.compile_in_place])
def test_equal_blocks_compile_once_per_batch_size(make: Any) -> None:
    counting = Counting()
    blocks = [Block().eval() for _ in range(24)]
    compiled = [make(copy.deepcopy(block), backend=counting) for block in blocks]
    for size, most in ((2, 2), (3, 4), (5, 4), (2, 4)):
        x = expected = torch.randn(size, 4)
        for block, ours in zip(blocks, compiled, strict=True):
            x, expected = ours(x), block(expected)
        assert torch.equal(x, expected)
        assert counting.count <= most


def test_model_compiled_on_every_call_compiles_once() -> None:
    counting, model = Counting(), Block().eval()

    def step(x: Tensor) -> Any:
        return stator.compile(model, backend=counting)(x)

    for _ in range(30):
        assert torch.equal(step(X), model(X))
    assert counting.count == 1


def test_function_compiled_ten_times_compiles_once() -> None:
    counting = Counting()
    for _ in range(10):
        assert torch.equal(stator.compile(plus, backend=counting)(X), plus(X))
    assert counting.count == 1


def test_function_decorated_in_a_function_compiles_once() -> None:
    counting = Counting()

    def outer(x: Tensor, k: float) -> Any:
        @compiled_by(counting)
        def inner(x: Tensor, *, more: float = 0.5) -> Tensor:
            y = x * k
            stator.graph_break()
            return y + more

        return inner(x)

    for _ in range(10):
        assert torch.equal(outer(X, 3.0), X * 3.0 + 0.5)
    assert counting.count == 2


def test_averaged_copy_of_a_model_shares() -> None:
    counting, model = Counting(), Block().eval()
    averaged = torch.optim.swa_utils.AveragedModel(model)
    compiled = stator.compile(model, backend=counting)
    copied = stator.compile(averaged.module, backend=counting)
    for _ in range(3):
        assert torch.equal(compiled(X), model(X))
        with torch.no_grad():
            model.linear.weight.mul_(0.5)
        averaged.update_parameters(model)
        assert torch.equal(copied(X), averaged.module(X))
    assert counting.count == 1


def test_methods_of_two_objects_share() -> None:
    counting = Counting()
    first, second = Block().eval(), Block().eval()
    for owner in (first, second):
        assert torch.equal(compiled_by(counting)(owner.forward)(X), owner(X))
    assert counting.count == 1


def test_continuations_are_shared() -> None:
    def fn(x: Tensor) -> Tensor:
        y = x.sin()
        stator.graph_break()
        return y.cos()

    counting = Counting()
    for _ in range(3):
        assert torch.equal(compiled_by(counting)(fn)(X), fn(X))
    assert counting.count == 2


# -- what is not -----------------------------------------------------------------------------------
def test_other_options_share_nothing() -> None:
    counting = Counting()
    for options in ({}, {"fullgraph": True}, {"dynamic": True}, {"recompile_limit": 3}):
        stator.compile(plus, backend=counting, **options)(X)
    stator.compile(plus, backend=Counting())(X)
    assert counting.count == 4


def test_isolated_compilations_share_nothing() -> None:
    counting = Counting()
    for _ in range(3):
        isolated = stator.compile(plus, backend=counting, isolate_recompiles=True)
        assert torch.equal(isolated(X), plus(X))
    assert counting.count == 3


def test_graph_modes_share_nothing() -> None:
    counting, weight = Counting(), torch.nn.Parameter(torch.ones(4))

    def fn(x: Tensor) -> Tensor:
        return x * weight

    with torch.no_grad():
        assert not compiled_by(counting)(fn)(X).requires_grad
    assert compiled_by(counting)(fn)(X).requires_grad
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(compiled_by(counting)(fn)(X), fn(X))
    assert counting.count == 3


def made(
    k: Any, *, default: Any = 1.0, keyword: Any = 1.0, inner: Callable[[Tensor], Tensor] = double
) -> Callable[..., Tensor]:
    def fn(x: Tensor, shift: Any = default, *, more: Any = keyword) -> Tensor:
        y: Tensor = inner(x) * k + shift * more
        return y

    return fn


FUNCTIONS = {
    "closure of numbers": [made(2.0), made(3.0), made(True), made(2)],
    "closure of tensors": [made(torch.ones(4)), made(torch.zeros(4)), made(torch.ones(1))],
    "closure of modules": [
        made(1.0, inner=torch.nn.Linear(4, 4)),
        made(1.0, inner=torch.nn.Linear(4, 4, bias=False)),
        made(1.0, inner=torch.nn.ReLU()),
    ],
    "closure of functions": [made(1.0, inner=torch.sin), made(1.0), made(1.0, inner=made(3.0))],
    "closures of functions in a closure": [
        made(1.0, inner=made(k, default=d)) for k in (2.0, 5.0) for d in (0.0, 1.0)
    ],
    "defaults": [made(1.0, default=d) for d in (1.0, 2.0, torch.ones(4), 1)],
    "keyword defaults": [made(1.0, keyword=d) for d in (1.0, 2.0, torch.ones(4), 1)],
}


@pytest.mark.parametrize("what", FUNCTIONS)
@pytest.mark.parametrize("dynamic", [None, False])
def test_functions_of_one_code_that_differ(what: str, dynamic: bool | None) -> None:
    functions = FUNCTIONS[what]
    compiled = [stator.compile(fn, backend="eager", dynamic=dynamic) for fn in functions]
    for _ in range(3):
        for fn, ours in zip(functions, compiled, strict=True):
            assert torch.equal(ours(X), fn(X))


def test_closure_that_is_written_is_that_of_the_function() -> None:
    def counter() -> tuple[Callable[[Tensor], Tensor], Callable[[], int]]:
        count = 0

        @functools.partial(stator.compile, backend="eager")
        def step(x: Tensor) -> Tensor:
            nonlocal count
            count += 1
            return x * count

        return step, lambda: count

    first, second = counter(), counter()
    for round_number in range(1, 5):
        assert torch.equal(first[0](X), X * (2 * round_number - 1))
        assert torch.equal(first[0](X), X * (2 * round_number))
        assert torch.equal(second[0](X), X * round_number)
        assert (first[1](), second[1]()) == (2 * round_number, round_number)


def test_equal_code_with_other_globals() -> None:
    code = compile("def fn(x):\n    return x * k", "<of a test>", "exec")
    spaces: list[dict[str, Any]] = [{"k": 2.0}, {"k": 3.0}]
    for space in spaces:
        exec(code, space)
    rebound = types.FunctionType(spaces[0]["fn"].__code__, {"k": 5.0})
    for _ in range(2):
        for k, fn in ((2.0, spaces[0]["fn"]), (3.0, spaces[1]["fn"]), (5.0, rebound)):
            assert torch.equal(stator.compile(fn, backend="eager")(X), X * k)


def test_code_that_is_replaced_in_one_function() -> None:
    first, second = made(2.0), made(3.0)
    compiled = [stator.compile(fn, backend="eager") for fn in (first, second)]
    for fn, ours in zip((first, second), compiled, strict=True):
        assert torch.equal(ours(X), fn(X))

    def other(x: Tensor, shift: Any = 0.0, *, more: Any = 0.0) -> Tensor:
        y: Tensor = x - k + shift * more
        return y + double(inner(x))

    k, inner = 1.0, double
    first.__code__ = other.__code__
    for fn, ours in zip((first, second), compiled, strict=True):
        assert torch.equal(ours(X), fn(X))


Change = Callable[[Block], object]


def twice(module: torch.nn.Module, args: Any, result: Any) -> Any:
    return result * 2


def twice_the_gradient(module: torch.nn.Module, given: Any, got: Any) -> Any:
    return (given[0] * 2,)


CHANGES: dict[str, Change] = {
    "nothing": lambda block: None,
    "training": lambda block: block.train(),
    "training of a submodule": lambda block: block.norm.train(),
    "an attribute": lambda block: setattr(block, "scale", 3.0),
    "an attribute of another type": lambda block: setattr(block, "scale", 3),
    "a hook": lambda block: block.register_forward_hook(twice),
    "a hook of a submodule": lambda block: block.linear.register_forward_hook(twice),
    "a backward hook": lambda block: block.register_full_backward_hook(twice_the_gradient),
    "a parametrization": lambda block: weight_norm(block.linear),
    "a frozen parameter": lambda block: block.norm.weight.requires_grad_(False),
    "a parameter of another shape": lambda block: setattr(
        block.linear, "bias", torch.nn.Parameter(torch.ones(1))
    ),
    "no parameter": lambda block: setattr(block.linear, "bias", None),
    "another setting": lambda block: setattr(block.norm, "eps", 0.5),
    "a submodule that is shared": lambda block: setattr(block, "dropout", block.norm),
    "another submodule": lambda block: setattr(block, "linear", torch.nn.Identity()),
    "a forward of its own": lambda block: setattr(block, "forward", lambda x: x - 1),
}


@pytest.mark.parametrize("make", [stator.compile, stator.compile_in_place])
def test_modules_of_one_class_that_differ(make: Any) -> None:
    blocks: list[tuple[str, Block]] = []
    for what, change in CHANGES.items():
        block = Block().eval()
        change(block)
        blocks.append((what, block))
    compiled = [
        (what, block, make(copy.deepcopy(block), backend="eager")) for what, block in blocks
    ]
    for _ in range(2):
        for what, block, ours in [*compiled, *reversed(compiled)]:
            assert results_of(ours) == results_of(block), what


def results_of(module: Block) -> list[list[Any]]:
    """Return the result and the gradients of one call."""
    x = X.clone().requires_grad_()
    result = module(x)
    result.sum().backward()
    found = [result, x.grad, *(parameter.grad for parameter in module.parameters())]
    module.zero_grad()
    return [[] if value is None else value.tolist() for value in found]


def test_change_of_one_module_is_seen_by_its_calls_only() -> None:
    blocks = [Block().eval() for _ in range(3)]
    compiled: list[Any] = [
        stator.compile(copy.deepcopy(block), backend="eager", recompile_limit=64)
        for block in blocks
    ]
    changes = {what: change for what, change in CHANGES.items() if what != "a parametrization"}
    for what, change in changes.items():
        for position in (1, 2):
            for block, ours in zip(blocks, compiled, strict=True):
                assert results_of(ours) == results_of(block), what
            change(blocks[position])
            change(compiled[position])
    for block, ours in zip(blocks, compiled, strict=True):
        assert results_of(ours) == results_of(block)


def test_subclasses_share_nothing() -> None:
    modules = [Block().eval(), Halved().eval(), Block().eval()]
    compiled = [stator.compile(copy.deepcopy(module), backend="eager") for module in modules]
    for _ in range(2):
        for module, ours in zip(modules, compiled, strict=True):
            assert torch.equal(ours(X), module(X))


# -- limits, reports, lifetimes, threads -----------------------------------------------------------
def test_limit_is_that_of_one_object() -> None:
    counting = Counting()

    def fn(x: Tensor, name: str) -> Tensor:
        return x * len(name)

    compiled = [
        stator.compile(fn, backend=counting, recompile_limit=2, dynamic=False) for _ in range(2)
    ]
    for name in ("a", "bb"):
        assert torch.equal(compiled[0](X, name), fn(X, name))
    with pytest.warns(UserWarning, match="runs plainly"):
        assert torch.equal(compiled[0](X, "ccc"), X * 3)
    assert torch.equal(compiled[1](X, "dddd"), X * 4)
    assert torch.equal(compiled[1](X, "bb"), X * 2)
    assert counting.count == 3
    assert [each.report.entry_count for each in compiled] == [2, 2]


def test_report_has_the_entries_of_one_object() -> None:
    first, second = (stator.compile(plus, backend="eager") for _ in range(2))
    first(X)
    first(X.double())
    second(X)
    assert (first.report.graph_count, second.report.graph_count) == (2, 1)


def test_reset_compiles_again() -> None:
    counting = Counting()
    compiled = [compiled_by(counting)(plus) for _ in range(3)]
    for total in (1, 2):
        for ours in compiled:
            ours(X)
        assert counting.count == total
        stator.reset()
        assert [ours.report.entry_count for ours in compiled] == [0, 0, 0]


def test_no_object_is_kept_alive_by_the_entries_of_another() -> None:
    class Held:
        def __init__(self) -> None:
            self.weight = torch.ones(4)

    def over(held: Held, default: Held) -> Callable[..., Tensor]:
        def fn(x: Tensor, more: Any = default) -> Tensor:
            y = x * held.weight
            stator.graph_break()
            z: Tensor = y + more.weight
            return z

        return stator.compile(fn, backend="eager")  # type: ignore[no-any-return]

    helds = [Held() for _ in range(4)]
    first, second = over(*helds[:2]), over(*helds[2:])
    modules: list[Any] = [stator.compile(Block().eval(), backend="eager") for _ in range(2)]
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            assert torch.equal(first(X), second(X))
            for module in modules:
                module(X)
        dying = *helds[:2], helds[0].weight, first, modules[0], modules[0].linear.weight
        dead: list[Any] = [*map(weakref.ref, dying)]
        del dying
        del helds[:2], first, modules[0]
        assert [each() for each in dead] == [None] * 6
    finally:
        gc.enable()
    assert torch.equal(second(X), X + 1)


def test_threads_make_one_entry_for_many_objects() -> None:
    counting = Counting()
    blocks = [Block().eval() for _ in range(8)]
    compiled = [stator.compile(block, backend=counting) for block in blocks]
    start, wrong = threading.Barrier(8), list[Any]()

    def run(position: int) -> None:
        start.wait()
        for size in (2, 3, 4):
            x = torch.randn(size, 4)
            if not torch.equal(compiled[position](x), blocks[position](x)):
                wrong.append((position, size))

    threads = [threading.Thread(target=run, args=(position,)) for position in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert counting.count == 2


def test_pools_without_objects_are_bounded() -> None:
    from stator._entries._entry_pool import POOLS_KEPT, _pools

    for position in range(POOLS_KEPT + 3):
        space: dict[str, Any] = {}
        exec(compile(f"def fn(x): return x + {position}", f"<{position}>", "exec"), space)
        stator.compile(space["fn"], backend="eager")
    del space
    assert len(_pools.latest) == POOLS_KEPT
