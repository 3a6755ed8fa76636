"""Modes for functions of torch (`TorchFunctionMode`), entered inside: each hears what it hears in
plain Python."""

# mypy: ignore-errors

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from integration_tests.support.oracle import Tolerance, assert_same

CAPTURED: dict[str, Callable[..., Any]] = {}
BREAKING: dict[str, Callable[..., Any]] = {}


def captured(fn: Any) -> Any:
    CAPTURED[fn.__name__.replace("_", " ")] = fn
    return fn


def breaking(fn: Any) -> Any:
    BREAKING[fn.__name__.replace("_", " ")] = fn
    return fn


class Hearing(TorchFunctionMode):
    """Notes what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Any] = []
        self.count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        # or None: under a trace, as the oracle sets one, CPython binds methods first
        named = sorted(kwargs or ())
        self.heard.append((func.__name__, [each.__name__ for each in types], len(args), named))
        return func(*args, **(kwargs or {}))


class Doubling(TorchFunctionMode):
    """Another result."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        return out * 2 if func in (torch.add, Tensor.add) else out


class Adding(TorchFunctionMode):
    """Other arguments, or another function."""

    def __init__(self, more: Any) -> None:
        super().__init__()
        self.more = more

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.relu:
            return torch.sigmoid(*args)
        if func is torch.mul or func is Tensor.mul:
            return func(args[0], args[1] + self.more)
        if func is torch.zeros:
            return torch.ones(*args, **{"dtype": torch.float64, **(kwargs or {})})
        return func(*args, **(kwargs or {}))


class Declining(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented


class Saying(TorchFunctionMode):
    """Something that is no tensor."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return (
            [func.__name__, len(args)]
            if func in (Tensor.add, torch.sin)
            else func(*args, **(kwargs or {}))
        )


class Raising(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.sin:
            raise KeyError("sin")
        return func(*args, **(kwargs or {}))


class Again(Hearing):
    """Enters itself once more."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        if func is torch.cos and self.count < 3:
            with self:
                return torch.cos(*args) + super().__torch_function__(func, types, args, kwargs)
        return super().__torch_function__(func, types, args, kwargs)


class Plain(Tensor):
    pass


class Logged(Tensor):
    LOG: list[Any] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.LOG.append((func.__name__, [each.__name__ for each in types]))
        return super().__torch_function__(func, types, args, kwargs)


class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x


LAYER = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.LayerNorm(4), nn.Dropout(0.0)).requires_grad_(
    False
)
KEPT = Hearing()
DISABLING = (torch._C.DisableTorchFunction, torch._C.DisableTorchFunctionSubclass)


def plain(x: Any) -> Any:
    return x.as_subclass(Tensor) if type(x) is not Tensor and isinstance(x, Tensor) else x


def depth() -> int:
    return torch._C._len_torch_function_stack()


# -- what is heard ---------------------------------------------------------------------------------
@captured
def operators_are_heard(x: Tensor) -> Any:
    with Hearing() as mode:
        found = [
            x + 1,
            1 + x,
            1 - x,
            x - x,
            x / 2,
            2 / x,
            x * x,
            x**2,
            2**x,
            x % 2,
            x.detach() // 2,
            -x,
            +x,
            abs(x),
            ~(x > 0),
        ]
        found += [
            x == 1,
            x.eq(1),
            x != 2,
            x < x.t().t(),
            x.gt(x + 1),
            x >= 0,
            x @ x.t(),
            (x > 0) & (x < 1),
            (x > 0) ^ True,
        ]
        found += [operator.add(x, 1), functools.reduce(operator.mul, [x, x, 2]), sum([x, x])]
    return mode.heard, mode.count, found


@captured
def items_and_loops_are_heard(x: Tensor) -> Any:
    with Hearing() as mode:
        first, rows = x[0], [row * 1 for row in x]
        y = x * 1
        y[0] = 1
        y[:, 1:] = x[:, 1:]
        y += 1
        y[1] *= 2
        one, *_others = y
        picked = y[None, ..., 0], x[[0, 1]], list(y)[-1]
    return mode.heard, first, rows, y, one, len(picked)


