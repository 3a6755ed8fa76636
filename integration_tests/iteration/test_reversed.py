"""`reversed` of objects with `__len__` and `__getitem__`, real outside of the region: asked once,
and in place."""

from __future__ import annotations

from typing import Any

import pytest
import stator

LOG: list[Any] = []
pause: Any = stator.graph_break


class Counted:
    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> int:
        LOG.append(index)
        return index


class Heard(Counted):
    def __len__(self) -> int:
        LOG.append("len")
        return self.size


class Busy(Counted):
    """Works with a list of its own, which nobody sees."""

    def __len__(self) -> int:
        found: list[int] = []
        for i in range(self.size):
            found.append(i)
        return len(found)


def grown(thing: Counted) -> Any:
    made = reversed(thing)
    thing.size += 4
    return made


def shrunk(thing: Counted) -> Any:
    made = reversed(thing)
    thing.size = 1
    return made


TURNED = {
    "itself": lambda thing: (reversed(thing),),
    "started": lambda thing: (made := reversed(thing), next(made))[:1],
    "all": lambda thing: [*reversed(thing)],
    "broken": lambda thing: (made := reversed(thing), pause(), [*made]),
    "started and broken": lambda thing: (made := reversed(thing), next(made), pause(), [*made]),
    "in a dict": lambda thing: (held := {"it": reversed(thing)}, pause(), next(held["it"])),
    "enumerated": lambda thing: enumerate(reversed(thing)),
    "mapped": lambda thing: map(str, reversed(thing)),
    "length hint": lambda thing: reversed(thing).__length_hint__(),
    "grown": grown,
    "new": lambda thing: reversed(type(thing)(3)),
    "new and grown": lambda thing: grown(type(thing)(3)),
    "shrunk": shrunk,
    "new and shrunk": lambda thing: shrunk(type(thing)(5)),
    "shrunk and broken": lambda thing: (made := shrunk(type(thing)(5)), pause(), made)[::2],
}


def described(value: Any) -> Any:
    if isinstance(value, tuple | dict):
        return [*map(described, value.values() if isinstance(value, dict) else value)]
    return (type(value), [*value]) if hasattr(value, "__next__") else value


@pytest.mark.parametrize("cls", [Counted, Heard, Busy])
@pytest.mark.parametrize("name", TURNED)
def test_what_is_turned_round_asks_once(name: str, cls: type[Counted]) -> None:
    turned: Any = TURNED[name]
    compiled = stator.compile(turned, backend="eager")
    for number, size in enumerate((3, 0 if name in ("itself", "all") else 2, 3)):
        found = []
        for fn in (turned, compiled):
            LOG.clear()
            result, called = fn(cls(size)), [*LOG]
            found.append((called, described(result), [*LOG]))
        assert found[0] == found[1]
        if (
            not number
            and cls is not Heard
            and "broken" not in name
            and name not in ("in a dict", "length hint")
        ):
            assert "cannot capture" not in str(compiled.report)
