"""Every higher-order operator in every situation.

``python -m integration_tests.transforms.operator_matrix`` writes the page.

A situation is a program around ``run(body, x)``, which calls one operator with ``body``. Each cell
is compared with plain Python, and says whether it was captured or why not. Where torch itself
raises, only the kind of its error is compared. Beside it stands what torch.compile does with the
same program under ``fullgraph``, as measured when the page was written.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import stator
import torch
from torch import Tensor
from torch._higher_order_ops import InvokeQuant
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.hints_wrap import hints_wrapper
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.strict_mode import strict_mode as torch_strict_mode
from torch._higher_order_ops.while_loop import while_loop as torch_while_loop
from torch.compiler import nested_compile_region
from torch.utils.checkpoint import checkpoint

from integration_tests.support.oracle import assert_same

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "reference" / "operators.md"
Body = Callable[[Tensor], Any]
Run = Callable[[Body, Tensor], Any]
map_function: Any = torch_map  # torch leaves these without types
strict_mode: Any = torch_strict_mode
while_loop: Any = torch_while_loop


# -- operators -------------------------------------------------------------------------------------
def run_cond(body: Body, x: Tensor) -> Any:
    return torch.cond(x.sum() > -100, body, body, (x,))


def run_while_loop(body: Body, x: Tensor) -> Any:
    return while_loop(lambda i, a: i.sum() < 2, lambda i, a: (i + 1, body(a)), (torch.zeros(1), x))[
        1
    ]


def run_scan(body: Body, x: Tensor) -> Any:
    return scan(lambda carry, a: (carry + 1, body(a)), torch.zeros(1), x)[1]


def run_associative_scan(body: Body, x: Tensor) -> Any:
    return associative_scan(lambda a, b: body(a + b), x, 0, combine_mode="generic")


class Applied(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, body: Body) -> Any:
        return body(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return sum(grads), None


apply: Any = Applied.apply  # torch leaves it without types


def run_grad(body: Body, x: Tensor) -> Any:
    def loss(a: Tensor) -> Any:
        found = body(a)
        return (found[0] if isinstance(found, tuple) else found).sum()

    return torch.func.grad(loss)(x)


OPERATORS: dict[str, Run] = {
    "cond": run_cond,
    "while_loop": run_while_loop,
    "map": map_function,
    "scan": run_scan,
    "associative_scan": run_associative_scan,
    "checkpoint": lambda body, x: checkpoint(body, x, use_reentrant=False),
    "checkpoint, reentrant": lambda body, x: checkpoint(body, x, use_reentrant=True),
    "nested_compile_region": lambda body, x: nested_compile_region(body)(x),
    "wrap": torch.ops.higher_order.wrap,
    "hints_wrapper": lambda body, x: hints_wrapper(body, (x,), {}, hints={"level": 1}),
    "strict_mode": lambda body, x: strict_mode(body, (x,)),
    "invoke_quant": InvokeQuant(),
    "autograd.Function": lambda body, x: apply(x, body),
    "vmap": lambda body, x: torch.func.vmap(body)(x),
    "vjp": lambda body, x: torch.func.vjp(body, x)[0],
    "jvp": lambda body, x: torch.func.jvp(body, (x,), (x * 2,))[1],
    "grad": run_grad,
    "linearize": lambda body, x: torch.func.linearize(body, x)[0],
}


# -- situations ------------------------------------------------------------------------------------
LAYER = torch.nn.Linear(3, 3).requires_grad_(False)
LAYERS = torch.nn.Sequential(LAYER, torch.nn.Tanh())


def closure_over_tensor(run: Run, x: Tensor, y: Tensor) -> Any:
    scale = y * 2
    return run(lambda a: a * scale, x)


def closure_over_int(run: Run, x: Tensor, y: Tensor) -> Any:
    n = 3
    return run(lambda a: a * n, x)


def closure_over_symbol(run: Run, x: Tensor, y: Tensor) -> Any:
    n = x.shape[0]
    return run(lambda a: a * n, x)


def closure_over_symbolic_float(run: Run, x: Tensor, y: Tensor) -> Any:
    f = x.shape[0] * 0.5
    return run(lambda a: a * f, x)


def closure_over_symbolic_bool(run: Run, x: Tensor, y: Tensor) -> Any:
    wide = x.shape[0] > 2
    return run(lambda a: a * wide, x)


def closure_over_module(run: Run, x: Tensor, y: Tensor) -> Any:
    return run(LAYER, x)


def closure_over_container(run: Run, x: Tensor, y: Tensor) -> Any:
    return run(LAYERS, x)


def nested_in_itself(run: Run, x: Tensor, y: Tensor) -> Any:
    return run(lambda a: run(lambda b: b.sin(), a) + 1, x)


def nested_in_another(run: Run, x: Tensor, y: Tensor) -> Any:
    inner = OPERATORS["wrap"] if run is run_cond else run_cond
    return run(lambda a: inner(lambda b: b.sin() * y, a) + 1, x)


def another_in_it(run: Run, x: Tensor, y: Tensor) -> Any:
    total = y.sum()
    return run(lambda a: torch.ops.higher_order.wrap(lambda b: b.sin() * total, a) + 1, x)


def alias(run: Run, x: Tensor, y: Tensor) -> Any:
    return run(lambda a: a.view(a.shape), x)


def operand_returned(run: Run, x: Tensor, y: Tensor) -> Any:
    return run(lambda a: a, x)


@torch.no_grad()
def write_outside(run: Run, x: Tensor, y: Tensor) -> Any:
    def body(a: Tensor) -> Tensor:
        y.add_(1)
        return a + y

    return run(body, x), y + 0


def write_inside(run: Run, x: Tensor, y: Tensor) -> Any:
    def body(a: Tensor) -> Tensor:
        b = a.clone()
        b.mul_(y)
        return b

    return run(body, x)


def no_result(run: Run, x: Tensor, y: Tensor) -> Any:
    return run(lambda a: (), x)


def repeated_result(run: Run, x: Tensor, y: Tensor) -> Any:
    def body(a: Tensor) -> Any:
        b = a.sin()
        return b, b

    return run(body, x)


def dynamic_shape(run: Run, x: Tensor, y: Tensor) -> Any:
    return run(lambda a: a.sin() * y, x * 2).sum(0)


@torch.no_grad()
def unbacked_size(run: Run, x: Tensor, y: Tensor) -> Any:
    return run(lambda a: a.sin() + 1, x[x.sum(1) > -9])


@torch.no_grad()
def closure_over_unbacked_int(run: Run, x: Tensor, y: Tensor) -> Any:
    count = (y > 0).sum().item()
    return run(lambda a: a.sin() * count, x)


def effect_in_body(run: Run, x: Tensor, y: Tensor) -> Any:
    seen = []

    def body(a: Tensor) -> Tensor:
        seen.append(1)
        return a.sin()

    return run(body, x), seen


def exception_in_body(run: Run, x: Tensor, y: Tensor) -> Any:
    def body(a: Tensor) -> Tensor:
        raise ValueError("in the body")

    return run(body, x)


def break_in_body(run: Run, x: Tensor, y: Tensor) -> Any:
    def body(a: Tensor) -> Tensor:
        stator.graph_break()
        return a.sin()

    return run(body, x)


SITUATIONS: dict[str, Callable[[Run, Tensor, Tensor], Any]] = {
    fn.__name__.replace("_", " "): fn
    for fn in (
        closure_over_tensor,
        closure_over_int,
        closure_over_symbol,
        closure_over_symbolic_float,
        closure_over_symbolic_bool,
        closure_over_module,
        closure_over_container,
        nested_in_itself,
        nested_in_another,
        another_in_it,
        alias,
        operand_returned,
        write_outside,
        write_inside,
        no_result,
        repeated_result,
        dynamic_shape,
        unbacked_size,
        closure_over_unbacked_int,
        effect_in_body,
        exception_in_body,
        break_in_body,
    )
}
CELLS = [(operator, situation) for situation in SITUATIONS for operator in OPERATORS]
SYMBOLIC = (
    "closure over symbol",
    "closure over symbolic float",
    "closure over symbolic bool",
    "dynamic shape",
)
UNBACKED = ("unbacked size", "closure over unbacked int")
BY_LENGTH = ("associative_scan", "jvp")
"""Another length is another graph: torch's function halves what it is given in Python, or compares
sizes natively."""
WITHOUT_GRADIENT = ("hints_wrapper", "invoke_quant", "linearize", "strict_mode", "while_loop")


# -- cells -----------------------------------------------------------------------------------------
def bare(operator: str, situation: str) -> Callable[[Tensor, Tensor], Any]:
    run, fn = OPERATORS[operator], SITUATIONS[situation]
    return lambda x, y: fn(run, x, y)


def program(operator: str, situation: str) -> Callable[[Tensor, Tensor], Any]:
    fn = bare(operator, situation)

    def cell(x: Tensor, y: Tensor) -> Any:
        try:
            return fn(x, y)
        except Exception as error:
            return type(error).__name__

    return cell


def inputs(operator: str, rows: int = 2) -> tuple[Tensor, Tensor]:
    x = torch.linspace(-1, 1, rows * 3).reshape(rows, 3)
    return x.requires_grad_(operator not in WITHOUT_GRADIENT), torch.linspace(1, 2, 3)


def outcome(operator: str, situation: str) -> str:
    """What the page says of a cell. Raises AssertionError where it is not what plain Python
    gives."""
    # some plain functions run in torch's own compiler: what it met before counts there
    torch._dynamo.reset()
    plain = program(operator, situation)
    if situation in UNBACKED:
        return _whole(operator, plain)
    compiled = stator.compile(
        plain, backend="eager", dynamic=True if situation in SYMBOLIC else None
    )
    expected = plain(*inputs(operator))
    if isinstance(expected, str) and expected != "ValueError":  # that is the program's own
        actual = compiled(*inputs(operator))
        assert actual == expected
        return "; ".join(filter(None, ("torch raises", _breaks(compiled))))
    for rows in (2, 5) if situation in SYMBOLIC else (2,):
        assert_same(plain, compiled, lambda: inputs(operator, rows), calls=2)  # noqa: B023
    reused = situation in SYMBOLIC and operator not in BY_LENGTH
    assert not reused or len(compiled.report.entries) == 1 + len(compiled.report.breaks)
    assert len(compiled.report.breaks) <= 1
    return _breaks(compiled) or "captured"


def _whole(operator: str, plain: Callable[..., Any]) -> str:
    """What data decides is kept in the graph where nothing may break."""
    whole, said = stator.compile(plain, backend="eager", fullgraph=True), "captured"
    try:
        whole(*inputs(operator))
    except stator.Unsupported as error:
        whole, said = stator.compile(plain, backend="eager"), _linked(error.reason)
    assert_same(plain, whole, lambda: inputs(operator), calls=2)
    return said


def outcome_of_torch(operator: str, situation: str) -> str:
    """`captured`, or the kind of its error; `wrong` for another answer than plain Python's."""
    if situation == "break in body":
        return "–"
    torch._dynamo.reset()
    with torch._dynamo.config.patch(
        capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True
    ):
        whole = torch.compile(bare(operator, situation), backend="eager", fullgraph=True)
        try:
            given = whole(*inputs(operator))
            torch.testing.assert_close(given, program(operator, situation)(*inputs(operator)))
        except AssertionError:
            return "wrong"
        except Exception as error:
            return type(error).__name__
    return "captured"


