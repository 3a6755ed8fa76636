"""Sizes of a graph's inputs that are symbols for a compiler, and numbers for a run.

def inputs(s0):
    return [s0, torch.empty_strided((s0, 3), (3, 1))]

gm = with_sizes(gm, inputs, {"s0": 4})    # the placeholders have symbols
gm(*inputs(4))
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import SymInt
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx import GraphModule, Interpreter, Node

from ._context import PlaceholderSource
from ._graph_facts import example_of, placeholders


def with_sizes(
    gm: GraphModule, inputs: Callable[..., Sequence[Any]], sizes: Mapping[str, int]
) -> GraphModule:
    """Give placeholders the example values that `inputs` makes of symbols, if there are any.

    The keyword arguments of `inputs` are the names of the sizes; their numbers are hints.
    """
    if not sizes:
        return gm
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    shape_env = ShapeEnv()
    symbols = {name: _symbol(shape_env, name, hint) for name, hint in sizes.items()}
    with FakeTensorMode(shape_env=shape_env, allow_non_fake_inputs=True):
        values = inputs(**symbols)
    for node, value in zip(placeholders(gm), values, strict=True):
        node.meta["example_value"] = value
    return gm


def _symbol(shape_env: Any, name: str, hint: int) -> SymInt:
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    source = PlaceholderSource(name)
    symbol = shape_env.create_symbol(
        hint, source, DimDynamic.DYNAMIC, None, do_not_specialize_zero_one=hint in (0, 1)
    )
    made: SymInt = shape_env.create_symintnode(symbol, hint=hint, source=source)
    return made


def examples(gm: GraphModule, inputs: Sequence[Any]) -> list[Any]:
    """Return the example values of the placeholders, where these have symbols; else the inputs."""
    pairs = zip(placeholders(gm), inputs, strict=True)
    return [example_of(node) if has_symbol(node) else value for node, value in pairs]


def has_symbols(gm: GraphModule) -> bool:
    return any(map(has_symbol, placeholders(gm)))


def has_symbol(node: Node) -> bool:
    example = example_of(node)
    symbolic = getattr(example, "_has_symbolic_sizes_strides", isinstance(example, SymInt))
    return bool(symbolic)


def bind_symbols(gm: GraphModule, inputs: Sequence[Any]) -> Sequence[Any]:
    """Add a placeholder for each symbol that has none; return the inputs with its number."""
    values = examples(gm, inputs)
    bound = {value.node._expr for value in values if isinstance(value, SymInt)}
    shape_env, added = _mode_of(values).shape_env, list[Any]()
    for symbol, number in reversed(shape_env.backed_var_to_val.items()):
        if symbol not in bound:
            hint = int(number)
            with gm.graph.inserting_before(next(iter(gm.graph.nodes))):
                node = gm.graph.placeholder(str(symbol))
            node.meta["example_value"] = shape_env.create_symintnode(symbol, hint=hint)
            added.insert(0, hint)
    return [*added, *inputs]


def _mode_of(values: Sequence[Any]) -> Any:
    return next(value.fake_mode for value in values if isinstance(value, FakeTensor))


class ExampleRun(Interpreter):
    """Runs a graph on the example values of its placeholders, and records that of each node."""

    def run_node(self, node: Node) -> Any:
        value = super().run_node(node)
        node.meta["example_value"] = value
        return value


def record_examples(gm: GraphModule, inputs: Sequence[Any]) -> None:
    """Give each node an example value, up to the first that has none as it depends on data."""
    values = examples(gm, inputs)
    with _mode_of(values), contextlib.suppress(RuntimeError):
        ExampleRun(gm).run(*values)
