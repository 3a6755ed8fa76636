"""`torch.inference_mode`: for the graph it is a block without gradients, and the entry marks the
tensors made inside.

    with torch.inference_mode():      _set_grad_enabled(False)
        y = x * 2                     y = x * 2
                                      _set_grad_enabled(True)       entry: g = as_inference(g, [0])

While tracing it is entered for real, so that each example has the mark and its restrictions. A
break inside leaves the mode at the end of the graph, and the entry enters it again for what
follows.

`_tensors/_inference_mode.py` has the mode as it is left and entered again.
"""

import torch
from stator_bytecode import Result

from stator_variables._objects import _dict_entries
from stator_variables._space import Space
from stator_variables._tensors._global_mode import GRAD, put
from stator_variables._tensors._inference_mode import InferenceTracker, kept_modes, leave_mode
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, is_a
from stator_variables._trackers import NONE

handlers = FunctionTable("inference mode")
_CONTEXT = "_inference_mode_context"


@handlers.handles(torch.inference_mode.__enter__)
def enter(t: Space, args: Args, kwargs: Kwargs) -> Result:
    namespace = args[0].namespace
    mode = MISSING if namespace is None else t.lookup(namespace, "mode")
    if mode is MISSING or not isinstance(mode.constant(), bool):
        return MISSING

    outside = (
        t.inference.entered[0].before[0]
        if t.inference.entered
        else torch.is_inference_mode_enabled()
    )
    if outside and not mode.value:
        raise t.unsupported("mode-value", "leaving the inference mode that the whole graph runs in")
    t.modes.setdefault(GRAD, GRAD.now)  # as it is outside
    made = InferenceTracker(mode.value, kept_modes(t))
    t.inference.ever = True
    # also before it is set the first time: a rollback needs the earlier value
    put(t, GRAD, not mode.value, mode.value)
    made.enter()
    t.inference.entered.append(made)
    t.journal.record(lambda: t.inference.entered.pop().leave())
    _dict_entries.set_name(t, namespace, _CONTEXT, made)
    return NONE


@handlers.handles(torch.inference_mode.__exit__)
def leave(t: Space, args: Args, kwargs: Kwargs) -> Result:
    entered = MISSING if args[0].namespace is None else t.lookup(args[0].namespace, _CONTEXT)
    if (
        not is_a(entered, InferenceTracker)
        or not t.inference.entered
        or t.inference.entered[-1] is not entered
    ):
        return MISSING
    leave_mode(t)
    return NONE
