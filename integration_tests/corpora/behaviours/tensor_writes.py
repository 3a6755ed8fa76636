"""In-place tensor writes through views, through an operator that returned its input, `out=`,
`.data`, `.grad`, `copy_`, `requires_grad_`, `detach_`, `resize_`, `set_`."""

# mypy: ignore-errors

from __future__ import annotations

import torch

from integration_tests.corpora.behaviours import program


@program
def a_write_through_a_view_is_seen_by_the_base(x, n, box):
    y = box.tensor
    top = y[0]
    top.mul_(n)
    y[:, 1].add_(1)
    return y.sum(), top


@program
def a_write_to_the_base_is_seen_by_the_view(x, n, box):
    view = box.tensor.view(-1)
    box.tensor.fill_(n)
    return view + 1, view._is_view()


@program
def a_view_taken_before_and_written_after_shares_with_the_argument(x, n, box):
    box.view = box.tensor.t()
    box.view[0].zero_()
    return box.tensor.sum()


@program
def a_chain_of_views_of_views(x, n, box):
    row = box.tensor.view(3, 2)[1:].T[0]
    row += n
    row.view(2).mul_(2)
    return row, box.tensor


@program
def an_augmented_assignment_of_an_item_writes_in_place(x, n, box):
    alias = box.tensor
    box.tensor[0] += n
    box.tensor[:, 0] *= 2
    box.tensor **= 2
    return alias is box.tensor, alias


@program
def an_operator_that_returned_its_input_is_written(x, n, box):
    same = box.tensor.contiguous()
    same.add_(1)
    other = box.tensor.to(torch.float32)
    other.mul_(n)
    return same is box.tensor, other is box.tensor, box.tensor


@program
def expand_and_reshape_return_the_storage_or_not(x, n, box):
    viewed = box.tensor.reshape(3, 2)
    copied = box.tensor.t().reshape(-1)
    viewed.add_(1)
    copied.add_(100)
    return viewed, copied, box.tensor


@program
def out_of_the_right_shape(x, n, box):
    out = torch.empty(2, 3)
    got = torch.add(box.tensor, n, out=out)
    return got is out, out


@program
def out_is_an_argument(x, n, box):
    got = torch.mul(box.tensor, 2, out=box.tensor)
    return got is box.tensor, got


@program
def out_is_resized(x, n, box):
    out = torch.empty(0)
    torch.sin(box.tensor, out=out)
    return out, out.shape


@program
def out_of_several(x, n, box):
    values, indices = torch.empty(2), torch.empty(2, dtype=torch.long)
    got = torch.max(box.tensor, 1, out=(values, indices))
    return got.values is values, values, indices


@program
def copy_from_another_dtype(x, n, box):
    box.tensor.copy_(torch.arange(6).view(2, 3) * n)
    return box.tensor


@program
def copy_between_overlapping_views(x, n, box):
    y = box.tensor.view(-1)
    y[:3].copy_(y[3:].clone())
    return y


@program
def data_is_written(x, n, box):
    x.data.mul_(n)
    return x * 2


@program
def data_is_read(x, n, box):
    d = x.data
    return d.requires_grad, d.is_leaf, d * 2, x.data.shape


@program
def data_is_replaced(x, n, box):
    box.tensor.data = torch.ones(3, 2) * n
    return box.tensor + 1, box.tensor.shape


@program
def data_of_something_computed_here(x, n, box):
    y = x * 2
    y.data.add_(n)
    return y, y.data.sum()


@program
def grad_is_set(x, n, box):
    if x.requires_grad:
        x.grad = torch.ones_like(x) * n
        return x.grad * 2
    return x


@program
def grad_is_set_to_none(x, n, box):
    p = torch.nn.Parameter(torch.ones(3))
    p.grad = torch.ones(3)
    before = p.grad is None
    p.grad = None
    return before, p.grad is None, p * n


@program(breaks="builtin")
def grad_is_written_in_place(x, n, box):
    box.tensor.requires_grad_()
    box.tensor.grad = torch.ones(2, 3)
    box.tensor.grad.mul_(n)
    box.tensor.grad += 1
    return box.tensor.grad.sum()


@program
def grad_of_an_argument_is_zeroed(x, n, box):
    p = box.p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.full((2,), 3.0)
    for q in [p]:
        if q.grad is not None:
            q.grad.detach_()
            q.grad.zero_()
    return p.grad


