"""Whatever is read is guarded: a change of the fact gives another answer, a change beside it does
not compile again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch

from integration_tests.corpora.facts import ALL, PRELUDE, READ_AGAIN
from integration_tests.support.description import describe, differences
from integration_tests.support.world import World

CONTEXTS = {
    "a called function": "return read(*args)",
    "the code after a break": "print(end=''); return read(*args)",
    "a generator": "return next(read(*args) for _ in range(1))",
    "a loop in a try": """
        for n in range(2):
            try:
                found = read(*args)
            finally:
                n += 1
        return found""",
}
"""Where a fact is read besides the compiled function itself: in `read`, which is called there."""
ELSEWHERE = [
    (name, context) for name, row in ALL.items() if "plain." not in row[2] for context in CONTEXTS
]
SAMPLED = [
    pytest.param(*pair, marks=[pytest.mark.slow] if at % 7 else [], id=" in ".join(pair))
    for at, pair in enumerate(ELSEWHERE)
]


def reuse(where: int, make: Callable[[], Any]) -> Any:
    """An object that is not at `where`, where another one lives: ids of living objects are never
    taken."""
    found = make()
    assert id(found) != where
    return found


class Scene:
    """The globals of one row, its plain function and the compiled one."""

    def __init__(
        self, setup: str, body: str, context: str = "", options: dict[str, Any] | None = None
    ) -> None:
        self.names: dict[str, Any] = {"LATER": None, "REUSE": reuse, "__name__": __name__}
        self.do(PRELUDE)
        self.do(setup)
        if body:
            self.do(body if body.startswith("def ") else f"def f(x):\n    {body}")
        if context:
            self.names["read"] = self.names.pop("f")
            self.do(f"def f(*args):\n        {context}")
        self.names["plain"] = self.names.pop("f")
        self.compiled = stator.compile(self.names["plain"], backend="eager", options=options)

    def do(self, text: str) -> None:
        exec(text, self.names)

    def check(self) -> int:
        """The compiled function gives what the plain one gives; how many entries there are now."""
        expected, found = (
            self.names["plain"](*self.names["ARGS"]),
            self.compiled(*self.names["ARGS"]),
        )
        assert not differences(describe(result=expected), describe(result=found))
        return int(self.compiled.report.entry_count)


@pytest.fixture(autouse=True)
def _world(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    threads, before = torch.get_num_threads(), World.now()
    for name in ("STATOR_FACT", "STATOR_OTHER"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.setitem(os.environ, name, "0")
        del os.environ[name]
    yield
    before.restore()
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", ALL)
def test_fact_is_guarded(name: str, request: pytest.FixtureRequest) -> None:
    check(name, "", request)


@pytest.mark.parametrize(("name", "context"), SAMPLED)
def test_fact_is_guarded_in(name: str, context: str, request: pytest.FixtureRequest) -> None:
    check(name, CONTEXTS[context], request)


def check(name: str, context: str, request: pytest.FixtureRequest) -> None:
    setup, body, change, unrelated = ALL[name]
    scene = Scene(setup, body, context)
    scene.names["LATER"] = request.addfinalizer
    first = scene.check()
    scene.do(unrelated)
    assert scene.check() == first, "compiled again for what it does not depend on"
    scene.do(change)
    assert scene.check() > first or name in READ_AGAIN, "not compiled again"
    assert scene.check() > 0
