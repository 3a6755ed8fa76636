"""Calls of torch at the edges of what is captured give what torch gives: refused arguments, private
queries, gradients and modules of unusual kinds."""

# mypy: ignore-errors

from __future__ import annotations

import collections
import copy
import math
import types

import pytest
import stator
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint
from torch.utils.hooks import RemovableHandle

from integration_tests.support.oracle import assert_same

group = torch._C._group_tensors_by_device_and_dtype
keys = torch._C._dispatch_keys
CPU = torch._C.DispatchKey.CPU


def tagged(x):
    made = x * 2
    made.tag = 1
    return copy.deepcopy(made).tag


def in_one_memo(x):
    memo, made = {}, x + 1
    copies = [copy.deepcopy(each, memo) for each in (x, made, x[:2], made.view(2, 2))]
    return copies, [each.untyped_storage() is copies[1].untyped_storage() for each in copies]


def handles(x):
    hooks = collections.OrderedDict()
    first = RemovableHandle(hooks, extra_dict=[hooks])
    RemovableHandle(hooks_dict=hooks)
    RemovableHandle(hooks, extra_dict=3)
    first.remove()
    return x + 1


def parts_of_a_handle(x):
    y = x.requires_grad_() * 2
    handle = y.register_hook(lambda grad: grad * 2)
    return y, handle.hooks_dict_ref, type(handle.extra_dict_ref)


def sparse_gradients(x):
    weight, at = nn.Parameter(torch.ones(4, 3)), torch.tensor([1, 2])
    F.embedding(at, weight, sparse=True).sum().backward()
    F.embedding(at, weight, sparse=True).sum().backward()
    (weight * 2).sum().backward()
    return weight.grad


def within_a_checkpoint(x):
    given = x.clone().requires_grad_()
    made = checkpoint(lambda v: nn.Parameter(v.detach() * 2) * v, given, use_reentrant=False)
    return made.detach()


def in_inference_mode(x):
    with torch.inference_mode():
        return nn.Parameter(x + 1)


