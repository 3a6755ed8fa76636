"""The conformance kit of backends: derive from `BackendConformance`, override the fixture
`backend`, run pytest.

    class TestMine(BackendConformance):
        @pytest.fixture
        def backend(self):
            return my_backend

A graph that needs a capability which the backend's `BackendSpec` excludes runs uncompiled;
everything else has to work compiled.

    python -m stator_backends.conformance my_package:my_backend

prints, without pytest's report, which properties the backend keeps in some 160 graphs.
"""

import random
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor

from ._backend import Backend
from ._capability_table import CapabilityTable, capability_table
from ._compare import compare
from ._lower import Lowered, lower
from ._registry import lookup
from ._session import AmbientState
from ._tolerance import Tolerance
from .testing import GraphBuilder, HandBuilt

__all__ = ["BackendConformance", "BackendKit", "GraphBuilder", "HandBuilt", "lower_built"]
__all__ += ["CapabilityTable", "capability_table", "main"]


class BackendKit:
    """The base of a kit: a subclass may xfail a test with a reason, never replace it by a weaker
    one."""

    def test_nothing_weakened(self) -> None:
        for kit in (cls for cls in type(self).__mro__ if BackendKit in cls.__bases__):
            for name, original in vars(kit).items():
                if name.startswith("test_") and getattr(type(self), name) is not original:
                    self._require_reason(kit, name)

    def _require_reason(self, kit: type, name: str) -> None:
        marks = {mark.name: mark for mark in getattr(getattr(type(self), name), "pytestmark", ())}
        assert "xfail" in marks, f"{name} replaces a test of {kit.__name__}"
        assert marks["xfail"].kwargs.get("reason"), f"{name} is xfailed without a reason"


def lower_built(built: HandBuilt, backend: Backend, ambient: AmbientState | None = None) -> Lowered:
    return lower(
        built.gm,
        built.inputs,
        backend,
        fake_mode=built.fake_mode,
        contexts=built.contexts,
        ambient=ambient,
    )


class BackendConformance(BackendKit):
    """Graphs for each thing that graphs do, some of those of the capability table among them.

    `tolerance` may be widened for a backend that reorders sums.
    """

    tolerance = Tolerance()

    @pytest.fixture
    def backend(self) -> Backend:
        raise NotImplementedError("override the fixture `backend`")

    def same_as_eager(self, built: HandBuilt, backend: Backend) -> None:
        report = compare(
            built.gm, built.inputs, backend, contexts=built.contexts, tolerance=self.tolerance
        )
        assert report.ok, str(report)

    def test_properties_of_eager_execution_are_kept(self, backend: Backend) -> None:
        table = capability_table(backend, self.tolerance, ("sin", "matmul"))
        assert not table.faults, str(table)

    def test_write_is_seen_through_an_overlapping_input(self, backend: Backend) -> None:
        base, again = torch.arange(6.0), torch.arange(6.0)
        build = GraphBuilder()
        x, y = build.input(base[:4]), build.input(base[2:])
        build.call("add_", x, 1)
        compiled = lower_built(build.finish(build.call(torch.mul, y, 2)), backend).callable
        assert compiled(again[:4], again[2:])[0].tolist() == [6.0, 8.0, 8.0, 10.0]
        assert again.tolist() == [1.0, 2.0, 3.0, 4.0, 4.0, 5.0]

    def test_changed_metadata_of_an_input_is_changed(self, backend: Backend) -> None:
        build = GraphBuilder()
        x = build.input(torch.randn(2, 3))
        build.call("t_", x)
        compiled = lower_built(build.finish(build.call(torch.mul, x, 2)), backend).callable
        value = torch.randn(2, 3)
        expected = value.t() * 2
        assert self.tolerance.difference(compiled(value)[0], expected) is None
        assert value.shape == (3, 2)

    def test_graph_without_inputs(self, backend: Backend) -> None:
        build = GraphBuilder()
        self.same_as_eager(build.finish(build.call(torch.ones, 3)), backend)

    def test_graph_without_outputs(self, backend: Backend) -> None:
        build = GraphBuilder()
        build.call("add_", build.input(torch.zeros(3)), 1)
        self.same_as_eager(build.finish(), backend)

    def test_graph_without_tensors(self, backend: Backend) -> None:
        assert list(lower_built(GraphBuilder().finish(3, None), backend).callable()) == [3, None]

    def test_size_that_only_the_data_knows(self, backend: Backend) -> None:
        build = GraphBuilder()
        count = build.call("item", build.input(torch.tensor(3)))
        built = build.finish(build.call(torch.ones, count), count)
        compiled = lower_built(built, backend).callable
        for number in (5, 2):
            ones, length = compiled(torch.tensor(number))
            assert (ones.tolist(), length) == ([1.0] * number, number)

    def test_modes_are_those_at_the_entry(self, backend: Backend) -> None:
        build = GraphBuilder()
        built = build.finish(build.call(torch.sin, build.input(torch.randn(3, requires_grad=True))))
        entry = AmbientState.capture()
        with torch.no_grad():
            compiled = lower_built(built, backend, entry).callable
            assert not torch.is_grad_enabled()
        assert compiled(torch.randn(3, requires_grad=True))[0].requires_grad

    def test_no_gradient_for_a_call_without(self, backend: Backend) -> None:
        build = GraphBuilder()
        built = build.finish(build.call(torch.sin, build.input(torch.randn(3, requires_grad=True))))
        with torch.no_grad():
            compiled = lower_built(built, backend).callable
            assert not compiled(torch.randn(3, requires_grad=True))[0].requires_grad

    def test_backward_works_from_another_thread(self, backend: Backend) -> None:
        build = GraphBuilder()
        built = build.finish(build.call(torch.sin, build.input(torch.randn(3, requires_grad=True))))
        compiled = lower_built(built, backend).callable
        leaves = [torch.randn(3, requires_grad=True) for _ in range(3)]
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda leaf: compiled(leaf)[0].sum().backward(), leaves))
        assert all(
            self.tolerance.difference(leaf.grad, leaf.detach().cos()) is None for leaf in leaves
        )

    def test_compiling_draws_no_random_number(self, backend: Backend) -> None:
        build = GraphBuilder()
        built = build.finish(build.call(torch.sin, build.input(torch.randn(3))))
        before: tuple[Any, Tensor] = random.getstate(), torch.random.get_rng_state()
        lower_built(built, backend)
        assert random.getstate() == before[0]
        assert torch.equal(torch.random.get_rng_state(), before[1])

    def test_failing_operation_raises(self, backend: Backend) -> None:
        build = GraphBuilder()
        index = build.input(torch.tensor([0, 1]))
        built = build.finish(build.call(torch.index_select, build.input(torch.randn(3)), 0, index))
        compiled = lower_built(built, backend).callable
        with pytest.raises((RuntimeError, IndexError)):
            compiled(torch.tensor([0, 9]), torch.randn(3))


def main(arguments: list[str]) -> int:
    """Print the capability table of one backend; 1 if it loses a property."""
    if len(arguments) != 1:
        print("usage: python -m stator_backends.conformance NAME | module:name | file.py:name")
        return 2
    table = capability_table(lookup(arguments[0]))
    print(table)
    return int(bool(table.lost))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
