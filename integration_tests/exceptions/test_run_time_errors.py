"""An operator that raises while the compiled graph runs raises what, and where, plain Python raises
it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.corpora.models import Call
from integration_tests.support.oracle import assert_same

Program = Callable[[Tensor, Tensor, list[Any]], Any]
RAISES: dict[str, Program] = {}


def raising(fn: Program) -> Program:
    RAISES[fn.__name__.replace("_", " ")] = fn
    return fn


def pick(x: Tensor, index: Tensor) -> Tensor:
    y = x.sin()
    return y[index] + 1


@raising
def not_handled(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    log.append("before")
    return pick(x, index) * 2


@raising
def handled_where_it_is_raised(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    try:
        y = x[index]
    except IndexError as error:
        log.append(type(error).__name__)
        y = x * 0
    return y + 1


@raising
def handled_in_an_outer_frame(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    try:
        y = pick(x, index)
    except (KeyError, IndexError):
        return x * 3
    finally:
        log.append("finally")
    return y - 1


@raising
def handled_by_the_right_clause(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    try:
        try:
            return pick(x, index)
        except ValueError:
            log.append("wrong")
    except Exception as error:
        log.append(str(error))
        raise RuntimeError("outer") from error


@raising
def effects_before_are_done_once(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    log.append(x + 1)
    log.extend([len(log), "one"])
    y = pick(x, index)
    log.append("after")
    return y


@raising
def random_numbers_before(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    noise = torch.rand(3)
    try:
        return pick(x, index) + noise
    except IndexError:
        return noise + torch.rand(3)


@raising
def grad_mode_is_left(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    try:
        with torch.no_grad():
            y = pick(x, index)
    except IndexError:
        y = x * 2
    log.append(torch.is_grad_enabled())
    return y


@raising
def grad_mode_is_left_by_an_error(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    with torch.no_grad():
        return pick(x, index)


@raising
def in_a_continuation(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    y = x + 1
    stator.graph_break()
    log.append("between")
    try:
        return pick(y, index)
    except IndexError:
        return y * 2


@raising
def in_a_continuation_below_another_frame(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    def inner(y: Tensor) -> Tensor:
        z = y.cos()
        stator.graph_break()
        return pick(z, index)

    try:
        return inner(x) * 2
    except IndexError as error:
        log.append(error.args)
        return x - 1


@raising
def in_a_continuation_not_handled(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    stator.graph_break()
    return pick(x, index)


@raising
def in_a_loop_after_a_break(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    for step in range(3):
        x = x + step
        stator.graph_break()
        try:
            x = pick(x, index * step)
        except IndexError:
            log.append(step)
    return x


@raising
def in_a_generator(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    def parts() -> Any:
        try:
            yield pick(x, index)
        finally:
            log.append("closed")

    try:
        return list(parts())
    except IndexError:
        return x


@raising
def writes_come_after(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    log.append("before")
    try:
        y = pick(x, index)
    except IndexError:
        y = x * 2
    x.add_(1)
    return y


@raising
def writes_to_what_was_made_here(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    y = x.clone()
    y.mul_(2)
    y[0] = 5
    log.append("before")
    return pick(y, index)


@raising
def a_cholesky_that_fails(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    matrix = torch.eye(3) * (10 - index.sum())
    try:
        return torch.linalg.cholesky(matrix)
    except RuntimeError:  # LinAlgError is one
        return matrix - x[0]


@raising
def caught_after_a_write(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    x.mul_(3)
    log.append("before")
    try:
        y = pick(x, index)
    except IndexError:
        y = x + 1
    return y


@raising
def caught_after_a_write_in_an_outer_frame(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    def inner() -> Tensor:
        try:
            x.t_().add_(1)
            return pick(x, index)
        finally:
            log.append("out")

    try:
        return inner()
    except (KeyError, IndexError) as error:
        return str(error)


@raising
def suppressed_after_a_write_through_a_view(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    x[:2].zero_()
    with contextlib.suppress(IndexError), torch.no_grad():
        log.append(pick(x, index))
    return x * 2


@raising
def caught_by_a_bare_except_around_a_finally(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    x += 1
    try:
        try:
            y = pick(x, index)
        finally:
            log.append("finally")
    except:  # noqa: E722
        return x.sin()
    return y


@raising
def an_overlap_is_caught(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    x.add_(1)
    try:
        x[1:].mul_(x[:-1])
    except RuntimeError:
        log.append("overlap")
    return x[index[:2]]


@raising
def an_overlap_after_a_write_and_an_effect(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    x.mul_(2)
    log.append("before")
    x[1:] += x[:-1]
    return x[index[:2]]


@raising
def not_caught_after_a_write(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    x.mul_(3)
    log.append("before")
    y = pick(x, index)
    log.append("after")
    return y


@raising
def not_caught_after_writes_to_views_and_statistics(
    x: Tensor, index: Tensor, log: list[Any]
) -> Any:
    mean, var = torch.zeros(3), torch.ones(3)
    log.extend([mean, var])
    torch.nn.functional.batch_norm(torch.arange(6.0).reshape(2, 3), mean, var, training=True)
    x.data.add_(1)
    x[:2].zero_()
    return pick(x, index)


@raising
def an_embedding_after_an_attribute_is_set(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    def inner(table: Tensor) -> Tensor:
        log.append(table)
        table += 1
        return torch.nn.functional.embedding(index, table)

    try:
        return inner(x.unsqueeze(1))
    finally:
        log.append("finally")


@raising
def a_write_of_the_operator_that_fails(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    log.append("before")
    x.index_add_(0, index, torch.ones(3))
    return x


@raising
def the_shape_is_written_to(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    square = torch.outer(x, x)
    stator.graph_break()
    square.t_()[0].add_(1)
    log.append(square)
    return pick(square, index)


@raising
def an_activation_in_place(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    x.sub_(0.5)
    stator.graph_break()
    log.append(torch.nn.functional.elu(x, 1.0, True))
    return pick(x, index)


@raising
def autocast_is_left(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    x.add_(1)
    try:
        with torch.autocast("cpu", torch.bfloat16):
            return pick(x, index)
    except IndexError:
        return torch.mm(torch.outer(x, x), torch.outer(x, x)), torch.is_autocast_enabled("cpu")


@raising
def inference_mode_is_left(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    try:
        with torch.inference_mode():
            return pick(x, index)
    except IndexError:
        return (x * 2).is_inference(), torch.is_inference_mode_enabled()


@raising
def history_is_put_back(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    leaf = x.clone().requires_grad_()
    y = leaf * 2
    view = y.clone()[:]
    z = x.clone()
    stator.graph_break()
    y.mul_(3)
    view.sin_()
    z.add_(y)
    try:
        pick(x, index)
    except IndexError:
        y = y * 5
    return torch.autograd.grad((y + z + view).sum(), leaf), z.requires_grad


@raising
def a_write_to_a_list_of_tensors(x: Tensor, index: Tensor, log: list[Any]) -> Any:
    torch._foreach_add_([x, x[:2]], 1)
    torch._foreach_mul_((x,), [x])
    return pick(x, index)


@raising
def a_write_to_a_list_of_tensors_that_stops_half_way(
    x: Tensor, index: Tensor, log: list[Any]
) -> Any:
    torch._foreach_add_([x, x[:1].expand(3)], 1)
    return pick(x, index)


def make_args(last: int) -> Callable[[], Call]:
    return lambda: Call((torch.linspace(0, 1, 3), torch.tensor([0, 1, last]), []))


@pytest.mark.parametrize("mode", ["as it is", "operations"])
@pytest.mark.parametrize("title", RAISES)
def test_error_of_an_operator_is_that_of_plain_python(title: str, mode: str) -> None:
    """First calls that raise, calls of an entry that ran well before, and calls that run well
    again."""
    options = {"break_everywhere": mode} if mode != "as it is" else {}
    compiled = stator.compile(RAISES[title], backend="eager", options=options)
    for last in (9, 2, 9, 2):
        assert_same(RAISES[title], compiled, make_args(last), 1)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_entry_serves_again_after_an_error(backend: str) -> None:
    compiled = stator.compile(RAISES["handled in an outer frame"], backend=backend)
    for last in (2, 9, 2):
        assert_same(RAISES["handled in an outer frame"], compiled, make_args(last), 1)
    assert compiled.report.compile_count == 1


def test_operator_that_only_fakes_take_is_refused_as_in_plain_python() -> None:
    """It raises whatever its inputs hold: on the first run of its graph, and on every other."""

    def subtracts(x: Tensor, flag: bool, log: list[Any]) -> Any:
        x.add_(1)
        log.append("before")
        return flag - x

    compiled = stator.compile(subtracts, backend="eager")
    assert_same(subtracts, compiled, lambda: (torch.ones(2), True, []))


def test_effects_before_an_error_are_applied_to_large_inputs_as_well() -> None:
    """Nothing is copied for that: the graph has done what the program does up to the operator."""

    def writes(x: Tensor, index: Tensor, log: list[Any]) -> Any:
        x.add_(1)
        log.append("before")
        return x[index]

    compiled = stator.compile(writes, backend="eager")
    x, index = torch.zeros(2**23 + 1), torch.tensor([0, 1])
    log: list[Any] = []
    compiled(x, index, log)
    with pytest.raises(IndexError):
        compiled(x, index + x.numel(), log)
    assert (x == 2).all()
    assert log == ["before", "before"]


DRAWS = """
x.uniform_() | x.exponential_() | x.cauchy_() | x.geometric_(0.5) | x.log_normal_() | x.random_(0, 9) | x.normal_()
torch.binomial(x * 9, x / 2) | torch.bernoulli(x / 2) | torch.rand_like(x) | torch.poisson(x) | F.dropout(x)
torch._sample_dirichlet(x) | torch._standard_gamma(x) | F.rrelu(-x, training=True) | F.alpha_dropout(x)
"""


def drawing_and_raising(gm: Any, inputs: Any) -> Any:
    def run(*inputs: Any) -> Any:
        gm(*inputs)
        raise FAULT

    return run


FAULT = ZeroDivisionError("after it drew")


@pytest.mark.parametrize(
    "text", [text.strip() for line in DRAWS.strip().split("\n") for text in line.split("|")]
)
def test_what_a_backend_raises_after_it_drew_arrives_and_nothing_is_drawn_again(text: str) -> None:
    fn = eval(f"lambda x: {text}", {"torch": torch, "F": torch.nn.functional})
    compiled = stator.compile(fn, backend=drawing_and_raising)
    for _ in range(3):
        torch.manual_seed(0)
        fn(torch.ones(3))
        after = torch.get_rng_state()
        torch.manual_seed(0)
        with pytest.raises(ZeroDivisionError) as raised:
            compiled(torch.ones(3))
        assert raised.value is FAULT
        assert torch.equal(torch.get_rng_state(), after)


@pytest.mark.parametrize(
    "text", [text.strip() for line in DRAWS.strip().split("\n") for text in line.split("|")]
)
def test_what_a_graph_drew_before_an_operator_raised_stays_drawn(text: str) -> None:
    def fn(x: Tensor, index: Tensor, log: list[Any]) -> Any:
        drawn = draw(x)
        log.append("drawn")
        try:
            return x[index] + drawn
        except IndexError:
            return drawn, torch.rand(2)

    draw = eval(f"lambda x: {text}", {"torch": torch, "F": torch.nn.functional})
    compiled = stator.compile(fn, backend="eager")
    for last in (2, 9, 9, 2):
        assert_same(fn, compiled, make_args(last), 1)


@pytest.mark.parametrize("draw", ["rand_like", "bernoulli", "poisson", "multinomial", "uniform_"])
@pytest.mark.parametrize("dtype", [torch.bool, torch.int64])
def test_integers_that_no_kernel_draws_raise_where_the_program_catches_it(
    draw: str, dtype: torch.dtype
) -> None:
    def fn(x: Tensor, view: Tensor, y: Tensor) -> Any:
        # it has a history from here on that nothing takes back
        view[0].copy_((x.new_ones(3, 2) @ y)[0])
        given = (x.sum() + view > 0).to(dtype)
        try:
            drawn = (
                given.uniform_()
                if draw == "uniform_"
                else getattr(torch, draw)(given, *((2,) * (draw[0] == "m")))
            )
        except (NotImplementedError, RuntimeError) as error:
            return type(error).__name__, str(error), view + 1
        return drawn, view

    def outcome(fn: Any) -> str:
        base, y = torch.ones(3, 2), torch.ones(2, 2, requires_grad=True)
        return str((fn(base, base[:], y), base, y))

    assert outcome(stator.compile(fn, backend="eager")) == outcome(fn)


def _caught_after(view: Tensor, weight: Tensor, index: Tensor, log: list[str]) -> Any:
    view[:1].mul_(weight)
    try:
        picked = weight.sum()[None][index]
    except IndexError:
        log.append("caught")
        return view + 2
    return view + picked


def _not_caught_after(view: Tensor, weight: Tensor, index: Tensor, log: list[str]) -> Any:
    view.mul_(weight)
    log.append("before")
    return view + weight.sum()[None][index]


def _checked_after(view: Tensor, weight: Tensor, index: Tensor, log: list[str]) -> Any:
    view.mul_(weight)
    log.append("before")
    torch._check(bool((index < 1).all()), lambda: "too much")  # type: ignore[no-untyped-call]
    return view + 1


@pytest.mark.parametrize("fn", [_caught_after, _not_caught_after, _checked_after])
def test_an_error_after_a_write_that_gives_a_view_a_history(fn: Callable[..., Any]) -> None:
    """Nothing takes that history back, so what may raise after it is in a graph of its own."""

    def outcome(fn: Any, index: int) -> Any:
        base, log = torch.arange(8.0).reshape(2, 4), list[str]()
        view, weight = base[0], torch.ones(1, requires_grad=True)
        try:
            result = fn(view, weight, torch.tensor([index]), log)
        except (IndexError, RuntimeError) as error:
            result = repr(error)
        return str((result, view, base, log))

    compiled = stator.compile(fn, backend="eager")
    for index in (0, 3, 0, 3):
        assert outcome(compiled, index) == outcome(fn, index)


def test_a_write_to_a_view_costs_no_break_where_nothing_may_raise() -> None:
    def fn(view: Tensor, weight: Tensor) -> Tensor:
        view.mul_(weight)
        return view.sin() + weight

    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2, 2)[0], torch.ones(2, requires_grad=True)).requires_grad


@pytest.mark.parametrize("backend", ["eager", lambda gm, inputs: gm])
@pytest.mark.parametrize("is_body", [True, False])
def test_what_a_graph_raises_is_printed_nowhere(
    capfd: pytest.CaptureFixture[str], backend: Any, is_body: bool
) -> None:
    """`fx` prints what a graph module raises that is called like a module."""

    def fn(x: Tensor, i: Tensor) -> Any:
        def looked_up(a: Tensor) -> Tensor:
            return a[i].sin()

        try:
            return (
                torch.utils.checkpoint.checkpoint(looked_up, x, use_reentrant=False)
                if is_body
                else looked_up(x)
            )
        except IndexError as error:
            return str(error)

    compiled, x = (
        stator.compile(fn, backend=backend, fullgraph=True),
        torch.ones(3, requires_grad=True),
    )
    for i in (torch.tensor([1]), torch.tensor([7])):
        assert str(compiled(x, i)) == str(fn(x, i))
    assert capfd.readouterr().err == ""
