"""`flex_attention`: what becomes of a score, and which scores count, are two bodies over numbers as
tensors.

torch's function is interpreted as it is when compiled: it checks, and calls the operator.
`create_block_mask` computes outside of it.
"""

from collections.abc import Generator
from typing import Any

import torch
from stator_bytecode import HandlerTable, operation
from stator_variables import (
    BodyGraph,
    BodyTrace,
    Permits,
    Space,
    VariableTracker,
    argument,
    from_traced,
)
from torch._higher_order_ops.flex_attention import flex_attention as flex_attention_op
from torch.overrides import TorchFunctionMode

handlers: HandlerTable[Any, Any] = HandlerTable("higher-order operator")


class IndexedByTensors(TorchFunctionMode):
    """`bias[i]` with a tensor of one number is no view at a number, which a fake does not have: the
    operator runs its bodies under a mode like this one."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        indices = args[1] if func is torch.Tensor.__getitem__ else None
        indices = indices if isinstance(indices, tuple) else (indices,)
        if any(isinstance(index, torch.Tensor) for index in indices):
            given = [
                index if isinstance(index, torch.Tensor) else torch.tensor(index)
                for index in indices
            ]
            return torch.ops.aten.index(args[0], given)
        return func(*args, **(kwargs or {}))


@handlers.handles(flex_attention_op)
@operation
def record(t: Space, args: list[Any], kwargs: dict[str, Any]) -> Any:
    query, key, value, score_mod, block_mask, scale, kernel_options, *buffers = args
    *blocks, mask_mod = block_mask.items
    # a graph that is traced again has bodies that take what they use besides as further inputs
    of_score, of_mask = (vt.items for vt in buffers) if buffers else ([], [])
    score = yield from _body(t, "score_mod", score_mod, query, of_score, scored=True)
    mask = yield from _body(t, "mask_mod", mask_mod, query, of_mask, scored=False)
    bodies = [
        t.graph.install(name, body.module)
        for name, body in (("score_mod", score), ("mask_mod", mask))
    ]
    taken = [argument(t, vt) for vt in (query, key, value)]
    held = (*(argument(t, vt) for vt in blocks), bodies[1])
    chosen = [argument(t, vt) for vt in (scale, kernel_options)]
    operands = (*taken, bodies[0], held, *chosen, tuple(score.lifted), tuple(mask.lifted))
    return from_traced(t, t.graph.call(flex_attention_op, operands, {}))


def _body(
    t: Space, name: str, function: VariableTracker, query: Any, buffers: list[Any], *, scored: bool
) -> Generator[Any, Any, BodyGraph]:
    """Trace a function whose inputs are a score and its position: batch, head, query, key."""
    example = query.example
    with t.graph.fake_mode:
        places = [example.new_zeros((), dtype=torch.int) for _ in range(4)]
        scores = [example.new_zeros((), requires_grad=example.requires_grad)] if scored else []
    with BodyTrace(t, name, Permits(aliases=True)) as body, IndexedByTensors():
        inputs = [body.argument(given) for given in (*scores, *places)]
        result = yield from body.run(function, [*inputs, *buffers], {})
        return body.alone(result)
