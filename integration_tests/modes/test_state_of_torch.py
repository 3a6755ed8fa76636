"""Queries and setters of torch's state in a compiled function: the answers, the state inside and
after, the graphs."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
import torch._dynamo
import torch.backends
from stator_variables import STATE_SETTERS, Setter
from torch.nn.attention import SDPBackend, sdpa_kernel

from integration_tests.support.oracle import assert_same

_C: Any = torch._C
JIT: Any = torch.jit
X = torch.linspace(-1, 1, 3)


class Counting:
    """A backend that runs the graph as it is, and counts graphs."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        self.graphs += 1
        return module.forward


# -- queries ---------------------------------------------------------------------------------------
QUERY = re.compile(r"^(is|are|get)_|_(enabled|available)$|^(version|is_built|is_available)$")
PLACES = """torch torch.compiler torch.jit torch.cpu torch.nn.attention torch.amp.autocast_mode torch.autograd
torch.random torch.overrides torch.fx torch.__future__ torch.accelerator"""

NATIVE = {
    "torch.jit.onednn_fusion_enabled": "belongs to the compiler of TorchScript",
    "torch.compiler.get_default_backend": "belongs to torch.compile",
    "torch.overrides.get_overridable_functions": "goes through all modules of torch",
    "torch.random.get_rng_state": "copies the state of a random stream",
}
DIFFERENT = {"torch.compiler.is_compiling", "torch.compiler.is_dynamo_compiling"}
"""They tell compiled code from other code."""