PROGRAMS = {
    "a copy of a part": lambda x: copy.deepcopy(x[1:3]),
    "copies of parts": lambda x: copy.deepcopy([x, x[1:], x + 1, (x + 1)[1:]]),
    "a copy with attributes": tagged,
    "copies in one memo": in_one_memo,
    "another kind of memo": lambda x: x.__deepcopy__(collections.OrderedDict()),
    "no memo": lambda x: Tensor.__deepcopy__(x, 3),
    "keys": lambda x: (x + 1, keys(x).has(CPU), keys(x).raw_repr()),
    "keys of a computed tensor": lambda x: keys(x + 1).has(CPU),
    "keys that are none": lambda x: keys(x).has(x),
    "groups of a tuple": lambda x: group(([x],)),
    "groups of tuples": lambda x: group([(x,)]),
    "groups of numbers": lambda x: group([[3]]),
    "groups of two lengths": lambda x: group([[x, x], [x]]),
    "a size of none": lambda x: x.size(7),
    "an offset with arguments": lambda x: x.storage_offset(5),
    "strides by name": lambda x: x.stride("a"),
    "a typed storage": lambda x: (x + 1, type(x._typed_storage())),
    "a scripted object": lambda x: torch.ops.profiler._record_function_enter_new("a", None) and x,
    "options of an old constructor": lambda x: torch.Tensor(2, 3, device="cpu").shape,
    "correlation of three dimensions": lambda x: torch.corrcoef(x.view(1, 2, 2)),
    "correlation of truths": lambda x: torch.corrcoef(x.bool()),
    "a sparse parameter": lambda x: nn.Parameter(x.to_sparse()),
    "a parameter in inference mode": in_inference_mode,
    "a parameter in a checkpoint": within_a_checkpoint,
    "sparse gradients": sparse_gradients,
    "hooks of no tensor": lambda x: Tensor.register_hook(3, 4),
    "handles": handles,
    "parts of a handle": parts_of_a_handle,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_gives_what_torch_gives(name):
    program = PROGRAMS[name]
    compiled = stator.compile(program, backend="eager")
    assert_same(program, compiled, lambda: (torch.arange(4.0),), gradients=False)


POWERS = {
    "a fraction": lambda x: math.pow(x.shape[0], 2.5),
    "infinite": lambda x: math.pow(x.shape[0], math.inf),
    "of two sizes": lambda x: math.pow(x.shape[0], x.shape[0]),
    "of what may be zero": lambda x: math.pow(x.shape[0] - 3, 2),
    "a truth of another": lambda x: (x.shape[0] > 3) != (x.shape[0] > 2),
}


@pytest.mark.parametrize("name", POWERS)
def test_powers_of_sizes(name):
    program = POWERS[name]
    compiled = stator.compile(program, backend="eager")
    for size in (2, 3, 4, 5):
        assert compiled(torch.ones(size)) == program(torch.ones(size))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("offset", torch.ones(4))
        self.inner = nn.Linear(4, 4)
        with torch.no_grad():
            for parameter in self.inner.parameters():
                parameter.fill_(0.5)

    def forward(self, x):
        return self.inner(x * self.weight + self.offset)


class Intercepting(Layer):
    def __getattribute__(self, name):
        return super().__getattribute__(name)


class Bare(nn.Module):
    def __init__(self):
        pass


class Table(dict):
    pass


def with_table(cls):
    module = Layer()
    module.__dict__["_parameters"] = cls(module._parameters)
    return module


def without_buffers():
    module = Layer()
    del module.__dict__["_buffers"]
    return module


look = nn.Module.__getattr__
MODULES = {
    "intercepting": (Intercepting, lambda m, x: m(x)),
    "another table": (lambda: with_table(Table), lambda m, x: m(x)),
    "a mapping as a table": (lambda: with_table(collections.UserDict), lambda m, x: m.weight * x),
    "without a table": (without_buffers, lambda m, x: m.inner(x)),
    "absent without a table": (without_buffers, lambda m, x: m.absent),
    "bare": (Bare, lambda m, x: m.absent),
    "by name": (Layer, lambda m, x: look(m, name="weight") * x),
    "by a number": (Layer, lambda m, x: look(m, 3)),
    "of no module": (Layer, lambda m, x: look(types.SimpleNamespace(a=1), "b")),
}


@pytest.mark.parametrize("name", MODULES)
def test_attributes_of_modules(name):
    make, program = MODULES[name]
    compiled = stator.compile(program, backend="eager")
    assert_same(program, compiled, lambda: (make(), torch.arange(4.0)))


TANGENTS = {
    "strided": lambda: torch.ones(8)[::2],
    "of a subclass": lambda: torch.ones(4).as_subclass(type("Sub", (Tensor,), {})),
    "zero": lambda: torch._efficientzerotensor(4),
}


@pytest.mark.parametrize("name", TANGENTS)
def test_tangents_of_inputs(name):
    def program(x):
        return x * 2

    compiled = stator.compile(program, backend="eager")
    with forward_ad.dual_level():
        given = forward_ad.make_dual(torch.arange(4.0), TANGENTS[name]())
        for _ in range(2):
            (one, tangent), (other, expected) = map(
                forward_ad.unpack_dual, (compiled(given), program(given))
            )
            assert type(one) is type(other)
            assert one.equal(other)
            assert tangent.equal(expected)


def test_a_jagged_tensor_in_inference_mode():
    compiled = stator.compile(lambda x: x.sum(), backend="eager")
    with torch.inference_mode():
        rows = [torch.ones(2, 3), torch.ones(1, 3)]
        given = torch.nested.nested_tensor(rows, layout=torch.jagged)
        for _ in range(2):
            assert compiled(given).equal(torch.tensor(9.0))
    assert compiled.report.breaks


def test_parts_of_jagged_tensors():
    def program(x, y):
        given = torch.nested.as_nested_tensor([x, y], layout=torch.jagged)
        turned = given.transpose(1, 2)
        return given._ragged_idx, turned._ragged_idx, (given * 2)._offsets, given._lengths

    compiled = stator.compile(program, backend="eager")
    for _ in range(2):
        given = torch.ones(2, 3), torch.ones(1, 3)
        assert repr(compiled(*given)) == repr(program(*given))


def test_backward_hooks_of_a_module_that_is_given_a_subclass():
    noted = []

    def note(module, taken, given):
        noted.append([grad.tolist() for grad in given])

    module = Layer()
    module.register_full_backward_hook(note)
    compiled = stator.compile(module, backend="eager")
    for _ in range(2):
        for called in (module, compiled):
            given = torch.arange(4.0).as_subclass(type("Sub", (Tensor,), {})).requires_grad_()
            called(given).sum().backward()
    assert noted == noted[:1] * 4
