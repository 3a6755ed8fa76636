"""`torch.inference_mode`: to the graph it is a block without gradients, and the entry marks the tensors made inside.

    with torch.inference_mode():      _set_grad_enabled(False)
        y = x * 2                     y = x * 2
                                      _set_grad_enabled(True)       entry: g = as_inference(g, [0])

While tracing it is entered for real, so that each example says whether it is marked, and what may not be done with it.
A break inside leaves the mode at the end of the graph, and the entry enters it again for what comes.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from stator_bytecode import HandlerTable
from torch.autograd import grad_mode

from stator_variables import _kinds as k
from stator_variables._model import _dictionary
from stator_variables._torch._modes import GRAD, put
from stator_variables._tracing import Tracing
from stator_variables._tracker import MISSING, VariableTracker

handlers: HandlerTable[Any, Any] = HandlerTable("inference mode")
ENTER: Any = grad_mode._enter_inference_mode
EXIT: Any = grad_mode._exit_inference_mode
_CONTEXT = "_inference_mode_context"


class InferenceTracker(VariableTracker):
    """What `torch.inference_mode` entered, and the modes before."""

    cls: type = torch._C._InferenceMode

    def __init__(self, mode: bool) -> None:
        self.before = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
        self.mode = mode

    def enter(self) -> None:
        self._context = ENTER(self.mode)

    def leave(self) -> None:
        EXIT(self._context)

    @contextlib.contextmanager
    def outside(self) -> Iterator[None]:
        """As it was before this was entered."""
        with torch.inference_mode(self.before[0]), torch.set_grad_enabled(self.before[1]):
            yield


@handlers.handles(torch.inference_mode.__enter__)
def enter(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    namespace = args[0].namespace
    mode = MISSING if namespace is None else _dictionary.get_name(t, namespace, "mode")
    if mode is MISSING or not isinstance(mode.constant(), bool):
        return MISSING
    outside = t.inference[0].before[0] if t.inference else torch.is_inference_mode_enabled()
    if outside and not mode.value:
        raise t.unsupported("mode-value", "leaving the inference mode that the whole graph runs in")
    t.modes.setdefault(GRAD, GRAD.now)  # as it is outside
    made = InferenceTracker(mode.value)
    t.infers = True
    put(t, GRAD, not mode.value)  # ahead of what sets it, too: to take it back is to know what it was
    made.enter()
    t.inference.append(made)
    t.journal.record(lambda: t.inference.pop().leave())
    _dictionary.set_name(t, namespace, _CONTEXT, made)
    return k.NONE


@handlers.handles(torch.inference_mode.__exit__)
def leave(t: Tracing, args: list[Any], kwargs: dict[str, Any]) -> Any:
    entered = MISSING if args[0].namespace is None else _dictionary.get_name(t, args[0].namespace, _CONTEXT)
    if not isinstance(entered, InferenceTracker) or not t.inference or t.inference[-1] is not entered:
        return MISSING
    _exit(t)
    return k.NONE


def _exit(t: Tracing) -> None:
    entered = t.inference.pop()
    entered.leave()

    def undo() -> None:
        entered.enter()
        t.inference.append(entered)

    t.journal.record(undo)
    put(t, GRAD, entered.before[1])


def effects(e: Any) -> None:
    """What is still entered: the graph leaves it, and the entry enters it again."""
    t, still = e.t, list(e.t.inference)
    while t.inference:
        _exit(t)
    t.left += still
    t.journal.record(t.left.clear)
    for entered in t.left:
        e.expr(entered)


def rebuild(e: Any, vt: Any) -> str:
    is_entered = any(vt is entered for entered in (*e.t.inference, *e.t.left))
    made = e.capture(ENTER, "enter_inference_mode") if is_entered else e.capture(vt.cls, "InferenceMode")
    return str(e.bind(vt, f"{made}({vt.mode})"))
