"""What operators warn of is said as plain Python says it: as often, with the user's lines, and
never twice."""

from __future__ import annotations

import itertools
import logging
import operator
import pathlib
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import stator
import torch
from torch import Tensor
from torch.nn import functional as F

from integration_tests.support.oracle import assert_same

X = torch.arange(3.0)
Said = list[tuple[str, str, int]]


def of_python(x: Tensor) -> Tensor:
    return F.mse_loss(x, x[:1])


def of_python_twice(x: Tensor) -> Tensor:
    y = F.mse_loss(x, x[:1])
    return y + F.mse_loss(x, x[:1]) + F.l1_loss(x, x[:1])


def of_cpp(x: Tensor) -> Tensor:
    return x[None].expand(3, 3).T @ torch.cross(x.view(3, 1), x.view(3, 1))


def of_itself(x: Tensor) -> Any:
    return torch.lu(x.view(1, 1, 3).expand(1, 3, 3) + torch.eye(3))


def around_a_break(x: Tensor) -> Tensor:
    y = F.mse_loss(x, x[:1])
    stator.graph_break()
    return y + torch.tensor(x)


def handled(x: Tensor) -> Tensor:
    try:
        return F.mse_loss(x, x[:1])
    except UserWarning:
        return x


def of_an_attribute(x: Tensor) -> Any:
    y = x.clone().requires_grad_() * 2
    stator.graph_break()
    missing = y.grad
    y.retain_grad()
    return y + 1, missing, y.grad


def of_what_it_resizes(x: Tensor) -> Tensor:
    y = torch.ones(2)
    torch.mul(x, 2, out=y)
    return y


def of_writes_to_an_expanded_tensor(x: Tensor) -> Any:
    y = (x + 1).expand(2, 3)
    y[y > 2] = 1
    y.masked_fill_(y > 1, 0).index_fill_(0, torch.tensor([0]), 5)
    y.fill_(2)[0] = x
    try:
        y.add_(1)
    except RuntimeError as error:
        return str(error), y
    return y


def of_known_values(x: Tensor) -> Any:
    flag = x.dim() > 0
    inverted = ~flag, operator.invert(not flag), flag.__invert__(), [~one for one in (True, False)]
    return x + 1, inverted, re.sub("a", "b", "aaa", 1)  # noqa: B034 (what Python warns of differs)


def of_sizes(x: Tensor) -> Any:
    return x + 1, ~(x.shape[0] > 1), ~(x.shape[0] == 7), np.float64(x.shape[0]) / np.float64(0)


def of_slices_beyond_any_tensor(x: Tensor) -> Any:
    _ = x[: -(2**70)]
    _ = x[..., 1 - 2**65 :]
    return x + 1, x[-(2**63) - 1 :], x[: 2**70]


PROGRAMS: tuple[Callable[[Tensor], Any], ...] = (
    *(
        of_python,
        of_python_twice,
        of_cpp,
        of_itself,
        around_a_break,
        handled,
        of_an_attribute,
        of_what_it_resizes,
    ),
    *(of_writes_to_an_expanded_tensor, of_known_values, of_sizes),
    *(of_slices_beyond_any_tensor,),
)


def said(fn: Callable[..., Any], x: Tensor, action: Any) -> Said:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter(action)
        fn(x)
    return [(str(one.message), one.filename, one.lineno) for one in found]


@pytest.fixture(autouse=True)
def _always() -> Any:
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


# -- state that kernels read, set among warnings ---------------------------------------------------
def of_an_operator_under_flags(x: Tensor) -> Tensor:
    with FLAGS(enabled=False, allow_tf32=None):
        return F.mse_loss(x, x[:1])


def of_operators_on_both_sides_of_flags(x: Tensor) -> Tensor:
    y = F.mse_loss(x, x[:1])
    with FLAGS(enabled=False, allow_tf32=None):
        y = y + F.l1_loss(x, x[:1])
    return y * F.smooth_l1_loss(x, x[:1])


def of_queries_around_an_operator(x: Tensor) -> Any:
    with FLAGS(enabled=False, allow_tf32=None):
        first = torch.is_autocast_cpu_enabled()
    y = x + 1
    with FLAGS(enabled=False, allow_tf32=None):
        second = torch.is_autocast_cpu_enabled()
    return y, first, second


