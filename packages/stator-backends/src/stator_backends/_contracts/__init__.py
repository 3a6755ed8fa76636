"""Output contracts: properties of the results of a graph that compilers do not keep.

A compiler returns equal numbers, but not always tensors that share memory, have a gradient history
or count their versions as those of the program. Each contract reads what the trace recorded, before
a backend changes the graph, and returns a wrapper that restores its property at each call:

    restores = prepare(gm)
    compiled = restore_all(backend(gm, inputs), restores)
"""

from collections.abc import Callable, Sequence

from torch.fx import GraphModule

from stator_backends._backend import Compiled
from stator_backends._contracts._history import keep_history
from stator_backends._contracts._repeats import keep_repeats
from stator_backends._contracts._shared_memory import share_memory
from stator_backends._contracts._versions import keep_versions

ResultWrapper = Callable[[Compiled], Compiled]
Contract = Callable[[GraphModule], ResultWrapper]

CONTRACTS: tuple[Contract, ...] = (keep_repeats, keep_versions, keep_history, share_memory)
"""The contracts from the outermost wrapper to the innermost. The first one drops results of the
graph and repeats them, the last one adds some and drops them again."""


def prepare(gm: GraphModule) -> list[ResultWrapper]:
    """Read what each contract has to restore; may append results to ``gm``."""
    return [contract(gm) for contract in CONTRACTS]


def restore_all(compiled: Compiled, restores: Sequence[ResultWrapper]) -> Compiled:
    """Wrap ``compiled`` so that its results keep all contracts; itself where there is nothing to
    restore."""
    for restore in reversed(restores):
        compiled = restore(compiled)
    return compiled
