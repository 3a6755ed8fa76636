"""Methods of torchbind objects run natively at a break, in the order of the program, as their state
decides what they return."""

from __future__ import annotations

from typing import Any

import pytest
import stator
import torch
from stator.errors import Unsupported
from torch import Tensor
from torch.testing._internal.common_utils import find_library_location
from torch.testing._internal.torchbind_impls import load_torchbind_test_lib

if not find_library_location("libtorchbind_test.so").exists():
    pytest.skip("torch was built without its test classes", allow_module_level=True)
load_torchbind_test_lib()  # type: ignore[no-untyped-call]  # of torch
classes: Any = torch.classes
TESTS: Any = classes._TorchScriptTesting


def queued(queue: Any, x: Tensor) -> Any:
    """Push and pop: the size is a number that the state decides."""
    queue.push(x.cos())
    size = queue.size()
    queue.push(x.sin() * size)
    first = queue.pop() + queue.size()
    return first * 2, queue


def scaled(scale: Any, x: Tensor) -> Tensor:
    doubled = x * 2
    scale.increment(1)
    result: Tensor = scale.add_tensor(doubled) + doubled
    return result


class Holder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = TESTS._Foo(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        return scaled(self.scale, x) + 1


def new_queue(*tensors: Tensor) -> Any:
    queue = TESTS._TensorQueue(torch.empty(0).fill_(-1))
    for tensor in tensors:
        queue.push(tensor)
    return queue


def contents(queue: Any) -> list[list[float]]:
    return [tensor.tolist() for tensor in queue.get_raw_queue()]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_queue_has_the_state_of_plain_python(backend: str) -> None:
    compiled = stator.compile(queued, backend=backend)
    ours, plain = new_queue(), new_queue()
    for _ in range(4):
        x = torch.randn(3)
        result, same = compiled(ours, x)
        torch.testing.assert_close(result, queued(plain, x)[0])
        assert same is ours
        torch.testing.assert_close(contents(ours), contents(plain))

    longer = new_queue(torch.ones(3), torch.zeros(3))
    x = torch.randn(3)
    expected = queued(new_queue(torch.ones(3), torch.zeros(3)), x)[0]
    torch.testing.assert_close(compiled(longer, x)[0], expected)


def test_object_of_a_module_has_the_state_of_plain_python() -> None:
    ours, plain = Holder(), Holder()
    compiled = stator.compile(ours, backend="eager")
    for step in range(4):
        x = torch.full((2,), float(step))
        torch.testing.assert_close(compiled(x), plain(x))
    assert ours.scale.info() == plain.scale.info()


def test_method_is_no_part_of_a_whole_graph() -> None:
    with pytest.raises(Unsupported) as caught:
        stator.compile(scaled, backend="eager", fullgraph=True)(TESTS._Foo(1, 2), torch.ones(2))
    assert caught.value.where.filename == __file__


def test_object_that_is_passed_on_breaks_nothing() -> None:
    def held(scale: Any, x: Tensor) -> Any:
        return {"scale": scale, "x": x + 1}

    scale = TESTS._Foo(1, 2)
    result = stator.compile(held, backend="eager", fullgraph=True)(scale, torch.ones(2))
    assert result["scale"] is scale
