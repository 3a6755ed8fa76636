"""Calls whose graphs are too small to gain anything: the function runs natively for them.

    for step in range(4):
        x = x * 2
        print(step)

To cross a break costs as much as a few operators, and an operator alone has no other to be fused
with. An entry of a function runs it natively from its sixteenth call on, if

- its calls break at two places or more, and the graphs that were made of the function have fewer
  than two operators on average, views aside;
- no call can take another path: the function has no branch but the end of its loops, no other
  function of the program was traced in it, and none of a library that computed something;
- all of its parameters are positional.

Calls for which other guards hold are captured as before. Time plays no part.
"""

import operator
from functools import partial

from stator_bytecode import decode
from stator_guards import Entry

from stator._entries._entry_pool import EntryPool
from stator._program._call_history import FirstRuns
from stator._program._target import Root, Target
from stator._program._trace_location import operators_of
from stator.errors import Unsupported

RUNS = 16
OPERATORS = 2
"""The operators per graph that are worth a break."""
_NO_BRANCHES = frozenset({"FOR_ITER", "JUMP"})


def watch_first_calls(entry: Entry, target: Target, pool: EntryPool) -> None:
    """Count the calls of an entry that breaks, if none of them can take another path."""
    reason = entry.data.reason
    if isinstance(target, Root) and reason is not None and reason.reason != "stress":
        jumps = {instr.op for instr in decode(target.code).instructions if instr.target >= 0}
        count = target.code.co_argcount + (target.fn is None)  # a state may begin with the function
        if jumps <= _NO_BRANCHES and count == len(target.parameters):
            FirstRuns.install(entry, pool, partial(_decide, target), RUNS)


def _decide(target: Root, entry: Entry, pool: EntryPool, left: int) -> None:
    """Let an entry that gains nothing run the function natively after its last counted call."""
    if left or pool.history.enters_program or pool.history.contributing:
        return
    entries = [each for place in pool.places.values() for each in place.latest]
    graphs = [each.data.graph for each in entries if each.data.graph is not None]
    breaks_again = any(each.data.reason and each.data.target is not target for each in entries)
    if breaks_again and sum(map(operators_of, graphs)) < OPERATORS * len(graphs):
        detail = f"{target.name}, whose graphs have fewer than two operators between breaks"
        entry.data.reason = Unsupported("native-call", detail, "", entry.data.reason.where)
        entry.run = target.fn or operator.call
