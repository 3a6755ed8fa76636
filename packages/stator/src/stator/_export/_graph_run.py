"""A run of a captured graph for torch.export to trace.

Steps that torch.export has no form for are put in its own: checkpoints are calls of their bodies,
since a program that is exported has no backward pass, and setters of autocast are the two steps
that its pass finds and makes a region of.
"""

from typing import Any

import torch
from stator_subgraphs import CHECKPOINTS
from torch import fx
from torch.amp.autocast_mode import _enter_autocast, _exit_autocast
from torch.fx.traceback import preserve_node_meta

from stator._export._module_call import CallEnd, MarkedCalls
from stator._export._transform import InlinedGraph

AutocastState = tuple[str, torch.dtype, bool, bool]
"""The arguments of an autocast region: device, dtype, whether it is on, whether it caches."""


class GraphRun(fx.Interpreter):
    """One run. `entered` are the states before each open region of autocast."""

    def __init__(self, module: fx.GraphModule, calls: MarkedCalls) -> None:
        super().__init__(module)
        self.calls = calls
        self.entered: list[AutocastState] = []
        self.device = "cpu"
        self.before: AutocastState | None = None

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target in CHECKPOINTS:
            body, *inputs = args
            return GraphRun(body, self.calls).run(*inputs[CHECKPOINTS[target] :])
        if isinstance(target, InlinedGraph):
            return GraphRun(target.module, self.calls).run(*args)
        if isinstance(target, CallEnd):
            return self.calls.reach(target, args)
        if target is torch.set_autocast_enabled and self.before is None:
            self.device = args[0]
            self.before = _autocast_state(self.device)
        result = super().call_function(target, args, kwargs)
        if target is torch.set_autocast_cache_enabled:  # the last of the setters
            self._change_autocast()
        return result

    def _change_autocast(self) -> None:
        """Record that a region begins, or ends where the state is that from before the last."""
        before, now = self.before, _autocast_state(self.device)
        self.before = None
        # torch.export switches the cache off around the whole run
        if self.entered and self.entered[-1][:3] == now[:3]:
            self.entered.pop()
            _exit_autocast(None)  # type: ignore[no-untyped-call]  # torch leaves it without
        elif before is not None:
            self.entered.append(before)
            _enter_autocast(*now)  # type: ignore[no-untyped-call]


def _autocast_state(device: str) -> AutocastState:
    enabled, dtype = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    return device, dtype, enabled, torch.is_autocast_cache_enabled()


def graph_run(module: fx.GraphModule, owner: torch.nn.Module) -> Any:
    """Return a function that runs the graph; what it calls has the metadata of the nodes."""

    def run(*inputs: Any) -> Any:
        with preserve_node_meta():
            return GraphRun(module, MarkedCalls(owner)).run(*inputs)

    return run
