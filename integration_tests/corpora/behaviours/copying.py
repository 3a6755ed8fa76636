"""`copy.copy` and `copy.deepcopy` keep sharing; `isinstance`, `issubclass`, `type`, `hasattr`,
`getattr` with default, `vars`, `dir`, `callable`, identity."""

# mypy: ignore-errors

from __future__ import annotations

import collections
import copy
import types
from dataclasses import dataclass, field

from integration_tests.corpora.behaviours import program


class Node:
    def __init__(self, value, next=None):
        self.value, self.next = value, next


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class Custom:
    def __init__(self, n):
        self.n, self.copies = n, 0

    def __copy__(self):
        made = Custom(self.n)
        made.copies = self.copies + 1
        return made

    def __deepcopy__(self, memo):
        made = Custom(copy.deepcopy(self.n, memo))
        made.copies = self.copies + 10
        return made


class Stated:
    def __init__(self, n):
        self.n, self.skipped = n, object()

    def __getstate__(self):
        return {"n": self.n}

    def __setstate__(self, state):
        self.n, self.skipped = state["n"] + 1, None


@dataclass
class Data:
    a: int
    b: list = field(default_factory=list)


@program
def shallow_copies_share_their_parts(x, n, box):
    inner = [1]
    items, table, members = copy.copy([inner, n]), copy.copy({"k": inner}), copy.copy({1, n})
    node = Node(inner)
    twin = copy.copy(node)
    twin.extra = n
    return (
        items[0] is inner,
        table["k"] is inner,
        members == {n, 1},
        twin.value is inner,
        hasattr(node, "extra"),
        copy.copy(inner) is inner,
        copy.copy((inner,))[0] is inner,
        x + 1,
    )


@program
def deep_copies_keep_sharing_and_cycles(x, n, box):
    shared = [n]
    pair = {"one": shared, "two": [shared]}
    pair["self"] = pair
    node = Node(shared)
    node.next = node
    twin, other = copy.deepcopy(pair), copy.deepcopy(node)
    return (
        twin["one"] is twin["two"][0],
        twin["self"] is twin,
        twin["one"] is shared,
        other.next is other,
        other.value == shared,
        x + 1,
    )


@program
def deep_copies_of_arguments(x, n, box):
    twin = copy.deepcopy(box.nested)
    twin["deep"][1].append(n)
    return twin, box.nested, twin["deep"] is box.nested["deep"], x + 1


@program
def copies_of_existing_objects(x, n, box):
    return (
        copy.copy(HEAD).value is HEAD.value,
        copy.deepcopy(HEAD).next.value,
        copy.copy(SLOTTED).a,
        copy.deepcopy(DATA),
        x + n,
    )


HEAD = Node([1], Node([2]))
SLOTTED = Slotted([1])
DATA = Data(1, [2])


@program
def copy_hooks_are_called(x, n, box):
    one, two = copy.copy(Custom([n])), copy.deepcopy(Custom([n]))
    stated = copy.copy(Stated(n))
    return one.copies, two.copies, stated.n, stated.skipped, copy.deepcopy(Stated(n)).n, x + 1


@program
def copies_of_slots_and_dataclasses(x, n, box):
    a, b = Slotted([n]), Data(n, [[1]])
    c, d = copy.copy(a), copy.deepcopy(b)
    return (
        c.a is a.a,
        hasattr(c, "b"),
        copy.deepcopy(a).a,
        d == b,
        d.b is b.b,
        d.b[0] is b.b[0],
        copy.copy(b).b is b.b,
        x + 1,
    )


@program
def copies_of_the_collections(x, n, box):
    ring, ordered, groups = copy.copy(box.ring), copy.deepcopy(box.ordered), copy.copy(box.groups)
    groups["new"].append(1)
    return (
        ring,
        ring.maxlen,
        ordered,
        groups,
        copy.copy(box.counts),
        copy.deepcopy(box.chain),
        "new" in box.groups,
        copy.copy(collections.UserList([n])),
        x + 1,
    )


@program
def immutable_things_are_their_own_copies(x, n, box):
    t = (1, "a", None)
    return (
        copy.deepcopy(t) is t,
        copy.copy(t) is t,
        copy.deepcopy(len) is len,
        copy.deepcopy(Node) is Node,
        copy.copy("a"),
        copy.deepcopy(n),
        copy.deepcopy(range(n)),
        x + 1,
    )


@program(breaks="not-inlined")
def tensors_are_copied(x, n, box):
    y = x.detach()
    one, two = copy.copy(box.tensor), copy.deepcopy(box.tensor)
    two.add_(1)
    return one is box.tensor, two, box.tensor, copy.deepcopy([box.tensor, box.tensor])[0] + y.sum()


