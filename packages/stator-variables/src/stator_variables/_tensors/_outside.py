"""Modes for functions of torch that were entered before the region: they must not run while guards
are checked and graphs run.

They are taken from the stack, interpreted like those that the region enters, and put back by the
end of the entry:

    torch.set_default_device("cpu")        v0 = taken_modes()[0]
    compiled(x)                            g = graph(x)
                                           push_mode(v0)
"""

from __future__ import annotations

import threading
from typing import Any

import torch
from stator_guards import CallSource, ItemSource, Length
from torch.overrides import TorchFunctionMode

from stator_variables._space import Space
from stator_variables._tensors._indexing_mode import indexing_mode
from stator_variables._trace._overrides import Overrides

_C: Any = torch._C


class _Taken(threading.local):
    modes: tuple[Any, ...] = ()


_taken = _Taken()


def taken_modes() -> tuple[Any, ...]:
    """The outermost first."""
    return _taken.modes


def can_be_taken() -> bool:
    """Return True if all modes on the stack are enabled and can be interpreted."""
    modes = [_C._get_function_stack_at(at) for at in range(_C._len_torch_function_stack())]
    known = all(
        isinstance(mode, TorchFunctionMode) and type(mode) is not indexing_mode() for mode in modes
    )
    return known and not _C._is_torch_function_all_disabled()


class taken:
    """Around a call that puts back what it leaves entered; where it raises they are as they were.

    Not a `contextmanager`, which sets the traceback of what the program raises through its class.
    """

    def __enter__(self) -> tuple[Any, ...]:
        self.outer, self.modes = _taken.modes, _popped()
        _taken.modes = self.modes
        return self.modes

    def __exit__(self, kind: object, *raised: object) -> None:
        if kind is not None:  # it propagates; the code of the program that catches it has its modes
            give_back(self.modes)
        _taken.modes = self.outer


def give_back(modes: tuple[Any, ...]) -> None:
    _popped()
    for mode in modes:
        _C._push_on_torch_function_stack(mode)


def _popped() -> tuple[Any, ...]:
    return tuple(_C._pop_torch_function_stack() for _ in range(_C._len_torch_function_stack()))[
        ::-1
    ]


def enter_taken(t: Space) -> None:
    """The trace begins with them."""
    overrides = t.state(Overrides)  # as they are outside
    if modes := taken_modes():
        whole = CallSource(taken_modes)
        t.guard(whole, Length(len(modes)))
        overrides.modes = tuple(
            t.wrap(mode, ItemSource(whole, at)) for at, mode in enumerate(modes)
        )
