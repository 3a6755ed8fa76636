"""Read from torch's profiler which operators ran in no compiled graph, and how much memory was
used at most."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch._C._profiler import RecordScope, _EventType, _RecordFunctionFast
from torch.profiler import ProfilerActivity, profile

COMPILED_GRAPH = "stator benchmark: compiled graph"

# Nodes of autograd have other forms: "AddBackward0", "autograd::engine::evaluate_function: ...".
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

        if _is_operator(event):
            yield event.name
        else:
            waiting += event.children


def _is_operator(event: Any) -> bool:
    if event.tag != _EventType.TorchOp or not _OPERATOR.fullmatch(event.name):
        return False
    in_range: bool = event.extra_fields.scope == RecordScope.USER_SCOPE
    return not in_range


def peak_of_memory(events: Iterable[Any]) -> int:
    """Return by how many bytes of tensors a call goes beyond those alive before it, at most.

    What the call frees counts only if it was made under a profiler, too.
    """
    waiting, changes = list(events), []
    while waiting:
        event = waiting.pop()
        waiting += event.children
        if event.tag == _EventType.Allocation:
            changes.append((event.start_time_ns, event.extra_fields.alloc_size))
    most: int = max(itertools.accumulate((size for _, size in sorted(changes)), initial=0))
    return most
