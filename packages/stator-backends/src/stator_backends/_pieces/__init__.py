"""Graphs in pieces: a graph that no compiler takes as a whole is divided at some operators.

    graph          driver
    linear         piece_0 = self.piece_0(x, w);  relu = piece_0[0]
    relu
    setitem        setitem = operator.setitem(y, mask, 0.5)     # as it is: a write to a tensor ...
    sin            piece_1 = self.piece_1(relu, y);  sin = piece_1[0]
    return sin     return (sin,)

The driver is a graph module of its own, which runs operator by operator: pieces before and behind
an operator are compiled, the operator runs natively between them, in program order, and raises at
its own line. Values keep their names. Gradients flow through as in one graph, and no guard is
evaluated between pieces.

Start at `DividedLowering`. `_reasons` decides which operators run natively, `_fragments` where
equal blocks begin, `_division` makes runs of nodes of it, `_driver` makes the modules, and
`_structure` recognizes pieces that share their code.
"""

from stator_backends._pieces._driver import nodes_called
from stator_backends._pieces._lowering import CompiledPiece, Uncompiled
from stator_backends._pieces._structure import NotCompared, argument_key

__all__ = ["CompiledPiece", "NotCompared", "Uncompiled", "argument_key", "nodes_called"]
