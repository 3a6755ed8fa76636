"""The end of a graph: what is left out, what is kept, and what goes with the module."""

from __future__ import annotations

import operator

import torch
from stator_subgraphs import OutputGraph
from stator_subgraphs._outer_value import symbol_value
from stator_subgraphs.conformance import Driver, FixedLocations
from torch._guards import CompileId


def targets(driver: Driver, captured: object) -> list[object]:
    graph = captured.module.graph  # type: ignore[attr-defined]
    return [node.target for node in graph.nodes if node.op.startswith("call_")]


def test_queries_and_parts_that_nobody_uses_are_left_out(driver: Driver) -> None:
    x = driver.input("x", torch.ones(4, 3), "dynamic")
    size = driver.call("size", x, 0)
    driver.call(operator.mul, size, 2)
    parts = driver.call(torch.max, x, 0)
    driver.recorder.project(parts, 1)
    assert targets(driver, driver.finish(driver.recorder.project(parts, 0))) == [
        torch.max,
        operator.getitem,
    ]


def test_an_operator_that_nobody_uses_is_kept(driver: Driver) -> None:
    x = driver.input("x", torch.ones(3))
    driver.call(torch.nn.functional.dropout, x)
    captured = driver.finish(driver.call(torch.neg, x))
    assert (captured.op_count, len(targets(driver, captured))) == (2, 2)


def test_a_division_that_nobody_uses_is_kept(driver: Driver) -> None:
    x, n = driver.input("x", torch.ones(3)), driver.input("n", 7)
    driver.call(operator.floordiv, n, 2)
    assert operator.floordiv in targets(driver, driver.finish(driver.call(torch.neg, x)))


def test_a_symbol_stays_while_a_shape_mentions_it(driver: Driver) -> None:
    x, y = driver.input("x", torch.ones(4), "dynamic"), driver.input("y", torch.ones(5), "dynamic")
    driver.call("size", y, 0)
    captured = driver.finish(driver.call(torch.neg, x))
    assert [str(item.source) for item in captured.inputs] == ["x.size(0)", "x"]


def test_a_size_is_an_input_without_its_tensor(driver: Driver) -> None:
    x = driver.input("x", torch.ones(4), "dynamic")
    size = symbol_value(
        driver.recorder._state.root, next(iter(driver.recorder._state.root.symbols))
    )
    captured = driver.finish(driver.call(torch.ones, size))
    assert x.example.dim() == 1
    assert [str(item.source) for item in captured.inputs] == ["x.size(0)"]


def test_one_value_may_be_returned_twice_and_an_input_returned(driver: Driver) -> None:
    x = driver.input("x", torch.ones(3))
    y = driver.call(torch.neg, x)
    first, second, same = driver.run(driver.finish(y, y, x))
    assert first is second
    assert same is driver.values["x"]


def test_the_module_is_marked_as_of_a_front_end() -> None:
    compile_id = CompileId(frame_id=3, frame_compile_id=1)
    driver = Driver(OutputGraph(FixedLocations(), compile_id=compile_id))
    weight, x = (
        driver.input("weight", torch.nn.Parameter(torch.ones(3))),
        driver.input("x", torch.ones(3)),
    )
    module = driver.finish(driver.call(torch.mul, x, weight)).module
    first, second = module.graph.find_nodes(op="placeholder")
    assert module.meta["dynamo_compile_id"] == compile_id
    assert module._param_name_to_source == {}
    assert first.meta["tensor_dict"] == {"_dynamo_static_input_type": "unguarded"}
    assert "tensor_dict" not in second.meta
    assert first._dynamo_source.name == "weight"


def test_hooks_for_all_modules_do_not_hear_of_the_module_and_its_own_are_called(
    driver: Driver,
) -> None:
    x, heard = driver.input("x", torch.ones(3)), []
    module = driver.finish(driver.call(torch.neg, x)).module
    with torch.nn.modules.module.register_module_forward_hook(lambda *_: heard.append("for all")):
        module(torch.ones(3))
        assert heard == []
    module.register_forward_pre_hook(lambda *_: heard.append("its own"))
    assert torch.equal(module(torch.ones(3))[0], -torch.ones(3))
    assert heard == ["its own"]


def test_a_buffer_can_be_said_to_stay_where_it_is(driver: Driver) -> None:
    buffer = torch.ones(1)
    # as mark_static_address does
    buffer._dynamo_static_input_type = "unguarded"  # type: ignore[attr-defined]
    assert driver.input("x", buffer).node.meta["tensor_dict"] == {
        "_dynamo_static_input_type": "unguarded"
    }


def test_backends_are_shown_real_tensors_and_symbols(driver: Driver) -> None:
    real = torch.ones(4)
    captured = driver.finish(driver.call(torch.neg, driver.input("x", real, "dynamic")))
    symbol, tensor = captured.example_inputs()
    assert isinstance(symbol, torch.SymInt)
    assert tensor is real
    assert real in captured.contexts


def test_hints_that_collide_or_are_no_names(driver: Driver) -> None:
    x, y, z = (driver.input(name, torch.ones(3)) for name in ("a.b[0]", "a_b_0_", "0"))
    captured = driver.finish(driver.call(torch.cat, [x, y, z]))
    assert captured.module(*[torch.ones(3)] * 3)[0].shape == (9,)


def test_what_is_written_down_of_arguments(driver: Driver) -> None:
    x = driver.input("x", torch.ones(3))
    y = driver.call(
        "to", x, torch.device("cpu"), dtype=torch.float64, memory_format=torch.preserve_format
    )
    z = driver.call(
        "type", driver.call(torch.full, (3,), float("inf"), dtype=float), "torch.FloatTensor"
    )
    assert (
        driver.run(driver.finish(driver.call(operator.getitem, y, (..., None)), z))[1].tolist()
        == [float("inf")] * 3
    )


def test_a_trace_that_meets_no_tensor_makes_nothing_fake_and_no_module(driver: Driver) -> None:
    captured = driver.recorder.finish([])
    assert (captured.op_count, driver.recorder._state.world.is_made) == (0, False)
    assert "module" not in vars(captured)
    assert captured.module() == ()
