"""Tensors of `torch.distributed.tensor` on a mesh of one process: in graphs, with plain Python's
placements, meshes, values and gradients."""

# mypy: disable-error-code="no-untyped-call,attr-defined,comparison-overlap,operator,arg-type"
# torch's functions have no types.

from __future__ import annotations

import functools
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh

from integration_tests.support.counting import Counting

if not dist.is_available():
    pytest.skip("torch was built without distributed", allow_module_level=True)

import torch.distributed._functional_collectives as collectives
from torch.distributed import tensor as dtensor
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import local_map
from torch.distributed.tensor.placement_types import _StridedShard
from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols

Program = Callable[..., Any]
CAPTURED: list[Program] = []
BROKEN: list[Program] = []
UNCOMPILED = {"uncompiled": "allow"}
"""What writes to a DTensor with gradients, or gives one twice, runs natively under a compiler."""


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: Any) -> Iterator[Any]:
    store: pathlib.Path = tmp_path_factory.mktemp("group") / "store"
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
    yield init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    dist.destroy_process_group()


def captured(fn: Program) -> Program:
    CAPTURED.append(fn)
    return fn


def broken(fn: Program) -> Program:
    BROKEN.append(fn)
    return fn


# -- in one graph ----------------------------------------------------------------------------------
@captured
def operators(mesh: Any, x: Any, d: Any) -> Any:
    return d * 2 + 1, (d @ d.t()).relu(), x.sin(), nn.functional.softmax(d, -1)[0]


@captured
def unpacked(mesh: Any, x: Any, d: Any) -> Any:
    return d.to_local() * x, d.full_tensor() + 1, type(d.to_local())


@captured
def packed(mesh: Any, x: Any, d: Any) -> Any:
    made: Any = DTensor.from_local(x * 2, mesh["tp"], [Replicate()]) * d
    return made.to_local() + 1, made, made.placements, isinstance(made, DTensor)


@captured
def packed_with_a_size(mesh: Any, x: Any, d: Any) -> Any:
    sizes = {"shape": x.shape, "stride": x.stride()}
    return DTensor.from_local(x, mesh["tp"], (Shard(-1),), run_check=False, **sizes).sin()


@captured
def through_a_layer(mesh: Any, x: Any, d: Any) -> Any:
    total: Any = nn.functional.linear(d, d).sum()
    return total.to_local() * x


@captured
def redistributed(mesh: Any, x: Any, d: Any) -> Any:
    columns = (d * 2).redistribute(placements=[Shard(1)])
    whole = columns.redistribute(mesh["tp"], (Replicate(),), async_op=True)
    return columns, whole, whole.to_local().cos()


@captured
def unpacked_with_placements_of_gradients(mesh: Any, x: Any, d: Any) -> Any:
    return (d * x.sum().detach()).to_local(grad_placements=[Shard(0)]) * x


@captured
def placements_are_values(mesh: Any, x: Any, d: Any) -> Any:
    made = [Shard(1), Shard(dim=-1), Replicate(), Partial(), Partial("max")]
    facts = [(p.is_shard(), p.is_replicate(), p.is_partial(), p.is_shard(1)) for p in made]
    more = made[0].dim, made[4].reduce_op, repr(made[0]), str(made[2]), hash(made[3])
    same = Shard(0) == Shard(0), Shard(0) is Shard(0), Shard(0) == Shard(1), Shard(0) != Replicate()
    kinds = isinstance(made[0], Shard), isinstance(made[0], Replicate), type(made[2]) is Replicate
    strided = _StridedShard(0, split_factor=2)
    return made, facts, more, same, kinds, strided.split_factor, strided, x + 1


@captured
def placement_with_an_attribute(mesh: Any, x: Any, d: Any) -> Any:
    placement: Any = Shard(0)
    placement.note = 3
    return placement.note, vars(placement), x + 1


@captured
def placements_of_tensors(mesh: Any, x: Any, d: Any) -> Any:
    y = d * 2
    (placement,) = y.placements
    known = d.placements is d.placements, y.placements == (Shard(0),), placement.dim
    return y, known, d.placements, [p for p in y.placements if p.is_shard()]


@captured
def meshes_are_values(mesh: Any, x: Any, d: Any) -> Any:
    y = d + 1
    tp = mesh["tp"]
    sizes = tp.size(), mesh.ndim, mesh.shape, mesh.size(0), mesh.mesh_dim_names, mesh.device_type
    ranks = mesh.get_rank(), tp.get_local_rank(), mesh.get_local_rank("dp"), mesh.get_coordinate()
    same = d.device_mesh == tp, y.device_mesh == mesh, d.device_mesh is d.device_mesh
    return y, sizes, ranks, same, mesh, y.device_mesh, dist.get_world_size(tp.get_group())


