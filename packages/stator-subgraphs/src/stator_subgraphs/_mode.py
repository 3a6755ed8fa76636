"""Calls that change a mode of the process, and how to change it back.

Such a call is recorded like any other, and takes effect while tracing so that what follows is traced under it. A
rollback and the end of the trace set it back: each entry of the table says how, from the arguments and the result.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.amp import autocast_mode
from torch.autograd import grad_mode

exit_autocast: Any = autocast_mode._exit_autocast
enter_inference_mode: Any = grad_mode._enter_inference_mode
exit_inference_mode: Any = grad_mode._exit_inference_mode

Undo = Callable[[], object]
Restorer = Callable[[], Callable[[tuple[Any, ...], Any], Undo]]
"""Called before the call; what it returns is called with the arguments and the result."""


def restore_grad_mode() -> Callable[[tuple[Any, ...], Any], Undo]:
    before = torch.is_grad_enabled()
    return lambda args, result: lambda: torch._C._set_grad_enabled(before)


def leave_autocast() -> Callable[[tuple[Any, ...], Any], Undo]:
    return lambda args, entered: lambda: exit_autocast(entered)


def enter_autocast_again() -> Callable[[tuple[Any, ...], Any], Undo]:
    return lambda args, result: args[0].__enter__


def leave_inference_mode() -> Callable[[tuple[Any, ...], Any], Undo]:
    return lambda args, entered: lambda: exit_inference_mode(entered)


def enter_inference_mode_again() -> Callable[[tuple[Any, ...], Any], Undo]:
    before = torch.is_inference_mode_enabled()
    return lambda args, result: lambda: enter_inference_mode(before)


MODE_CALLS: dict[Any, Restorer] = {
    torch._C._set_grad_enabled: restore_grad_mode,
    autocast_mode._enter_autocast: leave_autocast,
    exit_autocast: enter_autocast_again,
    enter_inference_mode: leave_inference_mode,
    exit_inference_mode: enter_inference_mode_again,
}
