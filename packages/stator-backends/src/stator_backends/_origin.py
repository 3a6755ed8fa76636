"""Where the inputs of a graph come from, in the form that AOTAutograd asks for.

Each placeholder needs a torch `Source`. A front end may attach its own; the others get a `GraphInput`, which only says
which placeholder it is. Guards that lowering adds name sources, and come back from here as positions.
"""

import functools
from typing import Any

import torch
from torch._guards import GuardSource, Source, dataclass_with_cached_hash


@dataclass_with_cached_hash(frozen=True)
class GraphInput(Source):
    """The placeholder at one position of a graph."""

    position: int

    @property
    def _name_template(self) -> str:
        return f"graph_input_{self.position}"

    @functools.cached_property
    def guard_source(self) -> GuardSource:
        return GuardSource.LOCAL


def placeholders(gm: torch.fx.GraphModule) -> list[torch.fx.Node]:
    return list(gm.graph.find_nodes(op="placeholder"))


def attach_sources(gm: torch.fx.GraphModule) -> dict[Source, int]:
    """Give each placeholder that has no source one; returns the position of each source."""
    positions: dict[Source, int] = {}
    for position, node in enumerate(placeholders(gm)):
        source: Any = getattr(node, "_dynamo_source", None)
        if source is None or source in positions:  # AOTAutograd refuses a source met twice
            source = GraphInput(position)
            node._dynamo_source = source  # an attribute is where AOTAutograd looks
        positions[source] = position
    return positions
