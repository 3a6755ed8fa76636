"""Sources of inputs, the data to make an input fake a second time, and state to clear
afterwards."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch._functorch import config
from torch._guards import GuardSource, Source, TracingContext, dataclass_with_cached_hash
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule

from ._graph_facts import placeholders

# importing it brings sympy, half a second that a program which only looks up a name should not pay
if TYPE_CHECKING:
    from torch.fx.experimental.symbolic_shapes import StatefulSymbolicContext


def static_context(tensor: Tensor, source: Source) -> StatefulSymbolicContext:
    """No symbols. Without this, a `ShapeEnv` would give each dimension a symbol that no placeholder
    binds."""
    from torch.fx.experimental.symbolic_shapes import DimDynamic, StatefulSymbolicContext

    dims = tensor.dim()
    return StatefulSymbolicContext(
        dynamic_sizes=[DimDynamic.STATIC] * dims,
        dynamic_strides=[DimDynamic.INFER_STRIDE] * dims,
        constraint_sizes=[None] * dims,
        constraint_strides=[None] * dims,
        tensor_source=source,
    )


def without_number(context: StatefulSymbolicContext) -> StatefulSymbolicContext:
    """Return a context without the source of a tensor of no dimensions.

    With the source, torch makes a symbol of the number in it.
    """
    if context.dynamic_sizes:
        return context
    return dataclasses.replace(context, tensor_source=None)  # type: ignore[arg-type]  # unknown


NO_POINTERS = config.patch(fake_tensor_allow_unsafe_data_ptr_access=False)
"""One for all: each makes a context variable, which the thread's context then keeps for ever."""


@contextmanager
def cleared(fake_mode: FakeTensorMode, context: TracingContext) -> Iterator[None]:
    """Afterwards nothing here refers to an input any more, not even weakly: a weak reference blocks
    `swap_tensors`."""
    try:
        # A fake tensor that hands out a data pointer would let a backend compile in an address that
        # means nothing.
        with NO_POINTERS:
            yield
    finally:
        context.tensor_to_context.clear()
        fake_mode.fake_tensor_converter.clear_non_cpu_constants()
        for mode in {fake_mode, context.fake_mode}:
            if mode is not None:
                _forget_inputs(mode)


def _forget_inputs(mode: FakeTensorMode) -> None:
    describer = mode.fake_tensor_converter.meta_converter.describer
    describer.lookup_tensor.clear()
    describer.lookup_storage.clear()


# Where the inputs of a graph come from, in the form that AOTAutograd requires.
#
# Each placeholder needs a torch `Source`. A front end may attach its own; the others get a
# `PlaceholderSource`, which only identifies the placeholder. Guards that lowering adds name
# sources, and are translated back to positions here.


@dataclass_with_cached_hash(frozen=True)
class PlaceholderSource(Source):
    """The placeholder at one position of a graph; or a tensor that the graph holds, by its name."""

    position: int | str

    @property
    def _name_template(self) -> str:
        return f"graph_input_{self.position}"

    @functools.cached_property
    def guard_source(self) -> GuardSource:
        return GuardSource.LOCAL


def attach_sources(gm: GraphModule) -> dict[Source, int]:
    """Give each placeholder that has no source one; returns the position of each source."""
    positions: dict[Source, int] = {}
    for position, node in enumerate(placeholders(gm)):
        source: Any = getattr(node, "_dynamo_source", None)
        if source is None or source in positions:  # AOTAutograd refuses a source met twice
            source = PlaceholderSource(position)
            node._dynamo_source = source  # an attribute is where AOTAutograd looks
        positions[source] = position
    return positions


def sources_of_held(gm: GraphModule) -> dict[str, Source]:
    """One for each tensor that `gm` holds: AOTAutograd makes an input of it."""
    held = (*gm.named_parameters(remove_duplicate=False), *gm.named_buffers(remove_duplicate=False))
    return {name: PlaceholderSource(name) for name, _ in held}
