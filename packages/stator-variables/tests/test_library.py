"""The standard library in traced code: functools, operator, copy, dataclasses, enum, contextlib,
typing, collections, math."""

# ruff: noqa
from __future__ import annotations

import abc
import bisect
import cmath
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import heapq
import math
import operator
import sys
import typing
import weakref
from typing import Any, Generic, NamedTuple, TypeVar

import pytest
from stator_variables._library._caching import peek
from stator_variables._tracker import MISSING

T = TypeVar("T")


def getters() -> Any:
    get, pick, call = (
        operator.itemgetter(1),
        operator.itemgetter("a", "b"),
        operator.methodcaller("index", 2),
    )
    return (
        get([4, 5]), pick({"a": 1, "b": 2}), call([1, 2]), operator.attrgetter("real")(5),
        operator.attrgetter("real", "imag")(2j), operator.methodcaller("split", sep=",")("a,b"),
        sorted([(1, "b"), (0, "c")], key=operator.itemgetter(1)), get, pick, call,
    )  # fmt: skip


def operators() -> Any:
    x = [1, 2]
    return (
        operator.concat(x, [3]), operator.countOf([1, 1, 2], 1), operator.indexOf("abc", "c"), operator.contains(x, 2),
        operator.getitem(x, 0), operator.mul(3, x), operator.not_(x), operator.truth(x), operator.is_(x, x),
        operator.iadd(x, [9]), x, operator.index(True), operator.abs(-2), operator.lt(1, 2), operator.pos(3),
        operator.setitem(x, 0, 5), operator.delitem(x, 1), x, operator.ixor(5, 1),
    )  # fmt: skip


def reduces() -> Any:
    return (
        functools.reduce(operator.add, [1, 2, 3]),
        functools.reduce(lambda a, b: [a, b], "abc", None),
        sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a)),
        functools.partial(max, 3)(2),
        functools.partial(dict, a=1)(b=2),
    )


def parts_of_partials() -> Any:
    first = functools.partial(max, 3)
    second = functools.partial(first, 5)
    return first.args, first.args is first.args, first.func is max, second.args, second.func is max


class Table:
    def __getitem__(self, point: int) -> Any:
        if point == ord("b"):
            raise LookupError
        return {ord("a"): "zz", ord("c"): None}.get(point, 65)


class Letter(str, enum.Enum):
    A = "abc"


def translated() -> Any:
    refused = []
    for table in ({97: -1}, {97: 1.5}, {97: 0x110000}, 3):
        try:
            refused.append("abc".translate(table))
        except Exception as error:
            refused.append((type(error), str(error)))
    counted = collections.defaultdict(lambda: "?", {97: "x"})
    return (
        "abc".translate({97: "z", 98: None, 99: 100}), "abcd".translate(Table()), "".translate({}), "é".translate([""]),
        Letter.A.translate({97: "q"}), "abc".translate(str.maketrans("ab", "xy", "c")), "ab".translate({97: True}),
        "abc".translate(counted), counted, b"abc".translate(None, b"a"), refused,
    )  # fmt: skip


@functools.total_ordering
class Version:
    def __init__(self, n: int) -> None:
        self.n = n

    def __eq__(self, other: object) -> Any:
        return isinstance(other, Version) and self.n == other.n

    def __lt__(self, other: Version) -> bool:
        return self.n < other.n


def ordering() -> Any:
    a, b = Version(1), Version(2)
    return (
        a <= b,
        a >= b,
        a > b,
        max(a, b).n,
        [v.n for v in sorted([b, a])],
        a == Version(1),
        a != b,
    )


@functools.singledispatch
def describe(x: Any) -> str:
    return "thing"


@describe.register
def _(x: int) -> str:
    return f"int {x}"


@describe.register(list)
def _list(x: Any) -> str:
    return "list of " + ", ".join(describe(v) for v in x)


def dispatches() -> Any:
    return describe(3), describe([1, "a"]), describe(None), describe(True)


