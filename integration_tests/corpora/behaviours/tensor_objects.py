"""Python attributes set on tensors; a returned input is the same object; one object returned twice
is one object; attributes that tensors have themselves."""

# mypy: ignore-errors

from __future__ import annotations

import copy

import torch

from integration_tests.corpora.behaviours import program


@program
def a_returned_input_is_the_same_object(x, n, box):
    return x, box.tensor, [x], {"x": x}


@program
def one_result_returned_twice_is_one_object(x, n, box):
    y = x * n
    return y, [y, y], {"y": y}


@program
def equal_results_are_two_objects(x, n, box):
    y, z = x * n, x * n
    return y, z, y is z


@program
def a_view_is_another_object_each_time(x, n, box):
    return x.view(-1) is x.view(-1), x[0] is x[0], x.T is x.T, x.detach() is x


@program
def in_place_operators_return_the_object(x, n, box):
    y = x * 1
    z = y.add_(n)
    return z is y, y.mul_(2) is z, z


@program
def an_attribute_is_set_on_an_argument(x, n, box):
    box.tensor.tag = ("seen", n)
    box.tensor.helper = x * 2
    return box.tensor.tag[1] + n, box.tensor.helper


@program
def an_attribute_is_set_on_a_result(x, n, box):
    y = x * n
    y.tag = {"n": n}
    y.origin = x
    return y, y.tag["n"], y.origin is x


@program
def an_attribute_is_deleted(x, n, box):
    y = x + 1
    y.tag = 1
    del y.tag
    box.tensor.tag = 2
    del box.tensor.tag
    return hasattr(y, "tag"), hasattr(box.tensor, "tag"), y


@program
def an_unknown_attribute_is_an_error(x, n, box):
    try:
        return (x + 1).nothing_here
    except AttributeError as error:
        return str(error), getattr(x, "nothing_here", n)


@program(breaks="c-attribute")
def an_attribute_survives_a_write(x, n, box):
    box.tensor.tag = n
    same = box.tensor.add_(1)
    return same.tag, (box.tensor * 2).__dict__, vars(box.tensor)


@program
def setattr_and_getattr_by_name(x, n, box):
    y = x * 2
    for name in ("first", "second"):
        setattr(y, name, n)
    return sorted(y.__dict__), getattr(y, "first") + 1, y


@program
def metadata(x, n, box):
    y = (x * n).T
    flags = (
        y.is_contiguous(),
        y.is_leaf,
        y.requires_grad,
        y.is_sparse,
        y.is_floating_point(),
        y.is_complex(),
    )
    return (
        y.shape,
        y.stride(),
        y.dtype,
        y.device,
        y.ndim,
        y.layout,
        y.numel(),
        y.itemsize,
        flags,
        y.storage_offset(),
    )


@program
def metadata_is_data_of_the_program(x, n, box):
    sizes = {x.dtype: "f", x.device.type: "d", tuple(x.shape): "s"}
    return (
        sizes[torch.float32],
        sizes["cpu"],
        list(x.size()),
        x.size(0) * x.size(-1),
        str(x.dtype),
        repr(x.device),
    )


@program(breaks="tensor-attribute")
def grad_fn_is_there_or_not(x, n, box):
    y = x * n
    return (y.grad_fn is None, x.grad_fn is None, x.grad is None), y


@program(breaks="tensor-attribute")
def the_name_of_grad_fn(x, n, box):
    y = x * n
    return type(y.grad_fn).__name__, y.grad_fn is not None and y.grad_fn.name(), y


@program(breaks="backward")
def retained_gradients(x, n, box):
    y = x * n
    if y.requires_grad:
        y.retain_grad()
        y.sum().backward()
        return y.grad, x.grad
    return y


@program
def a_parameter_is_made(x, n, box):
    p = torch.nn.Parameter(torch.ones(3) * n)
    return p, p.requires_grad, isinstance(p, torch.nn.Parameter), type(p * 2) is torch.Tensor, p * 2


@program(breaks="graph-result")
def a_parameter_is_made_of_an_argument(x, n, box):
    p = torch.nn.Parameter(box.tensor, requires_grad=False)
    p.add_(1)
    return p.requires_grad, box.tensor, type(p).__name__, p * n


@program
def a_parameter_is_made_of_something_that_needs_gradients(x, n, box):
    p = torch.nn.Parameter(x * n)
    return p.is_leaf, p.grad_fn is None, (p * 2).sum()


@program
def a_buffer_is_made(x, n, box):
    b = torch.nn.Buffer(torch.ones(3), persistent=False)
    return isinstance(b, torch.nn.Buffer), b.persistent, b * n


@program(breaks="not-inlined")
def copies(x, n, box):
    y = x.detach() * n
    first, second = copy.copy(y), copy.deepcopy(y)
    return first is y, second is y, first, second


