"""A forward, pre-forward, backward or global module hook is added, reordered, removed after the
first call."""

# mypy: ignore-errors

from __future__ import annotations

import torch
from torch import nn

from integration_tests.corpora.behaviours import program

model = nn.Linear(3, 2)
torch.manual_seed(0)
with torch.no_grad():
    for parameter in model.parameters():
        parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
handles = {}


def doubled(module, args, output):
    return output * 2


def shifted(module, args):
    return (args[0] + 1,)


@program
def a_forward_hook_is_added_and_removed_between_calls(x, n, box):
    y = model(x)
    if "forward" in handles:
        handles.pop("forward").remove()
    else:
        handles["forward"] = model.register_forward_hook(doubled)
    return y, len(model._forward_hooks)


@program
def a_pre_hook_changes_the_arguments(x, n, box):
    handle = model.register_forward_pre_hook(shifted)
    y = model(x)
    handle.remove()
    return y, model(x)


@program
def a_pre_hook_with_keywords(x, n, box):
    def hook(module, args, kwargs):
        return args, {**kwargs, "input": kwargs["input"] * n}

    handle = model.register_forward_pre_hook(hook, with_kwargs=True)
    y = model(input=x)
    handle.remove()
    return y


@program
def a_forward_hook_with_keywords(x, n, box):
    def hook(module, args, kwargs, output):
        box.log.append(sorted(kwargs))
        return output + n

    handle = model.register_forward_hook(hook, with_kwargs=True)
    y = model(input=x)
    handle.remove()
    return y


@program
def hooks_run_in_order_and_prepend(x, n, box):
    added = [
        model.register_forward_hook(lambda m, a, out, i=i: box.log.append(i)) for i in range(2)
    ]
    added.append(
        model.register_forward_hook(lambda m, a, out: box.log.append("first"), prepend=True)
    )
    y = model(x)
    for handle in added:
        handle.remove()
    return y, box.log


@program(breaks="operator-error")
def a_hook_that_is_always_called_sees_an_error(x, n, box):
    handle = model.register_forward_hook(
        lambda m, a, out: box.log.append(out is None), always_call=True
    )
    try:
        model(torch.ones(7))
    except RuntimeError:
        box.log.append("error")
    handle.remove()
    return box.log, x * n


@program
def a_hook_that_raises(x, n, box):
    def hook(module, args, output):
        raise ValueError(f"seen {n}")

    handle = model.register_forward_hook(hook)
    try:
        model(x)
    except ValueError as error:
        return str(error), x * n
    finally:
        handle.remove()


@program
def a_hook_keeps_features(x, n, box):
    found = {}
    handle = model.register_forward_hook(lambda m, args, out: found.update(inp=args[0], out=out))
    model(x)
    handle.remove()
    return found["out"] * n, found["inp"] is x


@program(breaks="backward")
def a_full_backward_hook(x, n, box):
    handle = model.register_full_backward_hook(
        lambda m, gin, gout: box.log.append([g.sum() for g in gout])
    )
    model(x * 2).sum().backward()
    handle.remove()
    model.zero_grad()
    return box.log


@program(breaks="backward")
def a_full_backward_pre_hook(x, n, box):
    handle = model.register_full_backward_pre_hook(lambda m, gout: tuple(g * n for g in gout))
    model(x).sum().backward()
    handle.remove()
    grad = model.weight.grad
    model.zero_grad()
    return grad


@program
def a_global_forward_hook(x, n, box):
    handle = nn.modules.module.register_module_forward_hook(lambda m, a, out: out + n)
    try:
        y = model(x)
    finally:
        handle.remove()
    return y, model(x)


@program
def a_global_forward_pre_hook(x, n, box):
    handle = nn.modules.module.register_module_forward_pre_hook(lambda m, args: (args[0] * n,))
    y = model(x)
    handle.remove()
    return y, model(x)


class Guarded(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.ReLU(), nn.Identity())

    def forward(self, x, scale=1.0):
        return self.inner(x) * scale


guarded = Guarded()


@program
def a_hook_on_a_submodule(x, n, box):
    handle = guarded.inner[1].register_forward_hook(lambda m, a, out: out - n)
    y = guarded(x, scale=2.0)
    handle.remove()
    return y, guarded(x)


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
    hooked = nn.Linear(2, 1, bias=False)
    hooked.register_state_dict_pre_hook(lambda m, prefix, keep: box.log.append(prefix))
    handle = hooked._register_state_dict_hook(
        lambda m, state, prefix, meta: state.update(extra=torch.ones(1))
    )
    found = list(hooked.state_dict())
    handle.remove()
    return found, box.log, x * n


@program
def call_is_replaced_on_the_instance(x, n, box):
    guarded.forward = lambda x, scale=1.0: x * n
    y = guarded(x)
    del guarded.forward
    return y, guarded(x)