class Cached:
    def __init__(self) -> None:
        self.calls = 0

    @functools.cached_property
    def value(self) -> int:
        self.calls += 1
        return self.calls * 10


def cached() -> Any:
    c = Cached()
    return c.value, c.value, c.calls, c


def wrapped() -> Any:
    def twice(fn: Any) -> Any:
        @functools.wraps(fn)
        def inner(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs) * 2

        return inner

    @twice
    def one(x: int) -> int:
        "says one"
        return x + 1

    return one(3), one.__name__, one.__doc__, one.__wrapped__(3)  # type: ignore[attr-defined]


@dataclasses.dataclass
class Point:
    x: int
    y: list[int] = dataclasses.field(default_factory=list)
    z: int = 3

    def __post_init__(self) -> None:
        self.total = self.x + self.z


@dataclasses.dataclass(frozen=True, order=True, slots=True)
class Frozen:
    a: int
    b: str = "b"


@dataclasses.dataclass(kw_only=True)
class Named(Point):
    w: int = 0


def data() -> Any:
    p, f = Point(1), Frozen(2)
    p.y.append(5)
    try:
        f.a = 3  # type: ignore[misc]
    except dataclasses.FrozenInstanceError as error:
        frozen: Any = str(error)
    return (
        p, f, frozen, p == Point(1, [5]), f < Frozen(3), repr(p), repr(f), dataclasses.replace(p, x=7), dataclasses.asdict(p),
        dataclasses.astuple(f), [field.name for field in dataclasses.fields(p)], dataclasses.is_dataclass(p),
        Named(4, w=2), f == Frozen(2, "b"), p != f,
    )  # fmt: skip


class Colour(enum.Enum):
    RED = 1
    GREEN = "g"

    @property
    def shout(self) -> str:
        return self.name + "!"

    @classmethod
    def first(cls) -> Colour:
        return cls.RED


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Flags(enum.Flag):
    A = 1
    B = 2


def enums() -> Any:
    return (
        Colour.RED.name, Colour.GREEN.value, Colour(1), Colour["GREEN"], [c.name for c in Colour], Colour.RED.shout,
        Colour.first() is Colour.RED, Colour.RED == Colour.GREEN, Colour.RED in Colour, len(Colour), Level.LOW + 1,
        Level.LOW < Level.HIGH, Level(2), max(Level), f"{Level.LOW} {Colour.RED}", repr(Colour.RED), {Colour.RED: 1}[Colour.RED],
        isinstance(Level.LOW, int), str(Colour.RED), Flags.A | Flags.B, Flags.A in (Flags.A | Flags.B), bool(Flags.A & Flags.B),
    )  # fmt: skip


def bad_enum() -> Any:
    try:
        return Colour("nope")
    except ValueError as error:
        return str(error)


class Pair(NamedTuple):
    a: int
    b: str = "x"

    def both(self) -> str:
        return f"{self.a}{self.b}"


Plain = collections.namedtuple("Plain", "p q", defaults=[9])


def named_tuples() -> Any:
    v, w = Pair(1), Plain(p=2)
    first, second = v
    return (
        v, w, v.a, v[1], v._replace(b="z"), v._asdict(), Pair._make([3, "k"]), Pair._fields, v.both(), repr(v), v == (1, "x"),
        first, second, len(v), list(w), w._field_defaults, v < Pair(2), v + (1,), isinstance(v, tuple), hash(v) == hash((1, "x")),
    )  # fmt: skip


@contextlib.contextmanager
def tracked(log: list[str], name: str, swallow: bool = False) -> Any:
    log.append(f"enter {name}")
    try:
        yield name
    except ValueError:
        log.append(f"caught {name}")
        if not swallow:
            raise
    finally:
        log.append(f"exit {name}")


class Closing:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def contexts() -> Any:
    log: list[str] = []
    with tracked(log, "a") as a, tracked(log, "b", swallow=True):
        raise ValueError(a)
    with contextlib.suppress(KeyError, IndexError):
        {}["x"]
    with contextlib.nullcontext(5) as five:
        log.append(str(five))
    thing = Closing()
    with contextlib.closing(thing):
        pass
    with contextlib.ExitStack() as stack:
        stack.enter_context(tracked(log, "c"))
        stack.callback(log.append, "callback")
        stack.push(lambda *details: log.append(str(details[0])))
    return log, thing.closed


