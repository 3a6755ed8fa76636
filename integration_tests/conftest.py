"""Nothing is downloaded, and warnings of libraries we do not own are not our errors."""

from __future__ import annotations

import gc
import logging
import os
import zlib
from collections import Counter

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("STATOR_CHECK", "1")  # every graph of every test is looked at for faults


@pytest.fixture(autouse=True)
def _without_shared_entries() -> None:
    """Let no test take an entry of an earlier one."""
    from stator._entries._entry_pool import forget_pools

    forget_pools()


@pytest.fixture(autouse=True)
def _without_structured_trace() -> None:
    """Undo what `torch._logging.set_logs` did in an earlier test; see `_let_trace_propagate`."""
    _let_trace_propagate()


def _let_trace_propagate() -> None:
    """Let pytest attach no handler to the logger of torch's structured trace.

    pytest attaches its handlers to every logger that does not propagate, for all tests and again
    for each one. torch takes any handler for a request to record all compilations.
    """
    logging.getLogger("torch.__trace").propagate = True


def pytest_configure(config: object) -> None:
    for line in (
        "default::DeprecationWarning:torch.*",
        "default::FutureWarning:torch.*",
        "default::UserWarning:torch.*",
        "default::DeprecationWarning:transformers.*",
        "default::UserWarning:transformers.*",
    ):
        config.addinivalue_line("filterwarnings", line)  # type: ignore[attr-defined]


LARGE = 10
"""Of a test with more variants than this, one in `SAMPLE` runs by default."""

SAMPLE = 3


@pytest.hookimpl(tryfirst=True)  # before what is marked slow is left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark two thirds of the variants of large matrices as slow, whatever their order: the same
    ones in each run. A selection by name has all of them."""
    if config.option.keyword or any("::" in argument for argument in config.args):
        return

    counts = Counter(map(_function_of, items))
    for item in items:
        if counts[_function_of(item)] > LARGE and zlib.crc32(item.nodeid.encode()) % SAMPLE:
            item.add_marker(pytest.mark.slow)


def _function_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def pytest_collection_finish(session: object) -> None:
    from integration_tests.support.warming import warm_up

    warm_up()
    _let_trace_propagate()
    # young garbage as often as ever, in the midst of tracing too; all of it less often
    gc.set_threshold(700, 10, 100)
