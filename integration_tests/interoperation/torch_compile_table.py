"""Every public name of torch.compile, and how stator treats it: the rows of
docs/reference/torch-compile.md.

`python -m integration_tests.interoperation.torch_compile_table` writes the page; each row is a
test.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import pathlib
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import attrs
import stator
import torch
import torch._dynamo
from stator import _torch_settings
from stator._options import OURS
from stator_variables import SUBSTITUTES
from torch._dynamo.backends import registry
from torch._dynamo.callback import callback_handler
from torch.fx.experimental.dynamic_spec import ShapeVar, TensorSpec

from integration_tests.interoperation.effects_of_settings import (
    EFFECTS,
    alias_of,
    always_on,
    deprecated,
    named_in_a_warning,
)

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "reference" / "torch-compile.md"
SUPPORTED, DIFFERS = "supported", "supported with differences"
REJECTED, OF_TORCH = "rejected", "of torch.compile alone"

X = torch.linspace(-1.0, 2.0, 6)
compiler: Any = torch.compiler
dynamo: Any = torch._dynamo
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
    Row("fullgraph", SUPPORTED, lambda: same(fullgraph=True)),
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
        "of caches on disk: followed by Inductor, not by stator",
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
        "use `stator.dump` and `stator.load`",
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
    "allow_c_slot": (type("Slotted", (), {}),),
    "bytecode_debugger": (),
    "disable_nested_graph_breaks": (plus,),
    "dont_skip_tracing": (plus,),
    "get_recursion_limit": (),
    "override_cudagraphs": (),
    "override_optimization_hint": (X, 1),
    "register_hook_for_recompile_user_context": (str,),
    "replay": ("no such file",),
    "reset_code": (plus.__code__,),
    "reset_code_caches": (),
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


_BREAKS = "a graph break with its message"
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
    Row("mark_dynamic", SUPPORTED, lambda: marked(dynamo.mark_dynamic, 0)),
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
        lambda: under(dynamo.patch_dynamo_config(verbose=True)),
        "sets settings while it is entered; in compiled code it is a graph break",
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


def settings() -> set[str]:
    """Return the public settings; the test of one name is not for users."""
    return {name for name in dynamo.config._config if name[0] != "_" and name.islower()}


def public_functions() -> set[str]:
    """Return the public names of `torch._dynamo`, also those that its `__all__` lacks."""
    functions = {
        name for name, value in vars(dynamo).items() if inspect.isroutine(value) and name[0] != "_"
    }
    return functions | {*dynamo.__all__}


def keywords() -> set[str]:
    return {*inspect.signature(torch.compile).parameters} - {"model"}


TABLES: dict[str, tuple[list[Row], Callable[[], set[str]]]] = {
    "Keywords of torch.compile": (KEYWORDS, keywords),
    "torch.compiler": (COMPILER, lambda: {*compiler.__all__}),
    "torch._dynamo": (DYNAMO, public_functions),
    "Backends": (BACKENDS, lambda: {*compiler.list_backends(())}),
    "Modes of Inductor": (MODES, lambda: {*stator.list_modes()}),
    "Options of stator": (OPTIONS, lambda: {*OURS}),
    "Settings of torch._dynamo.config": (
        SETTINGS,
        settings,
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