@captured
def writes_in_place_are_heard(x: Tensor) -> Any:
    with Hearing() as mode:
        y = x.clone()
        same = y.add_(1).mul_(2) is y
        y -= x
        y *= 2
        torch.add(x.detach(), 1, out=torch.empty_like(x.detach()))
    return mode.heard, same, y


@captured
def attributes_are_heard(x: Tensor) -> Any:
    with Hearing() as mode:
        found = (
            x.shape,
            x.dtype,
            x.device,
            x.ndim,
            x.requires_grad,
            x.layout,
            x.is_cuda,
            len(x),
            x.dim(),
            x.numel(),
        )
        views = (
            x.T,
            x.mT,
            x.data,
            x.detach(),
            x.size(0),
            x.shape[1],
            x.size(),
            x.stride(),
            x.is_contiguous(),
        )
        x.note = 3
        noted = x.note, hasattr(x, "missing"), isinstance(x, Tensor), type(x).__name__
    return mode.heard, found, views, noted


@captured
def functions_are_heard(x: Tensor) -> Any:
    with Hearing() as mode:
        found = [
            torch.sin(x),
            x.sum(dim=0),
            torch.cat([x, x]),
            torch.stack((x, x)),
            torch.where(x > 0, x, -x),
        ]
        found += [
            x.max(0),
            x.split(1),
            x.view(-1),
            x.reshape(1, -1),
            x.new_zeros(2),
            x.to(torch.float64),
            x.float(),
        ]
        found += [
            torch.einsum("ij,ij->i", x, x),
            torch.linalg.norm(x),
            torch.zeros_like(x),
            torch.max(x, dim=0),
        ]
        found += [
            torch.norm(x),
            torch.meshgrid(x[0], x[0], indexing="ij"),
            torch.split(x, 1),
            x.norm(),
            x.unflatten(1, (3, 1)),
        ]
    return mode.heard, found


@captured
def what_is_no_operation_is_heard(x: Tensor) -> Any:
    with Hearing() as mode:
        found = (
            torch.device("cpu"),
            torch.promote_types(x.dtype, torch.float64),
            torch.is_tensor(x),
            torch.is_floating_point(x),
        )
        found += (
            torch.can_cast(x.dtype, torch.int64),
            torch.get_default_dtype(),
            torch.is_complex(x),
            torch.finfo(x.dtype),
        )
    return mode.heard, found[:7], found[7].eps, x * 2


HANDLED = {
    Tensor.shape.__get__: "shape",
    torch.sin: "sin",
    Tensor.add: "add",
    F.relu: "relu",
    len: "len",
}


HANDLED_HERE = {*HANDLED, torch.cos}


