"""Metaclasses that give classes operators, names and instances of their own; `__prepare__`;
abstract classes."""

# mypy: ignore-errors

from __future__ import annotations

import abc

import stator

from integration_tests.corpora.behaviours import program


class Meta(type):
    made = 0

    def __new__(mcls, name, bases, namespace, **kwargs):
        namespace["added"] = name.lower()
        return super().__new__(mcls, name, bases, namespace)

    def __init__(cls, name, bases, namespace, **kwargs):
        super().__init__(name, bases, namespace)
        cls.options = kwargs

    def __call__(cls, *args):
        made = super().__call__(*args)
        made.by = "meta"
        return made

    def __iter__(cls):
        return iter([1, 2])

    def __len__(cls):
        return 7

    def __contains__(cls, item):
        return item == 1

    def __getitem__(cls, key):
        return key * 2

    def __instancecheck__(cls, instance):
        return instance == 3

    def __getattr__(cls, name):
        return f"meta {name}"

    @property
    def prop(cls):
        return cls.__name__


class WithMeta(metaclass=Meta, option=1):
    pass


@program
def metaclasses_give_classes_operators(x, n, box):
    made = WithMeta()
    return (
        made.by, WithMeta.added, WithMeta.options, [*WithMeta], len(WithMeta), 1 in WithMeta, WithMeta[n],
        isinstance(n, WithMeta), WithMeta.prop, WithMeta.unknown, type(WithMeta).__name__, x + 1,
    )  # fmt: skip


@program
def a_class_with_a_metaclass_is_made_inside(x, n, box):
    class Inside(WithMeta, extra=n):
        def value(self):
            return self.by, self.added

    return Inside().value(), Inside.options, Inside.prop, x + 1


class Prepared(type):
    @classmethod
    def __prepare__(mcls, name, bases, **kwargs):
        return {"prepared": name}


@program
def prepare_gives_the_namespace(x, n, box):
    class Inside(metaclass=Prepared):
        seen = prepared

    return Inside.seen, Inside.prepared, x + n


class Stranger:
    pass


class Shape(abc.ABC):
    @property
    @abc.abstractmethod
    def area(self): ...

    def describe(self):
        return f"{type(self).__name__}: {self.area}"


class Square(Shape):
    def __init__(self, side):
        self.side = side

    @property
    def area(self):
        return self.side**2


Shape.register(Stranger)


@program
def abstract_classes(x, n, box):
    try:
        Shape()
    except TypeError as error:
        box.log.append(str(error))
    made = Square(n)
    return (
        made.describe(),
        isinstance(made, Shape),
        isinstance(Stranger(), Shape),
        issubclass(int, Shape),
        Shape.__abstractmethods__,
        x + 1,
    )


ASKED = []


class Comparing(type):
    def __eq__(cls, other):
        ASKED.append(cls.__name__)
        return cls is other

    def __hash__(cls):
        return 1


class Unhashable(type):
    __hash__ = None


class Compared(metaclass=Comparing):
    def __init__(self, v):
        self.v = v

    def double(self):
        return self.v * 2


class NoKey(Compared, metaclass=type("Both", (Unhashable, Comparing), {})):
    def double(self):
        return super().double() + 1


@program
def a_metaclass_that_compares_is_asked_by_the_program_alone(x, n, box):
    made = Compared(n)
    made.w = x
    return (
        vars(made),
        made.double(),
        Compared == NoKey,
        type(made) is Compared,
        isinstance(made, Compared),
        [Compared],
    )


@program
def instances_of_a_class_without_a_hash(x, n, box):
    made, other = NoKey(x), NoKey(n)
    other.v = n + 1
    return (
        vars(made),
        made.double(),
        other.double(),
        isinstance(other, Compared),
        issubclass(NoKey, Compared),
    )


@program
def a_class_without_a_hash_is_no_key(x, n, box):
    try:
        return {NoKey: 1}, x
    except TypeError as error:
        return str(error), Compared in [NoKey, Compared], x + n


@program(breaks="graph-break")
def instances_of_a_class_without_a_hash_over_a_break(x, n, box):
    made = [NoKey(n), Compared(x)]
    stator.graph_break()
    made[0].v += 1
    return [vars(one) for one in made], made[0].double(), made[1].double()
