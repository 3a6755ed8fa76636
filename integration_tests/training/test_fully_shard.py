"""Modules that `fully_shard` has divided among processes: plain Python's losses, gradients and
weights, with the graphs of torch.compile and one break per block at most."""

# mypy: disable-error-code="no-untyped-call,attr-defined,no-any-return,arg-type"
# torch's functions have no types.

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh

from integration_tests.support.counting import Counting
from integration_tests.support.processes import in_processes

if not dist.is_available():
    pytest.skip("torch was built without distributed", allow_module_level=True)

from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

BLOCKS, STEPS = 3, 5


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: Any) -> Iterator[Any]:
    store: pathlib.Path = tmp_path_factory.mktemp("group") / "store"
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(torch.relu(self.up(x)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x.tanh() * 2


Form = Callable[[Any, Any], Any]


def plain(net: Any, backend: Any) -> Any:
    return net


def whole(net: Any, backend: Any) -> Any:
    return stator.compile(net, backend=backend)


def blocks_in_place(net: Any, backend: Any) -> Any:
    for block in net.blocks:
        stator.compile_in_place(block, backend=backend)
    return net


FORMS = pytest.mark.parametrize("form", [whole, blocks_in_place])
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "kept after forward": {"reshard_after_forward": False},
    "mixed precision": {
        "mp_policy": MixedPrecisionPolicy(torch.bfloat16, torch.float32, torch.float32)
    },
    "offloaded": {"offload_policy": CPUOffloadPolicy(pin_memory=False)},
}


def sharded(mesh: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    net: Any = Net()
    for block in net.blocks:
        fully_shard(block, mesh=mesh, **options)
    return fully_shard(net, mesh=mesh, **options)


def trained(
    form: Form, mesh: Any, backend: Any = "aot_eager", accumulate: int = 1, **options: Any
) -> Any:
    """Return the losses, the last gradients and the state of a model after some steps."""
    net = sharded(mesh, **options)
    called = form(net, backend)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for step in range(STEPS):
        torch.manual_seed(step + 10 * dist.get_rank())
        is_last = (step + 1) % accumulate == 0
        net.set_requires_gradient_sync(is_last)
        loss = called(torch.randn(4, 8)).square().sum()
        loss.backward()
        if is_last:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    leaves = [described(p.grad) for p in net.parameters()]
    return losses, leaves, [described(p) for p in net.parameters()]


def described(tensor: Any) -> Any:
    if tensor is None:
        return None
    return type(tensor), tensor.placements, tensor.to_local().tolist()


IN_CI = ("default", "mixed precision")


@FORMS
@pytest.mark.parametrize(
    "variant",
    [v if v in IN_CI else pytest.param(v, marks=pytest.mark.slow) for v in VARIANTS],
)
def test_training_is_that_of_plain_python(form: Form, variant: str, mesh: Any) -> None:
    options, counting = VARIANTS[variant], Counting()
    assert trained(form, mesh, counting, **options) == trained(plain, mesh, **options)
    # the first block's input has no gradient; a model has what is behind its blocks
    assert counting.count == (3 if form is whole else 2)


@FORMS
def test_gradients_are_accumulated(form: Form, mesh: Any) -> None:
    found = trained(form, mesh, Counting(), accumulate=2)
    assert found == trained(plain, mesh, accumulate=2)


def test_block_is_crossed_with_one_break(mesh: Any) -> None:
    net = sharded(mesh)
    compiled: Any = stator.compile(net, backend=Counting())
    x = torch.ones(4, 8)
    for _ in range(2):
        assert compiled(x).tolist() == net(x).tolist()
    # one at the first block, and one at those that the loop goes on with
    assert [each.reason for each in compiled.report.breaks] == ["disabled"] * 2


def test_hooks_around_a_compiled_block_run_as_they_are(mesh: Any) -> None:
    net = sharded(mesh)
    counting = Counting()
    block: Any = stator.compile(net.blocks[0], backend=counting, fullgraph=True)
    events: list[Any] = []
    block.register_forward_pre_hook(lambda module, args: events.append(type(args[0])))
    block.register_forward_hook(lambda module, args, result: result * 2)
    net(torch.ones(4, 8))  # the root sets up what is shared
    x = torch.ones(4, 8)
    assert block(x).tolist() == net.blocks[0](x).tolist()
    assert len(events) == 3
    assert counting.count == 2  # the block, and the hook's product


def test_module_without_the_hooks_is_compiled_as_usual(mesh: Any) -> None:
    counting = Counting()
    compiled: Any = stator.compile(Net(), backend=counting, fullgraph=True)
    assert compiled(torch.ones(4, 8)).shape == (4, 8)
    assert counting.count == 1


@pytest.mark.slow
def test_two_processes_train_as_plain_python(tmp_path: pathlib.Path) -> None:
    in_processes(_process, tmp_path)


def _process() -> None:
    mesh = init_device_mesh("cpu", (2,))
    for name, options in VARIANTS.items():
        for accumulate in (1, 2):
            expected = trained(plain, mesh, accumulate=accumulate, **options)
            for form in (whole, blocks_in_place):
                found = trained(form, mesh, accumulate=accumulate, **options)
                assert found == expected, (name, form)