@program
def requires_grad_of_something_new(x, n, box):
    y = torch.ones(3).requires_grad_()
    z = (y * n).sum()
    return y, z, z.requires_grad


@program(breaks="builtin")
def requires_grad_of_an_argument(x, n, box):
    y = box.tensor.requires_grad_()
    z = (y * n).sum()
    return y is box.tensor, z.requires_grad, box.tensor.requires_grad, z


@program(breaks="builtin")
def requires_grad_is_switched_off(x, n, box):
    before = x.requires_grad
    x.requires_grad_(False)
    y = x * n
    x.requires_grad_(before)
    return y, y.requires_grad, x.requires_grad


@program(breaks="tensor-attribute-write")
def requires_grad_is_assigned(x, n, box):
    box.tensor.requires_grad = n > 2
    y = box.tensor * 2
    return y.requires_grad, y


@program(breaks="builtin")
def requires_grad_of_a_non_leaf_is_an_error(x, n, box):
    y = x * 2
    try:
        y.requires_grad_(False)
    except RuntimeError as error:
        return str(error)[:20], y
    return y


@program(breaks="operator-error")
def requires_grad_of_integers_is_an_error(x, n, box):
    try:
        torch.arange(3).requires_grad_()
    except RuntimeError as error:
        return str(error), x * n
    return x


@program
def detach_in_place(x, n, box):
    y = x * n
    z = y.detach_()
    return z is y, y.requires_grad, y.grad_fn is None, y + 1


@program
def detach_shares_memory(x, n, box):
    y = x.detach()
    y.mul_(n)
    return y, x.sum()


@program(breaks="builtin")
def resize_in_place(x, n, box):
    box.tensor.resize_(2, 2)
    return box.tensor * n, box.tensor.shape


@program(breaks="builtin")
def set_in_place(x, n, box):
    box.tensor.set_(torch.ones(4) * n)
    return box.tensor + 1


@program
def transpose_in_place(x, n, box):
    box.tensor.t_()
    y = box.tensor * n
    box.tensor.unsqueeze_(0)
    return y, box.tensor.shape


@program(breaks="operator-error")
def a_write_to_a_leaf_that_needs_gradients_is_an_error(x, n, box):
    try:
        x.add_(1)
    except RuntimeError as error:
        return str(error), x * n
    return x * n


@program
def a_write_to_a_leaf_without_gradients(x, n, box):
    with torch.no_grad():
        x.mul_(n)
    return x * 2


@program(breaks="not-inlined operator-error")
def a_write_to_what_backward_needs_is_an_error_at_backward(x, n, box):
    y = x.exp()
    z = y * 2
    y.add_(1)
    try:
        z.sum().backward()
    except RuntimeError as error:
        return type(error).__name__
    return z.detach()


@program
def two_arguments_that_share_memory(x, n, box):
    first, second = box.tensor[0], box.tensor[1:]
    box.pair = [first, second, box.tensor]
    first.add_(second[0])
    return [part.sum() for part in box.pair]


@program
def setitem_with_masks_and_lists(x, n, box):
    y = box.tensor
    y[y > 3] = 0
    y[[0, 1], [1, 2]] = torch.tensor([7.0, 8.0])
    y[..., -1] = n
    y[None, 0, :2] = y[1, 1:]
    return y


@program
def swapped_tensors(x, n, box):
    a, b = box.tensor[0].clone(), box.tensor[1].clone()
    box.tensor[0], box.tensor[1] = b, a
    return box.tensor


@program
def a_foreach_write(x, n, box):
    parts = [box.tensor[0], box.tensor[1]]
    torch._foreach_mul_(parts, n)
    torch._foreach_add_(parts, 1)
    return box.tensor, torch._foreach_norm(parts)


@program
def init_writes(x, n, box):
    torch.nn.init.constant_(box.tensor, n)
    w = torch.nn.init.ones_(torch.empty(3))
    torch.nn.init.uniform_(box.tensor[0])
    return box.tensor, w


@program(breaks="tensor-attribute")
def the_version_counts_writes(x, n, box):
    before = box.tensor._version
    box.tensor.add_(1)
    box.tensor[0] = 2
    return box.tensor._version - before, box.tensor * n
