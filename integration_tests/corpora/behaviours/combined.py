"""Several behaviours at once: containers, exceptions, generators, managers, classes, numbers and
tensor writes that meet in one program, as they do in everyday code."""

# mypy: ignore-errors

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import logging
import operator
import types
import typing
import warnings
from typing import Any

import torch
from torch import Tensor

from integration_tests.corpora.behaviours import Box, program


@program(breaks="mapping-proxy")
def a_dict_view_outlives_its_dict_name(x: Tensor, n: int, box: Box) -> Any:
    keys, values, items = box.table.keys(), box.table.values(), box.table.items()
    box.table["new"] = x
    del box.table["a"]
    return (
        list(keys),
        len(values),
        ("b", box.table["b"]) in items,
        keys & {"b", "q"},
        keys.isdisjoint({"z"}),
        keys.mapping["b"],
    )


@program
def a_default_dict_with_a_factory_that_counts(x: Tensor, n: int, box: Box) -> Any:
    counter = itertools.count(n)
    made = collections.defaultdict(counter.__next__)
    first = made["a"], made["b"], made["a"]
    made.setdefault("c", next(counter))
    return first, made.get("z"), dict(made), x + made["d"], next(counter)


@program
def a_counter_in_every_operation(x: Tensor, n: int, box: Box) -> Any:
    one, two = collections.Counter("abca"), collections.Counter(a=1, z=n)
    one.subtract(two)
    return (
        one + two,
        one - two,
        one & two,
        one | two,
        +one,
        -one,
        one.most_common(2),
        list(two.elements()),
        one.total(),
        x,
    )


@program
def a_chain_map_is_nested(x: Tensor, n: int, box: Box) -> Any:
    child = box.chain.new_child({"c": n})
    child["a"] = x
    popped = child.pop("c")
    try:
        child.pop("b")
    except KeyError as error:
        return popped, str(error), child.maps, child.parents["a"], len(child), sorted(child)


@program
def an_ordered_dict_moves_while_equal(x: Tensor, n: int, box: Box) -> Any:
    other = collections.OrderedDict(box.ordered)
    before = other == box.ordered
    box.ordered.move_to_end("x")
    box.ordered.move_to_end("z", last=False)
    last = box.ordered.popitem(), box.ordered.popitem(last=False)
    return (
        before,
        other == box.ordered,
        dict(other) == box.ordered,
        last,
        list(reversed(box.ordered)),
        x,
    )


@program
def a_deque_rotates_at_its_length(x: Tensor, n: int, box: Box) -> Any:
    box.ring.rotate(n)
    box.ring.extendleft([7, n])
    box.ring.insert(0, 7) if len(box.ring) < box.ring.maxlen else None
    copied = box.ring.copy()
    copied += [1]
    return list(box.ring)[1:], copied.maxlen, box.ring.count(1), copied == box.ring, x


@program(breaks="exception-object")
def notes_and_groups_keep_their_parts(x: Tensor, n: int, box: Box) -> Any:
    inner = ValueError("v", n)
    inner.add_note("first")
    try:
        try:
            raise inner
        except ValueError as error:
            error.add_note("second")
            raise ExceptionGroup("both", [error, KeyError("k")]) from error
    except* KeyError as group:
        box.log.append([type(e).__name__ for e in group.exceptions])
    except* ValueError as group:
        box.log.append(group.exceptions[0].__notes__)
        box.log.append(group.__cause__ is inner)
    return x, box.log


@program
def finally_sees_and_replaces(x: Tensor, n: int, box: Box) -> Any:
    def inner() -> Any:
        try:
            raise KeyError(n)
        finally:
            box.log.append("a")
            if n == 3:
                raise TypeError("t")

    try:
        inner()
    except (KeyError, TypeError) as error:
        return type(error).__name__, repr(error.__context__), x + 1


@program
def loops_with_finally_and_continue(x: Tensor, n: int, box: Box) -> Any:
    seen = []
    for i in range(4):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            seen.append(i)
        finally:
            seen.append(-i)
            x = x + 1
    else:
        seen.append("else")
    return seen, x


@program
def generators_delegate_and_return(x: Tensor, n: int, box: Box) -> Any:
    def leaf(k: int) -> Any:
        got = yield k
        try:
            got = yield got
        except ValueError as error:
            box.log.append(str(error))
            yield "handled"
        finally:
            box.log.append(("leaf", k))
        return k * 10

    def tree() -> Any:
        total = 0
        for k in range(2):
            total += yield from leaf(k)
        return total

    made = tree()
    found = [next(made), made.send("s"), made.throw(ValueError("v")), next(made), made.send(1)]
    try:
        next(made)
    except StopIteration as end:
        found.append(end.value)
    return found, box.log, x * n


