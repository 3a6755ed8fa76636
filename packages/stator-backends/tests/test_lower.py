"""What holds around a backend while it compiles, and what is left afterwards."""

from __future__ import annotations

import gc
import operator
import random
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest
import torch
from stator_backends import (
    AliasLayout,
    AmbientState,
    Backend,
    BackendError,
    BackendRegistry,
    BackendSpec,
    MalformedGraph,
    Overlap,
    SameInput,
    aot_eager,
    eager,
    lower,
)
from stator_backends._alias import from_torch
from stator_backends._context import PlaceholderSource
from stator_backends.conformance import GraphBuilder, HandBuilt, lower_built
from torch._guards import (
    CompileContext,
    CompileId,
    DuplicateInputs,
    Source,
    TracingContext,
    compile_context,
)
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx._lazy_graph_module import _LazyGraphModule
from torch.fx.graph_module import _loader


def sine(*shape: int, dynamic: tuple[int, ...] = (), grad: bool = False) -> HandBuilt:
    build = GraphBuilder()
    return build.finish(
        build.call(torch.sin, build.input(torch.randn(*shape, requires_grad=grad), dynamic))
    )


def watching(look: Callable[[torch.fx.GraphModule, Sequence[Any]], None]) -> Backend:
    """The eager backend, which first shows `look` what it was given."""

    def watch(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
        look(gm, example_inputs)
        return gm.forward

    return watch


def test_eager_gives_the_function_of_the_graph() -> None:
    built = sine(3)
    assert lower_built(built, eager).callable == built.gm.forward


def test_backend_runs_in_context_and_leaves_none() -> None:
    seen: list[Any] = []

    def look(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> None:
        context = TracingContext.get()
        seen.extend(
            [context.fake_mode, CompileContext.current_compile_id(), gm.meta["dynamo_compile_id"]]
        )
        seen.append(bool(torch.compiler.is_compiling()))

    built, compile_id = sine(3), CompileId(frame_id=4, frame_compile_id=2)
    with compile_context(CompileContext(compile_id)):
        lower(built.gm, built.inputs, watching(look), fake_mode=built.fake_mode)
    fresh_mode, *rest = seen
    assert fresh_mode is not built.fake_mode
    assert fresh_mode.shape_env is built.fake_mode.shape_env
    assert rest == [compile_id, compile_id, True]
    assert TracingContext.try_get() is None
    assert not torch.compiler.is_compiling()


def test_backend_sees_real_inputs_and_symbols() -> None:
    seen: list[Any] = []
    built = sine(4, 3, dynamic=(0,))
    tensor = built.inputs[1]
    lower(
        built.gm,
        [4, tensor],
        watching(lambda gm, inputs: seen.extend(inputs)),
        fake_mode=built.fake_mode,
        contexts=built.contexts,
    )
    assert isinstance(seen[0], torch.SymInt)
    assert seen[1] is tensor


@pytest.mark.parametrize("with_contexts", [True, False])
def test_fake_inputs_for_a_backend_that_asks(with_contexts: bool) -> None:
    seen: list[Any] = []
    backend = BackendRegistry().register(
        watching(lambda gm, inputs: seen.extend(inputs)), spec=BackendSpec("fake", fake_inputs=True)
    )
    built = sine(4, 3, dynamic=(0,))
    contexts = built.contexts if with_contexts else None
    lower(built.gm, built.inputs, backend, fake_mode=built.fake_mode, contexts=contexts)
    assert isinstance(seen[1], FakeTensor)
    assert seen[1].fake_mode is not built.fake_mode
    size: Any = seen[1].shape[0]
    assert size.node.expr == seen[0].node.expr


@pytest.mark.parametrize("inputs", ["fake", "without contexts"])
def test_symbols_survive_without_contexts(inputs: str) -> None:
    built = sine(4, dynamic=(0,))
    given = built.inputs
    if inputs == "fake":
        given = [node.meta["example_value"] for node in built.gm.graph.find_nodes(op="placeholder")]
    lowered = lower(built.gm, given, aot_eager, fake_mode=built.fake_mode)
    assert lowered.callable(*built.arguments(torch.zeros(9)))[0].shape == (9,)


def test_boxed_backend_is_called_with_one_list() -> None:
    def boxed(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
        return lambda args: gm.forward(*args)

    backend = BackendRegistry().register(boxed, spec=BackendSpec("boxed", boxed=True))
    assert lower_built(sine(3), backend).callable(torch.zeros(3))[0].tolist() == [0.0, 0.0, 0.0]


def test_error_of_a_backend_names_it_and_is_chained() -> None:
    def broken(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
        raise KeyError("no kernel")

    with pytest.raises(
        BackendError, match="'broken' failed while compiling the graph: KeyError: 'no kernel'"
    ) as caught:
        lower_built(sine(3), broken)
    assert isinstance(caught.value.__cause__, KeyError)
    assert not torch.compiler.is_compiling()
    assert TracingContext.try_get() is None


def test_backend_must_return_something_to_call() -> None:
    with pytest.raises(BackendError, match="it returned 3, which cannot be called"):
        lower_built(sine(3), lambda gm, inputs: 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "built", "reason"),
    [
        (BackendSpec("b", symbolic_shapes=False), sine(4, dynamic=(0,)), "symbolic sizes"),
        (BackendSpec("b", training=False), sine(4, grad=True), "gradients"),
    ],
)
def test_graph_that_a_backend_cannot_take_runs_uncompiled(
    spec: BackendSpec, built: HandBuilt, reason: str
) -> None:
    backend = BackendRegistry().register(
        watching(lambda gm, inputs: pytest.fail("called")), spec=spec
    )
    lowered = lower_built(built, backend)
    assert lowered.refused.startswith(reason)


def test_guards_that_lowering_adds_on_shapes_are_returned() -> None:
    def even_only(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
        assert example_inputs[0] % 2 == 0
        return gm.forward

    lowered = lower_built(sine(4, dynamic=(0,)), even_only)
    assert [str(guard.expr).partition("(")[0] for guard in lowered.shape_guards] == ["Eq"]


def overlapping_write(offset: int, dynamic: tuple[int, ...] = ()) -> HandBuilt:
    """Writes to its first input, and returns twice the second, which starts `offset` into the same
    memory."""
    base = torch.arange(8.0)
    build = GraphBuilder()
    x, y = build.input(base[:4], dynamic), build.input(base[offset : offset + 4], dynamic)
    build.call("add_", x, 1)
    return build.finish(build.call(torch.mul, y, 2))


@pytest.mark.parametrize(("compiled_for", "called_with"), [(2, 4), (2, 3), (4, 2), (4, 4), (2, 2)])
def test_layout_guard_holds_for_the_same_overlap_only(compiled_for: int, called_with: int) -> None:
    lowered = lower_built(overlapping_write(compiled_for), aot_eager)
    base = torch.arange(8.0)
    inputs = [base[:4], base[called_with : called_with + 4]]
    assert [type(guard) for guard in lowered.guards] == [AliasLayout]
    assert lowered.guards[0].holds(inputs) == (compiled_for == called_with)


def test_layout_guard_tells_separate_memory_apart() -> None:
    lowered = lower_built(overlapping_write(2), aot_eager)
    assert not lowered.guards[0].holds([torch.zeros(4), torch.zeros(4)])


def test_layout_guard_only_where_an_input_is_written() -> None:
    build, base = GraphBuilder(), torch.arange(8.0)
    x, y = build.input(base[:4]), build.input(base[2:6])
    assert lower_built(build.finish(build.call(torch.add, x, y)), aot_eager).guards == ()


def test_layout_guard_only_for_a_backend_that_assumes_it() -> None:
    assert lower_built(overlapping_write(2), eager).guards == ()


def test_overlap_guard_of_symbolic_inputs_speaks_of_positions() -> None:
    built = overlapping_write(2, dynamic=(0,))
    tensors = frozenset(
        at for at, value in enumerate(built.inputs) if isinstance(value, torch.Tensor)
    )
    guards = lower_built(built, aot_eager).guards
    assert Overlap(tensors, frozenset()) in guards
    base = torch.arange(8.0)
    assert all(guard.holds(built.arguments(base[:4], base[2:6])) for guard in guards[1:])
    assert not all(guard.holds(built.arguments(base[:4], base[4:])) for guard in guards)


def test_guard_of_torch_becomes_one_over_positions() -> None:
    positions: dict[Source, int] = {PlaceholderSource(at): at for at in (10, 20)}
    same = from_torch("b", DuplicateInputs(PlaceholderSource(10), PlaceholderSource(20)), positions)
    assert same == SameInput(10, 20)
    tensor = torch.zeros(1)
    assert SameInput(0, 1).holds([tensor, tensor])
    assert not SameInput(0, 1).holds([tensor, tensor.clone()])
    with pytest.raises(BackendError, match="relies on graph_input_30, which is no input"):
        from_torch("b", DuplicateInputs(PlaceholderSource(10), PlaceholderSource(30)), positions)


def test_malformed_graph_is_refused_with_all_faults() -> None:
    build = GraphBuilder()
    tensor = torch.randn(3)
    x, y = build.input(tensor), build.input(tensor.clone())
    built = build.finish(build.call(torch.add, x, y))
    with pytest.raises(MalformedGraph) as caught:
        lower(built.gm, [tensor, tensor, 3], eager, fake_mode=built.fake_mode)
    assert caught.value.faults == (
        "2 placeholders, but 3 example inputs",
        "inputs 0 and 1 are one tensor: pass it once",
    )


def test_symbol_that_was_not_lifted_is_refused() -> None:
    built = sine(4, dynamic=(0,))
    symbol, _ = built.gm.graph.find_nodes(op="placeholder")
    built.gm.graph.erase_node(symbol)
    with pytest.raises(
        MalformedGraph, match="input t0 has symbols that no earlier placeholder binds"
    ):
        lower(built.gm, built.inputs[1:], eager, fake_mode=built.fake_mode)


@pytest.mark.parametrize(
    ("output", "fault"), [(lambda x: x, "not a flat tuple"), (lambda x: ((x,),), "is nested")]
)
def test_output_must_be_a_flat_tuple(output: Callable[[Any], Any], fault: str) -> None:
    build = GraphBuilder()
    x = build.input(torch.randn(3))
    built = build.finish(x)
    (node,) = built.gm.graph.find_nodes(op="output")
    node.args = (output(x),)
    with pytest.raises(MalformedGraph, match=fault):
        lower_built(built, eager)


def test_graph_must_have_an_output() -> None:
    gm = torch.fx.GraphModule({}, torch.fx.Graph())
    with pytest.raises(MalformedGraph, match="the last node is not an output"):
        lower(gm, (), eager, fake_mode=FakeTensorMode())


def test_inference_mode_at_the_entry_gives_inference_tensors_and_no_gradient() -> None:
    with torch.inference_mode():
        lowered = lower_built(sine(3), aot_eager)
        assert lowered.callable(torch.zeros(3))[0].is_inference()
    assert not lowered.callable(torch.zeros(3))[0].requires_grad


def test_autocast_at_the_entry_is_compiled_in() -> None:
    build = GraphBuilder()
    x = build.input(torch.randn(3, 3))
    with torch.autocast("cpu", torch.bfloat16):
        entry = AmbientState.capture()
        built = build.finish(build.call(torch.matmul, x, x))
    lowered = lower_built(built, aot_eager, entry)
    assert not torch.is_autocast_enabled("cpu")
    with torch.autocast("cpu", torch.bfloat16):
        assert lowered.callable(torch.randn(3, 3))[0].dtype is torch.bfloat16


def test_random_streams_go_on_as_if_nothing_was_compiled() -> None:
    numpy = pytest.importorskip("numpy")
    torch.manual_seed(0), random.seed(0), numpy.random.seed(0)
    expected = (torch.rand(1).item(), random.random(), numpy.random.rand())
    torch.manual_seed(0), random.seed(0), numpy.random.seed(0)

    def draw(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> None:
        torch.rand(1), random.random(), numpy.random.rand()

    built = sine(3)
    torch.manual_seed(0)
    lower_built(built, watching(draw))
    assert (torch.rand(1).item(), random.random(), numpy.random.rand()) == expected


def test_lowering_keeps_no_input_alive() -> None:
    built = sine(3, grad=True)
    alive = weakref.ref(built.inputs[0])
    compiled = lower_built(built, aot_eager).callable
    del built
    gc.collect()
    assert alive() is None
    assert compiled(torch.zeros(3))[0].tolist() == [0.0, 0.0, 0.0]


def test_inputs_can_be_swapped_afterwards() -> None:
    built = sine(3)
    lower_built(built, aot_eager)
    first, second = built.inputs[0], torch.ones(3)
    built.contexts.clear()
    torch.utils.swap_tensors(first, second)  # type: ignore[no-untyped-call]  # torch leaves it bare
    assert first.tolist() == [1.0, 1.0, 1.0]


def test_non_leaf_input_under_warnings_as_errors() -> None:
    build = GraphBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = build.input(torch.randn(3, requires_grad=True) * 2)
        built = build.finish(build.call(torch.sin, x))
    lowered = lower_built(built, aot_eager)
    assert lowered.callable(torch.randn(3, requires_grad=True) * 2)[0].requires_grad


def test_parameters_kept_as_attributes_of_the_graph() -> None:
    build = GraphBuilder()
    x, weight = (
        build.input(torch.ones(3)),
        build.attribute("weight", torch.nn.Parameter(torch.full((3,), 2.0))),
    )
    built = build.finish(build.call(torch.mul, x, weight))
    lowered = lower(built.gm, built.inputs, aot_eager, fake_mode=built.fake_mode)
    lowered.callable(torch.full((3,), 5.0))[0].sum().backward()
    grad = built.gm.weight.grad
    assert isinstance(grad, torch.Tensor)
    assert grad.tolist() == [5.0, 5.0, 5.0]


def test_threads_may_lower_at_once_and_the_flag_goes_out() -> None:
    built = [sine(3, grad=True) for _ in range(4)]
    results: list[Any] = []

    def work(each: HandBuilt) -> None:
        leaf = torch.zeros(3, requires_grad=True)
        lower_built(each, aot_eager).callable(leaf)[0].sum().backward()
        results.append(leaf.grad)

    threads = [threading.Thread(target=work, args=(each,)) for each in built]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [grad.tolist() for grad in results] == [[1.0, 1.0, 1.0]] * 4
    assert not torch.compiler.is_compiling()


def test_backward_compiles_after_the_shapes_are_frozen() -> None:
    built = sine(4, dynamic=(0,), grad=True)
    lowered = lower_built(built, aot_eager)
    assert built.fake_mode.shape_env is not None
    built.fake_mode.shape_env.freeze()
    leaf = torch.zeros(7, requires_grad=True)
    lowered.callable(*built.arguments(leaf))[0].sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [1.0] * 7


def test_specs_are_values() -> None:
    assert attrs.evolve(BackendSpec("a"), boxed=True) == BackendSpec("a", boxed=True)


def test_texts_that_fx_generates_die_with_what_was_compiled() -> None:
    def generated() -> set[str]:
        gc.collect()
        return set(_loader.eval_cache)

    lower_built(sine(3, grad=True), aot_eager)  # the first one has imports of its own
    built = sine(3, grad=True)
    before = generated()
    lowered = lower_built(built, aot_eager)
    assert generated() - before
    del lowered
    assert not generated() - before


def test_equal_calls_with_several_results_stay_apart() -> None:
    """AOTAutograd would make one of them, and of their results one tensor."""
    build = GraphBuilder()
    x = build.input(torch.randn(4, requires_grad=True))
    orders = [build.call(torch.argsort, x) for _ in range(2)]
    lowered = lower_built(build.finish(*orders, build.call(torch.sin, x)), aot_eager)
    first, second, _ = lowered.callable(torch.randn(4, requires_grad=True))
    assert first.untyped_storage().data_ptr() != second.untyped_storage().data_ptr()


@pytest.mark.parametrize("backend", [eager, aot_eager])
def test_size_of_a_result_that_the_data_decides(backend: Backend) -> None:
    build = GraphBuilder()
    found = build.call(torch.nonzero, build.input(torch.tensor([1, 0, 3])))
    compiled = lower_built(build.finish(found, build.call("size", found, 0)), backend).callable
    for values in ([0, 1, 1], [0, 0, 0], [1, 0, 0]):
        positions, count = compiled(torch.tensor(values))
        assert positions.tolist() == torch.tensor(values).nonzero().tolist()
        assert count == sum(values)


def test_backend_that_takes_fakes_is_given_fakes() -> None:
    given: list[Any] = []
    registry = BackendRegistry()
    backend = registry.register(
        watching(lambda gm, inputs: given.extend(inputs)),
        name="of_fakes",
        spec=BackendSpec("of_fakes", fake_inputs=True),
    )
    compiled = lower_built(sine(3, 2), backend).callable
    assert [(type(value), value.shape) for value in given] == [(FakeTensor, (3, 2))]
    value = torch.randn(3, 2)
    assert torch.equal(compiled(value)[0], value.sin())


def test_code_of_a_lazy_graph_module_is_generated_by_the_eager_backend() -> None:
    graph = torch.fx.Graph()
    graph.output((graph.call_function(torch.sin, (graph.placeholder("x"),)),))
    lazy: Any = _LazyGraphModule({}, graph)
    compiled: Any = eager(lazy, ())
    assert torch.equal(compiled(torch.ones(2))[0], torch.ones(2).sin())
    assert "_LazyGraphModule" not in str(lazy.forward)


class Slotted:
    """Compiled code without weak references."""

    __slots__ = ("forward",)

    def __init__(self, forward: Callable[..., Any]) -> None:
        self.forward = forward

    def __call__(self, *args: Any) -> Any:
        return self.forward(*args)


def test_compiled_code_need_not_take_weak_references() -> None:
    def backend(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
        return Slotted(torch.fx.symbolic_trace(gm).forward)

    compiled = lower_built(sine(3), backend).callable
    assert torch.equal(compiled(torch.ones(3))[0], torch.ones(3).sin())


def test_graph_that_raises_has_not_written_to_its_inputs() -> None:
    build = GraphBuilder()
    total, part = build.input(torch.zeros(3)), build.input(torch.zeros(4)[1:])
    index = build.input(torch.tensor([1]))
    build.call("add_", total, 1)
    build.call("add_", part, 1)
    built = build.finish(build.call(operator.getitem, total, index))

    lowered = lower(
        *(built.gm, built.inputs, aot_eager),
        fake_mode=built.fake_mode,
        defers_writes=True,
    )
    # a view is written to in the graph
    assert [(write.position, write.count) for write in lowered.late] == [(0, 1)]
    one, other = torch.zeros(3), torch.zeros(4)[1:]
    with pytest.raises(IndexError):
        lowered.callable(one, other, torch.tensor([7]))
    assert one.tolist() == [0, 0, 0]
    assert one._version == 0
    results = lowered.callable(one, other, torch.tensor([2]))
    assert [result.tolist() for result in results] == [[1.0]]
    assert one.tolist() == [1, 1, 1]
    assert one._version == 1
