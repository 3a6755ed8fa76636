"""Read from torch's profiler which operators ran in no compiled graph, and how much memory was
used at most."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch._C._profiler import _EventType, _RecordFunctionFast
from torch.profiler import ProfilerActivity, profile

COMPILED_GRAPH = "stator benchmark: compiled graph"

# Nodes of autograd and ranges have other forms: "AddBackward0", "autograd::engine::evaluate...".
_OPERATOR = re.compile(r"(?!profiler::)\w+::\w+")


def marked(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``run`` in a range of the profiler, as that of a compiled graph."""
    mark = _RecordFunctionFast(COMPILED_GRAPH)

    def run_in_range(*args: Any) -> Any:
        with mark:
            return run(*args)

    return run_in_range


def profiled(call: Callable[[], Any], memory: bool = False) -> tuple[Any, list[Any]]:
    """Return the result of ``call`` and the profiler's events, those that nothing else called."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=memory) as profiler:
        result = call()
    results: Any = profiler.profiler
    return result, results.kineto_results.experimental_event_tree()


def operators_outside(events: Iterable[Any]) -> Iterator[str]:
    """Yield the operators that no other operator called and that ran in no compiled graph."""
    waiting = list(events)
    while waiting:
        event = waiting.pop()
        if event.name == COMPILED_GRAPH:
            continue

        if _OPERATOR.fullmatch(event.name):
            yield event.name
        else:
            waiting += event.children


def peak_of_memory(events: Iterable[Any]) -> int:
    """Return the most bytes of tensors that were alive at once, among those made in the call."""
    waiting, most = list(events), 0
    while waiting:
        event = waiting.pop()
        waiting += event.children
        if event.tag == _EventType.Allocation:
            most = max(most, event.extra_fields.total_allocated)
    return most
