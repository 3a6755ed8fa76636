"""Whatever is done to a guarded object graph, the predicate says what the mirror says, watched or
not."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from stator_guards import (
    AttrAbsent,
    AttrSource,
    CapturedSource,
    DictItemSource,
    Equals,
    Guard,
    GuardSet,
    InstanceDictSource,
    Is,
    IsNotNone,
    ItemSource,
    KeyAbsent,
    KeysAre,
    Length,
    ParameterSource,
    Source,
    Truth,
    TypeIs,
    TypeSource,
    compile_guards,
)


class Base:
    scale: object = 1


class Node(Base):
    def forward(self) -> None: ...


class Other(Node): ...


def field(source: Source, name: str) -> Source:
    return DictItemSource(InstanceDictSource(source), name)


def make_node(depth: int) -> Any:
    node = Node()
    node.__dict__.update(
        flag=True, hooks=OrderedDict(), named=OrderedDict(a=1, b=2), sizes=[1, 2], shape=(1, 2.0)
    )
    node.__dict__["children"] = {name: make_node(depth - 1) for name in ("x", "y")} if depth else {}
    return node


def guards_on(source: Source, node: Any) -> list[Guard]:
    guards = [
        Guard(source, TypeIs(Node)),
        Guard(AttrSource(TypeSource(source), "forward"), Is(Node.forward)),
        Guard(DictItemSource(InstanceDictSource(TypeSource(source)), "forward"), Is(Node.forward)),
        Guard(AttrSource(source, "scale"), Equals(1)),
        Guard(source, AttrAbsent("extra")),
        Guard(field(source, "flag"), Equals(True)),
        Guard(field(source, "hooks"), Truth(False)),
        Guard(field(source, "named"), KeysAre(("a", "b"))),
        Guard(field(source, "named"), KeyAbsent("c")),
        Guard(field(source, "sizes"), Length(2)),
        Guard(ItemSource(field(source, "sizes"), 1), Equals(2)),
        Guard(field(source, "shape"), Equals((1, 2.0))),
        Guard(field(source, "children"), KeysAre(tuple(node.children))),
    ]
    for name, child in node.children.items():
        guards += guards_on(DictItemSource(field(source, "children"), name), child)
    return guards


VALUES = [
    True,
    1,
    1.0,
    0,
    None,
    (1, 2.0),
    (True, 2.0),
    {},
    [1, 2],
    OrderedDict(b=1, a=2),
    OrderedDict(a=3, b=4),
]
NAMES = ["flag", "hooks", "named", "sizes", "shape", "children", "extra", "scale", "unrelated"]


def nodes_of(node: Any) -> list[Any]:
    children = node.__dict__.get("children")
    found = [node]
    for child in children.values() if isinstance(children, dict) else ():
        found += nodes_of(child) if isinstance(child, Base) else []
    return found


def set_attribute(node: Any, name: str, value: object) -> None:
    setattr(node, name, value)


def delete_attribute(node: Any, name: str, value: object) -> None:
    node.__dict__.pop(name, None)


def replace_dict(node: Any, name: str, value: object) -> None:
    node.__dict__ = {**node.__dict__, name: value}


def change_class(node: Any, name: str, value: object) -> None:
    node.__class__ = Other if type(node) is Node else Node


def change_container(node: Any, name: str, value: object) -> None:
    container = node.__dict__.get(name)
    if isinstance(container, OrderedDict) and "a" in container:
        container.move_to_end("a")
    elif isinstance(container, dict):
        container["z"] = value
    elif isinstance(container, list):
        container[-1:] = [value]


def empty_container(node: Any, name: str, value: object) -> None:
    container = node.__dict__.get(name)
    if isinstance(container, dict | list):
        container.clear()


def change_base_class(node: Any, name: str, value: object) -> None:
    Base.scale = value


def shadow_on_class(node: Any, name: str, value: object) -> None:
    Node.scale = value


CHANGES: list[Callable[[Any, str, object], None]] = [
    set_attribute,
    delete_attribute,
    replace_dict,
    change_class,
    change_container,
    empty_container,
    change_base_class,
    shadow_on_class,
]
steps = st.lists(
    st.tuples(
        st.sampled_from(CHANGES), st.integers(0, 6), st.sampled_from(NAMES), st.sampled_from(VALUES)
    ),
    max_size=8,
)


def agrees(guard_set: GuardSet, *state: object) -> None:
    expected = guard_set.mirror(*state)
    assert guard_set.check(*state) is expected
    assert bool(guard_set.explain(*state)) is not expected
    assert guard_set.check(*state) is expected


def snapshot(root: Any) -> list[tuple[Any, type, dict[str, object], list[tuple[Any, Any]]]]:
    saved = []
    for node in nodes_of(root):
        containers = [(c, c.copy()) for c in node.__dict__.values() if isinstance(c, dict | list)]
        saved.append(
            (node, type(node), node.__dict__, [(node.__dict__, dict(node.__dict__)), *containers])
        )
    return saved


def restore(saved: list[tuple[Any, type, dict[str, object], list[tuple[Any, Any]]]]) -> None:
    Base.scale = 1
    if "scale" in vars(Node):
        del Node.scale
    for node, cls, attributes, containers in saved:
        node.__class__, node.__dict__ = cls, attributes
        for container, content in containers:
            container.clear()
            container.extend(content) if isinstance(container, list) else container.update(content)


@settings(max_examples=40, deadline=None)
@given(steps)
def test_predicate_and_mirror_agree_after_any_changes(
    changes: list[tuple[Any, int, str, object]],
) -> None:
    root, captured = make_node(2), make_node(1)
    guards = [
        *guards_on(ParameterSource("a"), root),
        *guards_on(CapturedSource("captured", captured), captured),
    ]
    guard_set = compile_guards([*guards, Guard(ParameterSource("b"), IsNotNone())], ["a", "b"])
    saved = [*snapshot(root), *snapshot(captured)]
    try:
        for _ in range(5):
            assert guard_set.check(root, 1)
        for change, which, name, value in changes:
            nodes = [*nodes_of(root), *nodes_of(captured)]
            change(nodes[which % len(nodes)], name, value)
            agrees(guard_set, root, 1)
        restore(saved)
        for _ in range(4):
            agrees(guard_set, root, 1)
        assert guard_set.check(root, 1)
    finally:
        restore(saved)