@program(breaks="data-dependent-number")
def as_python_numbers(x, n, box):
    y = torch.tensor([[1.5, 2.0], [3.0, n]])
    return (
        y.tolist(),
        y[0, 1].item(),
        float(y[1, 0]),
        int(y[1, 1]),
        bool(y[0, 0] > 1),
        len(y),
        f"{y[0, 0]:.2f}",
    )


@program
def iteration_and_unpacking(x, n, box):
    a, b = box.tensor
    rows = [row.sum() for row in box.tensor]
    first, *rest = box.tensor.T
    return a * n, b, rows, first, len(rest), list(enumerate(box.tensor[0]))


@program(breaks="data-dependent-branch")
def containment_and_equality(x, n, box):
    y = torch.arange(3)
    return (y == 1).any(), 1 in y, 7 in y, (y == None), y != 1, x in [x, 1]  # noqa: E711


@program(breaks="data-dependent-branch")
def truth_of_tensors(x, n, box):
    if torch.tensor([]).numel() or not torch.tensor(1):
        return n
    try:
        bool(torch.ones(2))
    except RuntimeError as error:
        return str(error), x * 2
    return x


@program
def identity_of_tensors_as_keys(x, n, box):
    table = {x: "x", box.tensor: "box"}
    return table[x], table.get(box.tensor), len({x, x, box.tensor}), x * n


@program
def reversed_and_contains_and_index(x, n, box):
    items = [10, 20, 30, 40, 50, 60]
    return (
        reversed(box.tensor),
        items[torch.tensor(1)],
        list(range(torch.tensor(3))),
        box.tensor[torch.tensor(1)],
    )


@program
def isinstance_checks(x, n, box):
    return (
        isinstance(x, torch.Tensor),
        isinstance(x, torch.nn.Parameter),
        isinstance(x, torch.FloatTensor),
        isinstance(x.long(), torch.LongTensor),
        torch.is_tensor(x),
        type(x) is torch.Tensor,
        x.type(),
        x * n,
    )


@program(breaks="not-inlined")
def printing(x, n, box):
    y = torch.ones(2) * n
    return str(y), repr(y), f"{y.shape} {y.dtype}", x + 1


@program
def conversions(x, n, box):
    y = box.tensor
    return (
        y.to(torch.float64),
        y.to(y.long()),
        y.type(torch.int32),
        y.half(),
        y.type_as(x.double()),
        y.bool(),
        y.cpu(),
    )


@program
def a_hook_on_a_result_changes_the_gradient(x, n, box):
    y = x * n
    if y.requires_grad:
        y.register_hook(lambda grad: grad * 3)
    return y * 2


@program
def a_hook_on_an_argument_is_removed_again(x, n, box):
    if x.requires_grad:
        handle = x.register_hook(lambda grad: grad * 3)
        handle.remove()
    return x * n


@program
def operators_with_numbers_on_the_left(x, n, box):
    y = x.detach() + 3
    return (
        1 / y,
        n - y,
        2**y,
        n // y,
        7 % y,
        y > 1,
        -y,
        +y,
        abs(y),
        ~(y > 3),
        (y > 3) ^ True,
        round(y),
        divmod(n, 2),
    )


@program(breaks="unrepresentable-argument")
def operators_refuse_other_things(x, n, box):
    found = []
    for other in ("a", None, [1], object):
        try:
            x + other
        except TypeError as error:
            found.append(str(error)[:30])
    return found, x * n


@program
def fields_of_named_results_are_items(x, n, box):
    largest = box.tensor.max(dim=-1, keepdim=True)
    ordered = torch.sort(box.tensor, descending=True)
    return (
        box.tensor - largest.values, largest.indices, ordered.values, ordered[1], torch.aminmax(x).max,
        torch.linalg.svd(torch.eye(n + 1)).S, len(largest), isinstance(largest, tuple), hasattr(largest, "nothing"),
        largest[0] is largest.values,
    )  # fmt: skip


@program
def conversion_by_type(x, n, box):
    same, other = x.type(x.dtype), x.type(torch.float64 if n % 2 else torch.int32)
    return (
        same is x,
        other,
        x.type(),
        other.type(),
        x.type("torch.DoubleTensor"),
        x.type(dtype=torch.float16),
    )


@program
def conversion_to_an_old_class(x, n, box):
    y = x.type(torch.DoubleTensor) * n
    return y, y.type(torch.LongTensor), x.type_as(y), isinstance(x, torch.FloatTensor)


@program
def distributions_check_their_arguments(x, n, box):
    chosen = torch.distributions.Categorical(logits=x)
    coin = torch.distributions.Bernoulli(logits=x)
    return (
        chosen.sample(),
        chosen.entropy(),
        chosen.probs,
        coin.sample((n,)),
        coin.mean,
        coin.variance,
    )