@captured
def made_without_data(mesh: Any, x: Any, d: Any) -> Any:
    where: Any = {"device_mesh": mesh["tp"], "placements": [Shard(0)]}
    zeros, full = dtensor.zeros(3, 3, **where), dtensor.full((3, 3), 2.0, **where)
    return zeros + d, full * d, dtensor.ones((3, 3), **where)


@captured
def mapped_over_plain_tensors(mesh: Any, x: Any, d: Any) -> Any:
    placed = [Replicate()]
    multiply = local_map(lambda a, b: a * b + 1, placed, (placed, placed), device_mesh=mesh["tp"])
    return multiply(x, x.cos()) * 2


@captured
def mapped_over_local_tensors(mesh: Any, x: Any, d: Any) -> Any:
    placed = [Shard(0)]
    multiply: Any = local_map(
        lambda a, b, n: (a @ b).relu() * n, placed, (placed, [Replicate()], None)
    )
    return multiply(d, d.redistribute(placements=[Replicate()]), 3).sum().to_local()


@captured
def local_tensors_are_one_object_without_gradients(mesh: Any, x: Any, d: Any) -> Any:
    e = d.detach() * 2
    with torch.no_grad():
        same = e.to_local() is e.to_local(), d.to_local() is d.to_local()
        again = e.redistribute(placements=[Shard(0)]).to_local()
    return same, again, e.to_local() is e.to_local(), e + 1


@captured
def groups_of_meshes(mesh: Any, x: Any, d: Any) -> Any:
    group = mesh.get_group(mesh_dim="tp")
    y = x.detach() * 2
    dist.all_reduce(y, group=group)
    return y, group is mesh["tp"].get_group(), mesh.get_group(0) is mesh.get_group("dp")


GATHER: Any = getattr(collectives, "all_gather_single_autograd", None)
GATHER = GATHER or collectives.all_gather_tensor_autograd  # before torch 2.13


@captured
def gathered_along_columns(mesh: Any, x: Any, d: Any) -> Any:
    group = mesh.get_group("tp")
    return GATHER(x * 2, 1, group) + 1


@captured
def symbols_looked_for(mesh: Any, x: Any, d: Any) -> Any:
    return has_free_unbacked_symbols(x), has_free_unbacked_symbols(x.shape[0]), x + 1


ROWS = torch.tensor([2, 0, 1])


@captured
def embedding_whose_rows_are_sharded(mesh: Any, x: Any, d: Any) -> Any:
    where = DTensor.from_local(ROWS, mesh["tp"], [Replicate()])
    found: Any = nn.functional.embedding(where, d)
    differs = found.placements != (Replicate(),)
    return found.redistribute(placements=[Replicate()]).to_local() * 2, differs


@captured
def written_to(mesh: Any, x: Any, d: Any) -> Any:
    y = d * 2
    z = y.add_(d)
    return y, z is y, y.t().mul_(2)


# -- with breaks -----------------------------------------------------------------------------------
@broken
def distributed_inside(mesh: Any, x: Any, d: Any) -> Any:
    return distribute_tensor(x.detach() * 2, mesh["tp"], [Shard(0)]) + d


@broken
def local_tensor_written_to(mesh: Any, x: Any, d: Any) -> Any:
    y = d.detach() * 2
    with torch.no_grad():
        local = y.to_local()
        local.add_(1)
        y.mul_(3)
    return y, local, y.to_local() is y.to_local()


@broken
def written_to_what_it_was_made_of(mesh: Any, x: Any, d: Any) -> Any:
    plain = x.detach() * 2
    y: Any = DTensor.from_local(plain, mesh["tp"], [Shard(0)])
    y.add_(1)
    plain.mul_(2)
    return y, plain


@broken
def masks_that_leave(mesh: Any, x: Any, d: Any) -> Any:
    where = DTensor.from_local(ROWS, mesh["tp"], [Replicate()])
    found: Any = nn.functional.embedding(where, d)
    stator.graph_break()
    kinds = found.placements[0].is_partial(), found.placements[0].reduce_op
    return found.redistribute(placements=[Replicate()]), kinds


@broken
def parts_are_read(mesh: Any, x: Any, d: Any) -> Any:
    return d._local_tensor.detach() * 2, d._spec.placements


