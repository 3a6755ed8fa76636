"""The trackers of builtin containers pass the kit, and trackers with one fault each do not."""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import pytest
from stator_variables import Journal
from stator_variables._objects._list import ListTracker

from .conformance import TrackerConformance

Make = Callable[[], Any]
Change = Callable[[Any], object]


class Kit(TrackerConformance):
    @pytest.fixture
    def compile(self, compiler: Any) -> Any:
        return compiler


class TestLists(Kit):
    @pytest.fixture
    def make(self) -> Make:
        return lambda: [1, 2]

    @pytest.fixture
    def change(self) -> Change:
        return lambda thing: thing.append(3)

    @pytest.fixture
    def read(self) -> Change:
        return lambda thing: [*thing]


class TestBoundedDeques(TestLists):
    @pytest.fixture
    def make(self) -> Make:
        return lambda: deque([1, 2], 3)

    @pytest.fixture
    def change(self) -> Change:
        return lambda thing: thing.appendleft(len(thing))


class TestSets(TestLists):
    @pytest.fixture
    def make(self) -> Make:
        return lambda: {1, 2}

    @pytest.fixture
    def change(self) -> Change:
        return lambda thing: thing.add(len(thing) + 1)

    @pytest.fixture
    def read(self) -> Change:
        return lambda thing: sorted(thing)


class TestDicts(TestLists):
    @pytest.fixture
    def make(self) -> Make:
        return lambda: {"a": 1}

    @pytest.fixture
    def change(self) -> Change:
        return lambda thing: thing.__setitem__(len(thing), 1)

    @pytest.fixture
    def read(self) -> Change:
        return lambda thing: [*thing.items()]


class TestOrderedDicts(TestDicts):
    @pytest.fixture
    def make(self) -> Make:
        return lambda: OrderedDict(a=1, b=2)

    @pytest.fixture
    def change(self) -> Change:
        return lambda thing: thing.popitem(last=False)


class TestDefaultDicts(TestDicts):
    @pytest.fixture
    def make(self) -> Make:
        return lambda: defaultdict(list, {"a": 1})

    @pytest.fixture
    def change(self) -> Change:
        return lambda thing: thing[len(thing)]


FAULTS = {
    "replays nothing": (ListTracker, "replay", lambda self, e: None),
    "is made at each use": (
        ListTracker,
        "rebuild",
        lambda self, e: f"[{', '.join(map(e.expr, self.items))}]",
    ),
    "undoes nothing": (Journal, "record", lambda self, undo: None),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_tracker_with_a_fault_fails(
    fault: str, compiler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*FAULTS[fault])
    kit, failed = TestLists(), list[str]()
    make, change, read = lambda: [1, 2], lambda thing: thing.append(3), lambda thing: [*thing]
    fixtures = {"make": make, "change": change, "read": read, "compile": compiler}
    for name, test in vars(TrackerConformance).items():
        if name.startswith("test_"):
            names = test.__code__.co_varnames[1 : test.__code__.co_argcount]
            try:
                test(kit, **{each: fixtures[each] for each in names})
            except AssertionError:
                failed.append(name)
    assert failed
