"""Library functions that break: called natively as a whole, unless something would be lost by
it."""

from __future__ import annotations

import colorsys
import contextlib
import copy
import json
import logging
import textwrap
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same


class Records(logging.Handler):
    """Keeps what it is given, as text."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(
            f"{record.funcName}:{record.lineno - first_line()}: {record.getMessage()}"
        )


def first_line() -> int:
    return logs.__code__.co_firstlineno


RECORDS = Records()
loud = logging.getLogger(f"{__name__}.loud")
loud.setLevel(logging.DEBUG)
loud.propagate = False
loud.addHandler(RECORDS)


def logs(x: Tensor) -> Tensor:
    y = x + 1
    loud.info("value %s", y.shape)
    z = y * 2
    loud.debug("twice")
    return z - 1


def as_json(x: Tensor) -> Any:
    y = x + 1
    text = json.dumps({"a": [1, 2.5, None], "shape": list(x.shape)}, indent=1)
    return y * 2, text, json.loads(text)


def copies(x: Tensor) -> Any:
    table = {"a": [x, x]}
    copied = copy.deepcopy(table)
    return copied["a"][0] * 2, copied["a"][0] is copied["a"][1]


def wraps_text(x: Tensor) -> Any:
    return x + 1, textwrap.wrap("one two three four", 9)


def locks(x: Tensor) -> Any:
    lock = threading.Condition()
    with lock:
        y = x + 1
    return y * 2


LIBRARY: dict[Callable[..., Any], int] = {logs: 3, as_json: 2}


@pytest.mark.parametrize("fn", [*LIBRARY, copies, wraps_text, locks], ids=lambda fn: fn.__name__)
def test_a_library_function_gives_what_plain_python_gives(fn: Callable[..., Any]) -> None:
    assert_same(fn, stator.compile(fn, backend="eager"), lambda: (torch.arange(4.0),), calls=4)


@pytest.mark.parametrize("fn", LIBRARY, ids=lambda fn: fn.__name__)
def test_a_library_function_costs_one_break(fn: Callable[..., Any]) -> None:
    for _ in range(2):
        fn(torch.arange(4.0))  # fills what the library caches
    counting = Counting()
    compiled = stator.compile(fn, backend=counting)
    for _ in range(3):
        compiled(torch.arange(4.0))
    assert counting.count == LIBRARY[fn]
    # the reason lies in the library
    assert {broke.where.filename for broke in compiled.report.breaks} != {__file__}


def test_logging_shows_the_line_of_the_program() -> None:
    compiled = stator.compile(logs, backend="eager")
    for fn in (logs, compiled, compiled, compiled):
        RECORDS.lines.clear()
        fn(torch.ones(2))
        assert RECORDS.lines == ["logs:2: value torch.Size([2])", "logs:4: twice"]


def new_logger(name: str, level: int) -> tuple[logging.Logger, Records]:
    """A logger that nothing has called yet, and what it is given."""
    logger, records = logging.Logger(f"{__name__}.{name}", level), Records()
    logger.addHandler(records)
    return logger, records


def test_a_level_that_is_switched_off_is_no_break() -> None:
    logger, records = new_logger("off", logging.ERROR)

    def fn(x: Tensor) -> Tensor:
        y = x + 1
        logger.debug("value %s", 1)
        return y * 2

    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    for _ in range(3):
        assert compiled(torch.ones(2)).tolist() == [4.0, 4.0]
    assert compiled.report.entry_count == 1
    assert not records.lines


def test_a_logger_costs_one_break_from_the_first_call_on() -> None:
    logger, records = new_logger("on", logging.INFO)

    def fn(x: Tensor) -> Tensor:
        y = x + 1
        logger.debug("no")
        logger.info("value %s", y.shape)
        return y * 2

    compiled = stator.compile(fn, backend="eager")
    for _ in range(3):
        assert compiled(torch.ones(2)).tolist() == [4.0, 4.0]
    assert compiled.report.entry_count == 2
    assert len(records.lines) == 3


@pytest.mark.parametrize("kind", ["set_level", "disable", "by_parent", "by_attribute"])
def test_levels_that_change_between_calls_are_followed(kind: str) -> None:
    logger, records = new_logger("changing", logging.DEBUG if kind == "disable" else 0)
    logger.parent = parent = logging.Logger("parent", logging.DEBUG)
    changes: dict[str, Callable[[int], Any]] = {
        "set_level": logger.setLevel,
        "disable": logging.disable,
        "by_parent": parent.setLevel,
        "by_attribute": lambda level: setattr(logger, "level", level),  # the cache is not cleared
    }

    def fn(x: Tensor) -> Any:
        logger.info("value")
        return x + 1, logger.isEnabledFor(logging.WARNING)

    compiled = stator.compile(fn, backend="eager")
    found = []
    for call in (fn, compiled):
        logger._cache.clear()  # type: ignore[attr-defined]
        records.lines.clear()
        for level in (10, 40, 10, 40, 10, 30, 20):
            changes[kind](level)
            found.append(call(torch.ones(1))[1])
        found.append(len(records.lines))
        changes[kind](logging.NOTSET)
    assert found[:8] == found[8:]
    assert compiled.report.entry_count <= 4


def test_a_level_that_the_region_or_the_class_decides_is_traced() -> None:
    class Odd(logging.Logger):
        asked = 0

        def getEffectiveLevel(self) -> int:
            self.asked += 1
            return 25

    def fn(x: Tensor, logger: Any, level: int) -> Any:
        logger.level = level
        return x + 1, logger.isEnabledFor(30), logger.isEnabledFor(20)

    def make_args() -> tuple[Any, ...]:
        return torch.ones(1), made.pop(0), 25

    plain: list[Any] = [cls("odd", 10) for cls in (Odd, logging.Logger) for _ in range(2)]
    for one, other in zip(plain[::2], plain[1::2], strict=True):
        compiled = stator.compile(fn, backend="eager")
        made = [one, other]
        outcomes = [call(*make_args())[1:] for call in (fn, compiled)]
        assert outcomes[0] == outcomes[1] == (True, False)
        assert getattr(one, "asked", 0) == getattr(other, "asked", 0)


def test_functions_that_a_library_is_handed_are_captured() -> None:
    def on_exit(into: list[Tensor], x: Tensor) -> None:
        into.append(x.sin().cos().tan())

    def fn(x: Tensor) -> Any:
        found: list[Tensor] = []
        with contextlib.ExitStack() as stack:
            stack.callback(on_exit, found, x)
            stator.graph_break()
        return found[0] + 1

    counting = Counting()
    compiled = stator.compile(fn, backend=counting)
    assert_same(fn, compiled, lambda: (torch.ones(2),), calls=3)
    assert "tan" in "".join(str(graph.code) for graph in counting.graphs)


def test_what_a_library_has_added_to_the_graph_stays_there() -> None:
    convert: Any = colorsys.yiq_to_rgb  # arithmetic, then branches on data

    def fn(x: Tensor) -> Any:
        r, g, b = convert(x, x * 0.1, x * 0.2)
        return r + 1, g, b

    counting = Counting()
    compiled = stator.compile(fn, backend=counting)
    assert_same(fn, compiled, lambda: (torch.tensor(0.25),), calls=3)
    assert counting.graphs[0].code.count("*") >= 8


@contextlib.contextmanager
def adding(x: Tensor) -> Iterator[Tensor]:
    stator.graph_break()
    yield x + 1


def test_a_generator_that_a_library_resumes_is_captured_behind_its_break() -> None:
    def fn(x: Tensor) -> Any:
        with adding(x) as y:
            return y * 2

    counting = Counting()
    compiled = stator.compile(fn, backend=counting)
    assert_same(fn, compiled, lambda: (torch.ones(2),), calls=3)
    assert "+ 1" in "".join(str(graph.code) for graph in counting.graphs)


def fails(x: Tensor) -> Any:
    y = x + 1
    try:
        json.loads("{")
    except json.JSONDecodeError as error:
        names = [entry.name for entry in traceback.extract_tb(error.__traceback__)]
        return y * 2, str(error), names
    return y


def test_an_exception_out_of_a_library_function_has_its_traceback() -> None:
    assert_same(fails, stator.compile(fails, backend="eager"), lambda: (torch.ones(2),), calls=3)


def test_an_exception_that_leaves_has_the_frames_of_the_program_and_the_library() -> None:
    def fn(x: Tensor) -> Any:
        y = x + 1
        return y, json.loads("[1,")

    compiled = stator.compile(fn, backend="eager")
    seen = []
    for call in (fn, compiled, compiled):
        with pytest.raises(json.JSONDecodeError) as caught:
            call(torch.ones(2))
        seen.append([entry.name for entry in traceback.extract_tb(caught.tb)][1:])
    assert [name for name in seen[0] if name != "fn"]
    assert seen[1][-len(seen[0]) :] == seen[0]
    assert seen[2] == seen[1]


def test_fullgraph_names_the_place_in_the_library() -> None:
    fn = stator.compile(as_json, backend="eager", fullgraph=True)
    with pytest.raises(stator.StatorError, match="json"):
        fn(torch.ones(2))


# -- functions of torch that only data ends --------------------------------------------------------
def truncated(x: Tensor) -> Tensor:
    torch.nn.init.trunc_normal_(x)
    return x * 2


def truncated_otherwise(x: Tensor) -> Tensor:
    y = x + 1
    torch.nn.init.trunc_normal_(y, a=1.5, b=2.0)
    return y * 2


def from_a_circle(x: Tensor) -> Any:
    distribution: Any = torch.distributions.VonMises(x, x + 1)
    return distribution.sample() * 2


def halved(x: Tensor) -> Tensor:
    while x.sum() > 1:
        x = x / 2
    return x + 1


@pytest.mark.parametrize(
    ("fn", "graphs"),
    [(truncated, 1), (truncated_otherwise, 2), (from_a_circle, 2), (halved, 3)],
)
def test_a_function_of_torch_that_only_data_ends_is_one_break(
    fn: Callable[[Tensor], Any], graphs: int
) -> None:
    backend = Counting()
    compiled = stator.compile(fn, backend=backend)
    for seed in range(4):
        torch.manual_seed(seed)
        expected = fn(torch.ones(40)), torch.rand(2)
        torch.manual_seed(seed)
        found = compiled(torch.ones(40)), torch.rand(2)
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert backend.count == graphs


def test_a_function_of_torch_that_only_data_ends_can_be_compiled_itself() -> None:
    compiled = stator.compile(torch.nn.init.trunc_normal_, backend="eager")
    for seed in range(3):
        torch.manual_seed(seed)
        expected = torch.nn.init.trunc_normal_(torch.empty(40))
        torch.manual_seed(seed)
        torch.testing.assert_close(compiled(torch.empty(40)), expected, rtol=0, atol=0)
