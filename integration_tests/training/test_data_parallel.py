"""DistributedDataParallel, compiled or around what is compiled: plain Python's losses, gradients
and weights, no breaks, and buckets that are reduced before the backward pass has ended."""

# mypy: disable-error-code="no-untyped-call,attr-defined"
# torch's functions have no types.

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from integration_tests.support.counting import Counting
from integration_tests.support.processes import in_processes

if not dist.is_available():
    pytest.skip("torch was built without distributed", allow_module_level=True)

BUCKET: dict[str, Any] = {"bucket_cap_mb": 0.003}
"""Two layers of 16 x 16 weights in a bucket."""
STEPS = 5


@pytest.fixture(scope="module")
def group(tmp_path_factory: Any) -> Iterator[None]:
    store: pathlib.Path = tmp_path_factory.mktemp("group") / "store"
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


class Net(nn.Module):
    """Four layers, with running statistics and, on request, a parameter that nothing uses."""

    def __init__(self, has_unused: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))
        self.norm = nn.BatchNorm1d(16)
        self.unused = nn.Linear(2, 2) if has_unused else None

    def forward(self, x: Tensor) -> Any:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.norm(x)


Wrap = Callable[[Net, Any, dict[str, Any]], Any]


def around_compiled(net: Net, backend: Any, options: dict[str, Any]) -> Any:
    return DistributedDataParallel(stator.compile(net, backend=backend), **BUCKET, **options)


def compiled_around(net: Net, backend: Any, options: dict[str, Any]) -> Any:
    return stator.compile(DistributedDataParallel(net, **BUCKET, **options), backend=backend)


def plain(net: Net, backend: Any, options: dict[str, Any]) -> Any:
    return DistributedDataParallel(net, **BUCKET, **options)


ORDERS = pytest.mark.parametrize("wrap", [around_compiled, compiled_around])
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "static graph": {"static_graph": True},
    "unused parameters": {"find_unused_parameters": True},
    "bucket views": {"gradient_as_bucket_view": True},
}


def trained(wrap: Wrap, backend: Any = "aot_eager", accumulate: int = 1, **options: Any) -> Any:
    """Return the losses, the last gradients and the state of a model after some steps."""
    torch.manual_seed(0)
    net = Net(has_unused="find_unused_parameters" in options)
    wrapped = wrap(net, backend, options)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for step in range(STEPS):
        torch.manual_seed(step + 10 * dist.get_rank())
        is_last = (step + 1) % accumulate == 0
        with contextlib.nullcontext() if is_last else wrapped.no_sync():
            loss = wrapped(torch.randn(4, 16)).square().sum()
            loss.backward()
        if is_last:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    gradients = [None if p.grad is None else p.grad.tolist() for p in net.parameters()]
    return losses, gradients, {name: value.tolist() for name, value in net.state_dict().items()}


# -- the same training ----------------------------------------------------------------------------
@ORDERS
@pytest.mark.parametrize("variant", VARIANTS)
def test_training_is_that_of_plain_python(wrap: Wrap, variant: str, group: None) -> None:
    options = VARIANTS[variant]
    counting = Counting()
    assert trained(wrap, counting, **options) == trained(plain, **options)
    assert counting.count == 2


@ORDERS
def test_gradients_are_accumulated_without_synchronization(wrap: Wrap, group: None) -> None:
    assert trained(wrap, Counting(), accumulate=2) == trained(plain, accumulate=2)


@ORDERS
def test_uneven_inputs_are_joined(wrap: Wrap, group: None) -> None:
    found = []
    for each in (wrap, plain):
        torch.manual_seed(0)
        wrapped = each(Net(), Counting(), {})
        with wrapped.join():
            for _ in range(3):
                wrapped(torch.ones(4, 16)).sum().backward()
        found.append([p.grad.tolist() for p in wrapped.parameters()])
    assert found[0] == found[1]


def test_compiled_wrapper_runs_its_hooks_and_no_break(group: None) -> None:
    torch.manual_seed(0)
    wrapped = DistributedDataParallel(Net(), **BUCKET)
    compiled: Any = stator.compile(wrapped, backend=Counting(), fullgraph=True)
    seen: list[Any] = []
    wrapped.register_forward_pre_hook(lambda module, args: seen.append(module))
    wrapped.register_forward_hook(lambda module, args, result: result * 2)
    x = torch.ones(4, 16)
    for _ in range(2):
        expected, found = wrapped(x), compiled(x)
        assert found.tolist() == expected.tolist()
    assert all(module is wrapped for module in seen)
    assert len(seen) == 4
    assert len(compiled.report.graphs) == 1
    assert not compiled.report.breaks
    assert isinstance(compiled, DistributedDataParallel)
    assert compiled.module is wrapped.module


