"""Calls that change a mode of the process, and how to change it back.

Such a call is recorded like any other, and takes effect while tracing so that what follows is traced under it. A
rollback and the end of the trace set it back: each entry of the table says how.
"""

from collections.abc import Callable
from typing import Any

import attrs
import torch
from torch.amp import autocast_mode
from torch.autograd import grad_mode

exit_autocast: Any = autocast_mode._exit_autocast
enter_inference_mode: Any = grad_mode._enter_inference_mode
exit_inference_mode: Any = grad_mode._exit_inference_mode


@attrs.frozen
class ModeCall:
    """`undo(before, args, result)` sets back what a call changed; `before` is what `look` said ahead of it."""

    undo: Callable[[Any, Any, Any], object]
    look: Callable[[], Any] = lambda: None


MODE_CALLS = {
    torch._C._set_grad_enabled: ModeCall(lambda before, *_: torch._C._set_grad_enabled(before), torch.is_grad_enabled),
    autocast_mode._enter_autocast: ModeCall(lambda before, args, entered: exit_autocast(entered)),
    exit_autocast: ModeCall(lambda before, args, result: args[0].__enter__()),
    enter_inference_mode: ModeCall(lambda before, args, entered: exit_inference_mode(entered)),
    exit_inference_mode: ModeCall(lambda before, *_: enter_inference_mode(before), torch.is_inference_mode_enabled),
}
