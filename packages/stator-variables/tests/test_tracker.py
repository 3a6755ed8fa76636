"""Trackers: existing values are realized explicitly, and all fields that can hold trackers are
traversed."""

from __future__ import annotations

import ast
import gc
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator_variables
from stator_guards import ParameterSource
from stator_variables import ConstantTracker, LazyTracker, Space, VariableTracker, is_a, realize

CACHES = {
    "iterators": "of a dict: it notifies them of changes, and does not keep them alive",
    "connect": "a mark of leaves",
    "connected": "values of the graph and a count",
    "placement": "a placement of torch",
    "before": "of tensors, a value of the graph",
    "data": "a value of the graph",
    "traced": "a value of the graph",
    "history": "an autograd node",
    "hooked": "state that the Machine saved",
    "begun": "state that the Machine saved",
    "since": "a mark of the graph",
    "relied": "keys of guards",
}
"""Fields that need no traversal although their types allow trackers, and why."""

PLAIN = frozenset(
    """
    cls real source value structure unread taken decide part is_late steps constant_of fix flipped owns_memory
    needs_own_memory code is_of_tensor suppress_context entries kind position start exhausted size backwards identity ahead
    is_strict values is_opaque left names number name function
    handler index mode modes inside _context is_of_made may_hold base is_known has_own_number is_symbolic steps_to_null
    """.split()
)
"""Fields with classes, names, numbers, functions and existing objects.

A set's `steps` is a view of `steps_taken`.
"""


def all_trackers(cls: type[VariableTracker] = VariableTracker) -> Iterator[type[VariableTracker]]:
    """Yield the classes of trackers of this package."""
    yield cls
    for each in cls.__subclasses__():
        if each.__module__.startswith(stator_variables.__name__):
            yield from all_trackers(each)


def fields_of(cls: type) -> set[str]:
    """Return the names of the fields that a class declares or writes, and whose types allow
    trackers."""
    tree: Any = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            targets, is_plain = [node.target], _is_plain(node.annotation)
        else:
            targets, is_plain = getattr(node, "targets", []), False
        names |= {_field(target) for target in targets if not is_plain}
    return names - {""}


def _field(target: ast.AST) -> str:
    """Return the name of a field that is assigned to, or nothing for a local variable."""
    if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
        return target.attr
    if isinstance(target, ast.Name) and target.col_offset == 4:  # in the body of the class
        return target.id
    return ""


def _is_plain(annotation: ast.AST) -> bool:
    names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    return names <= {"bool", "int", "str", "type", "None", "ClassVar", "tuple"}


def forgotten(cls: type[VariableTracker]) -> set[str]:
    """Return the fields that no rule covers."""
    of_class = {name for base in cls.__mro__[:-1] for name in fields_of(base)}
    covered = {"namespace", *cls.references, *cls.weak_references}
    views = {name for name in of_class if isinstance(getattr(cls, name, None), property)}
    return of_class - covered - views - CACHES.keys() - PLAIN


def hidden_trackers(vt: VariableTracker) -> set[str]:
    """Return the fields of a tracker in which there are others that `components` does not give.

    `real` is an object of the program, which may contain itself.
    """
    covered = {"namespace", "real", *vt.references, *vt.weak_references, *CACHES}
    return {name for name, held in vars(vt).items() if name not in covered and _has_tracker(held)}


def _has_tracker(held: Any) -> bool:
    if type(held) in (list, tuple):
        return any(map(_has_tracker, held))
    if type(held) is dict:
        return any(map(_has_tracker, held.values()))
    return issubclass(type(held), VariableTracker)


@pytest.mark.parametrize("cls", [*all_trackers()], ids=lambda cls: cls.__name__)
def test_every_field_of_a_tracker_is_traversed_or_known_to_need_none(
    cls: type[VariableTracker],
) -> None:
    assert forgotten(cls) == set()


