"""Equal calls of modules in one trace: what the first one does is repeated, not interpreted.

    layers[0](x)   interpreted: guards about layers[0], nodes n1 .. n22, the result n22
    layers[1](x)   the same guards hold of layers[1]: they are added for it, and the nodes are
                   recorded again with its parameters and with this x

A call is repeated if nothing that the first one read can be another for this one: all guards about
its objects hold of the same parts of the new ones, the tensors that it takes are alike, and the
modes are the same. It must have done nothing but compute: any other effect, and the call is
interpreted each time. So it is once the program has mutated an existing object.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import Factory, define, field
from stator_variables import MISSING, AccessLogs, Args, Kwargs, Space, real_of, source_of
from torch.fx import Node

from stator_subgraphs._equal_call_record import Difference, EqualCallRecord, effect_of
from stator_subgraphs._interpreted_call import InterpretedCall, called, reason_of_arguments
from stator_subgraphs._moment import Moment, ReadableChanges, moment_of
from stator_subgraphs._new_objects import NewObjectAccess, new_objects
from stator_subgraphs._operators._reuse import RegionCall
from stator_subgraphs._state import GraphState

MANY = 4
"""The calls that a call is compared with."""
PATIENCE = 3
"""The failures in a row after which calls are interpreted without looking for equal ones: up to
three kinds of blocks may follow one another."""
GROUPS = 16
"""The number of groups of calls that are kept for a class."""


@define(eq=False)
class AlikeCalls:
    """Calls of modules of one class that begin alike: in the same state, with arguments alike."""

    state: Any
    outline: Any
    interpreted: list[InterpretedCall] = Factory(list)
    failures: int = 0
    """The calls in a row that none of these was repeated for."""
    difference: Difference = Factory(partial(Difference, ""))
    """The reason of the last of these."""

    def has(self, moment: Moment, call: RegionCall) -> bool:
        """Return True if a call begins like these."""
        return bool(self.state == moment.state and self.outline == call.outline)


@define(eq=False)
class EqualCalls:
    """See the module. One for each trace, of which `t` is the state."""

    t: Space
    state: GraphState
    changes: ReadableChanges = field(init=False)
    logs: AccessLogs = field(init=False)
    known: dict[type, list[AlikeCalls]] = Factory(dict)
    record: EqualCallRecord = Factory(EqualCallRecord)

    @changes.default
    def _changes(self) -> ReadableChanges:
        return ReadableChanges(self.t)

    @logs.default
    def _logs(self) -> AccessLogs:
        return AccessLogs(self.t)

    def _moment(self) -> Moment | None:
        return moment_of(self.t, self.state, self.changes)

    def begun(self, function: Any, args: Args, kwargs: Kwargs) -> Callable[[Any], None] | None:
        """Note a call that is interpreted now; the function is called with its result."""
        start = self._moment()
        last = self._last_node()
        writes = len(self.t.heap.writes)
        given = new_objects([*args, *kwargs.values()])
        log = self.logs.begin(given) if given and start is not None else None

        def returned(result: Any) -> None:
            if log is not None:
                self.logs.end(log, result)
            if start is not None and start == self._moment() and bool(given) == (log is not None):
                access = None if log is None else NewObjectAccess(self.t, log, result)
                self._remember(function, args, kwargs, (last, self._last_node()), result, access)
                return
            changed = [vt.source for vt in self.t.heap.writes[writes:] if vt.source is not None]
            self._note_alone(args[0], effect_of(source_of(args[0]), changed))

        return None if start is None else returned

    def repeated(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Return the result of a call that does what an earlier one did; MISSING without one."""
        cls = type(real_of(args[0]))
        if not self.known.get(cls):
            return MISSING

        start = self._moment()
        call = None if start is None else called(self.t, function, args, kwargs)
        if start is None or call is None:
            return MISSING

        alike = self._group(cls, start, call)
        if alike is None or not alike.interpreted:
            return MISSING
        if alike.failures >= PATIENCE:
            self.record.left[cls] += 1
            self._note_different(args[0], alike.difference)
            return MISSING

        difference = Difference("")
        for earlier in alike.interpreted:
            result = earlier.repeat(self.state, call, self.logs)
            if type(result) is not Difference:
                alike.failures = 0
                self.record.add_repeated(cls, source_of(args[0]))
                return result
            difference = result

        alike.failures += 1
        alike.difference = difference
        self.record.add_different(cls, source_of(args[0]), difference.text)
        self._note_different(args[0], difference)
        return MISSING

    def _note_different(self, module: Any, difference: Difference) -> None:
        """Note a difference that most calls of a stack have."""
        if difference.of_new_object:
            self._note_alone(module, difference.text)

    def _group(self, cls: type, moment: Moment, call: RegionCall) -> AlikeCalls | None:
        """Return the calls that began like this one."""
        return next((each for each in self.known[cls] if each.has(moment, call)), None)

    def _remember(
        self,
        function: Any,
        args: Args,
        kwargs: Kwargs,
        nodes: tuple[Node, Node],
        result: Any,
        access: NewObjectAccess | None,
    ) -> None:
        call = called(self.t, function, args, kwargs)
        moment = self._moment()
        if call is None:
            self._note_alone(args[0], reason_of_arguments(args, kwargs))
        if call is None or moment is None or nodes[0].graph is None:
            return
        groups = self.known.setdefault(type(real_of(args[0])), [])
        alike = self._group(type(real_of(args[0])), moment, call)
        if alike is None:
            alike = AlikeCalls(moment.state, call.outline)
            groups.append(alike)
            del groups[:-GROUPS]  # the state of the oldest seldom comes back

        if len(alike.interpreted) < MANY:
            written, known = len(self.state.root.facts.written), alike.interpreted
            interpreted = InterpretedCall(call, nodes, result, written, access)
            known.append(interpreted)
            self.t.journal.record(lambda: known.remove(interpreted))

    def _note_alone(self, module: Any, text: str) -> None:
        self.record.add_alone(type(real_of(module)), source_of(module), text)

    def _last_node(self) -> Node:
        return self.state.root.graph._root.prev