def of_a_query_without_operators(x: Tensor) -> Any:
    with FLAGS(enabled=False, allow_tf32=None):
        return x.dim(), torch.is_autocast_cpu_enabled()


FLAGS: Any = torch.backends.mkldnn.flags
UNDER_FLAGS = (
    of_an_operator_under_flags,
    of_operators_on_both_sides_of_flags,
    of_queries_around_an_operator,
    of_a_query_without_operators,
)


@pytest.mark.parametrize(
    ("backend", "fullgraph"), [("eager", True), ("aot_eager", False), ("aot_eager", True)]
)
@pytest.mark.parametrize("fn", UNDER_FLAGS, ids=lambda fn: fn.__name__)
def test_warnings_go_through_state_that_is_set_between_operators(
    fn: Callable[[Tensor], Any], backend: str, fullgraph: bool
) -> None:
    expected = said(fn, X, "always")
    assert expected
    compiled = stator.compile(fn, backend=backend, fullgraph=fullgraph)
    for _ in range(3):
        assert said(compiled, X, "always") == expected
        assert torch.backends.mkldnn.enabled


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_each_call_says_what_plain_python_says(fn: Callable[[Tensor], Any], backend: str) -> None:
    compiled = stator.compile(fn, backend=backend)
    for _ in range(3):
        assert said(compiled, X, "always") == said(fn, X, "always")


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_what_is_not_shown_stays_so(fn: Callable[[Tensor], Any]) -> None:
    compiled = stator.compile(fn, backend="eager")
    assert [said(compiled, X, action) for action in ("ignore", "ignore")] == [[], []]


def test_a_line_warns_once_by_default() -> None:
    compiled = stator.compile(of_python_twice, backend="eager")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            compiled(X)
    assert [one.lineno - of_python_twice.__code__.co_firstlineno for one in found] == [1, 2]


@pytest.mark.parametrize("first", ["error", "always"])
def test_a_warning_that_is_an_error_is_raised_where_it_belongs(first: Any) -> None:
    compiled = stator.compile(handled, backend="eager")
    said(compiled, X, first)
    with warnings.catch_warnings(action="error"):
        assert compiled(X) is X
        with pytest.raises(UserWarning, match="target size"):
            stator.compile(of_python, backend="eager")(X)
    assert said(compiled, X, "always") == said(handled, X, "always")


def test_sizes_in_a_warning_are_those_of_the_call() -> None:
    compiled = stator.compile(of_python, backend="eager")
    for size in (3, 4, 5, 6):
        found = [text for text, *_ in said(compiled, torch.ones(size), "always")]
        assert found == [text for text, *_ in said(of_python, torch.ones(size), "always")]
    assert len(compiled.report.entries) == 2


def test_code_of_no_module_warns_as_well(tmp_path: pathlib.Path) -> None:
    """As in a notebook: no module has the file that Python tells of."""
    text = "def made(x):\n    return torch.range(0, 3) + x"
    namespace: dict[str, Any] = {"torch": torch, "__name__": "somewhere"}
    exec(compile(text, tmp_path / "made.py", "exec"), namespace)
    x, fn = torch.ones(4), namespace["made"]
    plain = said(fn, x, "always")
    assert len(plain) == 1
    assert said(stator.compile(fn, backend="eager"), x, "always") == plain


def test_what_cpp_says_once_is_said_once() -> None:
    torch.set_warn_always(False)
    compiled = stator.compile(
        lambda x: torch.trapz(x, x) + x.view(3, 1).T.T.T.sum(), backend="eager"
    )
    assert len({tuple(said(compiled, X, "always")) for _ in range(3)} - {()}) <= 1


def test_filters_are_left_as_they_were() -> None:
    compiled = stator.compile(of_python, backend="eager")
    before = [*warnings.filters]
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        inside = [*warnings.filters]
        compiled(X)
        assert [*warnings.filters] == inside
    assert [*warnings.filters] == before


def inside(x: Tensor) -> Tensor:
    with warnings.catch_warnings():
        return F.mse_loss(x, x[:1]) * 2