def _linked(reason: str) -> str:
    return f"[{reason}](unsupported/{reason}.md)"


def _breaks(compiled: Any) -> str:
    """The reason of the break at the operator, the first; the program may break once more where it
    meets an error."""
    return next((_linked(met.reason) for met in compiled.report.breaks), "")


def page() -> str:
    return "\n".join([*LEAD, *_table(outcome), "", *BESIDE, *_table(outcome_of_torch)]) + "\n"


def _table(measure: Callable[[str, str], str]) -> list[str]:
    head = [
        "| | " + " | ".join(f"`{name}`" for name in OPERATORS) + " |",
        "|---" * (len(OPERATORS) + 1) + "|",
    ]
    rows = [
        f"| {situation} | "
        + " | ".join(measure(operator, situation) for operator in OPERATORS)
        + " |"
        for situation in SITUATIONS
    ]
    return [*head, *rows]


LEAD = [
    "# Higher-order operators, situation by situation",
    "",
    "<!-- generated by python -m integration_tests.transforms.operator_matrix -->",
    "",
    "Each cell was compared with plain Python, gradients included. *captured*: one graph, no break.",
    "A reason: a break at the operator, which ran natively. *torch raises*: plain Python gives an error of torch's:",
    "its function of that name wants to be compiled by torch's compiler, and that does not take the body.",
    "",
]


BESIDE = [
    "## torch.compile",
    "",
    "The same programs under `torch.compile(fullgraph=True)`, with `capture_scalar_outputs` and",
    "`capture_dynamic_output_shape_ops`: *captured*, or the kind of its error. It wants",
    "`nested_compile_region` outside of the program. Breaks are asked for in our own way, so that row is empty.",
    "",
]


def written() -> dict[tuple[str, str], str]:
    """Our cells as the page has them."""
    ours = PAGE.read_text().partition(BESIDE[0])[0]
    rows = [line.strip("|").split("|") for line in ours.splitlines() if line.startswith("| ")]
    names = [name.strip().strip("`") for name in rows[0][1:]]
    return {
        (name, row[0].strip()): cell.strip()
        for row in rows[1:]
        for name, cell in zip(names, row[1:], strict=True)
    }


if __name__ == "__main__":
    PAGE.write_text(page())