@program
def copy_methods_of_containers(x, n, box):
    a, b, c = box.items.copy(), box.table.copy(), box.members.copy()
    a.append(n), b.update(n=n), c.add(99)
    return (
        a,
        b,
        sorted(c),
        box.items[:] == box.items,
        box.ring.copy(),
        box.ordered.copy(),
        box.counts.copy(),
        x + 1,
    )


class Base:
    known = 1

    def method(self): ...


class Child(Base):
    pass


@program(breaks="bad-arguments")
def isinstance_in_every_form(x, n, box):
    child = Child()
    found = [
        isinstance(child, Base),
        isinstance(child, (int, (str, Base))),
        isinstance(n, int | str),
        isinstance(None, int | None),
        isinstance(True, int),
        isinstance(x, type(x)),
    ]
    found += [
        isinstance(box.items, collections.abc.Sequence),
        isinstance(box.table, collections.abc.Mapping),
        isinstance(child.method, types.MethodType),
        isinstance(len, types.BuiltinFunctionType),
    ]
    found += [
        isinstance([], collections.abc.Iterable),
        isinstance(n, collections.abc.Hashable),
        isinstance([], collections.abc.Hashable),
        isinstance(iter([]), collections.abc.Iterator),
        isinstance(lambda: 0, collections.abc.Callable),
    ]
    for bad in (
        lambda: isinstance(1, 2),
        lambda: isinstance(1, [int]),
        lambda: issubclass(1, int),
        lambda: isinstance(1, list[int]),
    ):
        try:
            bad()
        except TypeError as error:
            found.append(str(error))
    return found, x + 1


@program
def issubclass_in_every_form(x, n, box):
    return (
        issubclass(Child, Base),
        issubclass(Child, (int, Base)),
        issubclass(bool, int),
        issubclass(int, int | str),
        issubclass(dict, collections.abc.Mapping),
        issubclass(Child, object),
        issubclass(type(x), type(x)),
        x + n,
    )


@program
def type_of_everything(x, n, box):
    return (
        type(n),
        type(x),
        type(box),
        type(None),
        type(len),
        type(Child),
        type(type),
        type(lambda: 0),
        type(Child().method),
        type(box.table.keys()),
        type(iter([])),
        type(n) is int,
        type(Child()).__name__,
        type(...),
        type(i for i in []),
    )


@program
def hasattr_and_getattr(x, n, box):
    child = Child()
    child.own = n
    return (
        hasattr(child, "own"),
        hasattr(child, "known"),
        hasattr(child, "none"),
        getattr(child, "none", "default"),
        getattr(x, "shape"),
        getattr(n, "real"),
        hasattr(x, "nothing"),
        getattr(Child, "known"),
        hasattr(Base, "own"),
        getattr(child, "kn" + "own"),
    )


@program
def setattr_and_delattr(x, n, box):
    child = Child()
    setattr(child, "a" + str(n), x)
    setattr(child, "b", 1)
    delattr(child, "b")
    for bad in (
        lambda: delattr(child, "b"),
        lambda: setattr(n, "a", 1),
        lambda: getattr(child, 3),
        lambda: setattr(child, 3, 1),
    ):
        try:
            bad()
        except (AttributeError, TypeError) as error:
            box.log.append(str(error))
    return vars(child)


@program
def vars_and_dir(x, n, box):
    child = Child()
    child.own = n
    return (
        vars(child),
        [name for name in dir(child) if not name.startswith("_")],
        sorted(k for k in vars(Base) if not k.startswith("_")),
        "append" in dir([]),
        sorted(vars(box)) == sorted(box.__dict__),
        x + 1,
    )


@program
def callables(x, n, box):
    return (
        callable(len),
        callable(Child),
        callable(Child()),
        callable(lambda: 0),
        callable(n),
        callable(x),
        callable(Child().method),
        x + 1,
    )


@program(breaks="number-object")
def identity_of_everything(x, n, box):
    child, items = Child(), [x]
    return (
        items[0] is x,
        child is child,
        box.items is box.items,
        [] is [],
        (y := child) is child,
        child.method is child.method,
        Child is type(child),
        None is None,
        box.value is None,
        x is not box.tensor,
        id(child) == id(y),
        id(x) == id(items[0]),
        id(items) != id(box.items),
    )


@program
def identity_of_arguments_that_are_the_same(x, n, box):
    box.other = box.items if n == 3 else list(box.items)
    box.other.append(n)
    return box.items is box.other, box.items, x + len(box.items)


@program
def names_modules_and_documentation(x, n, box):
    return (
        Child.__name__,
        Child.__qualname__,
        Child.__module__.rpartition(".")[2],
        Child.__doc__,
        Child.__bases__,
        Child.__mro__[-1],
        Base.method.__name__,
        len.__name__,
        type(box).__name__,
        x.__class__.__name__,
        Child.__subclasses__(),
        Base.method.__code__.co_argcount,
    )
