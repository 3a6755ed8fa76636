"""Attributes of existing classes that are set inside: look-ups see them at once, the class when the
graph has run."""

from __future__ import annotations

import abc
import copy
import dataclasses
import types
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn

from integration_tests.support.oracle import assert_same

CAPTURED: dict[str, Callable[[Any, Tensor], Any]] = {}
BREAKING: dict[str, Callable[[Any, Tensor], Any]] = {}


def captured(fn: Any) -> Any:
    CAPTURED[fn.__name__.replace("_", " ")] = fn
    return fn


def breaking(fn: Any) -> Any:
    BREAKING[fn.__name__.replace("_", " ")] = fn
    return fn


def classes() -> types.SimpleNamespace:
    """New ones, which only one side of a test writes to."""

    class Base:
        count = 0
        scale: Any = 2.0
        table: dict[str, Any] = {}
        last: Any = None

        def __init__(self, x: Any) -> None:
            type(self).count += 1
            self.x = x

        def scaled(self) -> Any:
            return self.x * self.scale

        @classmethod
        def bump(cls, by: int) -> int:
            cls.count += by
            return cls.count

        @property
        def fixed(self) -> int:
            return 1

    class Child(Base):
        pass

    class Abstract(abc.ABC):
        made = 0

        @abc.abstractmethod
        def make(self) -> None: ...

    class Slotted:
        __slots__ = ("x",)
        shared = 1

    @dataclasses.dataclass
    class Point:
        x: int = 0

    class Layer(nn.Module):
        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            Layer.calls += 1
            return x + 1

    class Meta(type):
        def __setattr__(cls, name: str, value: Any) -> None:
            super().__setattr__(name, (name, value))

    class Told(metaclass=Meta):
        count: Any = 0

    found = {name: value for name, value in locals().items() if isinstance(value, type)}
    return types.SimpleNamespace(**found)


@captured
def instances_are_counted(c: Any, x: Tensor) -> Any:
    a, b = c.Base(x), c.Child(x)
    return a.count, b.count, c.Base.count, a.scaled()


@captured
def a_class_method_counts(c: Any, x: Tensor) -> Any:
    return c.Base.bump(2), c.Child.bump(3), c.Base.count, c.Child.count, x * c.Child.count


@captured
def a_subclass_sees_what_its_base_was_given(c: Any, x: Tensor) -> Any:
    child = c.Child(x)
    before = child.scaled()
    c.Base.scale = c.Base.scale + 1
    between = child.scaled()
    c.Child.scale = 10
    return before, between, child.scaled(), c.Base(x).scaled(), super(c.Child, child).scale


@captured
def tensors_are_kept(c: Any, x: Tensor) -> Any:
    before = c.Base.last
    c.Base.last = x * 2
    same = c.Base.last is c.Child(x).last
    c.Base.last.add_(1)
    return before, same, c.Base.last


@captured
def named_results_are_kept(c: Any, x: Tensor) -> Any:
    c.Base.last = x.max(0)
    return c.Child.last.values, c.Child.last[1], type(c.Base.last), c.Base.last


@captured
def containers_are_kept_and_grow(c: Any, x: Tensor) -> Any:
    if c.Child.last is None:
        c.Child.last = []
    c.Child.last.append(x.detach().sum())
    c.Base.table["n"] = len(c.Child.last)
    return len(c.Child.last), c.Base.table, c.Child.last[-1]


@captured
def attributes_come_and_go(c: Any, x: Tensor) -> Any:
    c.Base.extra = 3
    first = c.Child.extra
    del c.Base.extra
    c.Child.scale = 5
    seen = c.Child.scale
    del c.Child.scale
    return (
        first,
        hasattr(c.Child, "extra"),
        seen,
        c.Child.scale,
        getattr(c.Base, "extra", None),
        x + 1,
    )


@captured
def classes_with_slots_have_attributes_as_well(c: Any, x: Tensor) -> Any:
    c.Slotted.shared += 1
    return c.Slotted.shared, x * c.Slotted.shared


@captured
def methods_are_replaced(c: Any, x: Tensor) -> Any:
    before = c.Base(x).scaled()
    original = c.Base.scaled
    c.Base.scaled = lambda self: self.x - 1
    between = c.Child(x).scaled()
    c.Base.scaled = original
    return before, between, c.Child(x).scaled()


@captured
def setattr_and_delattr(c: Any, x: Tensor) -> Any:
    setattr(c.Abstract, "made", c.Abstract.made + 1)
    setattr(c.Point, "unit", x.shape[0])
    found = c.Point().unit, c.Abstract.made
    delattr(c.Point, "unit")
    return found, hasattr(c.Point, "unit"), x + found[0]


@captured
def a_layer_counts_its_calls(c: Any, x: Tensor) -> Any:
    layer = c.Layer()
    return layer(layer(x)), c.Layer.calls


@captured
def a_metaclass_has_its_say(c: Any, x: Tensor) -> Any:
    c.Told.count = x.dim()
    return c.Told.count, x + 1


