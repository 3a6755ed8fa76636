"""Every public name of torch.compile, and how stator treats it: the rows of
docs/reference/torch-compile.md.

`python -m integration_tests.interoperation.torch_compile_table` writes the page; each row is a
test.
"""

from __future__ import annotations

import contextlib
import decimal
import functools
import inspect
import io
import logging
import operator
import os
import pathlib
import pickle
import tempfile
import warnings
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import attrs
import pytest
import stator
import torch
import torch._dynamo
import torch._dynamo.testing
from stator._settings import _torch_settings
from stator._settings._options import OURS
from stator_variables import SUBSTITUTES
from torch._dynamo.backends import registry
from torch._dynamo.callback import callback_handler
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch.fx.experimental.dynamic_spec import ShapeVar, TensorSpec

from integration_tests.interoperation.effects_of_settings import (
    EFFECTS,
    alias_in_compiler,
    alias_of,
    always_on,
    deprecated,
    named_in_a_warning,
)
from integration_tests.support.counting import Counting

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "reference" / "torch-compile.md"
SUPPORTED, DIFFERS = "supported", "supported with differences"
REJECTED, OF_TORCH = "rejected", "of torch.compile alone"

X = torch.linspace(-1.0, 2.0, 6)
compiler: Any = torch.compiler
dynamo: Any = torch._dynamo
decorators: Any = torch._dynamo.decorators
dynamo_config: Any = torch._dynamo.config
Check = Callable[[], object]


def plus(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


SCALE = 2.0


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(6, 2)

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x) * SCALE


def holds(condition: bool) -> None:
    assert condition


