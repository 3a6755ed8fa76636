"""A forward, pre-forward, backward or global module hook is added, reordered, removed after the first call."""

# mypy: ignore-errors

from __future__ import annotations

import torch
from torch import nn

from integration_tests.behaviours import program

MODEL = nn.Linear(3, 2)
torch.manual_seed(0)
with torch.no_grad():
    for parameter in MODEL.parameters():
        parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
HANDLES = {}


def doubled(module, args, output):
    return output * 2


def shifted(module, args):
    return (args[0] + 1,)


@program
def a_forward_hook_is_added_and_removed_between_calls(x, n, box):
    y = MODEL(x)
    if "forward" in HANDLES:
        HANDLES.pop("forward").remove()
    else:
        HANDLES["forward"] = MODEL.register_forward_hook(doubled)
    return y, len(MODEL._forward_hooks)


@program
def a_pre_hook_changes_the_arguments(x, n, box):
    handle = MODEL.register_forward_pre_hook(shifted)
    y = MODEL(x)
    handle.remove()
    return y, MODEL(x)


@program
def a_pre_hook_with_keywords(x, n, box):
    def hook(module, args, kwargs):
        return args, {**kwargs, "input": kwargs["input"] * n}

    handle = MODEL.register_forward_pre_hook(hook, with_kwargs=True)
    y = MODEL(input=x)
    handle.remove()
    return y


@program
def a_forward_hook_with_keywords(x, n, box):
    def hook(module, args, kwargs, output):
        box.log.append(sorted(kwargs))
        return output + n

    handle = MODEL.register_forward_hook(hook, with_kwargs=True)
    y = MODEL(input=x)
    handle.remove()
    return y


@program
def hooks_run_in_order_and_prepend(x, n, box):
    handles = [MODEL.register_forward_hook(lambda m, a, out, i=i: box.log.append(i)) for i in range(2)]
    handles.append(MODEL.register_forward_hook(lambda m, a, out: box.log.append("first"), prepend=True))
    y = MODEL(x)
    for handle in handles:
        handle.remove()
    return y, box.log


@program
def a_hook_that_is_always_called_sees_an_error(x, n, box):
    handle = MODEL.register_forward_hook(lambda m, a, out: box.log.append(out is None), always_call=True)
    try:
        MODEL(torch.ones(7))
    except RuntimeError:
        box.log.append("error")
    handle.remove()
    return box.log, x * n


@program
def a_hook_that_raises(x, n, box):
    def hook(module, args, output):
        raise ValueError(f"seen {n}")

    handle = MODEL.register_forward_hook(hook)
    try:
        MODEL(x)
    except ValueError as error:
        return str(error), x * n
    finally:
        handle.remove()


@program
def a_hook_keeps_features(x, n, box):
    found = {}
    handle = MODEL.register_forward_hook(lambda m, args, out: found.update(inp=args[0], out=out))
    MODEL(x)
    handle.remove()
    return found["out"] * n, found["inp"] is x


@program
def a_full_backward_hook(x, n, box):
    handle = MODEL.register_full_backward_hook(lambda m, gin, gout: box.log.append([g.sum() for g in gout]))
    MODEL(x * 2).sum().backward()
    handle.remove()
    MODEL.zero_grad()
    return box.log


@program
def a_full_backward_pre_hook(x, n, box):
    handle = MODEL.register_full_backward_pre_hook(lambda m, gout: tuple(g * n for g in gout))
    MODEL(x).sum().backward()
    handle.remove()
    grad = MODEL.weight.grad
    MODEL.zero_grad()
    return grad


@program
def a_global_forward_hook(x, n, box):
    handle = nn.modules.module.register_module_forward_hook(lambda m, a, out: out + n)
    try:
        y = MODEL(x)
    finally:
        handle.remove()
    return y, MODEL(x)


@program
def a_global_forward_pre_hook(x, n, box):
    handle = nn.modules.module.register_module_forward_pre_hook(lambda m, args: (args[0] * n,))
    y = MODEL(x)
    handle.remove()
    return y, MODEL(x)


@program
def a_global_hook_stays_for_the_next_call(x, n, box):
    y = MODEL(x)
    if "global" in HANDLES:
        HANDLES.pop("global").remove()
    else:
        HANDLES["global"] = nn.modules.module.register_module_forward_hook(lambda m, a, out: out * 3)
    return y


class Guarded(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.ReLU(), nn.Identity())

    def forward(self, x, scale=1.0):
        return self.inner(x) * scale


GUARDED = Guarded()


@program
def a_hook_on_a_submodule(x, n, box):
    handle = GUARDED.inner[1].register_forward_hook(lambda m, a, out: out - n)
    y = GUARDED(x, scale=2.0)
    handle.remove()
    return y, GUARDED(x)


@program
def a_registration_hook(x, n, box):
    handle = nn.modules.module.register_module_parameter_registration_hook(
        lambda m, name, p: box.log.append((type(m).__name__, name))
    )
    try:
        nn.Linear(1, 1)
    finally:
        handle.remove()
    return box.log, x * n


@program
def a_state_dict_hook(x, n, box):
    model = nn.Linear(2, 1, bias=False)
    model.register_state_dict_pre_hook(lambda m, prefix, keep: box.log.append(prefix))
    handle = model._register_state_dict_hook(lambda m, state, prefix, meta: state.update(extra=torch.ones(1)))
    found = list(model.state_dict())
    handle.remove()
    return found, box.log, x * n


@program
def call_is_replaced_on_the_instance(x, n, box):
    GUARDED.forward = lambda x, scale=1.0: x * n
    y = GUARDED(x)
    del GUARDED.forward
    return y, GUARDED(x)
