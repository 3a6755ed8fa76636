"""Programs to be exported: each by stator and by torch.export in strict mode."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import attrs
import torch
from torch import Tensor, nn
from torch._higher_order_ops.map import map as map_rows
from torch.export import Dim, ShapesCollection
from torch.nn import functional as F
from torch.utils import checkpoint

BATCH = Dim("batch", min=2, max=64)
LENGTH = Dim("length", min=2, max=128)


EQUAL, SAME_ERROR, ONLY_STATOR = "equal", "the same error", "only stator"
DIFFERENT = "different"


@attrs.frozen(eq=False)
class Program:
    """A module to export with the arguments of one call, and of others that its graph serves.

    `outcome` is how the two exported programs compare; `note` says why they do not.
    """

    make: Callable[[], nn.Module]
    args: Callable[[], tuple[Any, ...]]
    kwargs: Callable[[], dict[str, Any]] = dict
    shapes: Any = None
    others: tuple[Callable[[], tuple[Any, ...]], ...] = ()
    preserve: tuple[str, ...] = ()
    outcome: str = EQUAL
    note: str = ""


def module(function: Callable[..., Any], **members: Any) -> Callable[[], nn.Module]:
    """Return a class of modules with this `forward`, and with these members, made anew each
    time."""

    def make() -> nn.Module:
        torch.manual_seed(0)
        made: nn.Module = type("Net", (nn.Module,), {"forward": function})()
        for name, value in members.items():
            if isinstance(value, Buffer):
                made.register_buffer(name, value.make(), persistent=value.persistent)
            else:
                setattr(made, name, value() if callable(value) else value)
        return made

    return make


@attrs.frozen
class Buffer:
    make: Callable[[], Tensor]
    persistent: bool = True


def rows(*sizes: int) -> Callable[[], tuple[Tensor, ...]]:
    """Return a function that makes tensors of the given numbers of rows, of three columns."""
    return lambda: tuple(torch.randn(size, 3) for size in sizes)


def linear() -> nn.Module:
    return nn.Linear(3, 4)


def convolved(self: Any, x: Tensor) -> Tensor:
    found: Tensor = self.fc(self.conv(x).mean(-1))
    return found


def in_pairs(self: Any, x: Tensor) -> Tensor:
    return x.reshape(x.shape[0] // 2, 2, 3)


def branching(self: Any, x: Tensor) -> Tensor:
    return x + 1 if x.shape[0] > 3 else x * 2


def of_batch(self: Any, batch: Batch, *, scale: Tensor) -> Batch:
    return Batch(batch.tokens * scale, batch.mask + batch.tokens.shape[0])


def written_in_part(self: Any, x: Tensor) -> Any:
    self.seen[0] = x.mean(0)
    return x * 2, self.seen.sum()


def called_again(self: Any, x: Tensor) -> Any:
    once = self.first(x)
    return self.again(once) + self.again(self.again(once))


def selected(self: Any, x: Tensor, mask: Any, mode: str, times: int) -> Any:
    x = x if mask is None else x * mask
    return (x.relu() if mode == "relu" else x) * times


check: Any = torch._check


def zeros(*shape: int) -> Callable[[], Tensor]:
    return lambda: torch.zeros(shape)


# -- parameters, buffers and constants -------------------------------------------------------------
def plain(self: Any, x: Tensor) -> Tensor:
    made: Tensor = self.fc(x).relu()
    return made


def unused_parameter(self: Any, x: Tensor) -> Any:
    return self.fc(x)


def in_other_order(self: Any, x: Tensor) -> Any:
    return self.second(x) + self.first(x)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(7, 3)
        self.out = nn.Linear(3, 7, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, ids: Tensor) -> Any:
        return self.out(self.embed(ids))


def counting(self: Any, x: Tensor) -> Any:
    self.count.add_(1)
    return x * self.count


def reassigned(self: Any, x: Tensor) -> Any:
    self.count = self.count + 1
    return x * self.count


def scaled(self: Any, x: Tensor) -> Any:
    return x * self.scale


def with_constant(self: Any, x: Tensor) -> Any:
    return x + self.table[0] + torch.tensor([1.0, 2.0, 3.0])


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.block = nn.Sequential(nn.Linear(3, 3), nn.Tanh())

    def forward(self, x: Tensor) -> Any:
        return self.block(self.block(x))


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.heads = nn.ModuleDict({"a": nn.Linear(3, 2), "b": nn.Linear(3, 1)})
        self.gains = nn.ParameterList([nn.Parameter(torch.ones(3)) for _ in range(2)])

    def forward(self, x: Tensor) -> Any:
        for layer in self.layers:
            x = layer(x) * self.gains[0]
        return {name: head(x) for name, head in self.heads.items()}


class Convolutional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> Any:
        return F.relu(self.norm(self.conv(x)))


def evaluated(cls: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: cls().eval()


def frozen() -> nn.Module:
    made = module(plain, fc=linear)()
    made.requires_grad_(False)
    return made


# -- arguments and results -------------------------------------------------------------------------
class Pair(NamedTuple):
    left: Tensor
    right: Tensor


@dataclasses.dataclass
class Batch:
    tokens: Tensor
    mask: Tensor


torch.export.register_dataclass(Batch, serialized_type_name="integration_tests.export.Batch")


def keyword_only(self: Any, x: Tensor, *, scale: float = 2.0, mask: Tensor | None = None) -> Any:
    return x * scale if mask is None else x * scale * mask


def gathered(self: Any, *xs: Tensor, **named: Tensor) -> Any:
    return sum(xs) * named["scale"] + named["shift"]


def nested_arguments(self: Any, tree: dict[str, Any], pair: list[Tensor]) -> Any:
    return tree["a"] + tree["b"][0] * tree["b"][1], [pair[1], pair[0]]


def dataclass_argument(self: Any, batch: Batch) -> Any:
    return batch.tokens * batch.mask


def dataclass_result(self: Any, x: Tensor) -> Any:
    return Batch(x.sin(), x > 0)


def named_tuple(self: Any, pair: Pair) -> Any:
    return Pair(pair.right, pair.left + 1)


def constant_results(self: Any, x: Tensor) -> Any:
    return x.sin(), 3, None, "text", 2.5, True


def symbolic_results(self: Any, x: Tensor) -> Any:
    return x.sin(), x.shape[0], x.shape[0] * 2 + 1


def input_as_result(self: Any, x: Tensor, y: Tensor) -> Any:
    return x, y, x + y


def ordered(self: Any, x: Tensor) -> Any:
    return collections.OrderedDict(b=x + 1, a=x)


def integer_argument(self: Any, x: Tensor, n: int) -> Any:
    return x * n + x.shape[0]


def default_argument(self: Any, x: Tensor, n: int = 3) -> Any:
    return x * n


def unused_argument(self: Any, x: Tensor, y: Tensor) -> Any:
    return x + 1


def writes_to_input(self: Any, x: Tensor) -> Any:
    x.add_(1)
    return x * 2


def writes_to_view(self: Any, x: Tensor) -> Any:
    x[:, 0].mul_(2)
    return x.sum(0)


# -- control flow and shapes -----------------------------------------------------------------------
def branch_on_mode(self: Any, x: Tensor) -> Any:
    return F.dropout(x, 0.5, self.training) if self.training else x * 2


def branch_on_type(self: Any, x: Tensor) -> Any:
    try:
        return x.missing  # type: ignore[attr-defined]
    except AttributeError:
        return x.cos()


def loop_over_size(self: Any, x: Tensor) -> Any:
    for index in range(x.shape[1]):
        x = x + index
    return x


def branch_on_size(self: Any, x: Tensor) -> Any:
    return x.sin() if x.shape[0] > 2 else x.cos()


def equal_sizes(self: Any, x: Tensor, y: Tensor) -> Any:
    return x + y


def derived_sizes(self: Any, x: Tensor, y: Tensor) -> Any:
    return x + y[1:]


def fixed_size(self: Any, x: Tensor) -> Any:
    return x + torch.ones(4, 3)


def reshaped(self: Any, x: Tensor) -> Any:
    return x.view(x.shape[0], -1).transpose(0, 1).reshape(-1)


def concatenated(self: Any, x: Tensor, y: Tensor) -> Any:
    return torch.cat([x, y]), x.shape[0] + y.shape[0]


def padded(self: Any, x: Tensor) -> Any:
    return F.pad(x, (0, 0, 0, 8 - x.shape[0] % 8))


def conditional(self: Any, x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x: self.fc(x) + 1, lambda x: self.fc(x) * 2, (x,))


def conditional_on_size(self: Any, x: Tensor) -> Any:
    return torch.cond(x.shape[0] > 4, lambda x: x.sin(), lambda x: x.cos(), (x,))


def looped(self: Any, x: Tensor) -> Any:
    from torch._higher_order_ops import while_loop

    return while_loop(  # type: ignore[no-untyped-call]
        lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x)
    )


def scanned(self: Any, x: Tensor) -> Any:
    from torch._higher_order_ops import scan

    return scan(lambda carry, row: (carry + row, carry * row), x[0], x, dim=0)


def mapped(self: Any, x: Tensor) -> Any:
    rows_of: Any = map_rows
    return rows_of(lambda row: row.sin() + 1, x)


def associated(self: Any, x: Tensor) -> Any:
    from torch._higher_order_ops import associative_scan

    return associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic")


def checkpointed(self: Any, x: Tensor) -> Any:
    return checkpoint.checkpoint(lambda y: self.fc(y).sin(), x, use_reentrant=False)


# -- operators and modes ---------------------------------------------------------------------------
torch.library.define("stator_export::doubled", "(Tensor x, int times) -> Tensor")
torch.library.impl("stator_export::doubled", "CPU", lambda x, times: x * 2 * times)
torch.library.register_fake("stator_export::doubled", lambda x, times: torch.empty_like(x))


@torch.library.custom_op("stator_export::accumulate", mutates_args=("total",))
def accumulate(total: Tensor, x: Tensor) -> None:
    total.add_(x)


def custom(self: Any, x: Tensor) -> Any:
    return torch.ops.stator_export.doubled(x, 3) + 1


def custom_with_mutation(self: Any, x: Tensor) -> Any:
    accumulate(self.total, x)
    return self.total * 2


def without_gradients(self: Any, x: Tensor) -> Any:
    with torch.no_grad():
        scale = self.fc(x).mean()
    return self.fc(x) * scale


def automatically_cast(self: Any, x: Tensor) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return self.fc(x)


def attention(self: Any, q: Tensor, k: Tensor) -> Any:
    return F.scaled_dot_product_attention(q, k, k, is_causal=True)


def recurrent(self: Any, x: Tensor) -> Any:
    return self.rnn(x)


def normalized(self: Any, x: Tensor) -> Any:
    return self.norm(x) + F.gelu(x)


def embedded(self: Any, ids: Tensor) -> Any:
    return self.embed(ids).sum(1)


def einsum(self: Any, x: Tensor) -> Any:
    return torch.einsum("ij,kj->ik", x, self.w)


def data_dependent_size(self: Any, n: Tensor) -> Any:
    size: Any = n.item()
    check(size >= 2)
    check(size < 10)
    return torch.zeros(size, 3) + 1


def nonzero(self: Any, x: Tensor) -> Any:
    return torch.nonzero(x > 0).shape[0], (x > 0).sum()


def asserted(self: Any, x: Tensor) -> Any:
    assert x.shape[1] == 3
    check(x.shape[0] > 1)
    return x * 2


def per_sample_gradient(self: Any, x: Tensor) -> Any:
    return torch.func.vmap(torch.func.grad(lambda row: (row**2).sum()))(x)


def branch_on_export(self: Any, x: Tensor) -> Any:
    return x.sin() if torch.compiler.is_exporting() else x.cos()


def comprehension(self: Any, x: Tensor) -> Any:
    return {f"power{n}": x**n for n in range(1, 4)}


def helper_class(self: Any, x: Tensor) -> Any:
    class_of = collections.namedtuple("class_of", "a b")
    made = class_of(x.sin(), x.cos())
    return made.a + made.b


def hooked() -> nn.Module:
    made = module(plain, fc=linear)()
    made.get_submodule("fc").register_forward_hook(lambda module, args, result: result + 1)
    made.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    return made


def collected() -> tuple[Any, Any]:
    x, y = torch.randn(4, 3), torch.randn(4, 3)
    shapes: Any = ShapesCollection()  # type: ignore[no-untyped-call]
    shapes[x] = {0: BATCH}
    shapes[y] = {0: BATCH}
    return (x, y), shapes


COLLECTED_ARGS, COLLECTED_SHAPES = collected()


def mixture(net: Any, x: Tensor) -> Any:
    weights = net.gate(x).softmax(-1)
    return sum(weights[:, i : i + 1] * expert(x) for i, expert in enumerate(net.experts))


def cached(net: Any, x: Tensor) -> Any:
    net.rows.index_copy_(0, net.position + torch.arange(x.size(0)), x)
    net.position.add_(x.size(0))
    return net.rows.mean(0)


def through_cell(net: Any, xs: Tensor, h: Tensor) -> Any:
    for x in xs.unbind(1):
        h = net.cell(x, h)
    return h


def quantized(net: Any, x: Tensor) -> Any:
    scale = x.abs().amax() / 127
    return (x / scale).round().clamp(-128, 127).to(torch.int8), scale


def masked(net: Any, q: Tensor, k: Tensor, *, causal: bool) -> Any:
    scores = q @ k.transpose(-1, -2)
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    return scores.softmax(-1)


PROGRAMS: Mapping[str, Program] = {
    "layers": Program(
        module(plain, fc=linear), rows(4), shapes={"x": {0: BATCH}}, others=(rows(9),)
    ),
    "static shapes": Program(module(plain, fc=linear), rows(4), others=(rows(4),)),
    "unused parameter": Program(module(unused_parameter, other=linear, fc=linear), rows(4)),
    "order of use": Program(module(in_other_order, first=linear, second=linear), rows(4)),
    "tied weights": Program(
        Tied,
        lambda: (torch.arange(5),),
        shapes=({0: LENGTH},),
        others=(lambda: (torch.arange(3),),),
    ),
    "buffer mutation": Program(module(counting, count=Buffer(zeros())), rows(4), others=(rows(4),)),
    "buffer assignment": Program(
        module(reassigned, count=Buffer(zeros())),
        rows(4),
        others=(rows(4),),
        outcome=DIFFERENT,
        note="torch.export drops the assignment; stator writes to the buffer",
    ),
    "non-persistent buffer": Program(module(scaled, scale=Buffer(zeros(3), False)), rows(4)),
    "tensor attribute": Program(module(scaled, scale=lambda: torch.full((3,), 2.0)), rows(4)),
    "constants": Program(
        module(with_constant, table=lambda: [torch.ones(3)]),
        rows(4),
        outcome=DIFFERENT,
        note="a tensor in a list of the module has another name",
    ),
    "shared submodule": Program(Shared, rows(4)),
    "containers of modules": Program(Nested, rows(4), shapes=({0: Dim.AUTO},), others=(rows(2),)),
    "batch norm in training": Program(Convolutional, lambda: (torch.randn(2, 3, 5, 5),)),
    "batch norm in evaluation": Program(
        evaluated(Convolutional),
        lambda: (torch.randn(2, 3, 5, 5),),
        shapes={"x": {0: BATCH}},
        others=(lambda: (torch.randn(5, 3, 5, 5),),),
    ),
    "frozen parameters": Program(frozen, rows(4)),
    "forward hooks": Program(hooked, rows(4)),
    "keyword arguments": Program(
        module(keyword_only),
        rows(4),
        lambda: {"mask": torch.ones(4, 1)},
        shapes={"x": {0: BATCH}, "mask": {0: BATCH}},
    ),
    "keyword argument left out": Program(module(keyword_only), rows(4), lambda: {"scale": 3.0}),
    "variadic arguments": Program(
        module(gathered), rows(4, 4), lambda: {"shift": torch.ones(3), "scale": torch.ones(4, 1)}
    ),
    "nested containers": Program(
        module(nested_arguments),
        lambda: (
            {"a": torch.ones(4), "b": (torch.ones(4), torch.ones(4))},
            [torch.ones(2), torch.ones(3)],
        ),
        shapes={
            "tree": {"a": {0: BATCH}, "b": ({0: BATCH}, {0: BATCH})},
            "pair": [None, {0: LENGTH}],
        },
    ),
    "dataclass argument": Program(
        module(dataclass_argument),
        lambda: (Batch(torch.ones(4, 3), torch.ones(4, 3)),),
        shapes={"batch": [{0: BATCH}, {0: BATCH}]},
    ),
    "dataclass result": Program(module(dataclass_result), rows(4)),
    "named tuple": Program(module(named_tuple), lambda: (Pair(torch.ones(2), torch.ones(2)),)),
    "constant results": Program(module(constant_results), rows(4)),
    "symbolic results": Program(
        module(symbolic_results), rows(4), shapes={"x": {0: BATCH}}, others=(rows(7),)
    ),
    "arguments as results": Program(module(input_as_result), rows(4, 4)),
    "ordered dict": Program(module(ordered), rows(4)),
    "integer argument": Program(
        module(integer_argument), lambda: (torch.ones(4, 3), 5), shapes={"x": {0: BATCH}, "n": None}
    ),
    "dynamic integer": Program(
        module(integer_argument),
        lambda: (torch.ones(4, 3), 5),
        shapes={"x": {0: BATCH}, "n": Dim.DYNAMIC},
        others=(lambda: (torch.ones(6, 3), 7),),
    ),
    "default argument": Program(module(default_argument), rows(4)),
    "unused argument": Program(module(unused_argument), rows(4, 2)),
    "input mutation": Program(module(writes_to_input), rows(4)),
    "mutation through a view": Program(module(writes_to_view), rows(4)),
    "training mode": Program(module(branch_on_mode), rows(4)),
    "evaluation mode": Program(evaluated(module(branch_on_mode)), rows(4)),
    "caught exception": Program(module(branch_on_type), rows(4)),
    "loop over a size": Program(module(loop_over_size), rows(4), shapes={"x": {0: BATCH}}),
    "branch on a size": Program(
        module(branch_on_size), rows(4), shapes={"x": {0: Dim.AUTO}}, others=(rows(9),)
    ),
    "branch that a specification contradicts": Program(
        module(branch_on_size),
        rows(4),
        shapes={"x": {0: Dim("rows", min=2, max=9)}},
        outcome=SAME_ERROR,
    ),
    "equal sizes": Program(
        module(equal_sizes),
        rows(4, 4),
        shapes={"x": {0: BATCH}, "y": {0: BATCH}},
        others=(rows(6, 6),),
    ),
    "equal sizes by two names": Program(
        module(equal_sizes),
        rows(4, 4),
        shapes={"x": {0: Dim("a")}, "y": {0: Dim("b")}},
        outcome=SAME_ERROR,
    ),
    "derived sizes": Program(
        module(derived_sizes),
        rows(4, 5),
        shapes={"x": {0: BATCH}, "y": {0: BATCH + 1}},
        others=(rows(6, 7),),
    ),
    "derived sizes without relation": Program(
        module(derived_sizes),
        rows(4, 5),
        shapes={"x": {0: Dim("a")}, "y": {0: Dim("b")}},
        outcome=SAME_ERROR,
    ),
    "automatic sizes": Program(
        module(equal_sizes),
        rows(4, 4),
        shapes={"x": {0: Dim.AUTO}, "y": {0: Dim.AUTO}},
        others=(rows(6, 6),),
    ),
    "collection of shapes": Program(
        module(equal_sizes), lambda: COLLECTED_ARGS, shapes=COLLECTED_SHAPES, others=(rows(6, 6),)
    ),
    "size that has to be constant": Program(
        module(fixed_size), rows(4), shapes={"x": {0: Dim("rows")}}, outcome=SAME_ERROR
    ),
    "automatic size that is constant": Program(
        module(fixed_size), rows(4), shapes={"x": {0: Dim.AUTO}}
    ),
    "dynamic size that is constant": Program(
        module(fixed_size), rows(4), shapes={"x": {0: Dim.DYNAMIC}}, outcome=SAME_ERROR
    ),
    "size outside of its range": Program(
        module(plain, fc=linear),
        rows(4),
        shapes={"x": {0: Dim("rows", min=10)}},
        outcome=SAME_ERROR,
    ),
    "specification of another structure": Program(
        module(equal_sizes), rows(4, 4), shapes={"x": {0: BATCH}}, outcome=SAME_ERROR
    ),
    "reshaping": Program(module(reshaped), rows(4), shapes={"x": {0: BATCH}}, others=(rows(8),)),
    "concatenation": Program(
        module(concatenated),
        rows(4, 5),
        shapes={"x": {0: BATCH}, "y": {0: LENGTH}},
        others=(rows(2, 7),),
    ),
    "padding": Program(module(padded), rows(4), shapes={"x": {0: BATCH}}, others=(rows(11),)),
    "cond": Program(
        module(conditional, fc=linear), rows(4), shapes={"x": {0: BATCH}}, others=(rows(7),)
    ),
    "cond on a size": Program(
        module(conditional_on_size),
        rows(5),
        shapes={"x": {0: Dim.DYNAMIC}},
        others=(rows(3), rows(8)),
    ),
    "while_loop": Program(module(looped), rows(4)),
    "scan": Program(module(scanned), rows(4)),
    "map": Program(module(mapped), rows(4)),
    "associative_scan": Program(module(associated), rows(4)),
    "checkpoint": Program(
        module(checkpointed, fc=linear),
        rows(4),
        outcome=ONLY_STATOR,
        note="torch.export: RuntimeError: _checkpoint_context_fn",
    ),
    "one tensor as two arguments": Program(
        module(equal_sizes),
        lambda: (COLLECTED_ARGS[0],) * 2,
        others=(rows(4, 4),),
        outcome=DIFFERENT,
        note="torch.export reads the second argument from the first",
    ),
    "custom operator": Program(
        module(custom), rows(4), shapes={"x": {0: BATCH}}, others=(rows(6),)
    ),
    "custom operator that mutates": Program(
        module(custom_with_mutation, total=Buffer(zeros(3))), lambda: (torch.ones(3),)
    ),
    "no_grad": Program(module(without_gradients, fc=linear), rows(4)),
    "autocast": Program(module(automatically_cast, fc=linear), rows(4)),
    "attention": Program(
        module(attention),
        lambda: (torch.randn(2, 5, 4), torch.randn(2, 5, 4)),
        shapes={"q": {1: LENGTH}, "k": {1: LENGTH}},
        others=(lambda: (torch.randn(2, 7, 4), torch.randn(2, 7, 4)),),
    ),
    "recurrent network": Program(
        module(recurrent, rnn=lambda: nn.GRU(3, 4, batch_first=True)),
        lambda: (torch.randn(2, 5, 3),),
    ),
    "layer norm": Program(
        module(normalized, norm=lambda: nn.LayerNorm(3)), rows(4), shapes={"x": {0: BATCH}}
    ),
    "embedding": Program(
        module(embedded, embed=lambda: nn.Embedding(9, 3)),
        lambda: (torch.arange(6).view(2, 3),),
        shapes={"ids": {0: BATCH, 1: LENGTH}},
        others=(lambda: (torch.arange(8).view(4, 2),),),
    ),
    "einsum": Program(
        module(einsum, w=lambda: nn.Parameter(torch.ones(2, 3))), rows(4), shapes={"x": {0: BATCH}}
    ),
    "size that data decides": Program(
        module(data_dependent_size),
        lambda: (torch.tensor(4),),
        others=(lambda: (torch.tensor(7),),),
    ),
    "number of items that data decides": Program(module(nonzero), rows(4)),
    "assertions": Program(module(asserted), rows(4), shapes={"x": {0: BATCH}}),
    "per-sample gradients": Program(
        module(per_sample_gradient),
        rows(4),
        outcome=ONLY_STATOR,
        note="torch.export: AttributeError: 'Tensor' object has no attribute 'constant'",
    ),
    "query of the mode": Program(module(branch_on_export), rows(4)),
    "comprehension": Program(module(comprehension), rows(4)),
    "local class": Program(module(helper_class), rows(4)),
    "preserved signature": Program(Shared, rows(4), preserve=("block",)),
    "mixture of experts": Program(
        module(mixture, experts=lambda: nn.ModuleList([linear(), linear()]), gate=linear),
        rows(4),
        shapes={"x": {0: BATCH}},
        others=(rows(7),),
    ),
    "rows written at a position": Program(
        module(
            cached,
            rows=Buffer(zeros(9, 3)),
            position=Buffer(lambda: torch.zeros((), dtype=torch.long)),
        ),
        rows(2),
        others=(rows(2),),
    ),
    "recurrent cell in a loop": Program(
        module(through_cell, cell=lambda: nn.GRUCell(3, 4)),
        lambda: (torch.randn(2, 5, 3), torch.randn(2, 4)),
        shapes={"xs": {0: BATCH}, "h": {0: BATCH}},
        others=(lambda: (torch.randn(6, 5, 3), torch.randn(6, 4)),),
    ),
    "quantization": Program(
        module(quantized), rows(4), shapes=((Dim.AUTO, Dim.AUTO),), others=(rows(6),)
    ),
    "causal mask": Program(
        module(masked),
        rows(4, 4),
        kwargs=lambda: {"causal": True},
        shapes={"q": {0: LENGTH}, "k": {0: LENGTH}, "causal": None},
        others=(rows(6, 6),),
    ),
    "normalized weight": Program(
        module(
            lambda self, x: self.fc(x),
            fc=lambda: nn.utils.parametrizations.weight_norm(linear()),
        ),
        rows(4),
        shapes={"x": {0: BATCH}},
        others=(rows(6),),
    ),
    "normalized weights of two kinds": Program(
        module(
            convolved,
            conv=lambda: nn.utils.parametrizations.weight_norm(nn.Conv1d(3, 4, 3)),
            fc=lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 2)).eval(),
        ),
        lambda: (torch.randn(2, 3, 8),),
    ),
    "rows in pairs": Program(
        module(in_pairs), rows(4), shapes={"x": {0: Dim.AUTO}}, others=(rows(8),)
    ),
    "rows in pairs by name": Program(
        module(in_pairs), rows(4), shapes={"x": {0: Dim("rows", max=100)}}, outcome=SAME_ERROR
    ),
    "size with a branch above its minimum": Program(
        module(branching),
        rows(5),
        shapes={"x": {0: Dim("rows", min=2, max=10)}},
        outcome=SAME_ERROR,
    ),
    "automatic size with bounds": Program(
        module(branching), rows(5), shapes={"x": {0: Dim.AUTO(min=3, max=50)}}, others=(rows(9),)
    ),
    "dataclass of automatic sizes": Program(
        module(of_batch),
        lambda: (Batch(torch.randn(4, 3), torch.ones(4, 3)),),
        kwargs=lambda: {"scale": torch.tensor(2.0)},
        shapes={"batch": [{0: Dim.AUTO}, {0: Dim.AUTO}], "scale": None},
        others=(lambda: (Batch(torch.randn(6, 3), torch.ones(6, 3)),),),
    ),
    "buffer written in part": Program(
        module(written_in_part, seen=Buffer(zeros(2, 3), persistent=False)),
        rows(4),
        shapes={"x": {0: BATCH}},
        others=(rows(9),),
    ),
    "signature of a module that is called again": Program(
        module(called_again, first=linear, again=lambda: nn.Linear(4, 4)),
        rows(4),
        preserve=("again",),
    ),
    "arguments that are no tensors": Program(
        module(selected), lambda: (torch.ones(2, 3), None, "relu", 3)
    ),
}