@program
def a_generator_expression_sees_late_names(x: Tensor, n: int, box: Box) -> Any:
    k = 1
    made = (i * k for i in box.items if i > k)
    k = n
    first = next(made, None)
    box.items.append(9)
    return first, list(made), x


@program
def a_manager_made_of_a_generator_handles_and_reraises(x: Tensor, n: int, box: Box) -> Any:
    @contextlib.contextmanager
    def guarded(swallow: bool) -> Any:
        box.log.append("in")
        try:
            yield len(box.log)
        except ValueError as error:
            box.log.append(str(error))
            if not swallow:
                raise LookupError("other") from error
        finally:
            box.log.append("out")

    with guarded(True) as depth:
        raise ValueError("one")
    try:
        with guarded(False), guarded(n == 3):
            raise ValueError("two")
    except LookupError as error:
        return repr(error.__cause__), depth, x + 1
    return depth, x


@program
def an_exit_stack_with_callbacks(x: Tensor, n: int, box: Box) -> Any:
    with contextlib.ExitStack() as stack:
        stack.callback(box.log.append, "first")
        stack.enter_context(contextlib.suppress(KeyError))
        stack.push(lambda *error: box.log.append(error[0]))
        if n == 3:
            raise KeyError("k")
        x = x + 1
    return x, box.log


class Celsius:
    def __init__(self, name: str = "") -> None:
        self.name = name

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = "_" + name

    def __get__(self, obj: Any, owner: type | None = None) -> Any:
        return self if obj is None else obj.__dict__.get(self.name, 0) + 1

    def __set__(self, obj: Any, value: Any) -> None:
        obj.__dict__[self.name] = value * 2

    def __delete__(self, obj: Any) -> None:
        del obj.__dict__[self.name]


class Room:
    warm, cold = Celsius(), Celsius()
    __slots__ = ("__dict__", "fixed")

    def __bool__(self) -> bool:
        return self.warm > 3

    def __len__(self) -> int:
        raise AssertionError("not asked")

    def __class_getitem__(cls, item: Any) -> Any:
        return cls.__name__, item

    def __contains__(self, item: Any) -> Any:
        return item

    def __getattr__(self, name: str) -> Any:
        if name.startswith("x"):
            return name
        raise AttributeError(f"no {name}")


@program
def descriptors_with_slots_and_fallbacks(x: Tensor, n: int, box: Box) -> Any:
    room = Room()
    room.warm = n
    found = [room.warm, room.cold, bool(room), room.xyz, 0 in room, 5 in room, Room[int]]
    try:
        room.fixed
    except AttributeError as error:
        found.append(str(error))
    room.fixed = x
    del room.warm
    with contextlib.suppress(KeyError):
        del room.warm
    return found, room.fixed + room.warm, sorted(vars(room))


class Vector:
    def __init__(self, *parts: float) -> None:
        self.parts = parts

    def __add__(self, other: Any) -> Any:
        return (
            Vector(*(a + b for a, b in zip(self.parts, other.parts)))
            if isinstance(other, Vector)
            else NotImplemented
        )

    def __radd__(self, other: Any) -> Any:
        return self if other == 0 else NotImplemented

    def __matmul__(self, other: Any) -> Any:
        return sum(a * b for a, b in zip(self.parts, other.parts))

    def __imul__(self, other: Any) -> Any:
        self.parts = tuple(p * other for p in self.parts)
        return self

    def __divmod__(self, other: Any) -> Any:
        return [divmod(p, other) for p in self.parts]

    def __rpow__(self, other: Any) -> Any:
        return [other**p for p in self.parts]

    def __index__(self) -> int:
        return int(self.parts[0])

    def __round__(self, digits: int | None = None) -> Any:
        return [round(p, digits) for p in self.parts]

    def __format__(self, spec: str) -> str:
        return "|".join(format(p, spec) for p in self.parts)

    def __eq__(self, other: Any) -> Any:
        return self.parts == other.parts if isinstance(other, Vector) else NotImplemented

    def __lt__(self, other: Any) -> Any:
        return self.parts < other.parts

    def __neg__(self) -> Any:
        return Vector(*map(operator.neg, self.parts))


