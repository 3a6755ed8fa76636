"""Tensor subclasses with `__torch_function__`, wrapper subclasses with `__torch_dispatch__`,
`TorchFunctionMode`."""

# mypy: ignore-errors

from __future__ import annotations

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from integration_tests.corpora.behaviours import program


class Named(torch.Tensor):
    """Results stay of the class, and carry on a name."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(out, cls):
            out.label = next(
                (a.label for a in args if isinstance(a, cls) and hasattr(a, "label")), None
            )
        return out


class Logged(torch.Tensor):
    LOG = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.LOG.append(func.__name__)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


class Plain(torch.Tensor):
    pass


@program
def a_subclass_is_made_here(x, n, box):
    y = x.detach().as_subclass(Plain)
    z = y * n
    return type(z).__name__, isinstance(z, torch.Tensor), z.as_subclass(torch.Tensor)


@program
def a_subclass_with_a_torch_function(x, n, box):
    y = (x.detach() * 1).as_subclass(Named)
    y.label = "rows"
    z = y.sum(0) + n
    return z.label, type(z).__name__, z.as_subclass(torch.Tensor)


@program
def a_subclass_that_logs(x, n, box):
    y = (x.detach() * 1).as_subclass(Logged)
    z = torch.add(y, n).relu()
    found = list(Logged.LOG)
    Logged.LOG.clear()
    return (
        type(z).__name__,
        [name for name in found if name in ("add", "relu")],
        torch.sum(z).item() > -100,
    )


@program
def a_subclass_is_an_argument_of_an_inner_function(x, n, box):
    box.named = torch.ones(3).as_subclass(Named)
    box.named.label = "given"

    def inner(t):
        return t * n

    return inner(box.named).label, (box.named + 1).as_subclass(torch.Tensor)


KEPT = torch.arange(3.0).as_subclass(Named)
KEPT.label = "kept"


@program
def a_subclass_is_a_global(x, n, box):
    y = KEPT * n
    return y.label, type(y).__name__, y.as_subclass(torch.Tensor), y.shape


class Scaled(torch.Tensor):
    """A wrapper: a tensor and a factor."""

    @staticmethod
    def __new__(cls, inner, factor):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, device=inner.device
        )

    def __init__(self, inner, factor):
        self.inner, self.factor = inner, factor

    def __tensor_flatten__(self):
        return ["inner"], {"factor": self.factor}

    @staticmethod
    def __tensor_unflatten__(inner, meta, size, stride):
        return Scaled(inner["inner"], meta["factor"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain = [a.inner * a.factor if isinstance(a, Scaled) else a for a in args]
        return func(*plain, **(kwargs or {}))


@program(breaks="builtin")
def a_wrapper_is_made_and_used(x, n, box):
    y = Scaled(torch.ones(3), n)
    return y + 1, torch.sin(y), y.factor


WRAPPER = Scaled(torch.arange(3.0), 2)


@program(breaks="tensor-attribute")
def a_wrapper_is_a_global(x, n, box):
    return WRAPPER * n, WRAPPER.inner + 1, type(WRAPPER).__name__


class Doubling(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return out * 2 if func in (torch.add, torch.Tensor.add) else out


class Counting(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(getattr(func, "__name__", "?"))
        return func(*args, **(kwargs or {}))


@program
def a_function_mode_is_entered(x, n, box):
    with Doubling():
        y = torch.add(x, n)
    z = torch.add(x, n)
    return y, z, torch._C._len_torch_function_stack()


@program
def function_modes_are_nested(x, n, box):
    with Doubling(), Doubling():
        y = torch.add(x, n)
    return y, torch._C._len_torch_function_stack()


@program
def a_function_mode_counts(x, n, box):
    with Counting() as mode:
        y = torch.sin(x)
        z = y + n
    return mode.names, z


@program
def an_error_inside_a_function_mode(x, n, box):
    try:
        with Doubling():
            torch.add(x, n)
            raise KeyError("inside")
    except KeyError as error:
        return error.args, torch.add(x, n), torch._C._len_torch_function_stack()


@program(breaks="operator-error")
def an_operator_error_inside_a_function_mode(x, n, box):
    try:
        with Doubling():
            torch.add(x, torch.ones(17))
    except RuntimeError:
        return torch.add(x, n), torch._C._len_torch_function_stack()


@program(breaks="mode-value")
def torch_function_is_disabled(x, n, box):
    y = torch.ones(2).as_subclass(Plain)
    with torch._C.DisableTorchFunctionSubclass():
        z = y * n
    return type(z).__name__, type(y * n).__name__, x + 1


class DispatchCounting(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


@program(breaks="builtin")
def a_dispatch_mode_is_entered(x, n, box):
    with DispatchCounting() as mode:
        y = x * n
    return mode.count, y, torch._C._len_torch_dispatch_stack()


@program
def a_device_is_a_context(x, n, box):
    with torch.device("meta"):
        y = torch.ones(3)
    z = torch.ones(3)
    return y.device, z.device, y.shape, z * n


@program(breaks="mode-value")
def a_device_context_around_a_module(x, n, box):
    with torch.device("meta"):
        model = torch.nn.Linear(3, n)
    return model.weight.device, [p.shape for p in model.parameters()], x + 1