def same(fn: Any = plus, x: torch.Tensor = X, **settings: Any) -> Any:
    """Compile and call a function, whose result is to be that of the original; return what was
    compiled."""
    compiled = stator.compile(fn, **{"backend": "eager", **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            assert torch.allclose(compiled(x), fn(x))
    return compiled


def cached() -> Any:
    """Compile under `cache`, with a folder of its own."""
    folders = tempfile.TemporaryDirectory()
    with folders as folder, patch.dict(os.environ, STATOR_CACHE_DIR=folder):
        return same(options={"cache": True})


def beside(use: Callable[[], object] = lambda: None) -> None:
    """A function of torch that concerns torch.compile alone leaves compiled code as it is."""
    compiled = stator.compile(plus, backend="eager")
    compiled(X)
    use()
    assert torch.equal(compiled(X), plus(X))


def rejects(error: type[Exception], use: Callable[[], object]) -> None:
    try:
        use()
    except error:
        return
    raise AssertionError("nothing was raised")


def one_graph(mark: Any, *more: Any) -> None:
    """A marked function is in one graph with what is around it."""
    marked = mark(lambda x: x.cos())
    assert same(lambda x: marked(x.sin()) + 1).report.graph_count == 1


def two_graphs(use: Callable[[torch.Tensor], object], *more: Any) -> None:
    """A call breaks the graph."""

    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        use(y)
        return y.cos()

    assert same(fn).report.graph_count == 2


def breaks(function: Any, *args: Any) -> None:
    two_graphs(lambda x: function(*args))


def value_in_code_of_stator(function: Any) -> Any:
    return stator.compile(lambda x: (x.sin(), function()), backend="eager", fullgraph=True)(X)[1]


def optimized_module() -> Any:
    module = torch.compile(torch.nn.Linear(6, 2))
    assert isinstance(module, dynamo.OptimizedModule)
    return module


def constant(mark: Any) -> None:
    setting = mark(lambda: 3)
    same(lambda x: x * setting(), fullgraph=True)


def under(manager: Any) -> None:
    compiled = stator.compile(plus, backend="eager")
    with manager:
        assert torch.equal(compiled(X), plus(X))


def marked(mark: Any, *args: Any, count: int = 1) -> None:
    counting: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        counting.append(graph)
        return graph.forward

    compiled = stator.compile(plus, backend=backend)
    for size in (4, 5, 6):
        x = torch.ones(size)
        mark(x, *args)
        assert torch.equal(compiled(x), plus(x))
    assert len(counting) == count


def disallows() -> None:
    dynamo.disallow_in_graph(torch.cos)
    try:
        two_graphs(torch.cos)
    finally:
        dynamo.allow_in_graph(torch.cos)


def default_backend(set_default: Any) -> None:
    set_default("eager")
    try:
        assert torch.equal(stator.compile(plus)(X), plus(X))
    finally:
        set_default(None)


def numpy_function(x: torch.Tensor) -> Any:
    return compiler.wrap_numpy(lambda array: array * 2)(x)


def substitutes(substitute: Any) -> None:
    """The substitute is captured where the original would break the graph."""

    def original(x: torch.Tensor) -> torch.Tensor:
        print(end="")
        return x.cos()

    def captured(x: torch.Tensor) -> torch.Tensor:
        return x.cos()

    substitute(original)(captured)
    try:
        same(lambda x: original(x) + 1, fullgraph=True)
    finally:
        SUBSTITUTES.clear()


def registers() -> None:
    """A backend that is registered with torch has a name for stator."""

    def as_it_is(graph: Any, inputs: Any) -> Any:
        return graph.forward

    dynamo.register_backend(as_it_is, name="registered_by_a_row")
    try:
        same(backend="registered_by_a_row")
    finally:
        registry._COMPILER_FNS.pop("registered_by_a_row")
        registry._BACKENDS.pop("registered_by_a_row", None)


def calls_back(register: Any) -> None:
    seen: list[Any] = []
    register(seen.append)
    try:
        same(isolate_recompiles=True)
    finally:
        callback_handler.clear()
    assert seen


def exported() -> None:
    compiled = stator.compile(torch.nn.Linear(6, 2), backend="eager")
    assert dynamo.export(compiled)(X).graph_module(X).shape == (2,)


@attrs.frozen
class Row:
    """A name, how it is treated, a remark, and a check that raises where that is not so."""

    name: str
    status: str
    check: Check = beside
    remark: str = ""


def rows_of(status: str, names: str, remark: str, check: Check = beside) -> list[Row]:
    return [Row(name, status, check, remark) for name in names.split()]


KEYWORDS = [
    Row("backend", SUPPORTED, lambda: same(backend="aot_eager")),
    Row(
        *("fullgraph", DIFFERS, lambda: same(fullgraph=True)),
        "an operator that would run uncompiled is an error, too",
    ),
    Row("dynamic", SUPPORTED, lambda: same(dynamic=True)),
    Row(
        *("mode", SUPPORTED, lambda: stator.compile(plus, mode="max-autotune")),
        "a mode of the backend",
    ),
    Row(
        *("options", SUPPORTED, lambda: same(options={"check": True})),
        "options of stator besides",
    ),
    Row("name", SUPPORTED, lambda: same(name="step"), "the name in reports and warnings"),
    Row("disable", SUPPORTED, lambda: holds(stator.compile(plus, disable=True) is plus)),
    Row("recompile_limit", SUPPORTED, lambda: same(recompile_limit=2), "per compiled object"),
    Row("isolate_recompiles", SUPPORTED, lambda: same(isolate_recompiles=True)),
    Row(
        *("shapes_spec", DIFFERS, lambda: same(shapes_spec={"x": TensorSpec([ShapeVar("n")])})),
        "a call at odds with it is an InvalidUse; breaks leave it",
    ),
]


def filters(keeps: Any) -> None:
    compiled = same(Layer(), options={"guard_filter_fn": keeps})
    kept = len(compiled.report.guards)
    assert kept < len(same(Layer()).report.guards)


def filters_by_name(name: str) -> None:
    filters(getattr(compiler, name))


COMPILER = [
    Row(
        *("compile", SUPPORTED, lambda: beside(lambda: compiler.compile(plus, backend="eager")(X))),
        "`stator.compile`",
    ),
    Row(
        *("config", DIFFERS, lambda: beside(lambda: compiler.config.job_id)),
        "see below",
    ),
    Row("assume_constant_result", SUPPORTED, lambda: constant(compiler.assume_constant_result)),
    Row("reset", SUPPORTED, lambda: beside(compiler.reset), "resets stator, once it was used"),
    Row("allow_in_graph", SUPPORTED, lambda: one_graph(compiler.allow_in_graph)),
    Row(
        *("substitute_in_graph", DIFFERS, lambda: substitutes(compiler.substitute_in_graph)),
        "substitutes that torch has itself are for torch.compile alone",
    ),
    Row(
        "list_backends",
        SUPPORTED,
        lambda: holds({*compiler.list_backends()} <= {*stator.list_backends()}),
    ),
    Row("disable", SUPPORTED, lambda: two_graphs(compiler.disable(torch.sin))),
    Row("set_default_backend", SUPPORTED, lambda: default_backend(compiler.set_default_backend)),
    Row("get_default_backend", SUPPORTED, lambda: beside(compiler.get_default_backend)),
    Row("set_stance", SUPPORTED, lambda: under(compiler.set_stance("eager_on_recompile"))),
    *rows_of(
        *(OF_TORCH, "set_enable_guard_collectives", "guards of stator use no collectives"),
        lambda: beside(lambda: compiler.set_enable_guard_collectives(False)),
    ),
    Row("cudagraph_mark_step_begin", SUPPORTED, lambda: beside(compiler.cudagraph_mark_step_begin)),
    Row(
        *("load_compiled_function", REJECTED),
        lambda: rejects(
            Exception,  # torch's, which depends on the content of the file
            lambda: compiler.load_compiled_function(io.BytesIO(pickle.dumps("of stator"))),
        ),
        "use `stator.save` and `stator.load`",
    ),
    Row("wrap_numpy", SUPPORTED, lambda: same(numpy_function)),
    Row("is_compiling", SUPPORTED, lambda: same(lambda x: x * compiler.is_compiling() ** 0)),
    Row(
        *("is_dynamo_compiling", SUPPORTED),
        lambda: holds(value_in_code_of_stator(compiler.is_dynamo_compiling)),
        "True in code of stator, too",
    ),
    Row("is_exporting", SUPPORTED, lambda: same(lambda x: x + compiler.is_exporting())),
    Row("save_cache_artifacts", SUPPORTED, lambda: beside(compiler.save_cache_artifacts)),
    Row(
        *("load_cache_artifacts", SUPPORTED),
        lambda: beside(lambda: compiler.load_cache_artifacts(pickle.dumps(b""))),
        "both are of Inductor's caches",
    ),
    *(
        Row(
            *(name, SUPPORTED, functools.partial(filters_by_name, name)),
            "for `options={'guard_filter_fn': ...}`",
        )
        for name in (
            *("keep_portable_guards_unsafe", "skip_guard_on_inbuilt_nn_modules_unsafe"),
            *("skip_guard_on_all_nn_modules_unsafe", "keep_tensor_guards_unsafe"),
            *("skip_guard_on_globals_unsafe", "skip_all_guards_unsafe"),
        )
    ),
    Row("nested_compile_region", SUPPORTED, lambda: one_graph(compiler.nested_compile_region)),
]

OF_DYNAMO_ALONE: dict[str, tuple[Any, ...]] = {
    "bytecode_debugger": (),
    "get_recursion_limit": (),
    "replay": ("no such file",),
    "reset_code": (plus.__code__,),
    "reset_code_state": (),
    "reset_frame_count": (),
    "reset_recompile_user_contexts": (),
    "set_recursion_limit": (1000,),
}
"""Names, each with arguments that it takes."""


def uses(name: str, *args: Any) -> None:
    """Call a function that concerns torch.compile alone, which may reject its arguments."""

    def use() -> None:
        function = getattr(dynamo, name)
        with contextlib.suppress(Exception):
            function(*args)

    beside(use)
    dynamo.reset_recompile_user_contexts()


def named_where_traced(maker: Any, **settings: Any) -> None:
    """A manager in compiled code is no break, has no effect, and is named in one warning."""

    def entering(x: torch.Tensor) -> torch.Tensor:
        with maker(**settings):
            y = x.sin()
        return y + 1

    decorated = maker(**settings)(plus)
    for fn in (entering, decorated, lambda x: decorated(x) * 1):
        _torch_settings._warned.clear()
        compiled = stator.compile(fn, backend="eager", fullgraph=True, isolate_recompiles=True)
        with pytest.warns(UserWarning, match=r"settings: torch\._dynamo\.\w+$"):
            result = compiled(X)
        assert torch.equal(result, plus(X))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compiled(X)


def traces_native_code_around(maker: Any) -> None:
    """Nothing of the program is skipped anyway: there is no warning."""

    def entering(x: torch.Tensor) -> torch.Tensor:
        with maker():
            return plus(x)

    decorated = maker(plus)
    for fn in (entering, lambda x: decorated(x) * 1):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compiled = stator.compile(fn, backend="eager", fullgraph=True, isolate_recompiles=True)
            assert torch.equal(compiled(X), plus(X))


def resets(reset: Any) -> None:
    counting = Counting()
    compiled = stator.compile(lambda x: x.sin() + 1, backend=counting)
    for count in (1, 2):
        compiled(X)
        assert counting.count == count
        reset()


def in_logs_of_recompiles(register: Any) -> None:
    register(lambda: "epoch 3")
    seen: list[str] = []
    logger, handler = logging.getLogger("stator.recompiles"), logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    try:
        compiled = stator.compile(plus, backend="eager", isolate_recompiles=True)
        logger.setLevel(logging.INFO)
        compiled(X)
        compiled(X.double())
    finally:
        logger.removeHandler(handler)
        stator.set_logs()
        dynamo.reset_recompile_user_contexts()
    assert any("epoch 3" in text for text in seen)


def slots_of_c(allow: Any) -> None:
    """A comparison of objects of C is a break, whether it is allowed or not."""

    def fn(x: torch.Tensor, price: decimal.Decimal) -> torch.Tensor:
        return x.sin() + (price == decimal.Decimal("1.5"))

    allow(decimal.Decimal)
    compiled = stator.compile(fn, backend="eager")
    assert torch.equal(compiled(X, decimal.Decimal("1.5")), X.sin() + 1)
    assert compiled.report.breaks


_BREAKS = "a graph break with its message"
_NO_EFFECT = "no effect in compiled code: named in a warning"
DYNAMO = [
    Row("allow_in_graph", SUPPORTED, lambda: one_graph(dynamo.allow_in_graph)),
    Row("assume_constant_result", SUPPORTED, lambda: constant(dynamo.assume_constant_result)),
    Row("config", DIFFERS, lambda: named_in_a_warning("verbose", dynamo.config), "see below"),
    Row(
        *("disable", SUPPORTED, lambda: two_graphs(dynamo.disable(torch.sin, recursive=False))),
        "with `recursive=False`, what C calls runs eagerly, too",
    ),
    Row("disallow_in_graph", SUPPORTED, disallows),
    Row("export", SUPPORTED, exported, "sees the original, as all of `torch.export` does"),
    Row("explain", DIFFERS, lambda: beside(lambda: dynamo.explain(plus)(X)), "`stator.explain`"),
    Row(
        *("forbid_in_graph", DIFFERS, lambda: two_graphs(dynamo.forbid_in_graph(lambda x: x))),
        "a graph break instead of an error",
    ),
    Row("graph_break", SUPPORTED, lambda: breaks(dynamo.graph_break, "why")),
    Row(
        *("skip_frame", DIFFERS, lambda: breaks(dynamo.skip_frame, "why")),
        "behind a break of a called function it is a graph break",
    ),
    Row(
        *("step_unsupported", DIFFERS, lambda: breaks(dynamo.step_unsupported)),
        _BREAKS,
    ),
    Row("is_compiling", SUPPORTED, lambda: same(lambda x: x * dynamo.is_compiling() ** 0)),
    Row(
        *("is_dynamo_disable_recursive", SUPPORTED),
        lambda: holds(dynamo.is_dynamo_disable_recursive(dynamo.disable(plus))),
    ),
    Row("list_backends", SUPPORTED, lambda: holds("inductor" in dynamo.list_backends())),
    Row("lookup_backend", SUPPORTED, lambda: same(backend=dynamo.lookup_backend("eager"))),
    Row("register_backend", SUPPORTED, registers, "its names are known to stator"),
    Row(
        *("mark_dynamic", SUPPORTED, lambda: marked(dynamo.mark_dynamic, 0)),
        "but for `specialize_on=`, which is named in a warning",
    ),
    Row("maybe_mark_dynamic", SUPPORTED, lambda: marked(dynamo.maybe_mark_dynamic, 0)),
    Row("mark_static", SUPPORTED, lambda: marked(dynamo.mark_static, 0, count=3)),
    Row("mark_static_address", SUPPORTED, lambda: marked(dynamo.mark_static_address, count=2)),
    Row("nonstrict_trace", SUPPORTED, lambda: one_graph(dynamo.nonstrict_trace)),
    Row("optimize", OF_TORCH, lambda: same(dynamo.optimize("eager")(plus).__wrapped__)),
    Row(
        *("optimize_assert", OF_TORCH),
        lambda: beside(lambda: dynamo.optimize_assert("eager")(plus)(X)),
        "makes functions of torch.compile",
    ),
    Row(
        *("OptimizedModule", REJECTED),
        lambda: rejects(stator.InvalidUse, lambda: same(optimized_module())),
        "compile the original; compiled code may call one",
    ),
    Row(
        *("patch_dynamo_config", DIFFERS),
        lambda: named_where_traced(dynamo.patch_dynamo_config, verbose=True),
        "sets settings around calls; in compiled code it is named in a warning",
    ),
    Row(
        *("override_cudagraphs", REJECTED),
        lambda: named_where_traced(dynamo.override_cudagraphs, fwd=False),
        _NO_EFFECT,
    ),
    Row(
        *("disable_nested_graph_breaks", REJECTED),
        lambda: named_where_traced(dynamo.disable_nested_graph_breaks),
        _NO_EFFECT,
    ),
    Row(
        *("dont_skip_tracing", DIFFERS),
        lambda: traces_native_code_around(dynamo.dont_skip_tracing),
        "functions of the program are never skipped, those of torch's own machinery always",
    ),
    Row(
        *("override_optimization_hint", DIFFERS),
        lambda: breaks(dynamo.override_optimization_hint, 3, 4),
        "a graph break, after which the number is an int: it needs no hint",
    ),
    Row(
        *("allow_c_slot", REJECTED),
        lambda: slots_of_c(dynamo.allow_c_slot),
        "hashes and comparisons of objects of C extensions are a graph break, which names them",
    ),
    Row(
        *("register_hook_for_recompile_user_context", SUPPORTED),
        lambda: in_logs_of_recompiles(dynamo.register_hook_for_recompile_user_context),
        "in the log of recompiles",
    ),
    Row(
        *("reset_code_caches", SUPPORTED),
        lambda: resets(dynamo.reset_code_caches),
        "resets stator, once it was used",
    ),
    Row("reset", SUPPORTED, lambda: beside(dynamo.reset), "resets stator, once it was used"),
    Row("run", OF_TORCH, lambda: beside(lambda: dynamo.run(plus)(X))),
    Row("set_stance", SUPPORTED, lambda: under(dynamo.set_stance("default"))),
    Row("error_on_graph_break", SUPPORTED, lambda: same(dynamo.error_on_graph_break(True)(plus))),
    Row(
        *("substitute_in_graph", DIFFERS, lambda: substitutes(dynamo.substitute_in_graph)),
        "as above",
    ),
    Row("on_compile_start", SUPPORTED, lambda: calls_back(dynamo.on_compile_start)),
    Row("on_compile_end", SUPPORTED, lambda: calls_back(dynamo.on_compile_end)),
    Row(
        *("is_dynamo_supported", OF_TORCH, lambda: beside(dynamo.is_dynamo_supported)),
        "`stator.is_supported`",
    ),
    Row("is_inductor_supported", SUPPORTED, lambda: beside(dynamo.is_inductor_supported)),
    *(
        Row(name, OF_TORCH, functools.partial(uses, name, *args), "concerns how Dynamo traces")
        for name, args in OF_DYNAMO_ALONE.items()
    ),
]


def skips(skip: Any) -> None:
    """The function runs eagerly; so does what it calls."""
    skipped = skip(lambda x: plus(x).cos())
    compiled = same(lambda x: skipped(x.sin()) + 1)
    assert (compiled.report.graph_count, len(compiled.report.breaks)) == (2, 1)


def leaf(leaf_function: Any) -> None:
    looked_up = leaf_function(lambda x: x.cos())
    looked_up.register_fake(torch.empty_like)
    assert same(lambda x: looked_up(x.sin()) + 1, fullgraph=True).report.graph_count == 1


def unbacked(mark: Any) -> None:
    counting = Counting()
    compiled = stator.compile(plus, backend=counting)
    for size in (0, 1, 2, 5):
        x = torch.ones(size)
        mark(x, 0)
        assert torch.equal(compiled(x), plus(x))
    assert counting.count == 1


def decorates(manager: Any, *args: Any) -> None:
    """A manager by its class, entered around calls."""
    under(manager(*args))


DECORATORS = [
    Row(
        *("skip", DIFFERS, lambda: skips(decorators.skip)),
        "what the function calls runs eagerly, too",
    ),
    Row("leaf_function", SUPPORTED, lambda: leaf(decorators.leaf_function)),
    Row(
        *("mark_unbacked", DIFFERS, lambda: unbacked(decorators.mark_unbacked)),
        "a branch on the size is a graph break, also with `strict=True`; a warning names `shape_id=`",
    ),
    Row(
        *("CudagraphOverrideContextManager", REJECTED),
        lambda: decorates(decorators.CudagraphOverrideContextManager),
        "made by `override_cudagraphs`",
    ),
    Row(
        *("DynamoConfigPatchProxy", DIFFERS),
        lambda: decorates(decorators.DynamoConfigPatchProxy, dynamo_config.patch(verbose=True)),
        "made by `patch_dynamo_config`",
    ),
    Row(
        *("ErrorOnGraphBreakDecoratorContextManager", SUPPORTED),
        lambda: same(decorators.ErrorOnGraphBreakDecoratorContextManager(True)(plus)),
        "made by `error_on_graph_break`",
    ),
]


def counts(read: Callable[[], Any]) -> None:
    read().clear()

    def breaking(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        stator.graph_break("on purpose")
        return y.cos() + 1

    same(breaking, isolate_recompiles=True)
    found = read()
    assert found["frames"] == {"total": 2, "ok": 2}
    assert found["stats"] == {"calls_captured": 3, "unique_graphs": 2}
    ((reason, count),) = found["graph_break"].items()
    assert "on purpose" in reason
    assert count == 1
    found.clear()


def counting_backend(backend: Any) -> None:
    same(backend=backend, isolate_recompiles=True)
    assert getattr(backend, "frame_count", None) == 1 or len(backend.graphs) == 1


def raises_instead(theirs: Any, ours: type[Exception], use: Callable[[], object]) -> None:
    with pytest.raises(ours) as caught:
        use()
    assert not isinstance(caught.value, theirs)


def breaks_whole_graph() -> None:
    stator.compile(lambda x: stator.graph_break(), backend="eager", fullgraph=True)(X)


def backend_fails() -> None:
    def failing(graph: Any, inputs: Any) -> Any:
        raise ValueError("of the backend")

    stator.compile(plus, backend=failing)(X)


def recompiles() -> None:
    compiled = stator.compile(plus, backend="eager", isolate_recompiles=True)
    compiled(X)
    with dynamo_config.patch(error_on_recompile=True):
        compiled(X.double())


def program_fails() -> None:
    stator.compile(lambda x: x @ x.reshape(2, 3), backend="eager")(X)


def compiled_backwards(enable: Any) -> None:
    x = X.clone().requires_grad_()
    compiled: Any = stator.compile(plus, backend="aot_eager")
    with enable(lambda graph: torch.compile(graph, backend="eager")):
        compiled(x).sum().backward()
    assert torch.equal(x.grad, X.cos())  # type: ignore[arg-type]  # it has one


def original_of_compiled(innermost: Any) -> None:
    assert innermost(stator.compile(plus, backend="eager")) is plus


_COUNTS = "counts of torch.compile alone: a report has those of stator"
ELSEWHERE = [
    Row(
        *("utils.counters", DIFFERS, lambda: counts(lambda: dynamo.utils.counters)),
        "`frames`, `stats` and `graph_break`, with the reasons of stator",
    ),
    Row("utils.compile_times", OF_TORCH, lambda: beside(dynamo.utils.compile_times), _COUNTS),
    Row(
        *("utils.maybe_enable_compiled_autograd", OF_TORCH),
        lambda: under(dynamo.utils.maybe_enable_compiled_autograd(True)),
        "`stator.compiled_autograd`",
    ),
    Row(
        *("compiled_autograd._enable", OF_TORCH),
        lambda: compiled_backwards(dynamo.compiled_autograd._enable),
        "captures backward passes of graphs of stator, too, and compiles them for torch.compile",
    ),
    *(
        Row(
            f"testing.{name}",
            SUPPORTED,
            functools.partial(
                lambda name, *args: counting_backend(getattr(dynamo.testing, name)(*args)),
                *(name, *args),
            ),
            "as a backend",
        )
        for name, *args in (
            ("CompileCounter",),
            ("CompileCounterWithBackend", "aot_eager"),
            ("EagerAndRecordGraphs",),
            ("AotEagerAndRecordGraphs",),
        )
    ),
    Row(
        *("backends.common.aot_autograd", SUPPORTED),
        lambda: same(
            backend=dynamo.backends.common.aot_autograd(
                fw_compiler=lambda graph, inputs: make_boxed_func(graph.forward)
            )
        ),
        "its result is a backend",
    ),
    Row(
        *("backends.registry.register_backend", SUPPORTED),
        lambda: holds(dynamo.backends.registry.register_backend is dynamo.register_backend),
        "as `register_backend`",
    ),
    Row(
        *("external_utils.is_compiling", SUPPORTED),
        lambda: holds(value_in_code_of_stator(dynamo.external_utils.is_compiling)),
    ),
    Row(
        *("comptime.comptime", SUPPORTED),
        lambda: same(lambda x: (dynamo.comptime.comptime(lambda trace: None), x)[1] + 1),
        "as `stator.comptime`",
    ),
    Row(
        *("eval_frame.OptimizedModule", REJECTED),
        lambda: holds(
            not isinstance(
                stator.compile(Layer(), backend="eager"), dynamo.eval_frame.OptimizedModule
            )
        ),
        "a compiled module is an instance of the class of its original, which is its `_orig_mod`",
    ),
    Row(
        *("eval_frame.innermost_fn", SUPPORTED),
        lambda: original_of_compiled(dynamo.eval_frame.innermost_fn),
    ),
    *(
        Row(
            f"exc.{name}",
            REJECTED,
            functools.partial(
                lambda name, *facts: raises_instead(getattr(dynamo.exc, name), *facts),
                *(name, error, use),
            ),
            f"raised instead: {told}",
        )
        for name, error, use, told in (
            ("Unsupported", stator.Unsupported, breaks_whole_graph, "`stator.Unsupported`"),
            (
                "BackendCompilerFailed",
                stator.BackendFailed,
                backend_fails,
                "`stator.BackendFailed`",
            ),
            ("RecompileError", stator.InvalidUse, recompiles, "`stator.InvalidUse`"),
            ("TorchRuntimeError", RuntimeError, program_fails, "what eager code raises"),
            (
                "TorchDynamoException",
                stator.StatorError,
                breaks_whole_graph,
                "`stator.StatorError`",
            ),
        )
    ),
]

_INSTALLED = "`{}` has to be installed: otherwise a BackendFailed says so"
BACKENDS = [
    *(
        Row(name, SUPPORTED, functools.partial(same, backend=name))
        for name in (
            *("eager", "aot_eager", "aot_eager_decomp_partition", "aot_eager_default_partitioner"),
            *("aot_eager_decomp_partition_crossref", "aot_ts", "ts", "cudagraphs", "eager_debug"),
            *("eager_noexcept", "invoke_subgraph", "pre_dispatch_eager"),
        )
    ),
    Row("inductor", SUPPORTED, lambda: stator.compile(plus, backend="inductor"), "the default"),
    *(
        Row(
            *(name, SUPPORTED),
            functools.partial(rejects, stator.BackendFailed, functools.partial(same, backend=name)),
            _INSTALLED.format(package),
        )
        for name, package in (
            ("tvm", "apache-tvm"),
            ("openxla", "torch_xla"),
            ("openxla_eval", "torch_xla"),
        )
    ),
    *rows_of(
        *(REJECTED, "aot_eager_decomp_partition_with_mode", "takes an argument of its own"),
        lambda: rejects(
            stator.BackendFailed, lambda: same(backend="aot_eager_decomp_partition_with_mode")
        ),
    ),
    *rows_of(
        OF_TORCH,
        """
        dynamo_accuracy_minifier_backend dynamo_minifier_backend non_leaf_compile_error_TESTING_ONLY
        relu_accuracy_error_TESTING_ONLY relu_compile_error_TESTING_ONLY
        relu_runtime_error_TESTING_ONLY
        """,
        "for torch's own tools and tests",
    ),
]

MODES = [
    Row(name, SUPPORTED, functools.partial(stator.compile, plus, mode=name))
    for name in ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
]

OPTIONS = [
    Row(
        "compiled_autograd",
        SUPPORTED,
        lambda: same(options={"compiled_autograd": True}),
        "capture the backward passes that start inside, as `stator.compiled_autograd` does",
    ),
    Row(
        "regions",
        SUPPORTED,
        lambda: same(options={"regions": "always"}),
        "compile equal blocks of a graph once",
    ),
    Row(
        "without",
        SUPPORTED,
        lambda: same(options={"without": ["library", "operators"]}),
        "switch captures off: the program breaks there; `stator.list_captures()` has the names",
    ),
    Row(
        "cache",
        SUPPORTED,
        cached,
        "keep traces on disk for later processes; `STATOR_CACHE=1`",
    ),
    Row(
        "tiered",
        SUPPORTED,
        lambda: same(options={"tiered": True}),
        "run graphs as they are while another thread compiles them; `stator.wait` waits for it",
    ),
    Row(
        "repeat_effects",
        SUPPORTED,
        lambda: same(options={"repeat_effects": False}),
        "repeat side effects of checkpointed functions when they are computed again",
    ),
    Row("recompile_limit", SUPPORTED, lambda: same(options={"recompile_limit": 2}), "8"),
    Row(
        "fallback",
        SUPPORTED,
        lambda: same(options={"fallback": True}),
        "run eagerly where the backend fails",
    ),
    Row(
        "break_everywhere", SUPPORTED, lambda: same(options={"break_everywhere": True}), "for tests"
    ),
    Row(
        "oracle",
        SUPPORTED,
        lambda: same(options={"oracle": True}),
        "compare with the original; `STATOR_ORACLE=1`",
    ),
    Row(
        "keep_text",
        SUPPORTED,
        lambda: same(options={"keep_text": False}),
        "keep the text of graphs",
    ),
    Row(
        "measure",
        SUPPORTED,
        lambda: same(options={"measure": True}),
        "count and time the calls of entries; `STATOR_MEASURE=1`",
    ),
    Row(
        "capture_data",
        SUPPORTED,
        lambda: same(options={"capture_data": True}),
        "sizes that data decides are symbols",
    ),
    Row(
        "guard_filter_fn",
        SUPPORTED,
        lambda: filters(compiler.skip_all_guards_unsafe),
        "which guards are checked",
    ),
    Row(
        "check",
        SUPPORTED,
        lambda: same(options={"check": True}),
        "look for faults in graphs; `STATOR_CHECK=1`",
    ),
    Row(
        "uncompiled",
        SUPPORTED,
        lambda: same(options={"uncompiled": "allow"}),
        "warn of operators that run uncompiled, refuse or allow them",
    ),
]


SETTINGS = [
    Row(name, SUPPORTED, EFFECTS[name], effect)
    for name, effect in _torch_settings.TAKING_EFFECT.items()
]
SETTINGS += [
    Row(name, DIFFERS, functools.partial(always_on, name), f"always on: {effect}")
    for name, effect in _torch_settings.ALWAYS_ON.items()
]
SETTINGS += [
    Row(name, REJECTED, functools.partial(named_in_a_warning, name), "named in a warning")
    for name in sorted(_torch_settings.without_effect())
]
SETTINGS += [
    Row(name, OF_TORCH, functools.partial(deprecated, name), "torch warns where it is set")
    for name in sorted(
        name
        for name, entry in dynamo.config._config.items()
        if entry.deprecated and not entry.alias
    )
]
SETTINGS += [
    Row(name, SUPPORTED, functools.partial(alias_of, name, entry.alias), f"`{entry.alias}`")
    for name, entry in sorted(dynamo.config._config.items())
    if entry.alias
]


COMPILER_SETTINGS = [
    *(
        Row(
            *(name, REJECTED, functools.partial(named_in_a_warning, name, compiler.config)),
            "named in a warning: it has words of Dynamo for values",
        )
        for name in _torch_settings.SOURCES
    ),
    *rows_of(
        *(OF_TORCH, "job_id pgo_extra_read_key pgo_extra_write_key cache_key_tag"),
        "of caches on disk",
    ),
    Row("force_disable_caches", SUPPORTED, beside, "of Inductor's caches"),
    Row("force_cudagraph_gc", OF_TORCH, beside, "of Inductor's CUDA graphs"),
    *(
        Row(name, SUPPORTED, functools.partial(alias_in_compiler, name), f"`{entry.alias}`")
        for name, entry in sorted(compiler.config._config.items())
        if entry.alias
    ),
]


def settings() -> set[str]:
    """Return the public settings; the test of one name is not for users."""
    return {name for name in dynamo.config._config if name[0] != "_" and name.islower()}


def public_functions() -> set[str]:
    """Return the public names of `torch._dynamo`, also those that its `__all__` lacks."""
    functions = {
        name for name, value in vars(dynamo).items() if inspect.isroutine(value) and name[0] != "_"
    }
    return functions | {*dynamo.__all__}


def public_decorators() -> set[str]:
    """Return what is defined in `torch._dynamo.decorators`, and not public in `torch._dynamo`."""
    defined = {
        name
        for name, value in vars(decorators).items()
        if getattr(value, "__module__", "") == decorators.__name__
        if name[0] != "_" and callable(value)
    }
    return defined - public_functions()


def existing() -> set[str]:
    """Return the names of `ELSEWHERE` that torch has."""
    return {row.name for row in ELSEWHERE if operator.attrgetter(row.name)(dynamo) is not None}


def keywords() -> set[str]:
    return {*inspect.signature(torch.compile).parameters} - {"model"}


TABLES: dict[str, tuple[list[Row], Callable[[], set[str]]]] = {
    "Keywords of torch.compile": (KEYWORDS, keywords),
    "torch.compiler": (COMPILER, lambda: {*compiler.__all__}),
    "torch._dynamo": (DYNAMO, public_functions),
    "torch._dynamo.decorators, besides": (DECORATORS, public_decorators),
    "Other names in torch._dynamo that programs use": (ELSEWHERE, existing),
    "Backends": (BACKENDS, lambda: {*compiler.list_backends(())}),
    "Modes of Inductor": (MODES, lambda: {*stator.list_modes()}),
    "Options of stator": (OPTIONS, lambda: {*OURS}),
    "Settings of torch._dynamo.config": (
        SETTINGS,
        settings,
    ),
    "Settings of torch.compiler.config": (
        COMPILER_SETTINGS,
        lambda: {*compiler.config._config},
    ),
}


HEAD = """# torch.compile and stator

The public names of torch.compile, and how stator treats them. *Supported with differences* and
*rejected* say what is different, and what to use instead; *of torch.compile alone* is what works as
ever for torch.compile, and has no meaning for stator. No name is ignored silently. Options of
Inductor go to Inductor: `stator.list_options()` has them.

Generated by `python -m integration_tests.interoperation.torch_compile_table`; each row is a test.
"""


def page() -> str:
    lines = [HEAD]
    for title, (rows, _) in TABLES.items():
        lines += [f"## {title}", "", "| name | | |", "|---|---|---|"]
        lines += [f"| `{row.name}` | {row.status} | {row.remark} |" for row in rows]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