def test_forward_of_a_compiled_wrapper_is_compiled(group: None) -> None:
    wrapped = DistributedDataParallel(Net(), **BUCKET)
    compiled: Any = stator.compile(wrapped, backend=Counting(), fullgraph=True)
    x = torch.ones(4, 16)
    assert compiled.forward(x).tolist() == wrapped(x).tolist()
    assert len(compiled.report.graphs) == 1


def test_wrapper_compiled_in_place(group: None) -> None:
    torch.manual_seed(0)
    wrapped = DistributedDataParallel(Net(), **BUCKET)
    x = torch.ones(4, 16)
    expected = wrapped(x).tolist()
    stator.compile_in_place(wrapped, backend=Counting())
    assert wrapped(x).tolist() == expected
    assert len(stator.report_of(wrapped).graphs) == 1


def test_function_that_calls_a_wrapper_breaks_once(group: None) -> None:
    torch.manual_seed(0)
    wrapped = DistributedDataParallel(Net(), **BUCKET)
    counting = Counting()

    @stator.compile(backend=counting)
    def step(x: Tensor) -> Any:
        return wrapped(x * 2).square().sum() + 1

    x = torch.ones(4, 16)
    for _ in range(2):
        assert step(x).item() == (wrapped(x * 2).square().sum() + 1).item()
    (found,) = step.report.breaks
    assert found.reason == "disabled"
    assert counting.count == 4  # before the call, behind it, and two pieces of the model


def test_exception_in_a_wrapped_module_leaves_the_wrapper_as_it_was(group: None) -> None:
    wrapped = DistributedDataParallel(Net(), **BUCKET)
    compiled = stator.compile(wrapped, backend=Counting())
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        compiled(torch.ones(4, 3))
    assert DistributedDataParallel._get_active_ddp_module() is None
    assert compiled(torch.ones(4, 16)).shape == (4, 16)


# -- reduction during the backward pass -----------------------------------------------------------
@ORDERS
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_first_bucket_is_reduced_before_backward_ends(
    wrap: Wrap, backend: str, group: None
) -> None:
    net: Any = Net()
    wrapped = wrap(net, backend, {})
    events: list[str] = []

    def reduced(state, bucket):  # type: ignore[no-untyped-def]  # torch checks annotations
        events.append("bucket")
        future: Any = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    wrapped.register_comm_hook(None, reduced)
    net.layers[0].weight.register_post_accumulate_grad_hook(lambda p: events.append("first layer"))
    for step in range(3):
        events.clear()
        wrapped(torch.ones(4, 16)).sum().backward()
        # buckets are as the gradients arrive from the second step on
        assert step == 0 or events.index("bucket") < events.index("first layer")


@pytest.mark.parametrize("has_group", [True, False])
def test_graph_is_divided_inside_of_a_wrapper_only(has_group: bool, group: None) -> None:
    counting = Counting()
    net = stator.compile(Net(), backend=counting)
    called = DistributedDataParallel(net, **BUCKET) if has_group else net
    called(torch.ones(4, 16)).sum().backward()
    assert counting.count == (2 if has_group else 1)


def test_graph_without_gradients_is_not_divided(group: None) -> None:
    counting = Counting()
    wrapped = around_compiled(Net(), counting, {})
    with torch.no_grad():
        wrapped(torch.ones(4, 16))
    assert counting.count == 1


# -- two processes --------------------------------------------------------------------------------
@pytest.mark.slow
def test_two_processes_train_as_plain_python(tmp_path: pathlib.Path) -> None:
    in_processes(_process, tmp_path)


def _process() -> None:
    for options in VARIANTS.values():
        # a static graph begins with a step that is synchronized
        for accumulate in (1,) if "static_graph" in options else (1, 2):
            expected = trained(plain, accumulate=accumulate, **options)
            for wrap in (around_compiled, compiled_around):
                assert trained(wrap, accumulate=accumulate, **options) == expected
