"""Packed sequences: how many rows each step has is data, which `torch.nn.utils.rnn` reads time and
again.

So packing, unpacking and a recurrent layer over what was packed run natively, each as a whole: one
break for each instead of one for every number that is read, in continuations that would depend on
it.
"""

from typing import Any

from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from stator_variables._space import Space
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs

handlers = FunctionTable("packed sequence")


@handlers.handles_each({layer.forward: layer for layer in (nn.RNN, nn.GRU, nn.LSTM)})
def run_layer(t: Space, args: Args, kwargs: Kwargs, of: type) -> Any:
    if any(vt.cls is PackedSequence for vt in (*args, *kwargs.values())):
        refuse(t, args, kwargs, f"a {of.__name__} over a packed sequence")
    return MISSING


@handlers.handles_each(
    {pack_padded_sequence: "packing of a sequence", pad_packed_sequence: "unpacking of a sequence"}
)
def refuse(t: Space, args: Args, kwargs: Kwargs, of: str) -> Any:
    raise t.unsupported("data-dependent-shape", of)
