"""Objects that describe data, made, copied and changed in the region: attrs classes, and classes
that write `__dict__`.

pydantic makes its models in C; what its Python code does around that is what `Model` does here.
"""

# mypy: ignore-errors

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import attrs
import pytest
import stator
import torch
from torch import Tensor

X = torch.linspace(-1.0, 1.0, 3)


@attrs.frozen
class Frozen:
    width: int = 3
    values: Any = None


@attrs.define
class Checked:
    width: int = attrs.field(default=3, converter=int, validator=attrs.validators.ge(0))
    items: list[Any] = attrs.field(factory=list)


class Model:
    __slots__ = ("__dict__", "fields_set")

    def __init__(self, **fields: Any) -> None:
        object.__setattr__(self, "__dict__", fields)
        object.__setattr__(self, "fields_set", set(fields))

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value
        self.fields_set.add(name)

    def copied(self, **update: Any) -> Model:
        made = type(self).__new__(type(self))
        object.__setattr__(made, "__dict__", {**self.__dict__, **update})
        object.__setattr__(made, "fields_set", self.fields_set | update.keys())
        return made


class Digest:
    """Made of constants by code that no graph has."""

    def __init__(self, text: str) -> None:
        self.length = len(text)
        self.number = zlib.adler32(text.encode(), zlib.crc32(b"") or 1) % 7


KEPT, FROZEN, CHECKED = Model(width=3, name="a"), Frozen(3, (1, 2)), Checked(5)


def evolved(x: Tensor) -> Any:
    made = attrs.evolve(FROZEN, values=x)
    return made.values * made.width, made == FROZEN, attrs.evolve(made, values=None) == Frozen()


def as_dict(x: Tensor) -> Any:
    return x * attrs.asdict(CHECKED)["width"], attrs.astuple(FROZEN), len(attrs.fields(Checked))


def checked(x: Tensor) -> Any:
    made = Checked("4", [x])
    try:
        made.width = -1
    except ValueError:
        return x * made.width, made.items[0] is x
    return None


def copied(x: Tensor) -> Any:
    made = KEPT.copied(width=x * 2)
    made.other = 4
    return made.width, made.name, made.other, sorted(made.fields_set), sorted(KEPT.__dict__)


def made_here(x: Tensor) -> Any:
    made = Model(values=x, scale=2)
    return made.values * made.scale, vars(made) is made.__dict__, made


def dict_that_is_kept(x: Tensor) -> Any:
    fields = {"values": x}
    made = Model()
    before = made.__dict__
    object.__setattr__(made, "__dict__", fields)
    fields["more"] = x + 1
    before["late"] = 1
    return made.more, hasattr(made, "late"), fields is made.__dict__, before, made, fields


PROGRAMS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (evolved, as_dict, checked, copied, made_here, dict_that_is_kept)
}


def shown(value: Any) -> Any:
    if isinstance(value, tuple):
        return [shown(item) for item in value]
    return (vars(value), value.fields_set) if isinstance(value, Model) else value


@pytest.mark.parametrize("name", PROGRAMS)
def test_objects_of_data_are_captured_in_one_graph(name: str) -> None:
    program = PROGRAMS[name]
    compiled = stator.compile(program, backend="eager", fullgraph=True)
    for _ in range(3):
        assert repr(shown(compiled(X))) == repr(shown(program(X)))
    assert compiled.report.entry_count == 1


def test_a_dict_stays_the_namespace_of_the_object_that_got_it() -> None:
    *_, made, fields = stator.compile(dict_that_is_kept, backend="eager")(X)
    assert vars(made) is fields


def test_making_an_object_of_constants_is_one_break_at_the_call() -> None:
    def program(x: Tensor) -> Any:
        made = Digest("abc")
        return x * made.length + made.number

    compiled = stator.compile(program, backend="eager")
    for _ in range(3):
        assert compiled(X).equal(program(X))
    assert compiled.report.entry_count <= 2
