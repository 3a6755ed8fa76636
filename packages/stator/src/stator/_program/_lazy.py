"""First call of a compiled lazy module (`nn.LazyLinear` and its like): it makes its parameters,
then it is traced."""

import torch
from stator_bytecode import FlatState
from torch.nn.modules.lazy import LazyModuleMixin

from stator._program._target import Root, Target

_CALL = torch.nn.Module._call_impl.__code__
_INFER = LazyModuleMixin._infer_parameters
_HOOKS_OF_ALL = torch.nn.modules.module._global_forward_pre_hooks
_ALWAYS_CALLED = torch.nn.modules.module._global_forward_hooks_always_called


def make_parameters(target: Target, state: FlatState) -> None:
    """Run the hook that makes the parameters if it is the first thing that this call of a module
    would run.

    The hook removes itself, so the call that is traced afterwards does the rest. Other hooks before
    it have to run first; such a call runs eagerly as a whole.
    """
    if not isinstance(target, Root) or target.code is not _CALL:
        return

    module, args, kwargs = state
    is_lazy = isinstance(module, LazyModuleMixin)
    if not is_lazy or _HOOKS_OF_ALL or _ALWAYS_CALLED:
        return
    if module._forward_hooks_always_called:  # they would run where the initialization raises
        return

    hook = next(iter(module._forward_pre_hooks.values()), None)
    if hook is not None and hook == module._infer_parameters and hook.__func__ is _INFER:
        hook(module, args, kwargs)