@program(breaks="index-object")
def a_vector_in_every_operator(x: Tensor, n: int, box: Box) -> Any:
    v, w = Vector(1, n), Vector(2.5, 3)
    u = sum([v, w])
    alias = u
    u *= 2
    found = [
        u.parts,
        alias is u,
        v @ w,
        divmod(w, 2),
        2**v,
        round(w, 1),
        f"{w:.2f}",
        v == w,
        v != w,
        v < w,
        v > w,
    ]
    try:
        v + 1
    except TypeError as error:
        found.append(str(error))
    return found, [10, 20, 30, 40][v], max([v, w]) is w, (-v).parts, "abc"[v:], x * u.parts[0]


@dataclasses.dataclass(order=True)
class Item:
    rank: int
    name: str = dataclasses.field(default="n", compare=False)
    tags: list[Any] = dataclasses.field(default_factory=list, repr=False, compare=False)
    total: dataclasses.InitVar[int] = 0
    kind: typing.ClassVar[str] = "item"

    def __post_init__(self, total: int) -> None:
        self.rank += total


@program(breaks="not-inlined")
def dataclasses_with_every_field_kind(x: Tensor, n: int, box: Box) -> Any:
    items = [Item(2, total=n), Item(1, "z", [x]), Item(n)]
    changed = dataclasses.replace(items[1], rank=9, total=1)
    items.sort()
    match items[0]:
        case Item(rank=rank, name=str(name)):
            found = rank, name
    return (
        [repr(i) for i in items],
        changed,
        dataclasses.astuple(changed)[0],
        found,
        items[0] < items[1],
        Item.kind,
    )


class Color(enum.Enum):
    RED = "r"
    GREEN = "g"
    ROUGE = "r"

    @classmethod
    def _missing_(cls, value: Any) -> Any:
        return cls.GREEN if value == "?" else None

    @property
    def upper(self) -> str:
        return self.value.upper()


@program
def enums_with_aliases_and_missing(x: Tensor, n: int, box: Box) -> Any:
    found = [
        Color("r") is Color.ROUGE,
        Color("?"),
        Color["GREEN"].upper,
        [c.name for c in Color],
        len(Color),
    ]
    try:
        Color("q")
    except ValueError as error:
        found.append(str(error))
    return found, Color.RED in {Color.RED: 1}, x * len(Color.__members__)


@program
def decorators_that_keep_state(x: Tensor, n: int, box: Box) -> Any:
    def counted(fn: Any) -> Any:
        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            run.calls += 1
            return fn(*args, **kwargs)

        run.calls = 0
        return run

    @counted
    def scale(y: Tensor, by: int = 2) -> Tensor:
        """Doc."""
        return y * by

    y = scale(scale(x), by=n)
    return y, scale.calls, scale.__name__, scale.__doc__, scale.__wrapped__(x, 1)


@program
def classes_with_hooks_and_keywords(x: Tensor, n: int, box: Box) -> Any:
    known = []

    class Base:
        def __init_subclass__(cls, tag: str = "none", **rest: Any) -> None:
            super().__init_subclass__(**rest)
            known.append((cls.__name__, tag))

        def __new__(cls, *args: Any) -> Any:
            made = super().__new__(cls)
            made.args = args
            return made

    class One(Base, tag="one"):
        def scale(self, y: Tensor) -> Tensor:
            return y * self.args[0]

    class Two(One):
        def scale(self, y: Tensor) -> Tensor:
            return super().scale(y) + 1

    return known, Two(n).scale(x), [c.__name__ for c in Two.__mro__], isinstance(Two(1), Base)


@program
def text_in_every_format(x: Tensor, n: int, box: Box) -> Any:
    v, w = n / 7, "ab"
    return (
        f"{v:.3f} {v!r:>25} {n:+05d} {n:#x} {n:b} {w:*^7} {v:e} {10**6 * n:,} {w!a} {n=} {v:{n}.{n - 1}}",
        "{0}-{1:>{width}}-{k[a]}".format(n, w, width=5, k={"a": 1}),
        "%s %r %05.1f %x %%" % (w, w, v, n),
        format(True, "d"),
        str(1e22),
        repr(0.1 + 0.2),
        f"{1.0}",
        f"{-0.0}",
        w.join("xyz"),
        w.zfill(5),
        x,
    )