def queries() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The queries in Python and C of the installed torch that take no arguments."""
    places = [importlib.import_module(name) for name in PLACES.split()]
    for found in pkgutil.iter_modules(torch.backends.__path__, "torch.backends."):
        places.append(importlib.import_module(found.name))
    for place in places:
        for name, value in sorted(vars(place).items()):
            if not QUERY.search(name) or not _takes_nothing(value, place.__name__):
                continue
            yield f"{place.__name__}.{name}", value


def _takes_nothing(value: Any, place: str) -> bool:
    if isinstance(value, types.FunctionType) and value.__module__ == place:
        parameters = inspect.signature(value).parameters.values()
        return all(each.default is not each.empty for each in parameters)
    is_of_c = isinstance(value, types.BuiltinFunctionType) and place == "torch"
    return is_of_c and "(" not in (value.__doc__ or "()").partition("()")[0]


@pytest.mark.parametrize(
    ("name", "query"),
    [pytest.param(*each, id=each[0]) for each in queries() if each[0] not in NATIVE],
)
def test_a_query_is_answered_in_one_graph(name: str, query: Callable[[], Any]) -> None:
    def program(x: torch.Tensor) -> Any:
        return x + 1, query()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = query()
        except (RuntimeError, TypeError):
            return
        compiled = stator.compile(program, backend="eager", fullgraph=True)
        answers = [compiled(X)[1] for _ in range(2)]
    if name not in DIFFERENT:
        assert answers == [expected, expected]


def is_compiling_spellings() -> list[Callable[[], bool]]:
    return [
        torch.compiler.is_compiling,
        torch.compiler.is_dynamo_compiling,
        torch._dynamo.is_compiling,
        torch._dynamo.external_utils.is_compiling,
        torch._utils.is_compiling,
    ]


@pytest.mark.parametrize("query", is_compiling_spellings(), ids=lambda query: query.__module__)
@pytest.mark.filterwarnings("ignore:.*is_compiling.*")
def test_each_spelling_of_is_compiling_is_true_in_compiled_code(query: Any) -> None:
    compiled = stator.compile(lambda x: x + 1 if query() else x, backend="eager", fullgraph=True)
    assert compiled(X).equal(X + 1)


@pytest.mark.parametrize("query", [JIT.is_scripting, JIT.is_tracing])
def test_compiled_code_is_neither_scripted_nor_traced(query: Any) -> None:
    compiled = stator.compile(lambda x: x if query() else x + 1, backend="eager", fullgraph=True)
    assert compiled(X).equal(X + 1)


def deprecated(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
    return x + 1, torch.is_autocast_cpu_enabled()


def deprecated_spelling(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
    return x + 1, torch._utils.is_compiling()


@pytest.mark.parametrize("program", [deprecated, deprecated_spelling])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_deprecated_query_warns_in_each_call_at_the_line_of_the_program(
    program: Any, backend: str
) -> None:
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for _ in range(3):
        with warnings.catch_warnings(record=True) as expected:
            warnings.simplefilter("always")
            program(X)
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            compiled(X)
        assert [(str(w.message), w.category, w.filename, w.lineno) for w in given] == [
            (str(w.message), w.category, w.filename, w.lineno) for w in expected
        ]
    assert compiled.report.graph_count == 1


# -- setters ---------------------------------------------------------------------------------------
OTHERS = {
    "warn": "nothing",
    "auto": "native",
    "highest": "high",
    "none": "ieee",
    1: 2,
    torch.float32: torch.float64,
    torch.bfloat16: torch.float16,
}
KEYS = {
    torch.set_autocast_enabled: ("cpu",),
    torch.set_autocast_dtype: ("cpu",),
    _C._set_fp32_precision_setter: ("mkldnn", "conv"),
}
NOT_HERE = {_C._set_cpu_allow_fp16_reduced_precision_reduction, _C._set_onednn_allow_tf32}
"""They depend on the processor."""


def settings() -> Iterator[Any]:
    """Setters with one value: the setter, its query, their key, and two values."""
    for setter, row in STATE_SETTERS.items():
        key = KEYS.get(setter, ())
        now = row.read(*key)
        other = (not now) if type(now) is bool else OTHERS.get(now if type(now) is not list else "")
        if other is not None and setter not in NOT_HERE:
            yield pytest.param(setter, row, key, now, other, id=setter.__name__)


each_setting = pytest.mark.parametrize(("setter", "row", "key", "now", "other"), [*settings()])


@each_setting
def test_an_answer_is_guarded(setter: Any, row: Setter, key: Any, now: Any, other: Any) -> None:
    def program(x: torch.Tensor) -> Any:
        return x + 1, row.read(*key)

    compiled = stator.compile(program, backend="eager", fullgraph=True)
    assert compiled(X)[1] == now
    try:
        setter(*key, other)
        assert compiled(X)[1] == other
    finally:
        setter(*key, now)
    assert compiled(X)[1] == now
    assert compiled.report.graph_count <= 2


@each_setting
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_state_set_in_a_region_is_seen_inside_and_after(
    setter: Any, row: Setter, key: Any, now: Any, other: Any, backend: str
) -> None:
    def program(x: torch.Tensor, back: bool) -> Any:
        before = row.read(*key)
        setter(*key, other)
        inside = row.read(*key)
        y = x.sin()
        if back:
            setter(*key, before)
        return before, inside, row.read(*key), y

    options = {"uncompiled": "allow"}  # AOTAutograd takes no change of autocast that stays
    compiled = stator.compile(program, backend=backend, fullgraph=True, options=options)
    for back in (True, True, False, False):
        try:
            expected = program(X, back)
            after = row.read(*key)
            setter(*key, now)
            given = compiled(X, back)
            assert given[:3] == expected[:3]
            assert row.read(*key) == after
        finally:
            setter(*key, now)
    assert compiled.report.graph_count == 2


def test_state_is_as_before_after_an_operator_that_raised() -> None:
    def program(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        with torch.backends.cudnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH):
            return x.sin()[i]

    compiled = stator.compile(program, backend="eager", fullgraph=True)
    compiled(X, torch.tensor([1]))
    with pytest.raises(IndexError):
        compiled(X, torch.tensor([7]))
    assert torch.backends.cudnn.enabled
    assert torch.backends.cuda.flash_sdp_enabled()  # type: ignore[no-untyped-call]


def test_an_exception_handler_in_a_block_finds_the_state_of_the_block() -> None:
    seen: list[bool] = []

    def program(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        with torch.backends.cudnn.flags(enabled=False):
            y = x.sin()
            try:
                return y[i]
            except IndexError:
                seen.append(torch.backends.cudnn.enabled)
                return y

    compiled = stator.compile(program, backend="eager")
    for index in (1, 7, 1, 7):
        compiled(X, torch.tensor([index]))
    assert seen == [False, False]
    assert torch.backends.cudnn.enabled


FLAGS: dict[str, Any] = {
    "cudnn": lambda: torch.backends.cudnn.flags(enabled=False),
    "mkldnn": lambda: torch.backends.mkldnn.flags(enabled=False),
    "nnpack": lambda: torch.backends.nnpack.flags(enabled=False),
    "attention": lambda: sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], True),
}


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.filterwarnings("ignore:TF32 acceleration on top of oneDNN")
def test_flags_of_backends_around_all_operators_give_one_compiled_graph(name: str) -> None:
    flags = FLAGS[name]

    def program(x: torch.Tensor) -> torch.Tensor:
        with flags():
            return x.sin() + 1

    count = Counting()
    compiled = stator.compile(program, backend=count, fullgraph=True)
    for _ in range(3):
        assert compiled(X).equal(program(X))
    assert count.graphs == 1


def between_operators(x: torch.Tensor, layer: Any) -> torch.Tensor:
    y: torch.Tensor = x.cos()
    with torch.backends.mkldnn.flags(enabled=False, allow_tf32=None):
        y = layer(y)
    return y.sin()


@pytest.mark.parametrize(
    ("backend", "fullgraph", "breaks"), [("eager", False, 0), ("aot_eager", False, 1)]
)
def test_flags_between_operators_are_kept_in_their_place(
    backend: str, fullgraph: bool, breaks: int
) -> None:
    layer = torch.nn.Linear(3, 3)
    compiled = stator.compile(between_operators, backend=backend, fullgraph=fullgraph)
    for _ in range(3):
        assert compiled(X, layer).equal(between_operators(X, layer))
        assert torch.backends.mkldnn.enabled
    assert len(compiled.report.breaks) == breaks


def test_under_fullgraph_a_graph_with_flags_between_operators_is_compiled_in_pieces() -> None:
    layer = torch.nn.Linear(3, 3)
    compiled: Any = stator.compile(between_operators, backend="aot_eager", fullgraph=True)
    assert compiled(X, layer).equal(between_operators(X, layer))
    assert not compiled.report.uncompiled


@sdpa_kernel(SDPBackend.MATH)
def attention(q: torch.Tensor) -> torch.Tensor:
    assert not torch.backends.cuda.flash_sdp_enabled()  # type: ignore[no-untyped-call]
    return torch.nn.functional.scaled_dot_product_attention(q, q, q)


@torch.no_grad()
def without_gradients(q: torch.Tensor) -> torch.Tensor:
    return q * 2


@torch.autocast("cpu", dtype=torch.bfloat16)  # type: ignore[untyped-decorator]
def cast(q: torch.Tensor) -> torch.Tensor:
    return q[0, 0] @ q[0, 0]


@torch.inference_mode()
def inference(q: torch.Tensor) -> torch.Tensor:
    return q * 2


@torch.backends.cudnn.flags(enabled=False)
def without_cudnn(q: torch.Tensor) -> torch.Tensor:
    return q * 2 + torch.backends.cudnn.enabled


DECORATED = [attention, without_gradients, cast, inference, without_cudnn]


@pytest.mark.parametrize("program", DECORATED, ids=lambda program: program.__name__)
@pytest.mark.parametrize("is_called", [False, True])
def test_a_context_as_a_decorator_is_captured(program: Any, is_called: bool) -> None:
    function = (lambda q: program(q) + 1) if is_called else program
    q = torch.linspace(0, 1, 16).reshape(1, 1, 4, 4).requires_grad_()
    compiled = stator.compile(function, backend="eager", fullgraph=True)
    for _ in range(2):
        expected, given = function(q), compiled(q)
        assert given.equal(expected)
        assert given.dtype == expected.dtype
        assert given.requires_grad == expected.requires_grad
    assert compiled.report.graph_count == 1


def by_a_computed_value(x: torch.Tensor) -> Any:
    _C._set_grad_enabled(x.sum() > 1)
    y = x + 1
    _C._set_grad_enabled(True)
    return y


def without_a_query(x: torch.Tensor) -> Any:
    return torch.set_flush_denormal(False), x + 1


def an_absent_kind_of_device(x: torch.Tensor) -> Any:
    torch.set_autocast_enabled("nodevice", True)
    return x + 1


def an_absent_mode(x: torch.Tensor) -> Any:
    return x + 1, _C._pop_torch_function_stack()


def an_absent_place(x: torch.Tensor) -> Any:
    return x + 1, _C._get_function_stack_at(3)


def of_no_group(x: torch.Tensor) -> Any:
    return x + 1, torch.distributed.get_rank()


def of_no_size(x: torch.Tensor) -> Any:
    try:
        return x + 1, torch.distributed.get_world_size(None)
    except ValueError as error:
        return x + 1, str(error)


REFUSED = (
    *(by_a_computed_value, without_a_query, an_absent_kind_of_device),
    *(an_absent_mode, an_absent_place, of_no_group, of_no_size),
    lambda x: (x + 1, torch.is_autocast_enabled(device_type="cpu")),
    lambda x: (x + 1, torch.distributed.get_rank(group=None)),
)


@pytest.mark.parametrize("program", REFUSED)
def test_state_that_a_graph_does_not_set_or_read(program: Callable[..., Any]) -> None:
    compiled = stator.compile(program, backend="eager")
    assert_same(program, compiled, lambda: (X.clone(),))
    assert compiled.report.breaks


def test_a_refusal_in_inference_mode_leaves_the_mode() -> None:
    def program(x: torch.Tensor) -> Any:
        with torch.inference_mode():
            y = x + 1
            stator.graph_break()
        return y

    compiled = stator.compile(program, backend="eager", fullgraph=True)
    with pytest.raises(stator.errors.Unsupported):
        compiled(X)
    assert not torch.is_inference_mode_enabled()
    assert torch.is_grad_enabled()
