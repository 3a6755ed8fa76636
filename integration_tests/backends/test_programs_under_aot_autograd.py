"""What random programs gave otherwise under a backend that traces the graph again,
functionalised."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn

from integration_tests.support.oracle import EXACT, Tolerance, assert_same

FOUND: dict[str, tuple[Callable[..., Any], Callable[[], Any]]] = {}
BACKENDS = ("eager", "aot_eager", "aot_eager_decomp_partition")


def found(make: Callable[[], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def note(fn: Callable[..., Any]) -> Callable[..., Any]:
        FOUND[fn.__name__.replace("_", " ")] = fn, make
        return fn

    return note


def square(requires_grad: bool = False) -> Tensor:
    return torch.arange(9.0).reshape(3, 3).requires_grad_(requires_grad)


def number(dtype: torch.dtype, start: int = 3) -> Callable[[], Any]:
    """Other contents at each call, so that nothing may be bound to them."""
    values = iter(range(start, 1000))
    return lambda: (torch.ones(3), torch.tensor(next(values), dtype=dtype))


@found(number(torch.float64))
def a_double_without_dimensions(x: Tensor, i: Tensor) -> Any:
    return x + i, torch.zeros(3) + i * 2, x.clamp(max=i)


@found(number(torch.float64))
def a_double_without_dimensions_that_is_written(x: Tensor, i: Tensor) -> Any:
    i.add_(1)
    return x * i


@found(lambda: (torch.ones(3), torch.tensor([2.5, 3.5], dtype=torch.float64)[1]))
def a_double_without_dimensions_that_is_a_view(x: Tensor, i: Tensor) -> Any:
    return (x * i).sum(), i.sin()


@found(number(torch.int64))
def an_integer_without_dimensions(x: Tensor, i: Tensor) -> Any:
    return x + i, x.clamp(max=i)


@found(lambda: (torch.ones(3, dtype=torch.float64), 1.5))
def a_double_made_of_a_number(x: Tensor, f: float) -> Any:
    return x.sum().sin() + f, x.max()


@found(lambda: (square(True),))
def a_leaf_that_is_detached(x: Tensor) -> Any:
    x.detach_()
    return x * 2, x.requires_grad


@found(lambda: (square(True),))
def a_result_from_here_that_is_detached(x: Tensor) -> Any:
    y = x * 2
    y.detach_()
    return y.mul_(3), x.sum()


@found(lambda: (square(), square() * 2))
def lists_that_hold_one_tensor_twice(x: Tensor, y: Tensor) -> Any:
    torch._foreach_add_([x, x], 1)
    torch._foreach_mul_([x, y], [y, x])
    torch._foreach_add_([x[0], x[1]], [y[0], y[0]])
    return x, y


@found(lambda: [square()] * 2)
def lists_of_arguments_that_are_one_tensor(x: Tensor, y: Tensor) -> Any:
    torch._foreach_add_([x, y], 3)
    torch._foreach_mul_([x[:, 0], y[0]], 2)
    torch._foreach_sub_((x[0], y[1]), 1)
    return x


@found(lambda: (square(True),))
def part_of_a_result_that_is_written_without_gradients(x: Tensor) -> Any:
    y = x + 1
    with torch.no_grad():
        y[:1] *= 2
        y[()].add_(1)
        for row in y.unbind():
            row.sub_(1)
    return y, y.sum()


@found(lambda: (torch.arange(9.0),))
def windows_apart_that_are_written(x: Tensor) -> Any:
    y = x * 2
    y.unfold(0, 2, 3).add_(1)
    x.unfold(0, 2, 4)[1].mul_(3)
    return y, x + 1


@found(lambda: (square(True),))
def windows_of_what_has_gradients(x: Tensor) -> Any:
    y = x * 2
    torch.Tensor.unfold(y, 1, 1, 2).mul_(x[:, :2, None])
    return y.sin()


@found(lambda: (square(),))
def windows_that_are_read_alone(x: Tensor) -> Any:
    windows = x.unfold(0, 2, 1)
    x.add_(1)
    return windows.sum(-1)


@found(lambda: (torch.ones(2, 3, 4), *(nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 2))))
def a_recurrent_network_whose_weights_are_trained(x: Tensor, net: nn.LSTM, head: nn.Linear) -> Any:
    return head(net(x)[0])


@found(lambda: (torch.ones(3, 2, 4), nn.LSTM(4, 4, num_layers=2, bidirectional=True), nn.GRU(8, 3)))
def recurrent_networks_of_several_layers(x: Tensor, net: nn.LSTM, head: nn.GRU) -> Any:
    y, (h, c) = net(x)
    return head(y)[0], h, c


@found(lambda: (torch.ones(2, 3, 4), nn.LSTM(4, 5, batch_first=True)))
def a_recurrent_network_without_gradients(x: Tensor, net: nn.LSTM) -> Any:
    with torch.no_grad():
        return net(x)[0]


@found(lambda: (torch.ones(3, 2, 4, requires_grad=True), nn.GRU(4, 5, num_layers=3, dropout=0.5)))
def dropout_between_the_layers_of_a_gru(x: Tensor, net: nn.GRU) -> Any:
    return (*net(x), torch.rand(2))


@found(lambda: (torch.ones(3, 2, 4), nn.RNN(4, 5, 2, dropout=0.5, bidirectional=True, bias=False)))
def dropout_between_the_layers_of_a_simple_network(x: Tensor, net: nn.RNN) -> Any:
    y, h = net(x)
    net.eval()
    return y, h, net(x)[0], torch.rand(2)


@found(lambda: (torch.ones(2, 3, 4), nn.LSTM(4, 5, 2, dropout=0.5, proj_size=2, batch_first=True)))
def dropout_between_the_layers_of_an_lstm(x: Tensor, net: nn.LSTM) -> Any:
    state = torch.ones(2, 2, 2), torch.ones(2, 2, 5)
    y, (h, c) = net(x, state)
    return y, h, c, torch.rand(2)


@found(lambda: (torch.ones(3, 2, 4), nn.RNN(4, 5, 2, dropout=1.0)))
def dropout_of_everything(x: Tensor, net: nn.RNN) -> Any:
    return net(x)[0], nn.functional.dropout(x, 1.0), torch.rand(2)


@found(lambda: (torch.ones(3, 4), torch.ones(3, 4).t()))
def numbers_drawn_into_a_transposed_tensor(x: Tensor, y: Tensor) -> Any:
    return x.mul(2).t().bernoulli_(0.5), y.bernoulli_(0.3), x.bernoulli_(0.3)


@found(lambda: (square(True),))
def one_of_several_views_that_is_written(x: Tensor) -> Any:
    y = x * 2
    first, *_ = y.unbind()
    first += 1
    return y, first


@found(lambda: (square(True),))
def the_only_one_of_several_views(x: Tensor) -> Any:
    y = x.exp()
    try:
        torch.chunk(y, 1)[0].mul_(2)
    except RuntimeError as error:
        return y, str(error).partition(" ")[0]
    return y


@found(lambda: (square(True),))
def a_view_made_without_gradients_that_is_written(x: Tensor) -> Any:
    y = x * 2
    with torch.no_grad():
        part = y[:2]
    part.add_(1)
    return y, part


def raised(call: Callable[[], Any]) -> str:
    try:
        call()
    except (RuntimeError, OverflowError) as error:
        return str(error)
    return "nothing"


class Large(enum.IntEnum):
    NUMBER = 2**70


@found(lambda: (torch.tensor([1, 0, 3]),))
def a_number_that_is_too_large_for_torch(x: Tensor) -> Any:
    y = x + 0.5
    found = [
        raised(lambda: x.mul_(2**70)),
        raised(lambda: y.mul_(Large.NUMBER)),
        raised(lambda: x.add_(-(2**64))),
    ]
    return x, y, found, raised(lambda: torch._foreach_add_([y], [2**65]))


@found(lambda: (torch.tensor([1, 0, 3]), 1.5))
def a_product_with_a_fraction_that_is_written_to_integers(x: Tensor, f: float) -> Any:
    found = [
        raised(lambda: torch._foreach_mul_([x, x * 2], f)),
        raised(lambda: torch._foreach_mul_([x > 1], f)),
    ]
    found += [
        raised(lambda: torch._foreach_mul_([x], [f])),
        raised(lambda: x.mul_(f * x.sum().item())),
    ]
    return x, found, raised(lambda: (x > 1).mul_(x.shape[0])), (x > 1).mul_(True)


@found(lambda: (torch.tensor([1, 0, 3]), torch.tensor([1.5, 0.0, 2.0])))
def a_result_that_the_tensor_it_is_written_to_does_not_hold(x: Tensor, y: Tensor) -> Any:
    found = [
        raised(lambda: x.mul_(y)),
        raised(lambda: y.mul_(1j)),
        raised(lambda: y.add_(torch.complex(y, y))),
    ]
    found += [
        raised(lambda: x.addcmul_(y, y)),
        raised(lambda: x.ldexp_(x)),
        raised(lambda: (x > 1).mul_(x)),
    ]
    found += [raised(lambda: torch._foreach_mul_([y, x], [x, y])), raised(lambda: y.sub_(other=2j))]
    return x, y, found, y.mul_(x), y.mul_(y.double()), y.add_(x, alpha=2)


def fraction() -> Callable[[], Any]:
    values = iter(range(1000))
    return lambda: (torch.tensor([1, 2]), next(values) + 0.5)


@found(fraction())
def a_fraction_that_no_graph_takes_as_what_it_was_for_was_refused(x: Tensor, f: float) -> Any:
    return x * 2, raised(lambda: x.clone().add_(f)), x + 1


def growing() -> Callable[[], Any]:
    sizes = iter(range(2, 1000))
    return lambda: (torch.linspace(1, 2, next(sizes)).requires_grad_(),)


@found(growing())
def a_sample_whose_gradient_nobody_can_trace(x: Tensor) -> Any:
    return torch.distributions.Gamma(x, 1.0).rsample() * 2


@found(lambda: (torch.arange(6.0).reshape(2, 3), 5))
def a_fraction_of_a_size_that_may_be_whole(x: Tensor, n: int) -> Any:
    return x * (n * 0.5), (n * 0.5).is_integer(), (x.shape[0] * 0.5).is_integer()


def in_part(x: Tensor, times: int) -> Tensor:
    y = x + 1
    loss = (y * (y @ y).amax(0)).sum()
    for _ in range(times):
        loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
    return loss


@found(lambda: (square(True), 3))
def a_graph_that_is_retained(x: Tensor, times: int) -> Any:
    return in_part(x, times).detach(), x.grad


def sparse_coordinates(x: Tensor) -> Any:
    eye = torch.eye(3).to_sparse()
    return eye @ x, eye.is_sparse, eye.to_dense() + x, torch.sparse.mm(eye, x).sum()


def sparse_rows(x: Tensor) -> Any:
    rows = x.relu().to_sparse_csr()
    rows.mul_(2)
    return rows @ x, rows.crow_indices(), rows.layout


@pytest.mark.parametrize("fn", [sparse_coordinates, sparse_rows])
@pytest.mark.parametrize("backend", [*BACKENDS, "inductor"])
def test_sparse_tensors(backend: str, fn: Callable[[Tensor], Any]) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR")
        torch.eye(2).to_sparse_csr()  # which is warned of once
    assert_same(fn, stator.compile(fn, backend=backend), lambda: (square(),), calls=2)


# -- autograd is asked about values inside a graph -------------------------------------------------
@found(lambda: (square(True),))
def the_gradient_for_what_is_inside(x: Tensor) -> Any:
    y = x * 2
    (g,) = torch.autograd.grad((y**2).sum(), y)
    return g + y


@found(lambda: (square(True),))
def the_gradient_for_what_is_in_a_list_inside(x: Tensor) -> Any:
    parts = [x * 2, x.sin()]
    return torch.autograd.grad([(part**2).sum() for part in parts], inputs=parts)


@found(lambda: (square(True),))
def a_gradient_that_is_differentiated(x: Tensor) -> Any:
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    return (g**2).sum()


@found(lambda: (square(True),))
def a_backward_that_is_differentiated(x: Tensor) -> Any:
    (x**3).sum().backward(create_graph=True)  # type: ignore[no-untyped-call]
    penalty = (x.grad**2).sum()  # type: ignore[operator]
    x.grad = None
    return penalty


@found(lambda: (square(True),))
def a_gradient_that_is_retained_afterwards(x: Tensor) -> Any:
    y = x * 2
    z = y.sum()
    y.retain_grad()
    z.backward()  # type: ignore[no-untyped-call]
    return y.grad, x.grad


@found(lambda: (square(True), []))
def a_hook_on_what_was_used(x: Tensor, seen: list[Any]) -> Any:
    y = x * 2
    z = y.sin().sum()
    y.register_hook(lambda grad: seen.append(grad.sum().item()))  # type: ignore[no-untyped-call]
    z.backward()  # type: ignore[no-untyped-call]
    return x.grad


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("backend", [*BACKENDS, "inductor"])
def test_backward_may_be_called_again(backend: str, dynamic: bool) -> None:
    def fn(x: Tensor) -> Tensor:
        y = x + 1
        return (y * (y @ y).amax(0)).sum()

    compiled: Any = stator.compile(fn, backend=backend, dynamic=dynamic)
    for size in (3, 4):
        x, other = (
            torch.linspace(-1, 2, size * size).reshape(size, size).requires_grad_()
            for _ in range(2)
        )
        for loss in (fn(x), compiled(other)):
            for retain_graph in (True, True, False):
                loss.backward(retain_graph=retain_graph)
        torch.testing.assert_close(x.grad, other.grad)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", FOUND)
def test_a_program_that_was_found(name: str, backend: str) -> None:
    fn, make = FOUND[name]
    tolerance = EXACT if backend == "eager" else Tolerance(1e-5, 1e-6, strides=False)
    assert_same(fn, stator.compile(fn, backend=backend), make, calls=3, tolerance=tolerance)


OVERLAPPING = {
    "a part shifted": "x[1:] = x[:-1]",
    "a part transposed": "x.view(2, 3)[:] = x.view(3, 2).t()",
    "by positions": "x[[0, 1]] = x[1:3]",
    "out, shifted": "torch.add(x[1:], 1, out=x[:-1])",
    "out, one element of what is read": "torch.sum(x, 0, out=x[0])",
    "out, of one element": "torch.mul(x[0], x, out=x)",
    "out, of a list": "torch.cat([x[:2], x[2:4]], out=x[1:5])",
    "one out of several": "torch.topk(x, 2, out=(x[:2], torch.zeros(2, dtype=torch.int64)))",
    "out, of what is selected": "torch.index_select(x, 0, torch.arange(len(x)).flip(0), out=x)",
    "out, of what is gathered": "torch.gather(x, 0, torch.arange(len(x)).flip(0), out=x)",
    "out, of a product": "y = x[:4].reshape(2, 2).clone(); torch.mm(y, y, out=y); x[:4] = y.view(-1)",
    "windows": "x.unfold(0, 3, 1).add_(1)",
    "windows that are filled": "x.unfold(0, 3, 1).fill_(1)",
    "steps of one": "x.as_strided((2, 2), (1, 1)).mul_(2)",
}
APART = {
    "columns": "x.view(2, 3)[:, 0] = x.view(2, 3)[:, 1]",
    "one for all": "x[1:4] = x[2]",
    "rows into another": "torch.add(x[:2], x[2:4], out=x[4:6])",
    "into itself": "torch.add(x, 1, out=x)",
    "steps of two": "x.as_strided((2, 2), (3, 1)).add_(1)",
    "of all that it is": "torch.addcmul(x, x, x, out=x)",
    "copies": "x[[0, 1]] = x[[1, 0]]",
}


def check_statement(statement: str, backend: str) -> Any:
    names: dict[str, Any] = {"torch": torch}
    lines = ["def fn(x):", "    try:", f"        {statement}", "    except RuntimeError as error:"]
    exec("\n".join([*lines, "        return x * 2, str(error)", "    return x * 2"]), names)
    compiled = stator.compile(names["fn"], backend=backend)
    sizes = iter([6, 6, 6] if "view" in statement else [6, 6, 12])
    tolerance = Tolerance(0, 0, strides=False)
    assert_same(
        names["fn"],
        compiled,
        lambda: (torch.linspace(-1, 9, next(sizes)),),
        calls=3,
        tolerance=tolerance,
    )
    return compiled.report


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("title", OVERLAPPING)
def test_memory_that_is_read_in_another_order_than_it_is_written(title: str, backend: str) -> None:
    check_statement(OVERLAPPING[title], backend)


@pytest.mark.parametrize("title", APART)
def test_memory_that_is_read_elsewhere_or_in_the_same_order_costs_no_break(title: str) -> None:
    assert not check_statement(APART[title], "aot_eager").breaks


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_check_without_a_message_is_made(backend: str) -> None:
    def fn(x: Tensor) -> Tensor:
        torch._assert_async(x.sum() > 0)
        return x * 2

    signs = iter([1, -1, 1])
    assert_same(
        fn,
        stator.compile(fn, backend=backend, fullgraph=True),
        lambda: (torch.ones(3) * next(signs),),
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_hook_gets_the_id_that_it_would_have(backend: str) -> None:
    def fn(x: Tensor) -> int:
        net = nn.Linear(3, 3)
        y = net(x)
        stator.graph_break()
        handle = net.register_forward_hook(lambda *_: None)
        return int(handle.id + y.shape[0])

    next_id = torch.utils.hooks.RemovableHandle.next_id
    for given in (torch.ones(2, 3), torch.ones(2, 3, requires_grad=True), torch.ones(5, 3)):
        torch.utils.hooks.RemovableHandle.next_id = next_id
        wanted = fn(given)
        torch.utils.hooks.RemovableHandle.next_id = next_id
        assert stator.compile(fn, backend=backend)(given) == wanted


def through_data(p: Tensor) -> None:
    p.data.mul_(2)


def through_an_array(p: Tensor) -> None:
    p.detach().numpy()[:] *= 2


def after_it_was_replaced(p: Tensor) -> None:
    p.data = p.data * 2
    p.data.add_(1)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("write", [through_data, through_an_array, after_it_was_replaced])
def test_what_is_written_past_autograd_is_not_refused_in_backward(
    write: Callable[[Tensor], None], backend: str
) -> None:
    def fn(p: Tensor) -> Any:
        y = (p * p).sum()
        stator.graph_break()
        write(p)
        y.backward()  # type: ignore[no-untyped-call]
        return p.grad, p._version

    compiled = stator.compile(fn, backend=backend)
    assert_same(
        fn,
        compiled,
        lambda: (torch.ones(3, requires_grad=True),),
        tolerance=Tolerance(0, 0, strides=False),
    )


def data_of_an_input(p: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return y, p.data


def a_part_of_the_data(p: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return y, p.data.view(-1)[1:]


def data_of_what_is_saved(p: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    z = p.exp()
    return y + z.sum(), z.data


def data_that_were_written(p: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    q = p.data
    q.mul_(2)
    return y, q


def data_that_are_saved(p: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    q = p.data
    return (p * q).sum(), q


def detached_and_saved(p: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return y, p.detach()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "give",
    [
        *(data_of_an_input, a_part_of_the_data, data_of_what_is_saved, data_that_were_written),
        *(data_that_are_saved, detached_and_saved),
    ],
)
def test_data_that_are_written_after_a_break(
    give: Callable[[Tensor, Tensor], tuple[Tensor, ...]], backend: str
) -> None:
    def fn(p: Tensor) -> Any:
        y = (p * p).sum()
        y, q, *more = give(p, y)
        stator.graph_break()
        q.add_(1)
        for each in (y, *more):
            try:
                each.backward()  # type: ignore[no-untyped-call]
            except RuntimeError as error:
                return q, p.grad, str(error)[:85]
        return q, p.grad

    tolerance = Tolerance(1e-6, 1e-6, strides=False)
    assert_same(
        fn,
        stator.compile(fn, backend=backend),
        lambda: (torch.ones(3, requires_grad=True),),
        tolerance=tolerance,
    )


def check_by_branch(x: Tensor) -> Tensor:
    if not (x > 0).all():
        raise ValueError("not positive")
    return x * 2


def check_by_function(x: Tensor) -> Tensor:
    torch._assert((x > 0).all(), "not positive")  # type: ignore[no-untyped-call]
    torch._check_tensor_all(x < 9, lambda: "too large")  # type: ignore[no-untyped-call]
    return x * 2


def check_of_a_library(x: Tensor) -> Any:
    return torch.distributions.Normal(0.0, x - 1).scale


@pytest.mark.parametrize("backend", [*BACKENDS, pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("fn", [check_by_branch, check_by_function, check_of_a_library])
def test_what_the_program_checks_is_checked(
    fn: Callable[..., Any], requires_grad: bool, backend: str
) -> None:
    """AOTAutograd would leave out a check without a text of its own."""
    values = iter([2.0, -1.0, 3.0, 20.0])
    compiled = stator.compile(fn, backend=backend, fullgraph=True)
    make = lambda: (torch.full((2,), next(values), requires_grad=requires_grad),)  # noqa: E731
    assert_same(fn, compiled, make, calls=4, tolerance=Tolerance(1e-6, 1e-6, strides=False))


def views_after_no_grad(x: Tensor, b: Tensor) -> Any:
    with torch.no_grad():
        stator.graph_break()
    return x[1:], (x * b).view(3, 1)


def writes_and_views_by_turns(x: Tensor, b: Tensor) -> Any:
    with torch.no_grad():
        stator.graph_break()
        first = x * 3, x.view(3)
        with torch.enable_grad():
            b.add_(x)
            inner = x[1:]
        last = inner[:1]
    return b, b * 2, inner, first, last


def views_apart(x: Tensor, b: Tensor) -> Any:
    y = x * b
    with torch.no_grad():
        apart = x.view(3, 1), y[1:]
    return y, apart, x.detach().requires_grad_()


def written_apart(x: Tensor, b: Tensor) -> Any:
    with torch.no_grad():
        stator.graph_break()
        x.add_(1)
        part = x[1:]
        part.mul_(2)
    return x * b, part, x[:2]


def writes_to_intermediate_results(x: Tensor, b: Tensor) -> Any:
    y, z = x * b, x * 2
    with torch.no_grad():
        stator.graph_break()
        with torch.enable_grad():
            y.mul_(1.5)
            part = y[1:]
        part.add_(1)
    z.mul_(2)
    return y, z


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "fn",
    [
        writes_to_intermediate_results,
        views_after_no_grad,
        writes_and_views_by_turns,
        views_apart,
        written_apart,
    ],
)
def test_views_and_written_inputs_have_the_history_of_the_mode_they_were_made_in(
    fn: Callable[..., Any], backend: str
) -> None:
    make = lambda: (torch.arange(3.0, requires_grad=True), torch.ones(3))  # noqa: E731
    assert_same(
        fn, stator.compile(fn, backend=backend), make, tolerance=Tolerance(0, 0, strides=False)
    )
