"""`type[C]`, `list[int]`: aliases made in a region, of classes from outside and of each other."""

from __future__ import annotations

import collections
import collections.abc
import typing
from typing import Any

import pytest
import stator
import torch

from integration_tests.support.oracle import assert_same


class Outside:
    pass


NAMES: dict[str, Any] = {"Outside": Outside, "collections": collections, "stator": stator}
NAMES |= {"T": typing.TypeVar("T"), "P": typing.ParamSpec("P"), "typing": typing}
ALIASES = (
    "type[Outside]",
    "type[int]",
    "list[type[Outside]]",
    "dict[str, list[Outside]]",
    "tuple[list[list[int]], ...]",
    "collections.deque[Outside]",
    "collections.defaultdict[str, Outside]",
    "list[T]",
    "dict[str, list[T]]",
    "collections.abc.Sequence[T]",
    "collections.abc.Callable[[T, int], str]",
    "collections.abc.Callable[..., T]",
    "collections.abc.Callable[P, list[T]]",
)


@pytest.mark.parametrize("alias", ALIASES)
def test_alias_made_in_a_region(alias: str) -> None:
    for text in (
        "a, a.__origin__, a.__args__",
        "a.__args__, stator.graph_break(), a",
        "a == 3, x * 2, a",
    ):
        plain = eval(f"lambda x: [(x + 1, {text}) for a in [{alias}]]", dict(NAMES))
        compiled = stator.compile(plain, backend="eager")
        assert_same(plain, compiled, lambda: (torch.ones(2),), 2)
        assert len(compiled.report.breaks) == ("graph_break" in text or "==" in text)


@pytest.mark.parametrize(
    "alias", ["list[C]", "type[C]", "list[list[C]]", "type[[]]", "type[C()]", "int[C]", "list[C()]"]
)
def test_alias_that_is_not_made_while_tracing(alias: str) -> None:
    names: dict[str, Any] = dict(NAMES)
    exec(
        f"def f(x):\n    class C: pass\n    return x + 1, {alias.replace('[[]]', '[[x]]')}.__origin__",
        names,
    )
    assert_same(
        names["f"], stator.compile(names["f"], backend="eager"), lambda: (torch.ones(2),), 2
    )


ANNOTATIONS = (
    "collections.abc.Callable[[T], typing.Any]",
    "typing.Callable[[T], list[T]]",
    "typing.Optional[T]",
    "typing.Union[int, T, str]",
    "typing.Dict[str, typing.List[T]]",
    "typing.Annotated[int, Outside]",
    "list[T] | None",
)


@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_annotations_of_a_function_that_is_defined_in_a_region(annotation: str) -> None:
    names: dict[str, Any] = dict(NAMES)
    exec(
        f"def f(x):\n    def inside(y: {annotation}) -> {annotation}:\n        return y * 2\n"
        "    return inside(x), inside.__annotations__['y']",
        names,
    )
    compiled = stator.compile(names["f"], backend="eager", fullgraph=True)
    assert_same(names["f"], compiled, lambda: (torch.ones(2),))


def test_another_type_variable_is_another_alias() -> None:
    names = dict(NAMES)
    plain = eval("lambda x: (x + 1, list[T].__args__[0].__name__)", names)
    compiled = stator.compile(plain, backend="eager", fullgraph=True)

    assert_same(plain, compiled, lambda: (torch.ones(2),))
    names["T"] = typing.TypeVar("Another")
    assert_same(plain, compiled, lambda: (torch.ones(2),))
