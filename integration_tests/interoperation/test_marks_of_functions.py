"""Marks that users put on their functions, through stator or through torch: how compiled code
treats a call of them."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
import torch._dynamo
from stator._settings import _torch_settings
from stator_variables import MARKED, SUBSTITUTES

from integration_tests.support.counting import Counting

X = torch.linspace(-1.0, 2.0, 6)
Mark = Callable[[Any], Any]
compiler: Any = torch.compiler
dynamo: Any = torch._dynamo


@pytest.fixture(autouse=True)
def marks_of_this_test() -> Iterator[None]:
    yield
    for marked in (*MARKED.values(), SUBSTITUTES):
        marked.clear()


def report_of(fn: Any, *args: Any, **settings: Any) -> Any:
    """Return the report of a compiled function whose results are those of the original."""
    compiled = stator.compile(fn, backend="eager", **settings)
    for _ in range(2):
        assert torch.equal(compiled(*args), fn(*args))
    return compiled.report


def steps(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    return y.cos() if float(y.sum()) > 0 else y


def targets(report: Any) -> list[str]:
    calls = (node for graph in report.graphs for node in graph.graph.nodes)
    return [getattr(node.target, "__name__", str(node.target)) for node in calls]


@pytest.mark.parametrize(
    "allow", [stator.allow_in_graph, compiler.allow_in_graph, dynamo.allow_in_graph]
)
def test_allowed_function_is_one_node(allow: Mark) -> None:
    def local_steps(x: torch.Tensor) -> torch.Tensor:
        return x.sin().cos()

    (allowed,) = allow([local_steps])
    report = report_of(lambda x: allowed(x) + 1, X)
    assert report.graph_count == 1
    assert "local_steps" in targets(report)


@pytest.mark.parametrize("disallow", [stator.disallow_in_graph, dynamo.disallow_in_graph])
@pytest.mark.parametrize("function", [torch.sin, torch.nn.functional.softplus])
def test_disallowed_operator_breaks(disallow: Mark, function: Any) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = function(x + 1)
        return y + 2

    disallow(function)
    try:
        report = report_of(fn, X)
    finally:
        dynamo.allow_in_graph(function)
    assert (report.graph_count, len(report.breaks)) == (2, 1)
    assert function.__name__ not in targets(report)
    assert "is marked to stay out of graphs" in str(report.breaks[0])


def test_function_that_is_no_operator_cannot_be_disallowed() -> None:
    with pytest.raises(stator.InvalidUse, match="it is no operator"):
        stator.disallow_in_graph([steps])


@pytest.mark.parametrize("mark", [stator.assume_constant_result, compiler.assume_constant_result])
def test_result_that_is_assumed_constant(mark: Mark) -> None:
    calls: list[int] = []

    @mark
    def setting() -> int:
        calls.append(1)
        return len(calls)

    compiled = stator.compile(lambda x: x * setting(), backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), compiled(X))
    assert calls == [1]


@pytest.mark.parametrize("nonstrict_trace", [stator.nonstrict_trace, dynamo.nonstrict_trace])
def test_function_that_is_traced_by_compilers_only(nonstrict_trace: Mark) -> None:
    @nonstrict_trace
    def through(linear: torch.nn.Linear, x: torch.Tensor) -> Any:
        dynamo.graph_break()
        return {"result": linear(x).sin()}

    linear = torch.nn.Linear(6, 2)
    report = report_of(lambda x: through(linear, x)["result"] + 1, X, fullgraph=True)
    assert report.graph_count == 1


def test_substitute_is_traced_in_place_of_a_function() -> None:
    @stator.substitute_in_graph(math.gamma)
    def gamma(k: float) -> float:
        return float(math.prod(range(1, int(k))))

    assert math.gamma(5.0) == 24.0
    report = report_of(lambda x, k: x * math.gamma(k), X, 5.0, fullgraph=True)
    assert report.graph_count == 1

    @stator.substitute_in_graph(steps, skip_signature_check=True)
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    compiled = stator.compile(lambda x: steps(x) + 1, backend="eager")
    assert torch.equal(compiled(X), X * 2 + 1)


def test_substitute_that_is_registered_with_torch() -> None:
    def adler32(data: bytes, value: int = 1) -> int:
        return len(data) + value

    def fn(x: torch.Tensor, data: bytes) -> torch.Tensor:
        return x * zlib.adler32(data)

    native = compiler.substitute_in_graph(zlib.adler32, skip_signature_check=True)(adler32)
    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    for data in (b"", b"a", b"abc"):
        assert torch.equal(compiled(X, data), X * (len(data) + 1))
    assert native(b"abc") == zlib.adler32(b"abc")


@pytest.mark.parametrize(
    "graph_break",
    [stator.graph_break, dynamo.graph_break, dynamo.step_unsupported],
)
def test_break_has_its_message(graph_break: Any) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        graph_break(msg="on purpose")
        return y.cos()

    report = report_of(fn, X)
    assert (report.graph_count, report.graph_break_count) == (2, 1)
    assert "on purpose" in str(report.break_reasons[0])


@pytest.mark.parametrize("disable", [stator.disable, compiler.disable, dynamo.disable])
@pytest.mark.parametrize("settings", [{}, {"recursive": True}, {"recursive": False}])
def test_disabled_function_breaks_for_its_reason(disable: Any, settings: Any) -> None:
    ran: list[bool] = []

    def observed(x: torch.Tensor) -> torch.Tensor:
        ran.append(torch.compiler.is_compiling())
        return x.cos()

    eagerly = disable(observed, reason="of the user", **settings)
    report = report_of(lambda x: eagerly(x.sin()) + 1, X)
    assert report.graph_count == 2
    assert "of the user" in str(report.breaks[0])
    assert not any(ran)


def test_disabled_function_breaks_graphs_of_torch_compile() -> None:
    def plainly(x: torch.Tensor) -> torch.Tensor:
        return x.cos()

    eagerly = stator.disable(plainly, reason="of the user")
    torch.compiler.reset()
    counting = Counting()
    compiled = torch.compile(lambda x: eagerly(x.sin()) + 1, backend=counting)
    assert torch.equal(compiled(X), X.sin().cos() + 1)
    assert counting.count == 2


def test_explanation_of_a_call() -> None:
    def fn(x: torch.Tensor, *, seen: list[int]) -> torch.Tensor:
        y = x.sin()
        stator.graph_break("on purpose")
        seen.append(1)
        return y.cos() + 1

    seen: list[int] = []
    explanation = stator.explain(fn)(X, seen=seen)
    assert seen == [1]
    assert (explanation.graph_count, explanation.graph_break_count) == (2, 1)
    assert (explanation.op_count, explanation.ops_per_graph) == (3, [1, 2])
    assert explanation.out_guards
    assert explanation.compile_times > 0
    assert "on purpose" in str(explanation)
    assert stator.explain(torch.nn.Linear(6, 2))(X).graph_count == 1


def test_compiled_module_has_its_original() -> None:
    linear = torch.nn.Linear(2, 2)
    compiled = stator.compile(linear, backend="eager")
    assert compiled._orig_mod is linear
    assert list(compiled.state_dict()) == ["weight", "bias"]


def test_questions_for_the_compiler() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if stator.is_compiling() and not stator.is_exporting() else x

    assert torch.equal(fn(X), X)
    assert torch.equal(stator.compile(fn, backend="eager")(X), X + 1)

    class Exported(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 2 if stator.is_exporting() else x

    assert torch.equal(torch.export.export(Exported(), (X,)).module()(X), X + 2)


@pytest.mark.parametrize(
    "reset", [stator.reset, compiler.reset, dynamo.reset, dynamo.reset_code_caches]
)
def test_reset_compiles_again(reset: Any) -> None:
    counting = Counting()
    compiled = stator.compile(steps, backend=counting, dynamic=False)
    for count in (2, 4, 6):
        for _ in range(2):
            compiled(X.abs())
        assert counting.count == count
        reset()
        stator.compile(steps, backend=counting)  # as long as something is compiled


def test_forbidden_function_runs_eagerly() -> None:
    def observed(x: torch.Tensor) -> torch.Tensor:
        assert not torch.compiler.is_compiling()
        return x.cos()

    forbidden = dynamo.forbid_in_graph(observed)
    assert report_of(lambda x: forbidden(x.sin()) + 1, X).graph_count == 2


@pytest.mark.parametrize(
    "error_on_graph_break", [stator.error_on_graph_break, dynamo.error_on_graph_break]
)
def test_decorator_decides_what_a_break_is(error_on_graph_break: Any) -> None:
    def breaking(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        stator.graph_break()
        return y.cos()

    strict, lenient = error_on_graph_break(True)(breaking), error_on_graph_break(False)(breaking)

    def fn(x: torch.Tensor) -> Any:
        with error_on_graph_break(True):
            y = lenient(x + 1)
        stator.graph_break()
        return y + 1

    report = report_of(fn, X)
    assert (report.graph_count, len(report.breaks)) == (3, 2)
    for compiled in (lambda x: strict(x + 1), strict):
        with pytest.raises(stator.Unsupported, match="graph_break"):
            stator.compile(compiled, backend="eager")(X)
    report_of(breaking, X)


OFFSET = 1


def called(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + OFFSET


class Called(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x).relu()

    def method(self, x: torch.Tensor) -> torch.Tensor:
        return x.abs()


MODEL = Called()


def calling(x: torch.Tensor) -> Any:
    y = x * 2
    return [called(y + i) for i in range(2)][1] + MODEL(y) - MODEL.method(y).tan()


def skipping(skip: Any) -> Any:
    """Return functions that run natively, each with the number of graphs of what they call."""

    def natively(x: torch.Tensor) -> Any:
        y = x.cos()
        skip("on purpose")
        return called(y) + MODEL(y)

    def later(x: torch.Tensor) -> Any:
        y = x.exp()
        stator.graph_break()
        skip()
        return called(y)

    skipping = [natively, lambda x: natively(x.exp()) + 1, later]
    return list(zip(skipping, (2, 4, 2), strict=True))


def graphs_of(fn: Any, *args: Any) -> list[list[str]]:
    """Return the operators of the graphs of a function, those of native callees included."""
    graphs: list[list[str]] = []

    def backend(graph: Any, inputs: Any) -> Any:
        calls = [node.target for node in graph.graph.nodes if node.op.startswith("call")]
        graphs.append([getattr(target, "__name__", target) for target in calls])
        return graph.forward

    compiled = stator.compile(fn, backend=backend)
    for _ in range(3):
        assert torch.equal(compiled(*args), fn(*args))
    return graphs


@pytest.mark.parametrize("disable", [stator.disable, dynamo.disable])
def test_callees_of_a_function_that_is_disabled_alone_are_compiled(disable: Any) -> None:
    eagerly = disable(calling, recursive=False)
    assert torch.equal(eagerly(X), calling(X))
    around = graphs_of(lambda x: eagerly(x + 1) - 1, X)
    assert around == [["add"], ["sin", "add"], ["linear", "relu"], ["abs"], ["sub"]]
    assert graphs_of(lambda x: disable(eagerly)(x + 1) - 1, X) == [["add"], ["sub"]]


@pytest.mark.parametrize("skip", [stator.skip_frame, dynamo.skip_frame])
def test_callees_of_a_skipped_frame_are_compiled(skip: Any) -> None:
    for fn, count in skipping(skip):
        graphs = graphs_of(fn, X)
        assert ["sin", "add"] in graphs
        assert not any("cos" in graph for graph in graphs)
        assert len(graphs) == count


def test_skipped_frame_has_no_whole_graph() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        stator.skip_frame()
        return called(x)

    with pytest.raises(stator.Unsupported, match="skip_frame"):
        stator.compile(fn, backend="eager", fullgraph=True)(X)
    assert torch.equal(fn(X), called(X))


def test_exception_of_a_callee_has_the_lines_of_the_program() -> None:
    def callee(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("of the program")

    @stator.disable(recursive=False)
    def natively(x: torch.Tensor) -> torch.Tensor:
        return callee(x)

    def fn(x: torch.Tensor) -> Any:
        return natively(x.sin())

    compiled = stator.compile(fn, backend="eager")
    for _ in range(2):
        with pytest.raises(ValueError, match="of the program") as caught:
            compiled(X)
        names = [entry.name for entry in caught.traceback][1:]
        assert [name for name in names if name in ("fn", "natively", "callee")] == [
            *("fn", "natively", "callee"),
        ]


@pytest.mark.parametrize(
    ("mark", "name"),
    [
        (lambda x: dynamo.mark_dynamic(x, 0, specialize_on=[lambda n: n == 8]), "specialize_on"),
        (lambda x: dynamo.decorators.mark_unbacked(x, 0, shape_id="batch"), "shape_id"),
    ],
)
def test_argument_of_a_mark_that_has_no_effect_is_named(mark: Mark, name: str) -> None:
    _torch_settings._warned.clear()
    compiled, x = stator.compile(lambda x: x.sin(), backend="eager"), torch.ones(8)
    mark(x)
    with pytest.warns(UserWarning, match=name):
        result = compiled(x)
    assert torch.equal(result, x.sin())


def leaf(fn: Any) -> Any:
    marked = dynamo.decorators.leaf_function(fn)
    marked.register_fake(torch.empty_like)
    return marked


def constant(fn: Any) -> Any:
    value = fn(torch.ones(1)).item()
    return dynamo.assume_constant_result(lambda: value)


def substituted(fn: Any) -> Any:
    factor = fn.__closure__[0].cell_contents
    dynamo.substitute_in_graph(fn)(lambda x: x * factor)
    return fn


@pytest.mark.parametrize(
    "mark",
    [
        stator.allow_in_graph,
        compiler.allow_in_graph,
        dynamo.nonstrict_trace,
        leaf,
        constant,
        substituted,
    ],
)
def test_functions_with_equal_code_are_told_apart_by_what_they_hold(mark: Mark) -> None:
    def scaling(factor: float) -> Any:
        return mark(lambda x: x * factor)

    def program(x: torch.Tensor, scale: Any) -> Any:
        return x + scale() if mark is constant else scale(x.sin()) + 1

    compiled = stator.compile(program, backend="eager")
    functions = [scaling(factor) for factor in (1.0, 2.0, 3.0)]
    for function in (*functions, *functions):
        assert torch.equal(compiled(X, function), program(X, function))
    assert compiled.report.graph_count == len(functions)
