"""Sizes, identities and addresses of storages: the answers of plain Python, without a compilation
for each address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from integration_tests.support.oracle import assert_same

PROGRAMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "size": lambda x, y: x * x.untyped_storage().size(),
    "bytes": lambda x, y: (x + 1, x.untyped_storage().nbytes(), len(y.untyped_storage())),
    "device": lambda x, y: (x + 1, x.untyped_storage().device),
    "same address": lambda x, y: x + 1 if x.data_ptr() == y.data_ptr() else x + 2,
    "same storage": lambda x, y: (x + 1, x.untyped_storage() is y.untyped_storage()),
    "same identity": lambda x, y: x * (x.untyped_storage()._cdata == y.untyped_storage()._cdata),
    "address of a view": lambda x, y: (x + 1, x[1:].data_ptr() - x.data_ptr()),
    "views of two tensors": lambda x, y: x * (x.view(-1).data_ptr() == y.view(-1).data_ptr()),
    "storages of views": lambda x, y: (
        x + y,
        x.view(-1).untyped_storage() is y.view(-1).untyped_storage(),
    ),
    "alignment": lambda x, y: x + 1 if x.data_ptr() % 4 == 0 else x,
    "truth": lambda x, y: x + 1 if x.data_ptr() else x,
    "an address that is returned": lambda x, y: (x + 1, x.data_ptr()),
}


def calls() -> list[tuple[Tensor, Tensor]]:
    """Pairs of tensors that are apart, one, or views of one."""
    made = []
    for _ in range(3):
        x = torch.arange(4.0)
        made += [(x, torch.ones(4)), (x, x), (x, x.view(4))]
    return made


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_storage_is_asked_in_one_graph(name: str, backend: str) -> None:
    program = PROGRAMS[name]
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for x, y in calls():
        expected, given = tree_leaves(program(x, y)), tree_leaves(compiled(x, y))
        assert all(
            a.equal(b) if isinstance(a, Tensor) else a == b
            for a, b in zip(given, expected, strict=True)
        )
    assert compiled.report.graph_count <= 3


def test_a_storage_is_the_object_that_torch_gives() -> None:
    compiled = stator.compile(
        lambda x: (x + 1, x.untyped_storage()), backend="eager", fullgraph=True
    )
    for _ in range(2):
        x = torch.ones(3)
        assert compiled(x)[1] is x.untyped_storage()


def test_the_size_of_a_storage_that_is_larger_than_its_tensor_is_guarded() -> None:
    compiled = stator.compile(lambda x: x * x.untyped_storage().nbytes(), backend="eager")
    for size in (3, 5, 7, 9):
        x = torch.ones(size)[:3]
        assert compiled(x).equal(x * 4 * size)
    assert compiled.report.graph_count <= 2


def test_an_address_as_a_key_breaks() -> None:
    seen: dict[int, int] = {}

    def program(x: Tensor) -> Tensor:
        key = x.data_ptr()
        if key not in seen:
            seen[key] = len(seen)
        return x + seen[key]

    compiled = stator.compile(program, backend="eager")
    kept = [torch.ones(3) for _ in range(3)]
    for x in (*kept, *kept):
        assert compiled(x).equal(x + [each is x for each in kept].index(True))


def test_the_address_of_a_computed_tensor_is_read_natively() -> None:
    compiled = stator.compile(lambda x: (x * 2).data_ptr() != x.data_ptr(), backend="eager")
    for _ in range(3):
        assert compiled(torch.ones(3))
    assert len(compiled.report.breaks) >= 1


def replaced(x: Tensor, storage: Any) -> Any:
    x.data = torch.ones(4)
    return x.untyped_storage().nbytes(), storage.nbytes()


BREAKING: dict[str, Callable[[Tensor, Any], Any]] = {
    "size of one passed in": lambda x, s: (x + 1, s.nbytes(), len(s)),
    "device of one passed in": lambda x, s: (x + 1, s.device),
    "address of one passed in": lambda x, s: (x + 1, s.data_ptr() == x.data_ptr()),
    "identity of one passed in": lambda x, s: (x + 1, x.untyped_storage()._cdata == s._cdata),
    "the object of one passed in": lambda x, s: (x + 1, x.untyped_storage() is s),
    "one passed in as a key": lambda x, s: (x + 1, {x.untyped_storage(): 1}.get(s)),
    "replaced data": replaced,
    "no strides": lambda x, s: x.to_sparse().untyped_storage(),
    "address of a computed storage": lambda x, s: (x + 1).untyped_storage().data_ptr() == 0,
}


@pytest.mark.parametrize("name", BREAKING)
def test_a_storage_that_is_no_part_of_the_graph(name: str) -> None:
    program = BREAKING[name]
    compiled = stator.compile(program, backend="eager")

    def arguments() -> tuple[Tensor, Any]:
        x = torch.arange(4.0)
        return x, x.untyped_storage()

    assert_same(program, compiled, arguments)
    assert compiled.report.breaks


def test_storages_of_tensors_of_changing_size_and_offset() -> None:
    base = torch.arange(20.0)

    def program(x: Tensor, y: Tensor, empty: Tensor) -> Any:
        sizes = (x + 1).untyped_storage().nbytes(), x.untyped_storage().nbytes()
        parts = x[x.shape[0] // 2 :].data_ptr() - x.data_ptr(), y.data_ptr() - base.data_ptr()
        same = x.untyped_storage().data_ptr() == x.data_ptr()
        return sizes, parts, same, empty.untyped_storage().data_ptr(), empty.data_ptr()

    compiled = stator.compile(program, backend="eager")
    for size in (2, 3, 4, 5):
        given = torch.arange(float(size)), base[size:], torch.empty(0)
        assert compiled(*given) == program(*given)