@broken
def checked_with_the_other_processes(mesh: Any, x: Any, d: Any) -> Any:
    return DTensor.from_local(x * 1, mesh["tp"], [Replicate()], run_check=True)


@broken
def on_the_mesh_of_a_manager(mesh: Any, x: Any, d: Any) -> Any:
    with mesh["tp"]:
        return DTensor.from_local(x * 3, placements=[Replicate()])


@broken
def errors(mesh: Any, x: Any, d: Any) -> Any:
    found = []
    for wrong in (
        d.redistribute,
        lambda: d.redistribute(placements=[Partial()]),
        lambda: d + x,
        lambda: Shard("one"),
        lambda: DTensor.from_local(d, mesh["tp"], [Shard(0)]),
        lambda: mesh["pp"],
    ):
        try:
            found.append(wrong())
        except Exception as error:
            found.append(type(error))
    return found, x * 2


# -- the oracle ------------------------------------------------------------------------------------
def described(value: Any) -> Any:
    if isinstance(value, DTensor):
        layout = value.placements, value.device_mesh, value.shape, value.stride()
        local = value.detach().to_local().tolist()
        return type(value).__name__, repr(layout), value.requires_grad, local
    if isinstance(value, Tensor):
        return type(value).__name__, value.requires_grad, value.tolist()
    if isinstance(value, tuple | list):
        return type(value), [described(item) for item in value]
    return repr(value)


def leaves(value: Any) -> Iterator[Tensor]:
    parts = value if isinstance(value, tuple | list) else [value]
    for part in parts:
        if isinstance(part, tuple | list):
            yield from leaves(part)
        elif isinstance(part, Tensor) and part.requires_grad:
            yield part


def outcome(fn: Program, mesh: Any, rows: int = 3) -> Any:
    """Return what a call gives, with the gradients of its arguments."""
    x = torch.linspace(-1, 1, rows * 3).reshape(rows, 3).requires_grad_()
    d = distribute_tensor(x.detach() + 0.5, mesh["tp"], [Shard(0)]).requires_grad_()
    found = fn(mesh, x, d)
    for result in leaves(found):
        total: Any = (result * 2).sum()
        total = total.full_tensor() if isinstance(total, DTensor) else total
        total.backward(retain_graph=True)
    return described((found, [x.grad, d.grad, x, d]))


def with_backends(programs: list[Program], sample: set[Program]) -> pytest.MarkDecorator:
    """Each program as it is, and compiled; most of the latter run nightly."""
    marks = [() if program in sample else pytest.mark.slow for program in programs]
    compiled = [
        pytest.param(program, "aot_eager", marks=mark, id=f"{program.__name__}-aot_eager")
        for program, mark in zip(programs, marks, strict=True)
    ]
    plain = [pytest.param(program, "eager", id=program.__name__) for program in programs]
    return pytest.mark.parametrize(("program", "backend"), plain + compiled)


@with_backends(CAPTURED, {packed, redistributed, placements_of_tensors})
def test_it_is_captured_in_one_graph(program: Program, backend: str, mesh: Any) -> None:
    compiled: Any = stator.compile(program, backend=backend, fullgraph=True, options=UNCOMPILED)
    for _ in range(3):
        assert outcome(compiled, mesh) == outcome(program, mesh)
    assert len(compiled.report.graphs) == 1


@with_backends(BROKEN, {local_tensor_written_to})
def test_break_gives_what_plain_python_gives(program: Program, backend: str, mesh: Any) -> None:
    compiled: Any = stator.compile(program, backend=backend)
    for _ in range(3):
        assert outcome(compiled, mesh) == outcome(program, mesh)
    assert compiled.report.breaks


class Layer(nn.Module):
    def __init__(self, mesh: Any) -> None:
        super().__init__()
        weight = torch.linspace(-1, 1, 9).reshape(3, 3)
        self.weight = nn.Parameter(distribute_tensor(weight, mesh["tp"], [Shard(0)]))
        self.register_buffer("shift", distribute_tensor(torch.ones(3), mesh["tp"], [Shard(0)]))

    def forward(self, mesh: Any, x: Any, d: Any) -> Any:
        local = self.weight.to_local()
        kinds = isinstance(self.weight, nn.Parameter), isinstance(local, nn.Parameter), type(local)
        return (nn.functional.linear(d, self.weight) + self.shift).relu().sum().to_local(), kinds


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_parameters_and_buffers(backend: str, mesh: Any) -> None:
    layer = Layer(mesh)
    compiled = stator.compile(layer, backend=backend, fullgraph=True)
    for _ in range(3):
        results = []
        for called in (compiled, layer):
            results.append((outcome(called, mesh), described(layer.weight.grad)))
            layer.weight.grad = None
        assert results[0] == results[1]