class Box(Generic[T]):
    def __init__(self, item: T) -> None:
        self.item = item


def generics() -> Any:
    return (
        Box[int](5).item,
        typing.cast("Any", "a"),
        list[int]((1, 2)),
        dict[str, int](a=1),
        isinstance([], list),
        Box(3).item,
    )


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self) -> int: ...


class Square(Shape):
    def area(self) -> int:
        return 4


def abstract() -> Any:
    try:
        Shape()  # type: ignore[abstract]
    except TypeError as error:
        text = str(error)
    return (
        text,
        Square().area(),
        isinstance(Square(), Shape),
        issubclass(Square, Shape),
        isinstance([], collections.abc.Sequence),
    )


def copies() -> Any:
    x = [1, [2]]
    x.append(x[1])
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    return (
        x,
        shallow,
        deep,
        deep[1] is deep[2],
        shallow[1] is x[1],
        copy.copy({"a": 1}),
        copy.deepcopy((1, [2])),
        copy.copy(Point(1)),
    )


def numbers() -> Any:
    return (
        math.sqrt(2), math.floor(2.5), math.gcd(12, 18), math.isclose(1, 1 + 1e-12), math.pi, cmath.sqrt(-1), math.prod([2, 3]),
        divmod(-7, 2), round(2.675, 2), round(2.5), pow(2, 10, 7), abs(-3j), int("ff", 16), float("1e3"), complex(1, 2),
        (5).bit_length(), (255).to_bytes(2, "big"), int.from_bytes(b"\x01\x02", "big"), (2.5).is_integer(),
        (0.1).as_integer_ratio(), float.fromhex("0x1p3"), bin(5), hex(255), oct(8), -7 // 2, -7 % 3, 1 << 100, 7 >> 1, ~5,
        True + 1, 3 == 3.0, 2**-1, 0.1 + 0.2, 1e16 + 1, hash("a") == hash("a"), hash(1) == hash(1.0), math.fsum([0.1] * 3),
        math.inf, -0.0, min(1, 2.0), max("a", "b"), sum([1, 2.5]), int(3.9), bool([]), (3).conjugate(), 5 .__add__(2),
    )  # fmt: skip


def strings() -> Any:
    s = "Hello, World"
    obj = Point(1)
    return (
        s.upper(), s.split(", "), s.replace("l", "L"), s[::-1], s.find("W"), s.startswith(("He", "x")), s.partition(","),
        "-".join(["a", "b"]), "{:>5}|{x!r}|{0[0]}|{y.x}".format([1], x="q", y=obj), "%s %r %5.2f %d%%" % ("a", "b", 1.5, 3),
        "%(a)s" % {"a": 1}, f"{3.14159:.2f} {s!r:>15} {obj.x=}", "abc".center(9, "*"), "a1".isalnum(), "é".encode(), b"ab".decode(),
        "x" * 3, "b" in "abc", "abc" < "abd", ord("a"), chr(97), s.title(), "a\tb".expandtabs(4), ["1", "2"],
        "\n".join(str(v) for v in [1, None, 2.5]), str([1, "a", None]), repr({"a": (1,)}), str(obj), ascii("é"), format(5, "03d"),
        f"{1}{obj.y}", "%s" % [1], "%s" % (obj.y,), str(b"a"), bytes([1, 2]), b"a" + b"b", "a".join("xyz"),
        str.upper("a"), "".join(map(str, [1, 2])), "abc".translate(str.maketrans("a", "z")), "{:{w}}".format("a", w=3),
    )  # fmt: skip


