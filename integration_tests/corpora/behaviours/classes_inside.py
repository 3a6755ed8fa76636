"""Class statements in the region: bases, keywords, metaclasses, `__init_subclass__`,
`__set_name__`, `__slots__`, properties, `super()`, decorators (dataclass, total_ordering), Enum,
NamedTuple, TypedDict, Protocol, Generic, abstract classes."""

# mypy: ignore-errors

import abc
import collections
import dataclasses
import enum
import functools
import typing

import torch

from integration_tests.corpora.behaviours import program

T = typing.TypeVar("T")
REGISTERED = []


class Registered:
    """Hears of its subclasses."""

    kind = "base"

    def __init_subclass__(cls, kind=None, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.kind = kind
        REGISTERED.append(cls.__name__)


class Named:
    """A descriptor that is told its name and its owner."""

    def __set_name__(self, owner, name):
        self.owner, self.name = owner, name

    def __get__(self, instance, owner):
        return self if instance is None else instance.__dict__.get(self.name, "unset")

    def __set__(self, instance, value):
        instance.__dict__[self.name] = value


class Counting(type):
    made = 0

    def __new__(mcls, name, bases, namespace, extra=1):
        namespace["extra"] = extra
        return super().__new__(mcls, name, bases, namespace)

    def __init__(cls, name, bases, namespace, extra=1):
        super().__init__(name, bases, namespace)
        cls.initialised = [base.__name__ for base in bases]

    def __call__(cls, *args):
        made = super().__call__(*args)
        made.called = True
        return made


@program
def operators_of_instances_trace_tensors(x, n, box):
    class Vector:
        scale = 2

        def __init__(self, value):
            self.value = value

        def __add__(self, other):
            return Vector(self.value + other.value)

        def __eq__(self, other):
            return isinstance(other, Vector) and self.value is other.value

    total = Vector(x) + Vector(x * n)
    return total.value * Vector.scale, Vector(x) == Vector(x), Vector.__hash__, Vector


@program
def methods_close_over_the_call_and_their_class(x, n, box):
    doubled = x * 2

    class Inside:
        """Documented."""

        def value(self, by=n):
            return doubled * by

        def own(self):
            return __class__

        def append(self, item):
            box.log.append(item)

    made = Inside()
    made.append(n)
    return Inside, made, made.value(), made.own() is Inside, type(made) is Inside, Inside.value


@program
def super_reaches_classes_made_inside(x, n, box):
    class Base:
        def value(self):
            return x + n

        @classmethod
        def create(cls):
            return cls()

    class Left(Base):
        def value(self):
            return super().value() * 2

    class Right(Base):
        def value(self):
            return super(Right, self).value() - 1

    class Both(Left, Right):
        pass

    both = Both.create()
    return (
        both.value(),
        isinstance(both, Base),
        issubclass(Both, Right),
        [c.__name__ for c in Both.__mro__],
        Both,
    )


@program
def slots_and_properties(x, n, box):
    class Slotted:
        __slots__ = ("_a", "b")

        def __init__(self, a):
            self._a = a

        @property
        def a(self):
            """The value."""
            return self._a + 1

        @a.setter
        def a(self, value):
            self._a = value

        @staticmethod
        def three(value):
            return value * 3

    made, missing = Slotted(x), None
    made.a = x * n
    try:
        made.b
    except AttributeError as error:
        missing = str(error)
    return made, made.a, Slotted.three(made.a), missing, Slotted


@program
def bases_hear_of_subclasses(x, n, box):
    class First(Registered, kind="first"):
        def value(self):
            return x * n

    class Second(First):
        pass

    return First.kind, Second.kind, Second().value(), list(REGISTERED), First, Second


@program
def descriptors_are_told_their_names(x, n, box):
    class Inside:
        plain = Named()
        tensor = Named()

    made = Inside()
    made.tensor = x
    return (
        made.plain,
        made.tensor + 1,
        Inside.plain.name,
        Inside.tensor.owner is Inside,
        Inside,
        made,
    )


@program
def metaclasses_make_classes(x, n, box):
    class Inside(Registered, kind=n):
        pass

    class Made(metaclass=Counting, extra=n):
        def value(self):
            return x + self.extra

    class Meta(type):
        def shout(cls):
            return cls.__name__.upper()

    class Loud(metaclass=Meta):
        pass

    return (
        Made.initialised,
        Made().called,
        Made().value(),
        type(Made) is Counting,
        Loud.shout(),
        Loud,
        Made,
    )


@program
def class_attributes_are_written(x, n, box):
    class Counter:
        count = 0
        items = []

        def __init__(self):
            Counter.count += 1
            self.items.append(n)

    made = [Counter(), Counter()]
    before = Counter.count
    Counter.label = "set"
    setattr(Counter, "method", lambda self: x + self.count)
    del Counter.items
    return before, made[0].method(), made[1].label, hasattr(Counter, "items"), Counter, made


@program
def dataclasses_are_made(x, n, box):
    @dataclasses.dataclass
    class Sample:
        a: int
        b: object = dataclasses.field(default=None, compare=False)
        c: list = dataclasses.field(default_factory=list)

        def total(self):
            return self.b * self.a

    made = Sample(n, x)
    made.c.append(n)
    names = [field.name for field in dataclasses.fields(made)]
    return (
        made,
        made.total(),
        made == Sample(n, x, [n]),
        Sample(1).c,
        names,
        dataclasses.asdict(Sample(1, n)),
        Sample,
    )


@program
def frozen_and_ordered_dataclasses(x, n, box):
    @dataclasses.dataclass(frozen=True, order=True)
    class Version:
        major: typing.Optional[int]
        minor: int | None = dataclasses.field(default=3, compare=False)

    one = Version(n)
    try:
        one.major = 1
    except dataclasses.FrozenInstanceError as error:
        box.log.append(str(error))
    return one, one < Version(n + 1), dataclasses.replace(one, minor=5).minor, x + 1, Version


@program
def dataclasses_with_slots_and_inheritance(x, n, box):
    @dataclasses.dataclass(slots=True)
    class Slim:
        a: object
        b: int = n

    @dataclasses.dataclass(kw_only=True)
    class Wide(Slim):
        c: float = 0.5

        def __post_init__(self):
            self.c *= 2

    return Slim(x), Slim(x).a + 1, Slim.__slots__, Wide(x, c=n).c, Wide(x), Slim


@program
def total_ordering_fills_in(x, n, box):
    @functools.total_ordering
    class Size:
        def __init__(self, value):
            self.value = value

        def __eq__(self, other):
            return self.value == other.value

        def __lt__(self, other):
            return self.value < other.value

    return (
        Size(1) >= Size(n),
        max(Size(1), Size(n)).value,
        sorted([Size(n), Size(1)])[0].value,
        x + 1,
        Size,
    )


@program
def enums_are_made(x, n, box):
    class Color(enum.Enum):
        RED = 1
        BLUE = n + 5
        CRIMSON = 1

        def doubled(self):
            return self.value * 2

    class Level(enum.IntEnum):
        LOW = enum.auto()
        HIGH = enum.auto()

    found = [color.name for color in Color], Color(1) is Color.CRIMSON, Color["BLUE"].value
    return (
        found,
        Color.RED,
        x * Color.BLUE.doubled(),
        Level.HIGH + 1,
        Level.LOW < Level.HIGH,
        Color,
        Level,
    )


@program
def named_tuples_are_made(x, n, box):
    class Pair(typing.NamedTuple):
        a: int
        b: object = 5

        def total(self):
            return self.a + self.b

    Plain = collections.namedtuple("Plain", "p q")
    made = Pair(x, n)
    a, b = made
    return (
        made,
        made.total(),
        Pair._fields,
        made._replace(b=2),
        a is x,
        Pair(1).b,
        Plain(1, 2).q,
        Pair,
    )


@program
def typed_dicts_are_made(x, n, box):
    class Movie(typing.TypedDict, total=False):
        title: str
        year: int

    movie = Movie(title="t", year=n)
    return (
        movie,
        type(movie) is dict,
        x + movie["year"],
        sorted(Movie.__annotations__),
        Movie.__total__,
        Movie,
    )


@program
def protocols_and_abstract_classes_are_made(x, n, box):
    @typing.runtime_checkable
    class HasArea(typing.Protocol):
        def area(self): ...

    class Shape(abc.ABC):
        @abc.abstractmethod
        def area(self): ...

        def twice(self):
            return self.area() * 2

    class Square(Shape):
        def area(self):
            return x * n

    try:
        Shape()
    except TypeError as error:
        box.log.append(str(error))
    return (
        Square().twice(),
        isinstance(Square(), HasArea),
        isinstance(Square(), Shape),
        isinstance(n, Shape),
        Shape,
    )


@program
def generic_classes_are_made(x, n, box):
    class Holder(typing.Generic[T]):
        def __init__(self, value):
            self.value = value

    return Holder(x).value + n, Holder(n), Holder.__orig_bases__ == (typing.Generic[T],), Holder


@program
def modules_are_made(x, n, box):
    class Scaled(torch.nn.Module):
        def __init__(self, by):
            super().__init__()
            self.by = by

        def forward(self, value):
            return value * self.by

    module = torch.nn.Sequential(Scaled(n), torch.nn.ReLU())
    return (
        module(x),
        [type(child).__name__ for child in module],
        isinstance(module[0], torch.nn.Module),
    )


@program
def exceptions_are_made(x, n, box):
    class Failed(ValueError):
        def __init__(self, code):
            super().__init__(f"code {code}")
            self.code = code

    try:
        raise Failed(n)
    except Failed as error:
        return x + error.code, str(error), isinstance(error, ValueError), Failed


@program
def nested_classes_and_conditional_bodies(x, n, box):
    class Outer:
        class Inner:
            value = 4

        values = [i * n for i in range(3)]
        if n > 2:
            large = True
        else:
            small = True
        for index in range(2):
            pass
        del index

        def inner(self):
            return self.Inner.value * x

    return (
        Outer().inner(),
        Outer.values,
        hasattr(Outer, "large"),
        Outer.Inner.__qualname__,
        Outer.Inner,
        Outer,
    )


@program
def classes_are_made_by_functions_and_decorated(x, n, box):
    def make(by):
        class Made:
            def value(self):
                return x * by

        return Made

    def marked(label):
        def mark(cls):
            cls.label = label
            return cls

        return mark

    @marked("m")
    class Marked(make(2)):
        pass

    first, second = make(n), make(n)
    return (
        first is second,
        first().value() + second().value(),
        Marked.label,
        Marked().value(),
        first,
        second,
    )


@program
def builtin_classes_are_extended(x, n, box):
    class Stack(list):
        def top(self):
            return self[-1]

    class Defaults(dict):
        def __missing__(self, key):
            return key * 2

    class Metres(float):
        pass

    stack, table = Stack([1, x]), Defaults(a=n)
    stack.append(x * 2)
    return stack, stack.top() + 1, table["a"], table["b"], len(stack), table, Metres.__mro__[1]


@program
def classes_by_calling_type(x, n, box):
    Made = type("Made", (Registered,), {"value": lambda self: x + n, "flag": n}, kind="called")
    return Made().value(), Made.flag, Made.__name__, Made.kind, Made


@program
def what_a_class_says_of_itself(x, n, box):
    class Told:
        a: int = 1
        b: "str"

        def method(self): ...

    told = (
        Told.__name__,
        Told.__module__ == __name__,
        Told.__qualname__,
        Told.__doc__,
        Told.__bases__,
    )
    return (
        told,
        Told.__annotations__,
        "method" in vars(Told),
        Told.__dict__["a"],
        Told.method.__qualname__,
        x + n,
    )


@program
def the_text_of_a_class_may_be_a_property(x, n, box):
    class Told:
        @classmethod
        @property
        def __doc__(cls):
            return f"about {cls.__name__}"

    class Asked:
        @property
        def __doc__(self):
            return f"about {n}"

    class Plain:
        "plain"

    return (
        Told.__doc__,
        type(Asked.__doc__),
        Asked().__doc__,
        Plain.__doc__,
        type("Sub", (Plain,), {}).__doc__,
        x + 1,
    )


@program(breaks="class-definition")
def the_text_of_a_dataclass_tells_its_defaults(x, n, box):
    @dataclasses.dataclass
    class Point:
        at: int = n
        of: object = box

    return Point.__doc__.partition("of")[0], Point(2).at * x


@program(breaks="class-definition")
def a_function_is_abstract_if_an_object_is_true(x, n, box):
    found = []
    for value in ([], [n], "", box):

        class Marked:
            def method(self):
                pass

            method.__isabstractmethod__ = value
            method = property(method)

        found.append(Marked.method.__isabstractmethod__)
    return found, x * n
