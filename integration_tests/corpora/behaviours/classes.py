"""User classes: construction, `__init_subclass__`, `__set_name__`, descriptors, slots, attribute
hooks, `__call__`, `__class_getitem__`, multiple inheritance and `super()`, classes made inside,
instances as keys."""

# mypy: ignore-errors

from __future__ import annotations

from integration_tests.corpora.behaviours import program


class Base:
    registry = []
    kind = "base"

    def __init_subclass__(cls, /, tag=None, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.tag = tag
        Base.registry.append(cls.__name__)

    def __new__(cls, *args, **kwargs):
        made = super().__new__(cls)
        made.created = len(args)
        return made

    def __init__(self, x, n=1):
        self.x, self.n = x, n

    def value(self):
        return self.x * self.n

    @classmethod
    def build(cls, x):
        return cls(x, 5)

    @staticmethod
    def twice(x):
        return x * 2

    @property
    def double(self):
        return self.n * 2

    @double.setter
    def double(self, value):
        self.n = value // 2

    @double.deleter
    def double(self):
        self.n = 0


class Left(Base, tag="left"):
    def value(self):
        return super().value() + 1


class Right(Base):
    kind = "right"

    def value(self):
        return super().value() * 3


class Both(Left, Right, tag="both"):
    def value(self):
        return super().value() - 1


@program
def new_and_init_with_multiple_inheritance(x, n, box):
    made = Both(x, n)
    return (
        made.value(),
        made.created,
        Both.tag,
        [c.__name__ for c in Both.__mro__],
        made.kind,
        Both.build(x).n,
        Base.twice(x),
    )


@program
def properties_get_set_and_delete(x, n, box):
    made = Base(x)
    made.double = n * 10
    one = made.double
    del made.double
    try:
        type(made).double.fget(None)
    except AttributeError as error:
        box.log.append(str(error))
    return one, made.n, made


class Fewer:
    def __new__(cls, n):
        return n if n > 2 else object.__new__(cls)

    def __init__(self, n):
        self.made = n


@program
def new_may_return_something_else(x, n, box):
    return Fewer(2).made, Fewer(7), x + n


@program
def a_class_with_a_base_keyword_and_body_is_made_inside(x, n, box):
    class Local(Base, tag=n):
        """Documented."""

        factor: int = n
        table = {i: i * i for i in range(3)}

        def value(self):
            return super().value() + self.factor

        @classmethod
        def name(cls):
            return cls.__name__, __class__.tag

    made = Local(x, 2)
    return (
        made.value(),
        Local.name(),
        Local.__doc__,
        Local.__qualname__,
        Local.table,
        Local.__annotations__,
        isinstance(made, Base),
    )


@program
def an_instance_of_a_class_made_inside_is_returned(x, n, box):
    class Result:
        def __init__(self, value):
            self.value = value

        def scaled(self):
            return self.value * n

    made = Result(x + 1)
    box.log.append(made)
    return made, made.scaled(), type(made).__name__


@program
def a_class_made_inside_mutates_a_captured_list(x, n, box):
    items = box.items

    class Writer:
        count = 0

        def __call__(self, value):
            items.append(value)
            Writer.count += 1
            return len(items)

    write = Writer()
    return [write(i) for i in range(n)], Writer.count, x * len(items)


@program
def classes_made_by_a_function_are_distinct(x, n, box):
    def make(k):
        class Made:
            value = k

        return Made

    one, two = make(1), make(n)
    return (
        one.value,
        two.value,
        one is two,
        one.__name__ == two.__name__,
        isinstance(one(), two),
        x + 1,
    )


@program
def type_with_three_arguments(x, n, box):
    made = type("Made", (Base,), {"extra": n, "more": lambda self: self.extra + 1})
    return made(x).more(), made.__name__, made.__bases__ == (Base,), issubclass(made, Base), x + 1


class Descriptor:
    def __set_name__(self, owner, name):
        self.owner, self.name = owner.__name__, name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return instance.__dict__.get("_" + self.name, f"{self.owner}.{self.name}")

    def __set__(self, instance, value):
        instance.__dict__["_" + self.name] = value * 2

    def __delete__(self, instance):
        instance.__dict__.pop("_" + self.name)


class Lazy:
    def __init__(self, fn):
        self.fn = fn

    def __get__(self, instance, owner=None):
        value = instance.__dict__[self.fn.__name__] = self.fn(instance)
        return value


class Described:
    field = Descriptor()

    @Lazy
    def expensive(self):
        return [1]


@program
def data_and_non_data_descriptors(x, n, box):
    made = Described()
    before = made.field
    made.field = x
    middle = made.field
    del made.field
    first = made.expensive
    made.expensive.append(n)
    made.__dict__["field"] = "shadowed"
    return before, middle, made.field, first is made.expensive, first, Described.field.name


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class SlottedChild(Slotted):
    __slots__ = ("c", "__dict__")


@program
def slots_are_set_deleted_and_missing(x, n, box):
    made = SlottedChild(x)
    made.c, made.free = n, 1
    del made.a
    for name in "ab":
        try:
            getattr(made, name)
        except AttributeError as error:
            box.log.append(str(error))
    plain = Slotted(n)
    try:
        plain.other = 1
    except AttributeError as error:
        box.log.append(str(error))
    return (
        made.c,
        made.__dict__,
        hasattr(plain, "b"),
        hasattr(plain, "__dict__"),
        plain,
        Slotted.a.__name__,
    )


class Hooked:
    def __init__(self):
        object.__setattr__(self, "log", [])

    def __getattr__(self, name):
        if name.startswith("auto"):
            self.log.append(("get", name))
            return name
        raise AttributeError(name)

    def __setattr__(self, name, value):
        self.log.append(("set", name))
        super().__setattr__(name, value)

    def __delattr__(self, name):
        self.log.append(("del", name))
        object.__delattr__(self, name)


@program
def attribute_hooks(x, n, box):
    made = Hooked()
    made.a = x
    found = (
        made.auto_one,
        made.a,
        getattr(made, "missing", n),
        hasattr(made, "auto"),
        hasattr(made, "no"),
    )
    del made.a
    made.a = n
    try:
        del made.nothing
    except AttributeError as error:
        box.log.append(str(error))
    return found, made.log, made.__dict__


class Intercepting:
    def __init__(self):
        self.real = 1

    def __getattribute__(self, name):
        if name == "virtual":
            return "virtual"
        value = object.__getattribute__(self, name)
        return value + 1 if isinstance(value, int) else value

    def method(self):
        return self.real


@program
def getattribute_intercepts_everything(x, n, box):
    made = Intercepting()
    made.real = n
    return (
        made.virtual,
        made.real,
        made.method(),
        getattr(made, "real"),
        "real" in made.__dict__,
        x + made.real,
    )


class Callable_:
    def __init__(self, k):
        self.k = k

    def __call__(self, y, *more, **named):
        return y * self.k, more, named

    def __class_getitem__(cls, item):
        return (cls.__name__, item)


@program
def instances_are_called_and_classes_subscripted(x, n, box):
    made = Callable_(n)
    return (
        made(x, 1, k=2),
        Callable_[int],
        Callable_[int, "a"],
        callable(made),
        list(map(made, [1, 2])),
    )


@program
def super_in_every_form(x, n, box):
    class Child(Right):
        def value(self):
            return super(Child, self).value() + super(Right, self).value()

        @classmethod
        def build(cls, y):
            return super().build(y).n

        def nested(self):
            return [super(Child, self).value() for _ in range(1)]

    made = Child(x, n)
    return (
        made.value(),
        Child.build(x),
        made.nested(),
        super(Right, made).kind,
        super(Child, Child).build(x).n,
    )


@program
def private_names_are_mangled(x, n, box):
    class Private:
        __hidden = n

        def get(self):
            return self.__hidden

    return Private().get(), Private._Private__hidden, hasattr(Private, "__hidden"), x + 1


@program(breaks="user-hash")
def equality_defined_hash_absent_and_user_hash_keys(x, n, box):
    class Key:
        def __init__(self, v):
            self.v = v

        def __hash__(self):
            return hash(self.v) % 2

        def __eq__(self, other):
            box.log.append((self.v, other.v))
            return self.v == other.v

    table = {Key(1): "one", Key(n): "n"}
    table[Key(1)] = "again"
    return (
        [k.v for k in table],
        list(table.values()),
        Key(n) in table,
        table.get(Key(8), "none"),
        len({Key(3), Key(3)}),
        x + 1,
    )


class Keyed:
    def __init__(self, v):
        self.v = v

    def __hash__(self):
        return hash(("keyed", self.v))

    def __eq__(self, other):
        return isinstance(other, Keyed) and self.v == other.v


@program
def sets_of_objects(x, n, box):
    a, b = Base(x), Base(x, n)
    s = {a, b, a}
    s.discard(b)
    return (
        len(s),
        a in s,
        b in s,
        next(iter(s)) is a,
        {Keyed(1), Keyed(1), Keyed(n)} == {Keyed(n), Keyed(1)},
    )


@program
def instance_dict_and_class_attributes(x, n, box):
    made = Base(x)
    made.__dict__["direct"] = n
    made.__dict__.update(a=1)
    made.kind = "own"
    own = made.kind
    del made.kind
    return made.direct, made.a, own, made.kind, vars(made) is made.__dict__, sorted(made.__dict__)


@program
def class_attributes_are_written_from_inside(x, n, box):
    Base.counter = getattr(Base, "counter", 0) + n
    type(Left(x)).flag = n
    first = Base.counter, Left.flag, Right.counter
    del Left.flag
    return first, hasattr(Left, "flag"), x * Base.counter


@program
def methods_compare_and_bind(x, n, box):
    made, other = Base(x), Base(x)
    bound = made.value
    made.patched = other.value
    return (
        bound == made.value,
        bound is made.value,
        bound.__self__ is made,
        bound.__func__ is Base.value,
        made.patched(),
        bound(),
        bound.__name__,
        made.value == other.value,
    )


@program(breaks="c-attribute-write")
def class_is_changed_by_assignment(x, n, box):
    made = Left(x, n)
    before = made.value()
    made.__class__ = Right
    return before, made.value(), type(made).__name__, isinstance(made, Left)


class Tagged(property):
    """A property with a word to say; as a class that is made while tracing it is only looked at."""

    def __init__(self, read):
        property.__init__(self, read)
        self.tag = "tagged"


@program(breaks="reconstruction")
def property_of_a_class_of_its_own(x, n, box):
    made = Tagged(lambda self: n)

    class Inside:
        value = Tagged(lambda self: n + 1)

    return isinstance(made, property), made.tag, Inside().value, made.fget(None), x * n
