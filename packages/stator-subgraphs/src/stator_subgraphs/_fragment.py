"""The nodes that one call recorded, and recording them again with other inputs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Set
from typing import Any

from attrs import Factory, evolve, frozen
from stator_variables import GraphValue
from torch.fx import Node

from stator_subgraphs._call import project, record_call, record_known
from stator_subgraphs._example_copy import Copied, ExampleCopies, copied_nodes
from stator_subgraphs._mutation import storage_of
from stator_subgraphs._operators._reuse import ValueOrigin
from stator_subgraphs._state import GraphState
from stator_subgraphs._structure import rebuild, tensors_in


@frozen(eq=False)
class Fragment:
    """`nodes` in their order, with the values of the graph that they start from, and the places of
    these."""

    nodes: dict[Node, GraphValue]
    inputs: list[ValueOrigin]
    values: list[GraphValue]
    written: Set[int] = frozenset()
    """The storages that were written to behind it."""
    copied: Copied = Factory(Copied)

    def input_storages(self) -> Set[int]:
        """Return the storages of the values that it starts from."""
        return {storage_of(one) for value in self.values for one in tensors_in(value.example)}

    def with_copies(self, results: Set[Node], *, shares: bool) -> Fragment:
        """Return the fragment with examples that are copied, but those in storages that were
        written to. Other values than the results cannot be reached behind it; `shares`: the copies
        of these may share memory with the first ones."""
        copied = copied_nodes(self.values, self.nodes, results, self.written, shares=shares)
        return evolve(self, copied=copied)


def fragment_of(
    state: GraphState, nodes: tuple[Node, Node], place: Callable[[GraphValue], ValueOrigin | None]
) -> Fragment | None:
    """Return the nodes behind the one and up to the other; None if they do more than compute."""
    tracer = state.root
    found: dict[Node, GraphValue] = {}
    values: dict[Node, GraphValue] = {}
    for node in _between(*nodes):
        if node.op == "placeholder":
            continue
        if not _only_computes(state, node):
            return None
        found[node] = tracer.values[node]
        for given in node.all_input_nodes:
            if given not in found:
                values[given] = tracer.values[given]

    inputs = [place(traced) for traced in values.values()]
    known = [origin for origin in inputs if origin is not None]
    if len(known) != len(inputs):
        return None
    return Fragment(found, known, [*values.values()])


def _between(before: Node, last: Node) -> Iterator[Node]:
    node = before
    while node is not last:
        node = node.next
        yield node


EFFECTS = frozenset(
    {"unbacked_bindings", "writes", "sets_state", "warns", "frees_history", "apart"}
)
"""The metadata of nodes that do more than compute."""


def _only_computes(state: GraphState, node: Node) -> bool:
    tracer = state.root
    facts = tracer.facts
    is_call = node.op in ("call_function", "call_method")
    return (
        is_call
        and not EFFECTS.intersection(node.meta)
        and node in tracer.values
        and not any(node in table for table in (facts.effects, facts.births, tracer.called))
        and node not in tracer.boxes
    )


def record_again(
    state: GraphState, fragment: Fragment, inputs: list[GraphValue], first: Any, now: Any
) -> dict[Node, GraphValue]:
    """Record the nodes with other inputs, and return their values. `first` and `now` are the
    modules that were and are called."""
    given = dict(zip([traced.node for traced in fragment.values], inputs, strict=True))
    modules, examples = ModulePaths(state, first, now), ExampleCopies(state, fragment.copied)
    for before, value in zip(fragment.values, inputs, strict=True):
        examples.note(before, value)

    examples.make(fragment.nodes)

    def leaf(item: Any) -> Any:
        return given[item] if type(item) is Node else item

    for node, traced in fragment.nodes.items():
        args, kwargs = rebuild(tuple(node.args), leaf), rebuild(dict(node.kwargs), leaf)
        example = examples.example_of(node, traced.example)
        if node.target is operator.getitem and isinstance(args[0].example, tuple | list | dict):
            again = project(state, args[0], args[1])
        elif example is None:
            again = record_call(state, node.target, args, kwargs, None, None)
        else:
            again = record_known(state, node.target, args, kwargs, example)

        modules.annotate(again.node.meta, node.meta)
        if getattr(traced.example, "_is_view", bool)():
            again.node.meta["gives_view"] = True
        examples.note(traced, again)
        given[node] = again
    return given


FLAGS = ("caught", "catches_operators", "has_except", "handled")


class ModulePaths:
    """Metadata of nodes that are recorded again: the lines of the first call, and the modules of
    this one."""

    def __init__(self, state: GraphState, first: Any, now: Any) -> None:
        places = state.location.places
        self.first, self.now = places.module(first), places.module(now)
        """The entries of these modules, see `TraceLocation.modules`."""

    def annotate(self, meta: dict[str, Any], known: dict[str, Any]) -> None:
        for key in ("stack_trace", "program_frames"):
            if key in known:
                meta[key] = known[key]
        for flag in FLAGS:
            if flag in known:
                meta[flag] = True
        stack = known.get("nn_module_stack")
        if stack is None or self.first is None or self.now is None:
            return

        (_, old, _), (key, new, _) = self.first, self.now
        moved: dict[str, tuple[str, type]] = {}
        for name, (path, cls) in stack.items():
            if path == old or path.startswith(f"{old}."):
                rest = path.removeprefix(old)
                moved[key + rest] = (new + rest, cls)
            else:
                moved[name] = (path, cls)
        meta["nn_module_stack"] = moved
