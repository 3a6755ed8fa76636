"""Classes by declaration: Enum, dataclass (frozen, slots, kw_only, `replace`, `__post_init__`),
NamedTuple subclasses, attrs classes, TypedDict, Protocol, Generic."""

# mypy: ignore-errors

from __future__ import annotations

import collections
import dataclasses
import enum
import sys
import typing
from dataclasses import dataclass, field

import attrs
import torch

from integration_tests.corpora.behaviours import program


class Color(enum.Enum):
    RED = 1
    GREEN = 2
    CRIMSON = 1

    @property
    def shade(self):
        return self.name.lower()

    @classmethod
    def default(cls):
        return cls.GREEN


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Text(enum.StrEnum):
    A = enum.auto()
    B = "bee"


class Flags(enum.Flag):
    R = 1
    W = 2
    X = 4
    RW = R | W


class Planet(enum.Enum):
    EARTH = (5.9, 6.3)

    def __init__(self, mass, radius):
        self.mass, self.radius = mass, radius


@program
def enum_members_are_singletons(x, n, box):
    return (
        Color(1) is Color.RED,
        Color["GREEN"],
        Color.CRIMSON is Color.RED,
        Color.RED.shade,
        Color.default().value,
        x + 1,
    )


@program
def enum_classes_are_iterated_and_measured(x, n, box):
    return (
        [c.name for c in Color],
        len(Color),
        Color.RED in Color,
        list(Color.__members__),
        [*reversed(Color)],
        x + n,
    )


@program
def enum_lookup_that_fails(x, n, box):
    for bad in (
        lambda: Color(n + 10),
        lambda: Color["NO"],
        lambda: Color.NO,
        lambda: setattr(Color.RED, "value", 2),
    ):
        try:
            bad()
        except (ValueError, KeyError, AttributeError) as error:
            box.log.append((type(error), str(error)))
    return x + 1


@program
def int_and_str_enums_are_numbers_and_text(x, n, box):
    return (
        Level.LOW + n,
        Level.HIGH > n,
        x * Level.HIGH,
        f"{Level.LOW}|{Text.B}|{Text.A!r}",
        Text.A + "x",
        sorted(Level),
        Level(5).name,
        max(Level),
    )


@program
def flags_are_combined(x, n, box):
    both = Flags.R | Flags.X
    return (
        both,
        Flags.R in both,
        both & Flags.W,
        ~Flags.R,
        Flags(3) is Flags.RW,
        bool(both & Flags.W),
        both.value,
        x + 1,
    )


@program
def enum_members_as_keys_and_in_comparisons(x, n, box):
    table = {Color.RED: n, Color.GREEN: x}
    return (
        table[Color(1)],
        table[Color.GREEN],
        Color.RED == Color.CRIMSON,
        Color.RED != 1,
        hash(Color.RED) == hash(Color.CRIMSON),
        Planet.EARTH.mass,
    )


@program(breaks="builtin")
def an_enum_is_made_inside(x, n, box):
    class Inside(enum.Enum):
        A = n
        B = n + 1

    return Inside(n).name, [m.value for m in Inside], enum.Enum("Made", "P Q").P.value, x + 1


@dataclass
class Point:
    x: int
    y: int = 2
    tags: list = field(default_factory=list)
    kind: typing.ClassVar[str] = "point"


@dataclass(frozen=True, order=True)
class Version:
    major: int
    minor: int = 0
    note: str = field(default="", compare=False)


@dataclass(slots=True)
class Slim:
    a: int
    b: torch.Tensor | None = None


@dataclass(kw_only=True)
class Options:
    rate: float = 0.1
    steps: int

    def __post_init__(self):
        self.total = self.rate * self.steps


@dataclass
class Derived(Point):
    z: int = 3
    seed: dataclasses.InitVar[int] = 0

    def __post_init__(self, seed):
        self.z += seed


@program
def dataclasses_are_made_compared_and_shown(x, n, box):
    a, b = Point(1, n), Point(1, n)
    a.tags.append(n)
    return (
        a,
        a == b,
        a != b,
        b == Point(1, n),
        repr(b),
        Point.kind,
        a.tags is b.tags,
        Derived(1, seed=n),
        x + 1,
    )


@program
def a_dataclass_with_tensors_is_returned(x, n, box):
    slim = Slim(n, x * 2)
    point = Point(x, [x])
    return slim, point, dataclasses.replace(slim, a=7), slim.b + 1


@program
def frozen_dataclasses_refuse_and_hash(x, n, box):
    v = Version(1, n)
    for bad in (lambda: setattr(v, "major", 3), lambda: delattr(v, "minor")):
        try:
            bad()
        except dataclasses.FrozenInstanceError as error:
            box.log.append(str(error))
    table = {v: "first", Version(1, n, "other"): "second"}
    return (
        len(table),
        table[Version(1, n)],
        v < Version(2),
        sorted([Version(2), v])[0] is v,
        hash(v) == hash(Version(1, n)),
        x + 1,
    )


@program
def keyword_only_and_post_init(x, n, box):
    made = Options(steps=n)
    try:
        Options(0.1, 2)
    except TypeError as error:
        box.log.append(str(error))
    return made, made.total, dataclasses.replace(made, rate=1.0).total, x * made.total


@program
def dataclass_functions(x, n, box):
    point = Point(n, 3, [1, {"k": (2,)}])
    return (
        dataclasses.asdict(point),
        dataclasses.astuple(point),
        [f.name for f in dataclasses.fields(point)],
        dataclasses.is_dataclass(point),
        dataclasses.is_dataclass(n),
        x + 1,
    )