def bad_values() -> Any:
    found: list[Any] = []
    text: Any = "abc"
    five: Any = 5
    for attempt in (
        lambda: "a" + 1,
        lambda: "%d" % "a",
        lambda: "%s %s" % (1,),
        lambda: "%s" % (1, [2]),
        lambda: "{}".format(),
        lambda: "{a}".format(),
        lambda: ",".join([1, []]),
        lambda: "a".index("b"),
        lambda: int("x"),
        lambda: text["a"],
        lambda: text[10],
        lambda: format([], "x"),
        lambda: 1 + [],
        lambda: [] - 1,
        lambda: {} < {},
        lambda: 1 < "a",
        lambda: -text,
        lambda: 1 // 0,
        lambda: len(five),
        lambda: "a" * "b",
        lambda: [1] * 1.5,
        lambda: object() + 1,
        lambda: divmod(1, []),
        lambda: round([]),
        lambda: float([]),
        lambda: int([]),
        lambda: five[0],
        lambda: hash([]),
        lambda: {}[[]],
        lambda: {[]: 1},
        lambda: setattr(5, "a", 1),
        lambda: five.foo,
    ):
        try:
            found.append(attempt())
        except Exception as error:
            found.append((type(error), error.args))
    return found


def heaps() -> Any:
    h = [5, 2, 8]
    heapq.heapify(h)
    heapq.heappush(h, 1)
    return (
        heapq.heappop(h),
        h,
        heapq.nsmallest(2, h),
        heapq.nlargest(1, h),
        bisect.bisect([1, 3], 2),
        heapq.merge([1, 4], [2]),
    )


def generators() -> Any:
    def gen() -> Any:
        got = yield 1
        try:
            yield got
        except KeyError as error:
            yield f"caught {error}"
        return "done"

    def outer() -> Any:
        result = yield from gen()
        yield result

    g, o = gen(), outer()
    log = [next(g), g.send("sent"), g.throw(KeyError("k")), *outer()]
    try:
        next(g)
    except StopIteration as stop:
        log.append(stop.value)
    next(o)
    o.close()
    return log, next(o, "closed"), list(gen()), sum(v for v in range(4)), (x * 2 for x in [1])


@pytest.mark.parametrize(
    "fn",
    [
        getters, operators, reduces, parts_of_partials, translated, ordering, dispatches, cached, wrapped, data, enums, bad_enum, named_tuples, contexts,
        abstract, copies, numbers, strings, bad_values, generators,
    ],
)  # fmt: skip
def test_library(check: Any, fn: Any) -> None:
    # `ExitStack` looks methods up by `inspect.getattr_static`, which caches by weak references
    breaks = None if fn is contexts and sys.version_info >= (3, 15) else 0
    check(fn, breaks=breaks)


def test_heapq(check: Any) -> None:
    check(heaps, breaks=None)


def test_weak_references(check: Any) -> None:
    def run(ref: Any, thing: Any) -> Any:
        return ref() is thing, ref().n

    keep = Version(5)
    check(run, lambda: (weakref.ref(keep), keep), breaks=2)


def test_generics(check: Any) -> None:
    check(generics, breaks=None)


@pytest.mark.parametrize("maxsize", [None, 3])
@pytest.mark.parametrize("typed", [False, True])
def test_a_cache_is_read_without_calling_it(maxsize: int | None, typed: bool) -> None:
    @functools.lru_cache(maxsize, typed)
    def cached(*args: Any, **kwargs: Any) -> Any:
        return {"result": (args, kwargs)}

    kept = [((1,), {}), (("a", 2.0), {}), ((3,), {"b": 1, "c": ()})]
    results = [cached(*args, **kwargs) for args, kwargs in kept]
    before = cached.cache_info()
    found = [peek(tuple(kwargs), typed, cached, *args, *kwargs.values()) for args, kwargs in kept]
    assert all(a is b for a, b in zip(found, results))
    # one argument that is no int or str: the key is a tuple
    assert peek((), typed, cached, 1.0) is MISSING
    assert (peek((), typed, cached, "a", 2) is MISSING) is typed
    assert peek(("c", "b"), typed, cached, 3, (), 1) is MISSING
    assert cached.cache_info() == before
