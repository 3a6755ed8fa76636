"""Every higher-order operator of the installed torch, and how stator treats it: the rows of
docs/reference/higher-order-operators.md.

`python -m integration_tests.transforms.operator_table` writes the page; each row is a test.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import pathlib
import pkgutil
import types
from collections.abc import Callable
from typing import Any

import attrs
import stator
import torch
import torch._higher_order_ops as hops
from stator.errors import Unsupported
from torch import Tensor
from torch._dynamo.decorators import leaf_function
from torch._higher_order_ops.flat_apply import func_to_graphable, to_graphable
from torch._ops import _higher_order_ops

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/higher-order-operators.md"
CAPTURED, REJECTED, RAISES = "captured", "rejected", "torch raises"

ops: Any = torch.ops.higher_order
public: Any = hops
flex: Any = importlib.import_module("torch.nn.attention.flex_attention").flex_attention
X = torch.linspace(-1, 2, 12).reshape(3, 4)
WEIGHT = torch.full((3, 4), 0.5, requires_grad=True)
ROW, STATE = torch.ones(4), torch.get_rng_state()
TOKEN = torch.tensor([])
DOUBLED = torch.fx.symbolic_trace(lambda a: (a * 2,))
FORWARD = torch.fx.symbolic_trace(lambda a: (a.sin(), [a]))
BACKWARD = torch.fx.symbolic_trace(lambda grad, a: grad * a.cos())


@torch.library.custom_op("stator_table::add_twice", mutates_args={"x"})
def add_twice(x: Tensor, y: Tensor) -> Tensor:
    x.add_(y, alpha=2)
    return y * 2


@add_twice.register_fake
def _(x: Tensor, y: Tensor) -> Tensor:
    return torch.empty_like(y)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 2


def doubled(x: Tensor) -> Any:
    return (x * 2,)


leaf: Any = leaf_function(doubled)
leaf.register_fake(doubled)


def everything(x: Tensor, times: int = 2) -> Any:
    """A function with results of several kinds."""
    return {"scaled": x * times, "rest": (times, None, "text")}, [x + 1]


@functools.cache
def packed() -> Any:
    engines = [name for name in torch.backends.quantized.supported_engines if name != "none"]
    torch.backends.quantized.engine = engines[-1]
    weight = torch.quantize_per_tensor(torch.ones(2, 4), 0.1, 0, torch.qint8)
    return torch.ops.quantized.linear_prepack(weight, torch.zeros(2))


def kernel(x: Tensor) -> dict[str, Any]:
    return {
        "kernel_idx": 0,
        "constant_args_idx": 0,
        "grid": [],
        "tma_descriptor_metadata": {},
        "kwargs": {"x": x},
    }


def applied_flat(x: Tensor) -> Any:
    return ops.flat_apply(_FUNCTION, _ARGUMENTS, x, x)


_FUNCTION = func_to_graphable(torch.add)[1]
_ARGUMENTS = to_graphable(((X, X), {}))[1]


def integers(x: Tensor) -> Any:
    return ops.out_dtype(
        torch.ops.aten.mm.default, torch.int32, x.to(torch.int8), x.T.to(torch.int8)
    )


def compiled_code(x: Tensor) -> Any:
    return ops.inductor_compiled_code(_COMPILED, [x])


_COMPILED = importlib.import_module("torch._higher_order_ops.wrap").InductorCompiledCallable(
    lambda inputs: DOUBLED(*inputs), DOUBLED
)


def gradient_with_hook(x: Tensor) -> Any:
    leaf_tensor = x.clone()
    hooked = ops.register_hook((x * WEIGHT).sin(), lambda grad, scale: grad * scale, leaf_tensor)
    return hooked * 2


@attrs.frozen
class Row:
    """The treatment of the operator that `run` calls. `note` says what it becomes, or why it is
    rejected."""

    kind: str
    note: str
    run: Callable[[Tensor], Any]

    def check(self) -> None:
        """Compare the compiled function with plain Python, and the kind with the row."""
        expected = outcome(self.run)
        whole = outcome(stator.compile(self.run, backend="eager", fullgraph=True))
        compiled = outcome(stator.compile(self.run, backend="eager"))
        assert compiled == expected
        if self.kind == REJECTED:
            assert whole[0] == Unsupported.__name__
            assert self.note.partition(",")[0] in whole[1]
        else:
            assert whole == expected
            assert expected[0].endswith("Error") == (self.kind == RAISES)


def outcome(run: Callable[[Tensor], Any]) -> tuple[str, str]:
    """Return what two calls print, return and write to their argument, or what they raise."""
    torch.manual_seed(0)
    x, printed = X.clone(), io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            results = [run(x), run(x)]
        except Exception as error:
            return type(error).__name__, str(error)
    return printed.getvalue(), repr((results, x, torch.get_rng_state().sum()))


OPERATORS: dict[str, Row] = {
    "_export_tracepoint": Row(
        CAPTURED,
        "one node",
        lambda x: ops._export_tracepoint(x, kind="module_call_inputs", path="a"),
    ),
    "aoti_call_delegate": Row(
        REJECTED,
        "a module that AOTInductor has compiled",
        lambda x: ops.aoti_call_delegate(None, DOUBLED, [x], [x]),
    ),
    "associative_scan": Row(
        CAPTURED,
        "over the body",
        lambda x: ops.associative_scan(lambda a, b: (a + b,), [x], ()),
    ),
    "auto_functionalized": Row(
        CAPTURED,
        "one node",
        lambda x: ops.auto_functionalized(torch.ops.stator_table.add_twice.default, x=x, y=x + 1),
    ),
    "auto_functionalized_v2": Row(
        CAPTURED,
        "one node",
        lambda x: ops.auto_functionalized_v2(
            torch.ops.stator_table.add_twice.default, y=x + 1, _x_base_index=0, _all_bases=[x]
        ),
    ),
    "autograd_function_apply": Row(
        CAPTURED,
        "over the bodies",
        lambda x: ops.autograd_function_apply(
            FORWARD, BACKWARD, x * WEIGHT, non_differentiable_idx=[], saved_for_backward_idx=[0]
        ),
    ),
    "call_torchbind": Row(
        REJECTED,
        "a method of a torchbind object, whose state is not followed",
        lambda x: (x + 1, ops.call_torchbind(packed(), "unpack")[0].dequantize()),
    ),
    "cond": Row(
        CAPTURED,
        "over the bodies",
        lambda x: ops.cond(x.sum() > 0, lambda a: (a + 1,), lambda a: (a - 1,), (x,)),
    ),
    "custom_function_call": Row(
        CAPTURED,
        "as Python: `apply` of the function",
        lambda x: ops.custom_function_call(Doubled, x * WEIGHT),
    ),
    "dynamo_bypassing_wrapper": Row(
        CAPTURED,
        "as Python: the wrapper, too",
        lambda x: ops.dynamo_bypassing_wrapper(
            lambda inner: lambda *args: (inner(*args), "wrapped"), everything, x
        ),
    ),
    "executorch_call_delegate": Row(
        REJECTED,
        "a module that ExecuTorch has lowered",
        lambda x: ops.executorch_call_delegate(DOUBLED, x),
    ),
    "flat_apply": Row(CAPTURED, "as Python", applied_flat),
    "flex_attention": Row(
        CAPTURED,
        "over the bodies; through the public function",
        lambda x: flex(*[x.expand(1, 1, 3, 4)] * 3, score_mod=lambda score, *at: score * 2),
    ),
    "flex_attention_backward": Row(
        REJECTED,
        "the backward of flex_attention, which autograd calls",
        lambda x: (ops.flex_attention_backward(x),),
    ),
    "foreach_map": Row(
        CAPTURED,
        "over the body",
        lambda x: public._foreach_map(torch.add, x, x + 1),
    ),
    "graphsafe_run_with_rng_state": Row(
        RAISES,
        "one node; torch has it for CUDA",
        lambda x: ops.graphsafe_run_with_rng_state(torch.ops.aten.bernoulli.p, x, 0.5),
    ),
    "hints_wrapper": Row(
        CAPTURED,
        "over the body",
        lambda x: ops.hints_wrapper(lambda a: a.sin() + 1, (x,), {}, hints={"fast": True}),
    ),
    "inductor_compiled_code": Row(REJECTED, "code that Inductor has compiled", compiled_code),
    "inline_asm_elementwise": Row(
        RAISES,
        "one node; torch has it for CUDA",
        lambda x: ops.inline_asm_elementwise(
            x, asm_str="mov.f32 $0, $1;", constraints="=f,f", dtype=torch.float32
        ),
    ),
    "invoke_leaf_function": Row(
        CAPTURED, "one node; through `leaf_function`, whose marks it needs", lambda x: (leaf(x),)
    ),
    "invoke_quant": Row(
        CAPTURED, "over the body", lambda x: ops.invoke_quant(DOUBLED, x, scheme="nf4")
    ),
    "invoke_quant_packed": Row(
        CAPTURED,
        "over the body",
        lambda x: ops.invoke_quant_packed(lambda a: (a * 2,), x, scheme="nf4"),
    ),
    "invoke_subgraph": Row(
        CAPTURED, "over the body", lambda x: ops.invoke_subgraph(DOUBLED, "name", x)
    ),
    "local_map_hop": Row(
        REJECTED,
        "a graph of local_map with its device mesh",
        lambda x: ops.local_map_hop(DOUBLED, x),
    ),
    "map_impl": Row(
        CAPTURED, "over the body", lambda x: ops.map_impl(lambda a, b: [a + b], [x], [x[0]])
    ),
    "out_dtype": Row(CAPTURED, "one node", integers),
    "print": Row(
        CAPTURED,
        "one node, in the order of the program",
        lambda x: (public.print("{} of {k}", x.sum(), k=[x.shape]), x + 1),
    ),
    "register_hook": Row(
        CAPTURED,
        "as Python: `Tensor.register_hook`",
        gradient_with_hook,
    ),
    "run_and_save_rng_state": Row(
        CAPTURED,
        "one node",
        lambda x: ops.run_and_save_rng_state(torch.ops.aten.bernoulli.p, x, 0.5),
    ),
    "run_const_graph": Row(CAPTURED, "over the body", lambda x: ops.run_const_graph(DOUBLED, (x,))),
    "run_dtensor_rng_op": Row(
        RAISES,
        "one node; torch has it for CUDA",
        lambda x: ops.run_dtensor_rng_op(0, 0, torch.ops.aten.bernoulli.p, x, 0.5),
    ),
    "run_with_rng_state": Row(
        CAPTURED,
        "one node",
        lambda x: ops.run_with_rng_state(STATE, torch.ops.aten.bernoulli.p, x, 0.5),
    ),
    "scan": Row(
        CAPTURED, "over the body", lambda x: ops.scan(lambda c, v: [c + v, c * 1], [x[0]], [x], ())
    ),
    "strict_mode": Row(
        CAPTURED, "over the body", lambda x: ops.strict_mode(lambda a: (a.sin(), a + 1), (x,))
    ),
    "tag_activation_checkpoint": Row(
        CAPTURED,
        "over the body, as `checkpoint`",
        lambda x: ops.tag_activation_checkpoint(DOUBLED, x * WEIGHT),
    ),
    "triton_kernel_wrapper_functional": Row(
        REJECTED,
        "a Triton kernel as compilers call it",
        lambda x: ops.triton_kernel_wrapper_functional(**kernel(x)),
    ),
    "triton_kernel_wrapper_mutation": Row(
        REJECTED,
        "a Triton kernel as compilers call it",
        lambda x: ops.triton_kernel_wrapper_mutation(**kernel(x)),
    ),
    "while_loop": Row(
        CAPTURED,
        "over the bodies",
        lambda x: ops.while_loop(
            lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (torch.tensor(0), x), ()
        ),
    ),
    "while_loop_stack_output": Row(
        CAPTURED,
        "over the bodies",
        lambda x: ops.while_loop_stack_output(
            lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (torch.tensor(0), x), ()
        ),
    ),
    "with_effects": Row(
        CAPTURED,
        "one node, in the order of the program",
        lambda x: ops.with_effects(TOKEN, torch.ops.aten.sin.default, x),
    ),
    "wrap": Row(CAPTURED, "over the body", lambda x: ops.wrap(everything, x, times=3)),
    "trace_wrapped": Row(
        REJECTED,
        "TraceWrapped, of Dynamo's compiled autograd",
        lambda x: ops.trace_wrapped(x, fn=torch.sin),
    ),
    "wrap_activation_checkpoint": Row(
        CAPTURED,
        "over the body, as `checkpoint`",
        lambda x: ops.wrap_activation_checkpoint(DOUBLED, x * WEIGHT),
    ),
    "wrap_with_autocast": Row(
        CAPTURED,
        "as Python: under the mode",
        lambda x: ops.wrap_with_autocast(
            "cpu", torch.bfloat16, True, None, lambda a: (a @ a.T, "text"), x
        ),
    ),
    "wrap_with_set_grad_enabled": Row(
        CAPTURED,
        "as Python: under the mode",
        lambda x: ops.wrap_with_set_grad_enabled(False, everything, x * WEIGHT, times=3),
    ),
}
"""By their names in `torch.ops.higher_order`."""

FUNCTIONS: dict[str, Row] = {
    "BaseHOP": Row(
        CAPTURED, "the base of operators over one body", OPERATORS["invoke_quant_packed"].run
    ),
    "InvokeQuant": Row(
        CAPTURED,
        "leads to `invoke_quant_packed`",
        lambda x: public.InvokeQuant()(lambda a: a * 2, x, scheme="nf4"),
    ),
    "associative_scan": Row(
        CAPTURED,
        "leads to the operator",
        lambda x: public.associative_scan(torch.add, x, 0, combine_mode="generic"),
    ),
    "cond": Row(
        CAPTURED,
        "leads to the operator",
        lambda x: public.cond(x.sum() > 0, lambda a: a + 1, lambda a: a - 1, (x,)),
    ),
    "foreach_map": Row(
        CAPTURED,
        "leads to the operator",
        lambda x: public.foreach_map(torch.add, [x, x + 1], [x, x * 2], alpha=2),
    ),
    "map": Row(
        CAPTURED,
        "leads to `map_impl`",
        lambda x: public.map(lambda a, b: a + b, x, ROW),
    ),
    "scan": Row(
        CAPTURED,
        "leads to the operator",
        lambda x: public.scan(lambda c, v: (c + v, c * 1), x[0], x),
    ),
    "strict_mode": Row(
        CAPTURED, "leads to the operator", lambda x: public.strict_mode(everything, (x,))
    ),
    "while_loop": Row(
        CAPTURED,
        "leads to the operator",
        lambda x: public.while_loop(
            lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (torch.tensor(0), x)
        ),
    ),
}
"""By their names in `torch._higher_order_ops`, where these are no operators themselves."""


def installed_operators() -> list[str]:
    """Load each module of `torch._higher_order_ops`, and Dynamo; return the operators of torch.

    Those that Inductor adds to graphs when it is loaded are not for programs.
    """
    importlib.import_module("torch._dynamo")
    for module in pkgutil.walk_packages(hops.__path__, f"{hops.__name__}."):
        importlib.import_module(module.name)
    homes = {name: type(op).__module__ for name, op in _higher_order_ops.items()}
    return [
        name
        for name, home in homes.items()
        if home.startswith("torch.") and not home.startswith("torch._inductor.")
    ]


def exported_functions() -> list[str]:
    """The public names that are functions or classes."""
    kinds = types.FunctionType | type
    return [name for name in {*hops.__all__} if isinstance(getattr(hops, name, None), kinds)]


def page() -> str:
    tables = [("torch.ops.higher_order", OPERATORS), ("torch._higher_order_ops", FUNCTIONS)]
    lines = [
        "# Every higher-order operator",
        "",
        "<!-- generated by python -m integration_tests.transforms.operator_table -->",
        "",
        f"The operators of torch {torch.__version__.partition('+')[0]}, called by a program. Each row is a "
        "test, against plain",
        "Python: *captured* in one graph; *rejected*, so it runs natively at a break; or *torch raises* "
        "on a CPU, and the",
        "compiled program does, too.",
    ]
    for title, rows in tables:
        lines += ["", f"## {title}", "", "| name | | |", "|---|---|---|"]
        lines += [f"| `{name}` | {row.kind} | {row.note} |" for name, row in sorted(rows.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