@program
def a_dataclass_is_made_inside(x, n, box):
    @dataclass
    class Inside:
        a: int
        b: object = None

        def total(self):
            return self.a + n

    made = Inside(n, x)
    return made.total(), made.b, made == Inside(n, x), Inside.__name__


class Pair(typing.NamedTuple):
    a: int
    b: object = 5

    def total(self):
        return self.a + 1


class Named(collections.namedtuple("Named", "p q")):
    __slots__ = ()

    @property
    def sum(self):
        return self.p + self.q

    def __new__(cls, p, q=0):
        return super().__new__(cls, p, q + 1)


Plain = collections.namedtuple("Plain", ["first", "second"], defaults=[9])


@program
def named_tuples_and_their_subclasses(x, n, box):
    pair, named, plain = Pair(n, x), Named(n), Plain(1)
    a, b = pair
    return (
        pair,
        named,
        plain,
        pair.total(),
        named.sum,
        pair._replace(b=2),
        named._asdict(),
        Plain._make([1, x]),
        Pair._fields,
        a is pair[0],
        pair == (n, x) if n > 100 else b,
    )


@program
def named_tuples_behave_as_tuples(x, n, box):
    pair = Pair(1, n)
    return (
        pair + (2,),
        pair * 2,
        pair[1:],
        len(pair),
        n in pair,
        {pair: 1}[1, n],
        pair < (1, 100),
        isinstance(pair, tuple),
        repr(pair),
        hash(pair) == hash((1, n)),
        pair.index(n),
        x + 1,
    )


@program
def named_tuples_are_reversed(x, n, box):
    point = Named(n, x)
    backwards = reversed(point)
    return (
        next(backwards) is x,
        backwards,
        reversed(Plain(1, n)),
        [*reversed(Pair(n, 2))],
        tuple(reversed(point)),
    )


@program
def a_named_tuple_is_made_inside(x, n, box):
    Inside = collections.namedtuple("Inside", "a b")

    class Typed(typing.NamedTuple):
        c: int
        d: int = n

    return Inside(1, n).b, Typed(2).d, Typed._fields, x + 1


@attrs.define
class Defined:
    a: int
    b: list = attrs.field(factory=list)
    c: int = attrs.field(default=3, converter=int)


@attrs.frozen
class Frozen:
    a: int = attrs.field()
    b: object = attrs.field(default=None, eq=False)

    @a.validator
    def _check(self, attribute, value):
        if value < 0:
            raise ValueError(f"{attribute.name} is negative")


@program(breaks="builtin")
def attrs_classes(x, n, box):
    made = Defined(n, c="7")
    made.b.append(x)
    frozen = Frozen(n, x)
    for bad in (lambda: setattr(frozen, "a", 3), lambda: Frozen(-1)):
        try:
            bad()
        except (attrs.exceptions.FrozenInstanceError, ValueError) as error:
            box.log.append(type(error).__name__)
    return (
        made,
        made.c,
        frozen,
        frozen == Frozen(n),
        attrs.evolve(frozen, a=9),
        hash(frozen) == hash(Frozen(n)),
        repr(Frozen(1)),
    )


@program
def attrs_functions(x, n, box):
    made = Defined(n, [1])
    return (
        attrs.asdict(made),
        [f.name for f in attrs.fields(Defined)],
        attrs.has(Defined),
        attrs.astuple(made),
        x + 1,
    )


class Movie(typing.TypedDict, total=False):
    name: str
    year: int


@program
def typed_dicts_are_dicts(x, n, box):
    movie = Movie(name="a", year=n)
    other: Movie = {"name": "b"}
    return (
        movie,
        type(movie),
        other,
        Movie.__annotations__.keys() == {"name", "year"},
        Movie.__total__,
        x + 1,
    )


@typing.runtime_checkable
class Sized(typing.Protocol):
    def size(self) -> int: ...


@typing.runtime_checkable
class HasName(typing.Protocol):
    name: str


class Thing:
    name = "thing"

    def size(self):
        return 4


@program(breaks="class-dict" if sys.version_info < (3, 12) else "bad-arguments")
def protocols_are_checked_at_run_time(x, n, box):
    bare = Thing()
    return (
        isinstance(bare, Sized),
        isinstance(n, Sized),
        isinstance(bare, HasName),
        isinstance(3, (HasName, int)),
        isinstance(x, Sized),
        issubclass(Thing, Sized),
    )


T = typing.TypeVar("T")


class Stack(typing.Generic[T]):
    def __init__(self):
        self.items: list[T] = []

    def push(self, item: T) -> T:
        self.items.append(item)
        return item


@program
def generic_classes_are_subscripted_and_called(x, n, box):
    one, two = Stack[int](), Stack()
    one.push(n)
    two.push(x)
    return (
        one,
        two.items,
        Stack[int] is Stack[int],
        isinstance(one, Stack),
        type(one) is Stack,
        Stack.__parameters__,
    )


@program
def a_generic_class_is_made_inside(x, n, box):
    class Inside(Stack[int]):
        extra = n

    made = Inside()
    return made.push(x), made.extra, Inside.__mro__[1] is Stack


@program(breaks="builtin")
def simple_namespaces(x, n, box):
    import types

    space = types.SimpleNamespace(a=1, b=x)
    space.c = n
    del space.a
    return (
        space,
        space == types.SimpleNamespace(b=x, c=n) if n > 100 else space.c,
        repr(types.SimpleNamespace(q=n)),
        vars(space),
    )