@captured
def a_write_is_taken_back_by_a_handler(c: Any, x: Tensor) -> Any:
    before = c.Base.scale
    try:
        c.Base.scale = 7
        y = c.Base(x).scaled()
        raise KeyError(1)
    except KeyError:
        c.Base.scale = before
    return y, c.Base(x).scaled()


@captured
def classes_and_dtypes_are_kept(c: Any, x: Tensor) -> Any:
    c.Base.last = type(x), x.dtype
    c.Child.last = x.dtype
    return c.Base.last, torch.zeros(2, dtype=c.Child.last), c.Child.last is x.dtype


@captured
def a_class_made_inside_inherits(c: Any, x: Tensor) -> Any:
    c.Base.scale = 4

    class Inner(c.Base):  # type: ignore[misc]
        pass

    return Inner(x).scaled(), Inner.scale


@breaking
def names_of_python_are_left_alone(c: Any, x: Tensor) -> Any:
    c.Base.__doc__ = "changed"
    c.Base.__len__ = lambda self: 3
    return c.Base.__doc__, len(c.Base(x)), x + 1


@breaking
def properties_are_replaced(c: Any, x: Tensor) -> Any:
    c.Base.fixed = x.dim() + 1
    return c.Base(x).fixed, x * c.Child(x).fixed


@breaking
def what_is_not_there_cannot_be_deleted(c: Any, x: Tensor) -> Any:
    try:
        del c.Child.scale
    except AttributeError as error:
        return str(error), x + 1
    return x


@breaking
def classes_of_c_refuse(c: Any, x: Tensor) -> Any:
    try:
        int.extra = 1  # type: ignore[attr-defined]
    except TypeError as error:
        return str(error), x + 1
    return x


@breaking
def a_break_comes_after_the_write(c: Any, x: Tensor) -> Any:
    c.Base.scale = 3
    stator.graph_break()
    c.Base.scale += 1
    return c.Child(x).scaled()


def run(fn: Callable[[Any, Tensor], Any], **options: Any) -> None:
    ours, theirs = classes(), classes()

    def plain(x: Tensor) -> Any:
        return described(fn(ours, x), ours)

    compiled = stator.compile(fn, **options)

    def call(x: Tensor) -> Any:
        return described(compiled(theirs, x), theirs)

    sizes = iter([2, 2, 3, 3, 4])
    assert_same(plain, call, lambda: (torch.ones(next(sizes), requires_grad=True),), 5)


def described(result: Any, kept: Any) -> Any:
    """With what the classes hold now; the two sides have classes of their own."""
    names = [
        (name, key, value)
        for name, cls in vars(kept).items()
        for key, value in sorted(vars(cls).items())
    ]
    shown = [
        each for each in names if isinstance(each[2], int | float | Tensor | list | dict | tuple)
    ]
    return copy.copy(result), [each for each in shown if not each[1].startswith("_")]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("title", CAPTURED)
def test_what_is_set_on_a_class_is_captured(title: str, backend: str) -> None:
    run(CAPTURED[title], backend=backend, fullgraph=True)


@pytest.mark.parametrize("title", [*CAPTURED, *BREAKING])
def test_what_is_set_on_a_class_is_right_with_breaks(title: str) -> None:
    run({**CAPTURED, **BREAKING}[title], backend="eager", options={"break_everywhere": True})


@pytest.mark.parametrize("title", BREAKING)
def test_what_is_not_captured_is_right(title: str) -> None:
    run(BREAKING[title], backend="eager")


def test_another_value_of_the_class_is_another_entry() -> None:
    kept = classes()

    def fn(x: Tensor) -> Any:
        kept.Base.last = kept.Base.scale
        return x * kept.Base.last

    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    x = torch.ones(2)
    assert compiled(x)[0] == 2
    kept.Base.scale = 5.0
    assert compiled(x)[0] == 5
    assert kept.Base.last == 5.0


@pytest.mark.parametrize(
    "values", [(torch.float32, torch.float64), (int, float), (torch.sin, torch.cos)]
)
def test_what_is_handed_to_the_class_is_looked_at(values: tuple[Any, Any]) -> None:
    kept = classes()

    def fn(x: Tensor, value: Any) -> Any:
        kept.Base.last = value
        return kept.Base.last if value is None else (x + 1, kept.Base.last)

    compiled = stator.compile(fn, backend="eager", fullgraph=True)
    for value in (*values, *values):
        assert compiled(torch.ones(2), value)[1] is value


def test_a_counter_is_compiled_twice_at_most() -> None:
    kept = classes()

    def fn(x: Tensor) -> Any:
        kept.Base.count += 1
        return x * kept.Base.count

    compiled: Any = stator.compile(fn, backend="eager", fullgraph=True)
    for number in range(1, 8):
        assert compiled(torch.ones(2))[0] == number
    assert kept.Base.count == 7
    assert len(compiled.report.entries) <= 3