def test_local_tensor_of_a_parameter_is_marked_as_one(mesh: Any) -> None:
    layer = Layer(mesh)

    def f() -> Any:
        return layer.weight.to_local()

    for backend in ("eager", "aot_eager"):
        local = stator.compile(f, backend=backend, fullgraph=True)()
        assert type(local) is Tensor
        assert isinstance(local, nn.Parameter)
        assert local.data_ptr() == layer.weight.to_local().data_ptr()


# -- gradients of results --------------------------------------------------------------------------
def two_results(d: Any, x: Any) -> Any:
    return (d * 2).sin(), d.sum(0), x * 3


def as_local(results: Any) -> Any:
    return sum(each.to_local().sum() for each in results[:2]) + results[2].sum()


def summed_whole(results: Any) -> Any:
    return sum((each * 2).sum().full_tensor() for each in results[:2])


def first_alone(results: Any) -> Any:
    return results[0].to_local().sum()


def redistributed_whole(results: Any) -> Any:
    whole = [each.redistribute(placements=[Replicate()]) for each in results[:2]]
    return sum((each * each).sum().to_local() for each in whole)


def gradients(f: Any, mesh: Any, loss: Any, **options: Any) -> Any:
    """Return the gradients of two steps, each differentiated twice."""
    x = torch.linspace(-1, 1, 9).reshape(3, 3).requires_grad_()
    d = distribute_tensor(x.detach() + 0.5, mesh["tp"], [Shard(0)]).requires_grad_()
    for _ in range(2):
        value = loss(f(d, x))
        found = torch.autograd.grad(value, (d, x), allow_unused=True, **options)
        value.backward()
    return described([d.grad, x.grad, *found])


