"""The conformance kit of a `GraphRecorder`: derive from `GraphRecorderConformance`, override
`make_recorder`, run pytest.

    class TestMine(GraphRecorderConformance):
        @pytest.fixture
        def make_recorder(self):
            return MyRecorder            # called with a `TraceLocations`

A recorder also needs `finish(outputs)`, returning an object with `module` and `inputs` like a
`CapturedGraph`.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from stator_bytecode.conformance import Conformance
from stator_bytecode.errors import SourceSpan, Unsupported
from stator_variables import TraceLocation, TraceLocations
from torch.nn import Linear, Parameter

from stator_subgraphs._mutation import storage_of
from stator_subgraphs.testing import Driver, FixedLocations

__all__ = ["Conformance", "Driver", "FixedLocations", "GraphRecorderConformance"]


class GraphRecorderConformance(Conformance):
    """The requirements of trackers. Every graph is run, and compared with the plain calls."""

    @pytest.fixture
    def make_recorder(self) -> Callable[[TraceLocations], Any]:
        raise NotImplementedError("override the fixture `make_recorder`")

    @pytest.fixture
    def driver(self, make_recorder: Callable[[TraceLocations], Any]) -> Driver:
        return Driver(make_recorder(FixedLocations()))

    # -- inputs ------------------------------------------------------------------------------------
    def test_one_tensor_is_one_input(self, driver: Driver) -> None:
        x = torch.ones(3)
        first, second = driver.input("x", x), driver.input("same", x)
        captured = driver.finish(driver.call(torch.add, first, second))
        assert first is second
        assert len(captured.inputs) == 1

    def test_a_parameter_stays_a_parameter(self, driver: Driver) -> None:
        weight = driver.input("weight", Parameter(torch.ones(3)))
        assert isinstance(weight.example, Parameter)
        assert weight.example.requires_grad
        assert weight.example.is_leaf

    def test_what_is_not_a_leaf_does_not_become_one(self, driver: Driver) -> None:
        x = driver.input("x", torch.ones(3, requires_grad=True) * 2)
        assert x.example.requires_grad
        assert not x.example.is_leaf

    def test_a_view_keeps_its_strides_and_offset(self, driver: Driver) -> None:
        x = driver.input("x", torch.arange(12.0).view(3, 4).t()[1:])
        assert (x.example.shape, x.example.stride(), x.example.storage_offset()) == (
            (3, 3),
            (1, 4),
            1,
        )

    def test_a_dynamic_size_is_an_input_before_its_tensor(self, driver: Driver) -> None:
        x = driver.input("x", torch.ones(5, 3), "dynamic")
        captured = driver.finish(driver.call("sum", x, 0))
        assert [str(item.source) for item in captured.inputs] == ["x.size(0)", "x"]
        assert driver.run(captured, x=torch.ones(9, 3))[0].tolist() == [9.0, 9.0, 9.0]

    def test_a_symbolic_int_is_an_input(self, driver: Driver) -> None:
        x, n = driver.input("x", torch.ones(3)), driver.input("n", 7)
        captured = driver.finish(driver.call(torch.mul, x, n))
        assert isinstance(n.example, torch.SymInt)
        assert driver.run(captured, n=5)[0].tolist() == [5.0, 5.0, 5.0]

    def test_unused_inputs_are_left_out(self, driver: Driver) -> None:
        x = driver.input("x", torch.ones(3))
        driver.input("unused", torch.ones(4), "dynamic")
        assert [str(item.source) for item in driver.finish(driver.call(torch.neg, x)).inputs] == [
            "x"
        ]

    # -- calls -------------------------------------------------------------------------------------
    def test_functions_methods_and_operators_run(self, driver: Driver) -> None:
        x = driver.input("x", torch.arange(6.0).view(2, 3))
        y = driver.call("reshape", driver.call(torch.sin, x), (3, -1))
        z = driver.call(torch.cat, [y, driver.call("t", x)], dim=1)
        real = driver.values["x"]
        wanted = torch.cat([real.sin().reshape(3, -1), real.t()], dim=1)
        assert torch.equal(driver.run(driver.finish(z))[0], wanted)

    def test_no_kernel_runs_while_tracing(self, driver: Driver) -> None:
        real = torch.ones(3)
        driver.call("add_", driver.input("x", real), 1)
        assert real.tolist() == [1.0, 1.0, 1.0]

    def test_the_structure_of_a_result_is_kept(self, driver: Driver) -> None:
        result = driver.call(torch.max, driver.input("x", torch.eye(3)), 0)
        assert isinstance(result.example, torch.return_types.max)

    def test_an_operator_that_gives_its_argument_gives_its_example(self, driver: Driver) -> None:
        x = driver.call(torch.neg, driver.input("x", torch.ones(3)))
        assert driver.call("add_", x, 1).example is x.example

    def test_slices_and_nested_arguments(self, driver: Driver) -> None:
        x, i = (
            driver.input("x", torch.arange(9).view(3, 3)),
            driver.input("i", torch.tensor([2, 0])),
        )
        y = driver.call(torch.Tensor.__getitem__, x, (slice(None, None, 2), i))
        assert driver.run(driver.finish(y))[0].tolist() == [[2, 0], [8, 6]]

    def test_attributes(self, driver: Driver) -> None:
        turned = driver.traced(driver.recorder.attribute(driver.input("x", torch.ones(2, 3)), "mT"))
        assert driver.run(driver.finish(turned))[0].shape == (3, 2)

    def test_a_node_that_writes_says_what_it_writes_to(self, driver: Driver) -> None:
        x, y = driver.input("x", torch.ones(3)), driver.input("y", torch.ones(3))
        read, written = driver.call(torch.add, x, y), driver.call("add_", x, y)
        assert "writes" not in read.node.meta
        assert written.node.meta["writes"] == {storage_of(x.example)}

    def test_a_module_is_held(self, driver: Driver) -> None:
        held = driver.traced(driver.recorder.install("scale", torch.tensor([2.0])))
        y = driver.call(torch.mul, driver.input("x", torch.ones(3)), held)
        assert driver.run(driver.finish(y))[0].tolist() == [2.0, 2.0, 2.0]

    # -- errors ------------------------------------------------------------------------------------
    def test_the_error_of_an_operator_is_a_break(self, driver: Driver) -> None:
        x = driver.input("x", torch.ones(2, 3))
        with pytest.raises(Unsupported, match=r"cannot be multiplied|same reduction dim"):
            driver.call(torch.mm, x, x)
        assert len(driver.finish(driver.call(torch.neg, x)).module.graph.nodes) == 3

    def test_what_depends_on_data_is_a_break(self, driver: Driver) -> None:
        with pytest.raises(Unsupported) as caught:
            driver.call(bool, driver.input("x", torch.ones(1)))
        assert caught.value.where.line == 1

    # -- the process -------------------------------------------------------------------------------
    def test_random_streams_are_untouched(self, driver: Driver) -> None:
        x = driver.input("x", torch.ones(3))
        before = random.getstate(), torch.get_rng_state()
        driver.call(torch.nn.functional.dropout, x)
        driver.call(torch.rand, 3)
        assert random.getstate() == before[0]
        assert torch.equal(torch.get_rng_state(), before[1])

    def test_modes_are_set_back_at_the_end(self, driver: Driver) -> None:
        x = driver.input("x", torch.ones(3, requires_grad=True))
        driver.call(torch._C._set_grad_enabled, False)
        y = driver.call(torch.neg, x)
        driver.finish(y)
        assert not y.example.requires_grad
        assert torch.is_grad_enabled()

    # -- taking back -------------------------------------------------------------------------------
    def test_a_rollback_leaves_no_trace_in_the_graph(self, driver: Driver) -> None:
        y = driver.call(torch.neg, driver.input("x", torch.ones(3)))
        mark = driver.recorder.mark()
        z = driver.call(torch.mul, y, driver.input("taken_back", torch.ones(3), "dynamic"))
        driver.call(torch.max, z, 0)
        driver.recorder.rollback(mark)
        captured = driver.finish(y)
        assert [str(item.source) for item in captured.inputs] == ["x"]
        assert len(captured.module.graph.nodes) == 3

    def test_an_input_that_was_taken_back_can_come_again(self, driver: Driver) -> None:
        x, real = driver.input("x", torch.ones(4)), torch.ones(4)
        mark = driver.recorder.mark()
        driver.call(torch.mul, x, driver.input("y", real, "dynamic"))
        driver.recorder.rollback(mark)
        captured = driver.finish(driver.call(torch.add, x, driver.input("y", real, "dynamic")))
        assert driver.run(captured)[0].tolist() == [2.0] * 4

    def test_a_rollback_takes_back_writes_to_fakes(self, driver: Driver) -> None:
        x = driver.input("x", torch.ones(2, 3))
        y = driver.call(torch.neg, x)
        view = driver.call("view", y, 6)
        mark = driver.recorder.mark()
        driver.call("mul_", view, driver.input("w", Parameter(torch.ones(6))))
        driver.call("t_", x)
        driver.recorder.rollback(mark)
        assert (x.example.shape, x.example._version) == ((2, 3), 0)
        assert not y.example.requires_grad
        assert view.example._base is y.example

    def test_a_rollback_takes_back_modes(self, driver: Driver) -> None:
        mark = driver.recorder.mark()
        driver.call(torch._C._set_grad_enabled, False)
        driver.recorder.rollback(mark)
        assert torch.is_grad_enabled()

    # -- metadata ----------------------------------------------------------------------------------
    def test_a_node_says_where_it_is_from(
        self, make_recorder: Callable[[TraceLocations], Any]
    ) -> None:
        inner, outer = SourceSpan("program.py", "g", 7), SourceSpan("program.py", "f", 3)
        driver = Driver(
            make_recorder(
                FixedLocations(TraceLocation((outer, inner), (("key", "layers.0", Linear),)))
            )
        )
        node = driver.call(torch.neg, driver.input("x", torch.ones(1))).node
        assert node.meta["nn_module_stack"] == {"key": ("layers.0", Linear)}
        assert [line.strip() for line in node.meta["stack_trace"].splitlines()] == [
            str(outer),
            str(inner),
        ]