@captured
def a_table_of_functions(x: Tensor) -> Any:
    class Tabled(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if (
                func in HANDLED_HERE
                and func in HANDLED
                and func not in {Tensor.T.__get__, torch.sin}
            ):
                return HANDLED[func]
            return func(*args, **(kwargs or {}))

    with Tabled():
        return x.shape, torch.sin(x), x + 1, F.relu(x), len(x), x.T, x.ndim


@captured
def factories_are_heard(x: Tensor) -> Any:
    with Hearing() as mode:
        found = [
            torch.ones(2),
            torch.zeros(2, 3, dtype=torch.int64),
            torch.arange(3),
            torch.tensor([1.0, 2.0]),
        ]
        found += [
            torch.full((2,), 3.0),
            torch.eye(2),
            torch.empty(0),
            torch.linspace(0, 1, 3),
            torch.as_tensor(2.0),
        ]
    return mode.heard, found, x + 1


@captured
def functions_in_python_are_heard(x: Tensor) -> Any:
    with Hearing() as mode:
        found = [
            F.relu(x),
            F.dropout(x * 1, 0.5, training=False),
            F.softmax(x, -1),
            F.linear(x, x),
            F.gelu(x),
            F.pad(x, (1, 1)),
        ]
        found += [F.layer_norm(x, (3,)), F.mse_loss(x, x * 2), F.normalize(x)]
        found += [
            F.cross_entropy(x, torch.zeros(x.shape[0], dtype=torch.int64)),
            F.silu(x, inplace=False),
        ]
    return mode.heard, found


@captured
def modules_are_heard(x: Tensor) -> Any:
    with Hearing() as mode:
        y = LAYER(x)
    return mode.heard, y


@captured
def gradient_modes_are_heard(x: Tensor) -> Any:
    with Hearing() as mode:
        with torch.no_grad():
            y = x * 2
        with torch.enable_grad(), torch.set_grad_enabled(False):
            z = x * 3
        enabled = torch.is_grad_enabled()
    return mode.heard, y, z, enabled, x * 4


@captured
def autocast_inside(x: Tensor) -> Any:
    with Hearing() as mode, torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.t()
    return mode.heard, y, torch.is_autocast_enabled("cpu")


@captured
def sizes_are_numbers(x: Tensor) -> Any:
    with Hearing() as mode:
        rows = x.shape[0] * 2 + 1
        y = torch.ones(rows - 1) + rows
        more = [i * x.size(1) for i in range(len(x))]
        big = rows > 5 or -rows > 3
    return mode.heard, y, more, big


# -- what is changed -------------------------------------------------------------------------------
@captured
def results_are_changed(x: Tensor) -> Any:
    with Doubling():
        y = torch.add(x, 1) + x
    return y, torch.add(x, 1), depth()


@captured
def arguments_are_changed(x: Tensor) -> Any:
    with Adding(x.sum()):
        return (
            x * 2,
            torch.mul(x, x),
            torch.relu(x),
            F.relu(x),
            torch.zeros(2),
            torch.zeros(2, dtype=torch.int64),
        )


@captured
def it_says_no_tensor(x: Tensor) -> Any:
    with Saying():
        return x + 1, torch.sin(x), x * 2, [*(x + 1), 3]


@breaking
def it_declines(x: Tensor) -> Any:
    try:
        with Declining():
            x + 1
    except TypeError as error:
        return str(error)[:30], depth(), x * 2
    return None


@breaking
def it_leaves_it_to_a_subclass(x: Tensor) -> Any:
    y = (x * 1).as_subclass(Logged)
    try:
        with Declining():
            y + 1
    finally:
        found = list(Logged.LOG)
        Logged.LOG.clear()
    return found, depth(), plain(y)


# -- how they nest ---------------------------------------------------------------------------------
@captured
def modes_are_nested(x: Tensor) -> Any:
    with Hearing() as outer, Doubling(), Hearing() as inner:
        y = torch.add(x, 1)
        z = x + y
        within = depth()
    return outer.heard, inner.heard, y, z, within, depth()


@captured
def one_is_entered_twice(x: Tensor) -> Any:
    doubling = Doubling()
    with doubling, doubling:
        y = x + 1
    return y, x + 1


@captured
def one_enters_itself(x: Tensor) -> Any:
    with Again() as mode:
        y = torch.cos(x)
    return mode.heard, y


@captured
def a_subclass_is_asked_after_it(x: Tensor) -> Any:
    with Hearing() as mode:
        y = (x * 1).as_subclass(Logged)
        z = [
            y + 1,
            y + x,
            x + y,
            F.relu(y),
            F.mse_loss(y, x * 1),
            F.mse_loss(x, y),
            torch.cat([x, y]),
            1 - y,
            y[0],
            y.T,
        ]
    found = list(Logged.LOG)
    Logged.LOG.clear()
    return mode.heard, found, [type(each).__name__ for each in z], [plain(each) for each in z]


@captured
def one_from_outside_is_entered(x: Tensor) -> Any:
    KEPT.heard.clear()
    with KEPT:
        y = x * 2
    return list(KEPT.heard), KEPT.count > 0, y


@captured
def a_generator_enters_it(x: Tensor) -> Any:
    @contextlib.contextmanager
    def hearing() -> Any:
        with Hearing() as mode:
            yield mode

    with hearing() as mode:
        y = x.sin() + 1
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(Hearing())
        z = y * 2
    return mode.heard, other.heard, z


@captured
def it_is_left_by_an_exception(x: Tensor) -> Any:
    try:
        with Doubling():
            y = x + 1
            raise KeyError(depth())
    except KeyError as error:
        return x + 1, y, error.args, depth()


@captured
def it_raises(x: Tensor) -> Any:
    try:
        with Raising():
            y = x + 1
            torch.sin(y)
    except KeyError as error:
        return error.args, y, depth(), torch.sin(x)


@captured
def it_is_left_by_a_return(x: Tensor) -> Any:
    def inner(y: Tensor) -> Any:
        with Doubling():
            for _ in range(2):
                return y + 1
        return None

    return inner(x), x + 1


@captured
def an_exception_leaves(x: Tensor) -> Any:
    with Doubling():
        y = x + 1
        raise KeyError(y.shape)


@captured
def its_exception_leaves(x: Tensor) -> Any:
    with Raising():
        return torch.sin(x)


@breaking
def an_error_of_an_operator_leaves(x: Tensor) -> Any:
    with Hearing():
        return x + torch.ones(7, 9)


@captured
def a_generator_waits_inside(x: Tensor) -> Any:
    def steps() -> Any:
        with Doubling():
            yield x + 1
            yield torch.add(x, 1)

    waiting = steps()
    found = [next(waiting), x + 1, next(waiting)]
    waiting.close()
    return found, x + 1, depth()


@captured
def its_function_enters_another(x: Tensor) -> Any:
    class Outer(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            with Doubling():
                return func(*args, **(kwargs or {}))

    with Outer():
        return x + 1, torch.add(x, 1), F.relu(x)


@breaking
def its_function_leaves_another_entered(x: Tensor) -> Any:
    class Outer(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            Doubling().__enter__()
            return func(*args, **(kwargs or {}))

    with Outer():
        y = x + 1
        found = depth()
        torch._C._pop_torch_function_stack()
    rest = depth()
    while depth():
        torch._C._pop_torch_function_stack()
    return y, found, rest


# -- what else runs inside -------------------------------------------------------------------------
@breaking
def a_function_of_autograd(x: Tensor) -> Any:
    with Hearing() as mode:
        y = Cubed.apply(x) * 2
    return mode.heard, y


@captured
def one_is_entered_in_bodies(x: Tensor) -> Any:
    def doubled(y: Tensor) -> Tensor:
        with Doubling():
            return torch.add(y, 1).sin()

    y = torch.utils.checkpoint.checkpoint(doubled, x, use_reentrant=False)
    return y, torch.vmap(doubled)(x.detach())


@breaking
def one_stays_entered_in_a_body(x: Tensor) -> Any:
    doubling = Doubling()

    def entered(y: Tensor) -> Tensor:
        doubling.__enter__()
        return y + 1

    y = torch.utils.checkpoint.checkpoint(entered, x.detach(), use_reentrant=False)
    z = x + 1
    doubling.__exit__(None, None, None)
    return y, z, depth()


@captured
def functions_of_c_are_compared(x: Tensor) -> Any:
    known = [
        torch.add,
        Tensor.add,
        len,
        Tensor.shape.__get__,
        Tensor.T.__get__,
        Tensor.__add__,
        F.relu,
    ]
    bound, other = x.sin, x.sin
    found = [[a == b for a in known] for b in known], [[a != b for a in known] for b in known]
    return found, torch.sin in known, bound == other, bound == x.cos


@breaking
def a_value_is_asked_for(x: Tensor) -> Any:
    with Hearing() as mode:
        x = x.detach()
        found = [
            float(x.sum()),
            x.sum().item(),
            int(x[0, 0]),
            (x > 5).any().tolist(),
            [1, 2, 3, 4][(x > 0).sum() - 3 * len(x)],
        ]
        if x.sum() > 0:
            x = x + 1
    return mode.heard, found, x


@breaking
def membership_and_formats(x: Tensor) -> Any:
    with Hearing() as mode:
        found = [
            1.0 in x,
            str(x.detach()),
            f"{x.sum().detach():.2f}",
            hash(x) == hash(x),
            bool(x.sum() > 0),
        ]
    return mode.heard, found


@breaking
def breaks_inside(x: Tensor) -> Any:
    with Hearing() as mode:
        y = x + 1
        stator.graph_break()
        z = y * 2
        within = depth()
    return mode.heard, z + 1, within, depth()


@breaking
def breaks_inside_two(x: Tensor) -> Any:
    with Hearing() as outer:
        y = x + 1
        with Doubling():
            stator.graph_break()
            z = y + 2
        z = z * 2
    stator.graph_break()
    return outer.heard, z + 1, depth()


@breaking
def a_break_in_the_function(x: Tensor) -> Any:
    class Breaking(Hearing):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            stator.graph_break()
            return super().__torch_function__(func, types, args, kwargs)

    with Breaking() as mode:
        y = torch.sin(x) + 1
    return mode.heard, y, depth()


@breaking
def an_error_after_a_break(x: Tensor) -> Any:
    try:
        with Hearing() as mode:
            stator.graph_break()
            x + torch.ones(7, 7)
    except RuntimeError:
        return mode.heard, depth(), x * 2


@breaking
def functions_are_disabled(x: Tensor) -> Any:
    with Hearing() as mode:
        with torch._C.DisableTorchFunctionSubclass():
            y = torch.sin(x)
            y = plain(y.as_subclass(Logged) + 1)
        with torch._C.DisableTorchFunction():
            z = torch.cos(x)
    return mode.heard, y, z, depth()


@breaking
def gradients_inside(x: Tensor) -> Any:
    with Hearing() as mode:
        w = x.detach().clone().requires_grad_()
        (w * w).sum().backward()
        grad = w.grad
        (other,) = torch.autograd.grad((w**3).sum(), w)
    return mode.heard, grad, other


@breaking
def tensors_attributes_are_set(x: Tensor) -> Any:
    with Hearing() as mode:
        y = x.detach().clone()
        y.requires_grad = True
        y.grad = torch.ones_like(y)
        y.data = y.data + 1
    return mode.heard, y.detach(), y.grad


@breaking
def operators_with_bodies(x: Tensor) -> Any:
    with Hearing() as mode:
        y = torch.utils.checkpoint.checkpoint(lambda z: torch.sin(z) * 2, x, use_reentrant=False)
        z = torch.vmap(lambda row: row.sum() * 2)(x.detach())
    return mode.heard[:1], mode.count > 3, y, z


@breaking
def a_condition_in_the_graph(x: Tensor) -> Any:
    with Doubling():
        return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x.detach(),))


@captured
def a_device_is_a_mode(x: Tensor) -> Any:
    with Hearing() as mode, DeviceContext("cpu"):
        y = torch.ones(2) + x.sum()
    with DeviceContext("meta"):
        other = torch.get_default_device(), torch.tensor([1]).device, torch.ones(2).device
    return mode.heard, y, torch.get_default_device(), other


@captured
def devices(x: Tensor) -> Any:
    with torch.device("meta") as device:
        y = torch.ones(2)
    with Hearing() as outer, torch.device("meta"), Hearing() as inner, torch.device("cpu"):
        z = torch.ones(2) + x.sum()
        within = depth()

    @torch.device("meta")
    def made() -> Tensor:
        return torch.ones(2)

    return (
        y.device,
        device,
        z,
        outer.heard,
        inner.heard,
        within,
        made().device,
        torch.ones(1).device,
    )


@captured
def an_exception_leaves_a_device(x: Tensor) -> Any:
    try:
        with torch.device("meta"):
            raise KeyError(depth())
    except KeyError as error:
        return error.args, torch.ones(1), depth()


@breaking
def a_break_under_a_device(x: Tensor) -> Any:
    with torch.device("meta"):
        found = [torch.ones(2).device]
        stator.graph_break()
        found += [torch.ones(2).device]
    return found, torch.ones(2) + x.sum(), depth()


@breaking
def the_stack_is_looked_at(x: Tensor) -> Any:
    with Hearing() as mode, Doubling() as doubling:
        found = [type(each).__name__ for each in torch.overrides._get_current_function_mode_stack()]
        same = torch.overrides._get_current_function_mode() is doubling
        with torch.overrides._pop_mode_temporarily():
            y = x + 1
    return found, same, y, mode.heard, depth()


@breaking
def random_numbers(x: Tensor) -> Any:
    with Hearing() as mode:
        torch.manual_seed(3)
        y = torch.rand(2) + torch.randn_like(x).sum()
        z = F.dropout(x, 0.5) + torch.bernoulli(x.detach().abs())
    return mode.heard, y, z


@breaking
def a_check(x: Tensor) -> Any:
    with Hearing() as mode:
        torch._assert(x.shape[1] == 3, "three")
        torch._check(x.shape[1] == 3)
        torch.result_type(x, 1)
        assert x.dim() == 2
    return mode.heard, x * 2


@breaking
def one_stays_in_a_list(x: Tensor) -> Any:
    modes = [Hearing(), Doubling()]
    for mode in modes:
        mode.__enter__()
    y = x + 1
    for mode in reversed(modes):
        mode.__exit__(None, None, None)
    return modes[0].heard, y, depth()


def run(fn: Callable[..., Any], **options: Any) -> None:
    numbers = iter([2, 2, 3, 3, 4])
    assert_same(
        fn,
        stator.compile(fn, **options),
        lambda: (tensors(next(numbers)),),
        5,
        tolerance=Tolerance(1e-5, 1e-5),
    )


def tensors(rows: int) -> Tensor:
    return torch.linspace(0.2, 1, rows * 3).reshape(rows, 3).requires_grad_(rows != 3)


@pytest.fixture(scope="module", autouse=True)
def _factories_are_known() -> None:
    """`lru_cache` has a result for what a device asks."""
    with torch.device("cpu"):
        torch.ones(1)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("title", CAPTURED)
def test_a_mode_entered_inside_is_captured(title: str, backend: str) -> None:
    run(CAPTURED[title], backend=backend, fullgraph=True)


@pytest.mark.parametrize("title", [*CAPTURED, *BREAKING])
def test_a_mode_entered_inside_is_right_with_breaks(title: str) -> None:
    run({**CAPTURED, **BREAKING}[title], backend="eager", options={"break_everywhere": True})


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("title", BREAKING)
def test_what_is_not_captured_is_right(title: str, backend: str) -> None:
    run(BREAKING[title], backend=backend)


# -- what the oracle does not show -----------------------------------------------------------------
class Exact(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.heard.append((func.__name__, types, len(args), kwargs))
        return func(*args, **(kwargs or {}))


def test_keywords_are_none_where_torch_has_none() -> None:
    def fn(x: Tensor) -> Any:
        with Exact() as outer, Exact() as inner, torch.no_grad():
            x + 1, 1 - x, -x, x[0], x.shape, x.T, len(x), x.dim(), x.size(0)
            (
                torch.add(x, 1),
                torch.add(x, other=1),
                x.sum(0),
                x.sum(dim=0),
                F.relu(x),
                torch.ones(2),
                torch.cat([x, x]),
            )
            torch.sin(*[x]), torch.sin(*[x], **{}), x.sin(**{}), x.t(**{})
        return outer.heard, inner.heard

    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    for _ in range(3):
        assert compiled(torch.ones(2, 2)) == fn(torch.ones(2, 2))


@pytest.mark.parametrize("around", [Hearing, lambda: torch.device("cpu"), *DISABLING])
def test_a_region_is_called_under_a_mode(around: Any) -> None:
    """Or where nothing is asked."""

    def fn(x: Tensor) -> Any:
        with Hearing() as mode:
            y = F.relu(x) + x.as_subclass(Plain)
        return mode.heard, type(y).__name__, type(F.relu(x.as_subclass(Plain))).__name__, plain(y)

    compiled = stator.compile(fn, backend="eager")
    x = torch.ones(2)
    for _ in range(2):
        assert str(compiled(x)) == str(fn(x))
        with around():
            assert str(compiled(x)) == str(fn(x))


def test_a_mode_stays_entered() -> None:
    def fn(x: Tensor) -> Any:
        mode = Hearing()
        mode.__enter__()
        return mode, x + 1

    def heard(enter: Any) -> Any:
        mode, y = enter(torch.ones(2))
        y.sin()
        mode.__exit__(None, None, None)
        return mode.heard, depth()

    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    for _ in range(3):
        assert heard(compiled) == heard(fn) == ([("add", [], 2, []), ("sin", ["Tensor"], 1, [])], 0)
