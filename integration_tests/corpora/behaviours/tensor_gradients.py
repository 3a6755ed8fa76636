"""`backward()` and `autograd.grad` inside the region, what they leave on leaves, and hooks that
they run."""

# mypy: ignore-errors

from __future__ import annotations

import torch

from integration_tests.corpora.behaviours import program


def leaf(n):
    return torch.linspace(-1, n, 4).requires_grad_()


@program
def backward_fills_the_gradient_of_an_argument(x, n, box):
    if x.requires_grad:
        (x * n).pow(2).sum().backward()
        return x.grad * 2
    return x * 2


@program(breaks="backward")
def backward_accumulates(x, n, box):
    w = leaf(n)
    for _ in range(2):
        (w * n).sum().backward()
    return w.grad, w


@program(breaks="backward")
def backward_of_a_leaf_made_here(x, n, box):
    w = leaf(n)
    loss = (w**2).sum()
    loss.backward()
    w.data -= 0.1 * w.grad
    w.grad = None
    return w, loss.detach()


@program(breaks="backward")
def backward_with_a_gradient_and_retained_graph(x, n, box):
    w = leaf(n)
    y = w.exp()
    y.backward(torch.ones_like(y), retain_graph=True)
    first = w.grad.clone()
    y.backward(torch.ones_like(y))
    return first, w.grad


@program(breaks="backward")
def backward_twice_is_an_error(x, n, box):
    w = leaf(n)
    y = w.exp().sum()
    y.backward()
    try:
        y.backward()
    except RuntimeError as error:
        return str(error)[:40], w.grad
    return w.grad


@program(breaks="not-inlined")
def backward_without_a_graph_is_an_error(x, n, box):
    try:
        torch.ones(1).backward()
    except RuntimeError as error:
        return str(error), x * n
    return x


@program(breaks="backward")
def grad_of_an_argument(x, n, box):
    w = x if x.requires_grad else leaf(n)
    (g,) = torch.autograd.grad((w**3).sum(), w)
    return g * n


@program(breaks="backward")
def grad_of_a_leaf_made_here(x, n, box):
    w = leaf(n)
    (g,) = torch.autograd.grad((w**3).sum(), [w])
    return g, w.grad is None


@program(breaks="backward")
def grad_of_grad(x, n, box):
    w = leaf(n)
    (first,) = torch.autograd.grad((w**3).sum(), w, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), w, retain_graph=True)
    return first, second


@program(breaks="backward")
def grad_of_an_intermediate_value(x, n, box):
    w = leaf(n)
    y = w * n
    (g,) = torch.autograd.grad((y**2).sum(), y)
    return g


@program(breaks="backward")
def grad_with_weights_and_several_outputs(x, n, box):
    w = leaf(n)
    outs = [w * 2, w.exp()]
    (g,) = torch.autograd.grad(outs, w, grad_outputs=[torch.ones(4), torch.full((4,), float(n))])
    return g


@program(breaks="backward")
def grad_of_something_unused(x, n, box):
    w, v = leaf(n), leaf(n)
    first = torch.autograd.grad((w * 2).sum(), [w, v], allow_unused=True)
    second = torch.autograd.grad((w * 2).sum(), [w, v], materialize_grads=True)
    try:
        torch.autograd.grad((w * 2).sum(), v)
    except RuntimeError as error:
        return first[0], first[1] is None, second, str(error)[:30]
    return first


@program(breaks="backward")
def grad_under_no_grad_blocks(x, n, box):
    w = leaf(n)
    with torch.no_grad():
        y = w * 2
    with torch.enable_grad():
        z = (w * y).sum()
    return y.requires_grad, torch.autograd.grad(z, w)[0]


@program(breaks="backward")
def detach_cuts_the_graph(x, n, box):
    w = leaf(n)
    z = (w.detach() * w).sum()
    return torch.autograd.grad(z, w)[0], z.detach()


@program(breaks="backward")
def a_training_loop(x, n, box):
    w = leaf(n)
    losses = []
    for _ in range(3):
        loss = (w * w).mean()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad.zero_()
        losses.append(loss.detach())
    return w, losses


@program(breaks="not-inlined")
def an_optimizer_steps(x, n, box):
    w = leaf(n)
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        (w * n).sum().backward()
        optimizer.step()
    return w


@program(breaks="backward")
def a_module_is_trained(x, n, box):
    model = torch.nn.Linear(3, 2)
    loss = model(x.detach()).pow(2).sum()
    loss.backward()
    return [p.grad.norm() for p in model.parameters()], loss.detach()


@program(breaks="not-inlined")
def a_hook_sees_the_gradient(x, n, box):
    w = leaf(n)
    w.register_hook(lambda grad: box.log.append(grad.sum()))
    (w * n).sum().backward()
    return box.log


@program(breaks="backward")
def a_hook_on_an_intermediate_value_scales(x, n, box):
    w = leaf(n)
    y = w * 2
    handle = y.register_hook(lambda grad: grad * n)
    y.sum().backward()
    handle.remove()
    return w.grad


@program(breaks="not-inlined")
def a_post_accumulate_hook(x, n, box):
    w = leaf(n)
    w.register_post_accumulate_grad_hook(lambda p: box.log.append(p.grad.sum()))
    (w * n).sum().backward()
    return box.log


@program(breaks="backward")
def a_graph_that_reaches_outside(x, n, box):
    y = (x * 2) if x.requires_grad else leaf(n)
    return torch.autograd.grad((y * y).sum(), y)[0] + 1


OUTER = torch.ones(4, requires_grad=True)
DERIVED = OUTER * 2


@program(breaks="backward")
def an_argument_that_was_computed_outside(x, n, box):
    if n == 2:
        globals()["DERIVED"] = OUTER * 2
    z = (DERIVED * n).sum()
    (g,) = torch.autograd.grad(z, OUTER, retain_graph=True)
    return g


@program(breaks="backward")
def grad_of_a_computed_argument(x, n, box):
    z = (DERIVED * n).sum()
    (g,) = torch.autograd.grad(z, DERIVED)
    return g


@program(breaks="not-inlined")
def set_detect_anomaly_around_it(x, n, box):
    w = leaf(n)
    with torch.autograd.set_detect_anomaly(False):
        (w * n).sum().backward()
    return w.grad, torch.is_anomaly_enabled()


@program(breaks="backward")
def the_result_is_differentiated_by_the_caller(x, n, box):
    w = x if x.requires_grad else leaf(n)
    (g,) = torch.autograd.grad((w**3).sum(), w, create_graph=True)
    return (g * w).sum()