@pytest.mark.parametrize(
    "options",
    [{"retain_graph": True}, pytest.param({"create_graph": True}, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("loss", [as_local, summed_whole, first_alone, redistributed_whole])
def test_gradients_of_results_are_compiled(loss: Any, options: Any, mesh: Any) -> None:
    """A gradient that is placed otherwise than its result, or missing, is not converted."""
    forbids: Any = {"uncompiled": "error"}
    compiled = stator.compile(two_results, backend="aot_eager", fullgraph=True, options=forbids)
    expected = gradients(two_results, mesh, loss, **options)
    assert gradients(compiled, mesh, loss, **options) == expected


def test_backward_without_its_graph_raises_as_plainly(mesh: Any) -> None:
    d = distribute_tensor(torch.ones(2, 2), mesh["tp"], [Shard(0)]).requires_grad_()
    for f in (torch.exp, stator.compile(torch.exp, backend="aot_eager")):
        total = f(d).to_local().sum()
        total.backward()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            total.backward()


# -- what is relied on -----------------------------------------------------------------------------
def test_another_placement_mesh_or_size_is_compiled_anew(mesh: Any) -> None:
    def f(d: Any) -> Any:
        return d * 2, d.placements[0].is_shard()

    x = torch.ones(4, 4)
    compiled = stator.compile(f, backend="eager", fullgraph=True)
    places = [
        (mesh["tp"], [Shard(0)]),
        (mesh["tp"], [Shard(1)]),
        (mesh["tp"], [Replicate()]),
        (mesh["dp"], [Shard(0)]),
        (mesh, [Shard(0), Replicate()]),
    ]
    for expected, (submesh, placements) in enumerate(places, 1):
        for _ in range(2):
            d = distribute_tensor(x, submesh, placements)
            assert described(compiled(d)) == described(f(d))
        assert len(compiled.report.graphs) == expected
    compiled(distribute_tensor(torch.ones(3, 4), mesh["tp"], [Shard(0)]))
    compiled(distribute_tensor(x, mesh["tp"], [Shard(0)]).requires_grad_())
    assert len(compiled.report.graphs) == len(places) + 2


def test_equal_mesh_and_placements_are_a_hit(mesh: Any) -> None:
    def f(submesh: Any, placements: Any, x: Any) -> Any:
        return DTensor.from_local(x, submesh, placements) + submesh.size()

    counting = Counting()
    compiled = stator.compile(f, backend=counting, fullgraph=True)
    for placement in (Shard(0), Shard(0), Replicate(), Replicate()):
        x = torch.ones(2, 2)
        assert described(compiled(mesh["tp"], [placement], x)) == described(
            f(mesh["tp"], [placement], x)
        )
    assert counting.count == 2


def test_parameter_is_compared_by_identity(mesh: Any) -> None:
    """Guards call few Python functions for a tensor that they have seen."""
    compiled: Any = stator.compile(lambda d: d + 1, backend="eager", fullgraph=True)
    places = [(mesh["tp"], [Shard(0)]), (mesh["tp"], [Replicate()])]
    one, other = (distribute_tensor(torch.ones(2, 2), *place) for place in places)
    for _ in range(3):
        compiled(one)
    assert calls_of_guards(lambda: compiled(one)) < 12

    one._spec = other._spec
    assert compiled(one).placements == (Replicate(),)
    one._spec = distribute_tensor(torch.ones(2, 2), mesh["dp"], [Shard(0)])._spec
    assert compiled(one).device_mesh == mesh["dp"]
    assert len(compiled.report.graphs) == 3


def test_equal_tensor_is_compared_once_by_value(mesh: Any) -> None:
    compiled: Any = stator.compile(lambda d: d + 1, backend="eager", fullgraph=True)
    tensors = [distribute_tensor(torch.ones(2, 2), mesh["tp"], [Shard(0)]) for _ in range(3)]
    for _ in range(2):
        for each in tensors:
            compiled(each)
    for each in tensors:
        assert calls_of_guards(functools.partial(compiled, each)) < 12
    assert len(compiled.report.graphs) == 1


def calls_of_guards(call: Callable[[], Any]) -> int:
    """Count the functions that the comparison of a wrapper calls."""
    found = 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal found
        is_ours = frame.f_code.co_filename.endswith("_wrappers.py")
        found += event == "call" and is_ours

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_plain_operators_keep_the_mesh_after_a_compilation(backend: str, mesh: Any) -> None:
    """torch keeps placements of results for equal operands, with the mesh that it met first."""

    def f(mesh: Any, x: Any) -> Any:
        return DTensor.from_local(x, mesh["tp"], [Shard(0)]) * 5 - 2

    x = torch.ones(3, 2)
    stator.compile(f, backend=backend, fullgraph=True)(mesh, x)
    assert type(f(mesh, x).device_mesh) is type(mesh)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_memory_is_shared_as_plainly(backend: str, mesh: Any) -> None:
    @torch.no_grad()
    def f(x: Any, d: Any) -> Any:
        made: Any = DTensor.from_local(x, mesh["tp"], [Shard(0)])
        return made, d.to_local(), d.redistribute(placements=[Shard(0)])

    compiled: Any = stator.compile(f, backend=backend, fullgraph=True)
    for _ in range(2):
        for called in (f, compiled):
            x = torch.ones(2, 2)
            d = distribute_tensor(torch.zeros(2, 2), mesh["tp"], [Shard(0)])
            made, local, again = called(x, d)
            assert local is d._local_tensor
            x.add_(1)
            local.add_(3)
            assert described(made)[-1] == [[2.0, 2.0], [2.0, 2.0]]
            assert described(d)[-1] == described(again)[-1] == [[3.0, 3.0], [3.0, 3.0]]


def test_captures_of_it_can_be_switched_off(mesh: Any) -> None:
    compiled: Any = stator.compile(
        redistributed, backend="eager", options={"without": ["distributed"]}
    )
    assert outcome(compiled, mesh) == outcome(redistributed, mesh)
    assert compiled.report.breaks


def test_sizes_that_change(mesh: Any) -> None:
    def f(mesh: Any, x: Any, d: Any) -> Any:
        made: Any = DTensor.from_local(x, mesh["tp"], [Replicate()])
        return (made * 2).to_local() + 1

    counting = Counting()
    compiled: Any = stator.compile(f, backend=counting)
    for rows in (2, 3, 4, 5):
        assert outcome(compiled, mesh, rows) == outcome(f, mesh, rows)
    assert not compiled.report.breaks
    assert counting.count == 2


def test_results_of_sizes_that_change(mesh: Any) -> None:
    def f(mesh: Any, x: Any, d: Any) -> Any:
        return DTensor.from_local(x * 2, mesh["tp"], [Replicate()]) + 1

    compiled: Any = stator.compile(f, backend="eager", dynamic=True)
    for rows in (2, 3, 4):
        assert outcome(compiled, mesh, rows) == outcome(f, mesh, rows)