@program
def match_on_mappings_sequences_and_guards(x: Tensor, n: int, box: Box) -> Any:
    def kind(value: Any) -> Any:
        match value:
            case {"a": int(a), **rest} if a > n:
                return "big", rest
            case {"a": _}:
                return "small"
            case [first, *_, last] if first is not last:
                return first, last
            case (1 | 2) as number:
                return number
            case str() | None:
                return "text"
            case Item(rank=r):
                return r
            case _:
                return "other"

    values = [
        {"a": 9, "z": 1},
        {"a": 1},
        [1, 2, 3],
        (x, 1),
        2,
        "s",
        None,
        Item(4),
        2.5,
        {"q": 1},
        [],
    ]
    return [kind(v) for v in values]


@program
def sorting_is_stable_by_keys_that_tie(x: Tensor, n: int, box: Box) -> Any:
    pairs = [(i % n, str(i)) for i in range(8)]
    by_first = sorted(pairs, key=operator.itemgetter(0), reverse=True)
    pairs.sort(key=functools.cmp_to_key(lambda a, b: (a[0] < b[0]) - (a[0] > b[0])))
    return by_first, pairs, min(pairs, key=lambda p: p[1]), x


@program
def integers_wrap_nowhere(x: Tensor, n: int, box: Box) -> Any:
    big = 2**70 + n
    found = [
        -7 // n,
        -7 % n,
        divmod(-7, -n),
        -5 >> 1,
        1 << 65,
        big & 0xFF,
        ~big,
        pow(3, 200, 97),
        big.bit_length(),
    ]
    try:
        1 << -n
    except ValueError as error:
        found.append(str(error))
    return (
        found,
        int("-0x1f", 16),
        int.from_bytes((n * 1000).to_bytes(4, "big"), "big"),
        x * (big % 5),
        True + True,
        round(2.5),
        round(-1.5),
    )


@program
def a_method_is_replaced_during_the_call(x: Tensor, n: int, box: Box) -> Any:
    class Thing:
        def scale(self, y: Tensor) -> Tensor:
            return y * 2

    thing = Thing()
    first = thing.scale(x)
    Thing.scale = lambda self, y: y * n
    second = thing.scale(x)
    thing.scale = types.MethodType(lambda self, y: y - 1, thing)
    third = thing.scale(x)
    del thing.scale
    return first, second, third, thing.scale(x)


@program(breaks="builtin")
def warnings_and_logs_in_order(x: Tensor, n: int, box: Box) -> Any:
    print("before", n)
    warnings.warn(f"warned {n}", UserWarning, stacklevel=1)
    print(x.shape, end=";")
    logging.getLogger("quiet").debug("nothing %s", n)
    return x + 1


@program
def deep_copies_of_what_refers_to_itself(x: Tensor, n: int, box: Box) -> Any:
    box.nested["self"] = box.nested
    box.items.append(box.items)
    twin = copy.deepcopy(box.nested)
    items = copy.copy(box.items)
    return (
        twin["self"] is twin,
        items[-1] is box.items,
        copy.deepcopy(box.items)[-1] is not box.items,
        x,
    )


@program
def slices_of_tensors_by_anything(x: Tensor, n: int, box: Box) -> Any:
    rows = x.shape[0]
    s = slice(None, n, 2)
    i = torch.tensor(1)
    return (
        x[:, s],
        x[..., -1],
        x[rows - 1 :],
        x[None, i],
        x[[0, 1]],
        x[x > 0],
        x[i, :n],
        x[::n],
        x[torch.tensor([True] * rows)],
    )


@program
def numbers_that_grow_in_keys_and_shapes(x: Tensor, n: int, box: Box) -> Any:
    table = {x.shape[0]: "rows", x.shape[1] * n: "wide", (x.numel(), n): 1}
    y = torch.zeros(x.shape[0] + n, max(n, 2))
    return (
        list(table.items()),
        y.shape,
        f"{y.shape[0]:>4}",
        range(y.shape[0])[-1],
        x.shape[0] << n,
        y.sum() + x.shape[0] / n,
    )


@program
def a_tensor_is_written_by_every_route(x: Tensor, n: int, box: Box) -> Any:
    t = box.tensor
    view = t[0]
    t.view(-1)[1] = n
    t[:, 0] += 1
    torch.add(t, 1, out=t)
    view.copy_(view.flip(0))
    t.data.mul_(2)
    t.T[1].fill_(5)
    t.transpose_(0, 1)
    torch.nn.init.ones_(t[0])
    t.index_fill_(0, torch.tensor([1]), 3.0)
    t.masked_fill_(t > 10, 0)
    return view, t.shape, x.detach().clone().clamp_(min=0) + 1