def test_a_new_field_has_to_be_covered() -> None:
    class Planted(VariableTracker, references=("seen",)):
        cls = object
        below: Any = None

        def __init__(self, seen: Any, unseen: Any) -> None:
            self.seen = seen
            self.unseen = unseen

    assert forgotten(Planted) == {"below", "unseen"}


def test_a_tracker_is_made_of_its_references_and_its_weak_ones() -> None:
    class Made(VariableTracker, references=("kept",), weak_references=("target",)):
        cls = object

        def __init__(self, kept: Any, target: Any) -> None:
            self.kept = kept
            self.target = target

    class More(Made, references=("added",)):
        pass

    made, namespace = More(1, 2), VariableTracker()
    made.namespace = namespace
    made.added = 3  # type: ignore[attr-defined]
    assert made.traverse() == [1, 3, namespace]
    assert made.components() == [1, 3, 2, namespace]


class Point:
    def __init__(self, *args: Any) -> None:
        self.args = args


def a_bit_of_everything(x: list[Any], d: dict[Any, Any]) -> Any:
    def numbers(n: int) -> Iterator[Any]:
        yield from (x, n)

    pairs = enumerate(zip(x, map(str, x), strict=False))
    d["new"], d["one"] = numbers(3), {*x}
    try:
        raise KeyError(x) from ValueError(1)
    except KeyError as error:
        d["error"] = str(error)
    return Point(x, d), slice(*x), iter(x), next(pairs), d.items(), lambda: (pairs, x)


def test_values_in_use_hold_no_others_in_fields_that_are_not_traversed(
    check: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those fields are found that other modules write."""
    found: list[VariableTracker] = []
    finish = Space.finish_guards

    def collect(t: Space) -> Any:
        found.extend(each for each in gc.get_objects() if issubclass(type(each), VariableTracker))
        return finish(t)

    monkeypatch.setattr(Space, "finish_guards", collect)
    check(a_bit_of_everything, ([1, 2], {"one": 1}), breaks=None)
    assert len({type(vt) for vt in found}) > 12
    assert {name for vt in found for name in hidden_trackers(vt)} == set()


def lazily(built: list[VariableTracker]) -> LazyTracker:
    """Return an existing number that was not looked at; its tracker is noted in `built`."""

    def build() -> VariableTracker:
        built.append(ConstantTracker(3))
        return built[-1]

    return LazyTracker(ParameterSource("x"), 3, build)


def test_looking_at_the_class_of_an_existing_value_does_not_realize_it() -> None:
    built: list[VariableTracker] = []
    lazy = lazily(built)
    assert type(lazy) is LazyTracker
    assert not isinstance(lazy, ConstantTracker)
    assert repr(lazy) == "<lazy x>"
    assert built == []


@pytest.mark.parametrize(
    "look",
    [
        realize,
        lambda lazy: is_a(lazy, ConstantTracker),
        lambda lazy: lazy.cls,
        lambda lazy: setattr(lazy, "source", None),
    ],
)
def test_an_existing_value_is_realized_once_and_in_place(look: Callable[[Any], Any]) -> None:
    built: list[VariableTracker] = []
    lazy: Any = lazily(built)
    look(lazy)
    assert type(lazy) is ConstantTracker
    assert realize(lazy) is lazy
    assert lazy.value == 3
    assert len(built) == 1


def test_a_value_that_contains_itself_is_realized_by_its_building() -> None:
    def build() -> VariableTracker:
        made = ConstantTracker(len(built))
        built.append(made)
        if len(built) == 1:
            realize(lazy)
        return made

    built: list[VariableTracker] = []
    lazy: Any = LazyTracker(ParameterSource("x"), 3, build)
    assert realize(lazy).value == 1


def test_anything_else_stays_as_it_is() -> None:
    assert realize(3) == 3
    assert is_a(ConstantTracker(3), VariableTracker)
    assert not is_a(3, VariableTracker)