def ignored(x: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", message=".*target size", category=DeprecationWarning)
        y = F.mse_loss(x, x[:1])
    return y + F.l1_loss(x, x[:1])


def recorded(x: Tensor) -> Any:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        y = F.mse_loss(x, x[:1]) * 2
    return y, [str(one.message) for one in found]


def left_by_an_error(x: Tensor) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.resetwarnings()
            raise KeyError(x.shape[0])
    except KeyError as error:
        return F.mse_loss(x, x[:1]), error.args


def in_a_function(x: Tensor) -> Tensor:
    with (managers := [warnings.catch_warnings()])[0]:
        y = ignored(x)
    return y + len(managers)


CATCHING: dict[Any, int] = {
    inside: 2,
    ignored: 4,
    recorded: 3,
    left_by_an_error: 4,
    in_a_function: 6,
}


@pytest.mark.parametrize("fn", CATCHING, ids=lambda fn: fn.__name__)
def test_each_step_of_catching_warnings_costs_one_break(fn: Callable[[Tensor], Any]) -> None:
    compiled = stator.compile(fn, backend="eager")
    for _ in range(3):
        before = [*warnings.filters]
        assert said(compiled, X, "always") == said(fn, X, "always")
        assert before == [*warnings.filters]
        with warnings.catch_warnings(action="ignore"):
            assert str(compiled(X)) == str(fn(X))
    assert len(compiled.report.breaks) == CATCHING[fn]


def a_number_of_numpy(x: Tensor, n: Any) -> Any:
    found = np.int32(3) + n
    _tells_once()
    return found, x + 1


def an_array(x: Tensor, n: Any) -> Any:
    found = np.arange(3) + n
    _tells_once()
    return found, x + 1


def what_has_gradients(x: Tensor, n: Any) -> Any:
    y = x * 2
    _tells_once()
    return y * n


def a_group(x: Tensor, n: Any) -> Any:
    groups = itertools.groupby([n, n, 5])
    next(groups)
    _tells_once()
    return groups, x + 1


def _tells_once() -> None:
    warnings.warn("told once", stacklevel=1)


@pytest.mark.parametrize(
    "fn", [a_number_of_numpy, an_array, what_has_gradients, a_group], ids=lambda fn: fn.__name__
)
def test_what_was_shown_once_is_not_shown_again(fn: Any) -> None:
    """Whatever stator makes of the warnings of its own work, also when it compiles again and each
    time it runs."""
    compiled = stator.compile(fn, backend="eager")
    globals().pop("__warningregistry__", None)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for n in (1, 2.0, 1, True, 3.5):
            compiled(torch.ones(3, requires_grad=True), n)
    assert [str(one.message) for one in shown] == ["told once"]


def test_checks_of_sizes_say_that_they_are_deprecated() -> None:
    def fn(x: torch.Tensor, n: int) -> torch.Tensor:
        torch._check_is_size(n)  # type: ignore[no-untyped-call]
        return x + n

    sizes = itertools.count(3)
    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    assert_same(fn, compiled, lambda: (torch.ones(2), next(sizes)))


def warns_its_caller(x: Tensor) -> Tensor:
    warnings.warn("of the caller", UserWarning, stacklevel=2)
    LOG.warning("of the caller", stacklevel=2)
    return x + 1


def warns_who_called_its_caller(x: Tensor) -> Tensor:
    return _warns_further(x) * 2


def _warns_further(x: Tensor) -> Tensor:
    warnings.warn("of its caller", UserWarning, stacklevel=3)
    LOG.warning("of its caller", stacklevel=3)
    return x


def warns_after_breaks(x: Tensor) -> Tensor:
    for _ in range(3):
        stator.graph_break()
        x = warns_who_called_its_caller(x)
    return warns_its_caller(x)


LOG = logging.getLogger(__name__)
FURTHER = (warns_its_caller, warns_who_called_its_caller, warns_after_breaks)
WAYS: dict[str, dict[str, Any]] = {
    "compiled": {},
    "broken at every call": {"options": {"break_everywhere": True}},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fn", FURTHER, ids=lambda fn: fn.__name__)
def test_a_warning_of_a_frame_outside_names_that_frame(
    fn: Any, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    def places(run: Any) -> list[tuple[str, int]]:
        caplog.clear()
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always")
            for _ in range(2):
                run(X)
        said = [(one.filename, one.lineno) for one in shown if "of " in str(one.message)]
        return said + [
            (record.pathname, record.lineno) for record in caplog.records if record.name == LOG.name
        ]

    assert places(stator.compile(fn, backend="eager", **WAYS[way])) == places(fn)
