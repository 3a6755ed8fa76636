"""Bodies of higher-order operators: a callable of the program, interpreted into a graph of its own.

    @operation
    def wrap(t, args, kwargs):
        with BodyTrace(t, "wrap_body", EVERYTHING) as body:
            result = yield from body.run(args[0], args[1:], kwargs)
            graph = body.wrapping(result)
        return record_wrapping(t, torch.ops.higher_order.wrap, graph, "wrap_body", result)

The body's frame is run by the same Machine, under the operation that waits for it: whatever cannot
be captured in it is a break at the operator, which then runs natively. Two ways to end a body:
`wrapping` (its result goes on as it is, any Python value; tensors in it become parts of what the
operator gives) and `flat` (its result is a pytree of tensors, for operators that choose among
bodies, or repeat one).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from attrs import Factory, define, field, frozen
from stator_bytecode import OperationSteps, Raised, operation, settle
from stator_bytecode.errors import SourceSpan, Unsupported
from torch.utils._device import DeviceContext

from stator_variables import _trackers as k
from stator_variables._bodies._pytree import LEAF, Spec, flatten
from stator_variables._lifetime._reachability import reachable
from stator_variables._objects._dict_entries import forget_undone
from stator_variables._space import Space
from stator_variables._tensors import _torch_calls
from stator_variables._trace._graph import BodyGraph, BodyRecorder, GraphValue
from stator_variables._trace._overrides import Overrides
from stator_variables._trace._repeated_bodies import RepeatedBodies
from stator_variables._tracker import Args, Kwargs, VariableTracker, is_a, is_pending


@frozen
class Permits:
    """The effects that a body may have besides computing; others are rejected, with the line.

    `effects`: change existing objects, and use streams of random numbers, since it runs once, with
    the graph. `writes`: to tensors from outside, in place. `aliases`: return a value that shares
    memory with a tensor from outside, or with another of its results. `later`: run when a mode that
    was entered around it has been left.
    """

    effects: bool = False
    writes: bool = False
    aliases: bool = False
    later: bool = False


NOTHING = Permits()
EVERYTHING = Permits(effects=True, writes=True, aliases=True)


@define(eq=False)
class BodyTrace:
    """One body under way; `name` is what its module will be called, and what a refusal names."""

    t: Space
    name: str
    permits: Permits = NOTHING
    recorder: BodyRecorder = field(init=False)
    roots: list[Any] = Factory(list)  # what of the outside the body was handed
    # an object that represents another one outside: nothing outside may hold it
    private: VariableTracker | None = None
    touched: dict[int, tuple[Any, SourceSpan]] = Factory(dict)
    _kept: dict[type, Any] = Factory(dict)
    _effects: dict[type, Any] = Factory(dict)
    _resumed: int = 0
    _generators: int = 0
    # dicts that were other than before the trace already
    _written: set[int] = Factory(set)

    def __enter__(self) -> BodyTrace:
        if not all(map(self._can_be_under, self.t.state(Overrides).modes)):
            raise self.t.unsupported(
                "mode-value", "a body of an operator under a mode for every function of torch"
            )

        self.recorder = self.t.graph.subgraph(self.name)
        self.recorder.__enter__()
        self.t.touched.append(self.touched)
        self.t.state(RepeatedBodies).count += not self.permits.effects
        self._kept = self.t.states.kept_by_body()
        self._effects = self.t.states.effects()
        self._resumed = len(self.t.machine.journal.entries)
        self._generators = len(self.t.lifetimes.generators)
        changed = self.t.heap.changed.items()
        self._written = {key for key, vt in changed if vt.base is dict and (vt.log or vt.undecided)}
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.t.touched.pop()
        self.t.state(RepeatedBodies).count -= not self.permits.effects
        self.recorder.__exit__(kind, error, trace)
        if isinstance(error, Unsupported):
            error.detail = f"{error.detail or error.reason}, in the body {self.name}"

    def _can_be_under(self, mode: VariableTracker) -> bool:
        """Return True for the mode of a device: operators that dispatch to modes are not affected,
        and the default one stays."""
        return mode.cls is DeviceContext and not (self.permits.later and mode.source is None)

    def argument(self, value: Any, hint: str = "arg") -> Any:
        """An explicit input of the body, as a tracker: for a tracker, or an example that the
        operator makes up."""
        traced = self.recorder.argument(
            _torch_calls.argument(self.t, value) if _is_tracker(value) else value, hint
        )
        return _torch_calls.from_traced(self.t, traced)

    def run(self, function: VariableTracker, args: Args, kwargs: Kwargs) -> OperationSteps:
        """Interpret `function(*args, **kwargs)` as the body; its result, a tracker."""
        t = self.t
        self.roots = [function, *args, *kwargs.values()]
        frame, instruction = t.frame, t.instruction
        try:
            result = yield from settle(t.call(function, args, kwargs))
        except Raised as raised:
            detail = f"a {raised.value.cls.__name__} that is not handled inside"
            raise t.unsupported("exception-in-body", detail) from None
        t.frame, t.instruction = frame, instruction
        return result

    def wrapping(self, result: VariableTracker) -> BodyGraph:
        """End the body; its result goes on outside."""
        outside = self._outside()
        escaping = [
            vt.traced
            for vt in reachable([result, *outside])
            if is_a(vt, k.GraphFunction) or _is_in_graph(vt)
        ]
        return self._closed(self.recorder.close_wrapping(escaping))

    def flat(self, result: Any) -> tuple[BodyGraph, Spec]:
        """End the body; it gives the tensors, numbers and None of its result, in order, and the
        structure around."""
        leaves, spec = flatten(self.t, result)
        outside = self._outside()
        graph = self._closed(self.recorder.close([leaf_of(self.t, leaf) for leaf in leaves]))
        self._refuse_leaks(outside, graph)
        return graph, spec

    def alone(self, result: object) -> BodyGraph:
        """End a body that gives one tensor or number; it gives that as it is, not in a tuple."""
        graph, spec = self.flat(result)
        if spec != LEAF:
            raise self.t.unsupported(
                "result-of-body", f"{spec.leaf_count} values as the result of {self.name}"
            )
        output = graph.module.graph.output_node()
        output.args = output.args[0]
        graph.module.recompile()
        return graph

    def refuse_effects(self) -> None:
        """End a body without outputs. Its reads of outside values stay: trackers refer to them."""
        self._outside()
        self.recorder.close([])

    def _refuse_leaks(self, outside: list[Any], graph: BodyGraph) -> None:
        """Reject a value of a flat body that outlives it: it exists only while its operator
        runs."""
        for vt in outside:
            if vt.base is dict:
                forget_undone(self.t, vt)
        if any(
            vt is self.private or (_is_in_graph(vt) and graph.computes(vt.traced))
            for vt in reachable(outside)
        ):
            raise self.t.unsupported("effect-in-body", "a value of the body that gets out of it")

    def _closed(self, graph: BodyGraph) -> BodyGraph:
        if graph.written and not self.permits.writes:
            raise self.t.unsupported("write-in-body", "an in-place write to a tensor from outside")
        if (graph.aliased or graph.overlapping) and not self.permits.aliases:
            raise self.t.unsupported(
                "alias-in-body", "a result that shares memory with an input or another result"
            )
        return graph

    def _outside(self) -> list[Any]:
        """The objects from outside that the body changed.

        Raises Unsupported if it may not, or left a mode changed.
        """
        if self._kept != self.t.states.kept_by_body():
            raise self.t.unsupported("effect-in-body", "a global mode that stays changed")
        if not self.permits.effects and self.t.states.effects() != self._effects:
            raise self.t.unsupported("effect-in-body", "an effect that comes behind the graph")

        resumed = self.t.machine.journal.entries[self._resumed :]
        states = [state for state, *_ in resumed]
        known = self.t.lifetimes.generators[
            : self._generators
        ]  # those that were there before the body
        touched = [
            *self.touched.values(),
            *((vt, self.t.where()) for vt in known if vt.state in states),
        ]
        if not touched:
            return []

        handed = {id(vt) for vt in reachable(self.roots)}
        outside = [
            (vt, where) for vt, where in touched if vt.source is not None or id(vt) in handed
        ]
        for vt, where in outside:
            if not self.permits.effects and not self._is_undone(vt):
                raise Unsupported(
                    "effect-in-body", f"a change of a {vt.cls.__name__} from outside", "", where
                )
        return [vt for vt, _ in outside]

    def has_effects(self) -> bool:
        """Return True if the body leaves an object from outside changed."""
        return not all(map(self._is_undone, self._outside()))

    def _is_undone(self, vt: Any) -> bool:
        """Return True if a dict is as it was before body and trace: `functional_call` replaces
        parameters, and restores them."""
        if vt.base is not dict or vt.source is None or id(vt) in self._written:
            return False
        forget_undone(self.t, vt)
        return not vt.log and not vt.undecided


def _is_in_graph(vt: Any) -> bool:
    """Return True for a value of the graph; a late one is read after it."""
    return (vt.is_symbolic or vt.base is torch.Tensor) and not vt.is_late


def _is_tracker(value: object) -> bool:
    return is_pending(value) or is_a(value, VariableTracker)


def leaf_of(t: Space, leaf: Any) -> object:
    """A result of a flat body as the graph takes it."""
    if leaf.is_symbolic or leaf.base is torch.Tensor:
        return leaf.traced
    if leaf.is_known and leaf.cls in (int, type(None)):
        return leaf.value
    raise t.unsupported("result-of-body", f"a {leaf.cls.__qualname__} among the results of a body")


def record_wrapping(
    t: Space,
    target: object,
    graph: BodyGraph,
    name: str,
    result: VariableTracker,
    operands: Callable[[GraphValue, tuple[Any, ...]], tuple[Any, ...]] = lambda held, inputs: (
        held,
        *inputs,
    ),
    **options: object,
) -> VariableTracker:
    """Record an operator that gives what its body gives: `target(*operands(body, inputs),
    **options)`. What the body returned stays what it is; from here on its tensors are parts of what
    the operator gives."""
    held = t.graph.install(name, graph.module)
    t.graph.call(target, operands(held, (*graph.arguments, *graph.lifted)), options, body=graph)
    return result


@operation
def wrapped(
    t: Space,
    target: object,
    name: str,
    function: Any,
    args: Args,
    kwargs: Kwargs,
    permits: Permits = EVERYTHING,
    **options: Any,
) -> OperationSteps:
    """All of a regular operator: `target` gives what its body gives, and the body is
    `function(*args, **kwargs)`. The options are those of `record_wrapping`."""
    with BodyTrace(t, name, permits) as body:
        result = yield from body.run(function, args, kwargs)
        graph = body.wrapping(result)
    return record_wrapping(t, target, graph, name, result, **options)
