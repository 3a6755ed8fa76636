"""Several behaviours of tensors, modules and modes at once, as they meet in everyday code."""

# mypy: ignore-errors

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from integration_tests.corpora.behaviours import Box, program


class Scaled(nn.Module):
    def __init__(self, size: int = 3) -> None:
        super().__init__()
        self.linear = nn.Linear(size, size)
        nn.init.constant_(self.linear.weight, 0.5)
        nn.init.zeros_(self.linear.bias)
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(size), persistent=False)
        self.flag, self.plain = True, torch.ones(size)
        self.calls = 0

    def forward(self, x: Tensor, *, extra: Tensor | None = None) -> Tensor:
        self.calls += 1
        self.seen += 1
        self.mean = self.mean * 0.5 + x.detach().mean(0) * 0.5
        y = self.linear(x) if self.flag else x
        return (y if extra is None else y + extra) * self.plain


SCALED = Scaled()


@program
def a_module_changes_by_every_route(x: Tensor, n: int, box: Box) -> Any:
    y = SCALED(x)
    SCALED.flag = n != 3
    SCALED.plain = SCALED.plain + 1
    setattr(SCALED, "calls", SCALED.calls + 10)
    SCALED.__dict__["calls"] += 1
    SCALED._buffers["seen"] = SCALED.seen + 1
    with torch.no_grad():
        SCALED.linear.weight.mul_(2)
    return y, SCALED(x, extra=x), SCALED.calls, SCALED.seen.clone(), SCALED.mean.detach().clone()


@program
def a_submodule_is_swapped_and_deleted(x: Tensor, n: int, box: Box) -> Any:
    m = nn.Sequential(nn.Identity(), nn.ReLU(), nn.Tanh())
    m[1] = nn.Sigmoid()
    y = m(x)
    del m[0]
    m.append(nn.ELU())
    m.insert(0, nn.Hardtanh())
    m.add_module("last", nn.Identity())
    return (
        y,
        m(x),
        [name for name, _ in m.named_modules()],
        len(m),
        [type(c).__name__ for c in m.children()],
    )


@program
def hooks_that_change_and_remove_themselves(x: Tensor, n: int, box: Box) -> Any:
    m = nn.Identity()
    handles = []

    def once(module: Any, args: Any, result: Any) -> Any:
        handles[0].remove()
        box.log.append("once")
        return result * 2

    handles.append(m.register_forward_hook(once))
    m.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    return m(x), m(x), box.log, len(m._forward_hooks)


@program(breaks="graph-result")
def a_backward_hook_counts(x: Tensor, n: int, box: Box) -> Any:
    w = torch.ones(3, requires_grad=True)
    handle = w.register_hook(lambda g: box.log.append(tuple(g.shape)) or g * n)
    (x.detach() * w).sum().backward()
    handle.remove()
    (x.detach() * w).sum().backward()
    return w.grad, box.log


@program(breaks="graph-result")
def gradients_through_views_and_writes(x: Tensor, n: int, box: Box) -> Any:
    w = torch.ones(2, 3, requires_grad=True)
    y = w * 2
    y[0] = y[0] * n
    y.narrow(1, 0, 1).mul_(3)
    grads = torch.autograd.grad(y.sum(), w)
    return grads, y.detach(), w.requires_grad, y.grad_fn is not None


@program
def modes_nest_and_are_left_by_return(x: Tensor, n: int, box: Box) -> Any:
    def inner(y: Tensor) -> Any:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            if n == 3:
                return y @ y.t(), torch.is_grad_enabled()
            with torch.enable_grad():
                y = y @ y.t()
        return y, torch.is_autocast_enabled("cpu")

    result, flag = inner(x)
    return (
        result.dtype,
        flag,
        torch.is_grad_enabled(),
        torch.is_autocast_enabled("cpu"),
        result.requires_grad,
        result,
    )


@program
def a_generator_closes_while_a_mode_is_open(x: Tensor, n: int, box: Box) -> Any:
    def parts() -> Any:
        with torch.no_grad():
            for i in range(n):
                yield x * i, torch.is_grad_enabled()

    made = parts()
    first = next(made)
    inside = torch.is_grad_enabled()
    made.close()
    return first, inside, torch.is_grad_enabled(), list(made)


@program(breaks="operator-error")
def a_swallowing_manager_around_an_operator_error(x: Tensor, n: int, box: Box) -> Any:
    y = x
    with contextlib.suppress(RuntimeError):
        y = y + 1
        y = y @ torch.ones(7, 7)
        y = y + 100
    try:
        x.view(n, 1000)
    except RuntimeError as error:
        return y, type(error).__name__, torch.is_grad_enabled()


@program(breaks="builtin")
def streams_are_seeded_drawn_and_restored(x: Tensor, n: int, box: Box) -> Any:
    state, py, npy = torch.get_rng_state(), random.getstate(), np.random.get_state()
    torch.manual_seed(n)
    random.seed(n)
    np.random.seed(n)
    drawn = (
        torch.rand(2),
        random.random(),
        random.sample(range(9), 3),
        np.random.rand(2).tolist(),
        torch.randperm(5),
    )
    g = torch.Generator().manual_seed(7)
    again = torch.rand(2, generator=g), torch.randint(0, 9, (3,), generator=g), g.initial_seed()
    torch.set_rng_state(state)
    random.setstate(py)
    np.random.set_state(npy)
    return drawn, again, torch.nn.functional.dropout(x, 0.5, training=n != 3)


@program
def attributes_of_tensors_are_pythons(x: Tensor, n: int, box: Box) -> Any:
    y = x + 1
    y.label, y.parts = "y", [n]
    z = y
    z.parts.append(1)
    alias = y.view(-1)
    has = hasattr(alias, "label"), hasattr(x, "label")
    del y.label
    return (
        has,
        z.parts,
        z,
        getattr(y, "label", "gone"),
        y.T.shape,
        y.mT.shape,
        y.is_leaf,
        y.itemsize,
        y.nbytes,
    )


@program(breaks="tensor-attribute")
def outputs_by_every_route(x: Tensor, n: int, box: Box) -> Any:
    out, other = torch.empty(0), torch.zeros(2, 3)
    torch.mul(box.tensor, n, out=out)
    values, where = torch.empty(0), torch.empty(0, dtype=torch.long)
    torch.max(box.tensor, 1, out=(values, where))
    returned = torch.add(box.tensor, 1, out=other)
    return returned is other, out, values, where, other.data_ptr() == returned.data_ptr(), x + 1


@program(breaks="builtin")
def shapes_that_change_in_place(x: Tensor, n: int, box: Box) -> Any:
    t = torch.arange(6.0)
    t.resize_(2, 3).unsqueeze_(0).squeeze_()
    t.t_().swapaxes_(0, 1)
    s = torch.zeros(4)
    s.set_(t.flatten()[:3])
    d = (x * 2).detach_()
    return t, s, d, d.requires_grad, t.is_contiguous(), t.storage_offset()


@program
def parameters_are_shared_and_rebound(x: Tensor, n: int, box: Box) -> Any:
    a, b = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
    nn.init.ones_(a.weight)
    b.weight = a.weight
    with torch.no_grad():
        a.weight[0] = n
    names = [name for name, _ in nn.ModuleList([a, b]).named_parameters()]
    b.weight = nn.Parameter(b.weight.detach().clone() + 1, requires_grad=False)
    return (
        names,
        b(x),
        a.weight is b.weight,
        b.weight.requires_grad,
        sum(p.numel() for p in a.parameters()),
    )


@program
def functional_call_and_state(x: Tensor, n: int, box: Box) -> Any:
    m = nn.Linear(3, 2)
    nn.init.constant_(m.weight, 1.0)
    nn.init.zeros_(m.bias)
    state = {k: v.detach() * n for k, v in m.state_dict().items()}
    y = torch.func.functional_call(m, state, (x,))
    missing = m.load_state_dict({"weight": torch.zeros(2, 3)}, strict=False)
    return y, m(x), missing.missing_keys, list(m.state_dict()), m.training, m.eval().training


@program
def default_type_and_device_in_a_callee(x: Tensor, n: int, box: Box) -> Any:
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64 if n == 3 else torch.float32)
        made = torch.ones(2), torch.tensor([1.5]), torch.arange(2.0)
    finally:
        torch.set_default_dtype(before)
    with torch.device("meta"):
        shape = torch.ones(n, 2).device.type
    return made, shape, torch.ones(1).dtype, x.double() * 1.5


@program(breaks="builtin")
def arrays_and_tensors_share(x: Tensor, n: int, box: Box) -> Any:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = torch.from_numpy(a)
    t += n
    a[0] = 1
    b = (x.detach()[:2].numpy() * 2 + a).sum(axis=0)
    return t, b.shape, float(b[0]), np.float32(n) * t, a.dtype == np.float32, torch.as_tensor(b)


@program(breaks="data-dependent-branch")
def tensor_truth_and_membership(x: Tensor, n: int, box: Box) -> Any:
    t = torch.tensor([1, n])
    found = [
        n in t,
        bool(t[0]),
        t.tolist(),
        int(t.sum()),
        t.max().item() > 2,
        len(t),
        [int(v) for v in t],
    ]
    try:
        bool(t)
    except RuntimeError as error:
        found.append(str(error))
    return found, x if t[1] > 2 else x * 2


@program
def symbolic_numbers_everywhere(x: Tensor, n: int, box: Box) -> Any:
    r, c = x.shape
    half = c / 2
    text = f"{r}x{c}:{half:.1f}"
    table = {r: "r", (r, c): "rc"}
    flags = r > 2, r == n, not r % 2, bool(r), r and c, r or c
    return (
        text,
        table.get(n),
        flags,
        [*range(r)],
        list(x.shape),
        pow(r, 2),
        divmod(r * c, n),
        max(r, n),
        r << 1,
        x.reshape(c, -1),
        x.new_zeros(r * n),
    )


@program(breaks="graph-result")
def a_training_step_by_hand(x: Tensor, n: int, box: Box) -> Any:
    w = torch.full((3,), 0.5, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        loss = ((x.detach() * w).sum(1) - n).pow(2).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([w], 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, w.detach().clone(), w.grad
