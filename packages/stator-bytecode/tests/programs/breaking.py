"""Programs to be broken at every instruction: each is a function without arguments; what it does
besides is in `LOG`.

`note` writes to the log; with an exception it also keeps how its traceback looks at that moment, in
`TRACES`.
"""

# ruff: noqa  (what a linter would have rewritten is the point here)

import contextlib
import sys
from collections import namedtuple

LOG = []
TRACES = []
COUNTER = 0
PROGRAMS = {}


def program(fn):
    PROGRAMS[fn.__name__] = fn
    return fn


def note(*values):
    for value in values:
        if isinstance(value, BaseException):
            TRACES.append((type(value).__name__, entries(value)))
            LOG.append(
                (type(value).__name__, value.args, type(value.__cause__), type(value.__context__))
            )
        else:
            LOG.append(value)


def entries(error):
    found = []
    entry = error.__traceback__
    while entry is not None:
        found.append((entry.tb_frame.f_code.co_name, entry.tb_lineno))
        entry = entry.tb_next
    return found


note.__globals__["note"] = note
NATIVE = {"note", "entries", "program"}  # functions that run natively, whatever happens


@program
def loops():
    total = 0
    for i in range(4):
        if i == 2:
            continue
        for j in (10, 20):
            total += i * j
    else:
        total += 1
    while total > 50:
        total -= 30
        if total < 0:
            break
    note(total)
    return total


@program
def nested_try():
    def inner(n):
        try:
            try:
                if n == 0:
                    raise ValueError("zero")
                if n == 1:
                    return [][n]
                return {}.get("x", n)
            except ValueError as error:
                note(error)
                raise KeyError("from value") from error
            finally:
                note("inner finally", n)
        except KeyError as error:
            note(error)
            return "key"
        finally:
            note("outer finally", n)

    results = []
    for n in range(3):
        try:
            results.append(inner(n))
        except IndexError as error:
            note(error)
            results.append("index")
        else:
            note("no error", n)
    return results


class Manager:
    def __init__(self, name, swallow=False):
        self.name = name
        self.swallow = swallow

    def __enter__(self):
        note("enter " + self.name)
        return self

    def __exit__(self, kind, value, traceback):
        note("exit " + self.name, kind and kind.__name__)
        return self.swallow


@program
def with_statements():
    with Manager("a") as a, Manager("b"):
        note(a.name)
    with Manager("c", swallow=True):
        raise ValueError("swallowed")
    try:
        with Manager("d"):
            with Manager("e"):
                raise KeyError("through")
    except KeyError as error:
        note(error)
    for i in range(3):
        with Manager(f"loop{i}"):
            if i == 1:
                break
    return with_return()


def with_return():
    with Manager("r"):
        return "returned"


@contextlib.contextmanager
def managed(name):
    note("in " + name)
    try:
        yield name
    except ValueError as error:
        note(error)
    finally:
        note("out " + name)


@program
def context_managers():
    with managed("x") as name:
        note(name)
    with managed("y"):
        raise ValueError("handled by the generator")
    with contextlib.ExitStack() as stack:
        stack.enter_context(Manager("s1"))
        stack.enter_context(Manager("s2", swallow=True))
        raise KeyError("stack")
    return "after"


def counting(n):
    note("start")
    try:
        for i in range(n):
            got = yield i * 2
            if got is not None:
                note("got", got)
    finally:
        note("end")
    return "done"


@program
def generators():
    total = []
    for value in counting(3):
        total.append(value)
    g = counting(2)
    total.append(next(g))
    total.append(g.send("hello"))
    try:
        next(g)
    except StopIteration as stop:
        total.append(stop.value)
    return total


@program
def generator_expressions():
    pairs = ((x, y) for x in range(3) if x for y in range(x))
    first = next(pairs)
    rest = list(pairs)
    return first, rest, sum(v * v for v in range(4))


def delegating(n):
    result = yield from counting(n)
    note(result)
    yield from (10, 11)
    return result


@program
def delegation():
    collected = []
    for value in delegating(2):
        collected.append(value)
    return collected


def catching():
    while True:
        try:
            value = yield "ready"
            note("value", value)
        except ValueError as error:
            note("caught", error)
            yield "from handler"
        finally:
            note("finally")


@program
def throwing():
    g = catching()
    found = [next(g), g.send(1)]
    found.append(g.throw(ValueError("thrown")))
    found.append(next(g))
    try:
        g.throw(KeyError("leaves"))
    except KeyError as error:
        note(error)
    g.close()
    return found


@program
def closing():
    g = counting(5)
    next(g)
    next(g)
    g.close()
    return "closed"


@program
def abandoned():
    for value in counting(5):
        if value > 2:
            break
    note("after")
    return [value for value, _ in zip(counting(3), range(2))]


def raises_stop():
    yield 1
    raise StopIteration("inside")


@program
def stop_iteration_inside_generator():
    found = []
    try:
        for value in raises_stop():
            found.append(value)
    except RuntimeError as error:
        note(error)
        found.append(str(error))
    return found


def erring():
    yield 1
    raise LookupError("in the generator")


@program
def error_inside_generator():
    try:
        for value in erring():
            note(value)
    except LookupError as error:
        note(error)
        return "caught"


@program
def closures():
    count = 0
    names = []

    def bump(by=1):
        nonlocal count
        count += by
        names.append(lambda: count + by)
        return count

    bump()
    bump(5)
    functions = [lambda i=i: i + count for i in range(3)]
    late = [lambda: n for n in range(2)]
    return count, [f() for f in names], [f() for f in functions], [f() for f in late]


@program
def free_variables_without_values():
    def read():
        return first

    def read_the_second():
        return [second for _ in range(1)], first

    def forget():
        nonlocal first
        note(first)
        del first
        del first

    found = []
    for function in (read, read_the_second, forget, lambda: (second, first)):
        first = "bound"
        try:
            found.append(function())
            del first
            function()
        except NameError as error:
            found.append((type(error), str(error)))
    if not found:
        second = 2
    return found


@program
def comprehensions():
    n = 2
    nested = [[i * j + n for j in range(3) if j] for i in range(3)]
    table = {k: {v for v in range(k)} for k in range(3)}
    shadow = [n for n in range(3)]
    return nested, table, shadow, n, tuple(x for row in nested for x in row)


def depth1(x):
    y = depth2(x + 1)
    return y + 1


def depth2(x):
    return depth3(x * 2) * 2


def depth3(x):
    try:
        return depth4(x)
    except ZeroDivisionError as error:
        note(error)
        return depth4(x + 1)


def depth4(x):
    z = depth5(x) if x else depth5(1)
    return z


def depth5(x):
    return 100 // (x - 4)


@program
def five_deep():
    return depth1(1), depth1(2)


class Base:
    registry = []

    def __init__(self, x):
        self.x = x

    def area(self):
        return self.x * 2

    @property
    def double(self):
        return self.x * 2

    @double.setter
    def double(self, value):
        self.x = value // 2

    @classmethod
    def make(cls, x):
        return cls(x)

    @staticmethod
    def plus(a, b):
        return a + b

    def __repr__(self):
        return f"{type(self).__name__}({self.x})"


class Derived(Base):
    def __init__(self, x, y):
        super().__init__(x)
        self.y = y

    def area(self):
        later = [super(Derived, self).area() for _ in range(1)]
        return super().area() + self.y + len(later)

    def captured(self):
        return [lambda: self.x for _ in range(2)]

    @classmethod
    def make(cls, x):
        made = super().make.__func__
        return made(lambda v: cls(v, 1), x)


@program
def methods():
    d = Derived(3, 4)
    d.double = 10
    return (
        d.area(),
        d.double,
        [f() for f in d.captured()],
        Derived.make(7),
        Base.plus(1, 2),
        repr(d),
    )


class SelfInCell(Base):
    def area(self):
        def inner():
            return self.x

        return super().area() + inner()


@program
def super_with_captured_self():
    return SelfInCell(4).area()


@program
def recursion():
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return fib(4)


def raise_deep(n):
    if n == 0:
        raise ValueError("deep", n)
    raise_deep(n - 1)


@program
def caught_outside():
    try:
        raise_deep(2)
    except ValueError as error:
        note(error)
        return error.args


@program
def bare_raise():
    try:
        try:
            raise_deep(1)
        except ValueError:
            note(sys.exc_info()[0].__name__)
            raise
    except ValueError as error:
        note(error)
    try:
        note(sys.exc_info()[0])
        reraise_outside()
    except RuntimeError as error:
        note(error)
    try:
        raise KeyError("active")
    except KeyError:
        try:
            reraise_outside()
        except KeyError as error:
            note(error)
    return sys.exc_info()


def reraise_outside():
    raise


@program
def contexts():
    try:
        try:
            raise ValueError("first")
        except ValueError:
            try:
                raise KeyError("second")
            except KeyError:
                raise_deep(0)
    except ValueError as error:
        note(error)
        return [type(error.__context__), type(error.__context__.__context__)]


@program
def deletions():
    x = [1, 2, 3]
    d = {"a": 1, "b": 2}
    del x[0], d["a"]
    y = x
    del x
    try:
        return x
    except UnboundLocalError as error:
        note(error)
    try:
        del d["missing"]
    except KeyError as error:
        note(error)
    return y, d


Point = namedtuple("Point", "x y")


class Shape:
    __match_args__ = ("kind", "size")

    def __init__(self, kind, size):
        self.kind = kind
        self.size = size


def matched(value):
    match value:
        case 0 | 1:
            return "small"
        case [first, *rest] if rest:
            return first, rest
        case {"key": inner, **others}:
            return inner, others
        case Point(x=0, y=y):
            return y
        case Shape("box", size):
            return size
        case str() as text:
            return text
        case _:
            return None


@program
def matching():
    values = [0, [1, 2, 3], {"key": 1, "more": 2}, Point(0, 5), Shape("box", 9), "text", 3.5]
    return [matched(value) for value in values]


def star(a, /, b, *args, c=3, **kwargs):
    return a, b, args, c, kwargs


@program
def star_calls():
    args, kwargs = (1, 2), {"d": 4}
    found = [star(*args), star(1, *args, c=5, **kwargs), star(*args, *args, **kwargs, **{"e": 5})]
    first, *middle, last = range(5)
    try:
        star(**{"a": 1}, **{"a": 2})
    except TypeError as error:
        note(error)
    (a, b), c = (1, 2), 3
    return found, first, middle, last, [*args, *middle], {*args, 9}, {**kwargs, "z": 0}, a, b, c


@program
def class_bodies():
    base = 10

    class Made(Base):
        field = base + 1
        items = [i for i in range(3)]

        def method(self, extra=base):
            return self.x + self.field + extra

        class Inner:
            value = "inner"

    return Made(1).method(), Made.items, Made.Inner.value, Made.__name__, Made.__qualname__


@program
def defaults():
    power = lambda x, n=2, *, m=1: x**n + m  # noqa: E731
    annotated = annotate(1)
    return power(3), power(2, 3, m=0), annotated


def annotate(x: int, y: "str" = "s") -> list:
    z: int = x
    return [z, y]


@program
def global_writes():
    global COUNTER, TEMPORARY
    COUNTER = 0
    for _ in range(3):
        COUNTER += 1
    TEMPORARY = COUNTER
    del TEMPORARY
    try:
        return TEMPORARY
    except NameError as error:
        note(error)
    return COUNTER


@program
def strings_and_slices():
    values = list(range(10))
    values[2:4] = [20, 30]
    del values[5:7]
    name = "x"
    width = 6
    text = f"{name!r:>{width}}|{values[1:3]}|{3.14159:.2f}|{name!s}"
    return text, values[::2], values[-1], "ab" + text[:2]


@program
def booleans():
    found = []
    for a in (0, 1, None, []):
        found.append(a and "and")
        found.append(a or "or")
        found.append(not a)
        found.append(1 if a is None else 2)
        found.append(a is not None and a in (0, 1) and 0 <= a < 5)
    assert found, "message"
    try:
        assert not found, "failed"
    except AssertionError as error:
        note(error)
    return found


@program
def operators():
    x, y = 7, 2
    found = [
        x + y,
        x - y,
        x * y,
        x / y,
        x // y,
        x % y,
        x**y,
        x << y,
        x >> y,
        x & y,
        x | y,
        x ^ y,
        -x,
        +x,
        ~x,
    ]
    x += 1
    x -= 2
    x *= 3
    x //= 2
    x **= 2
    items = [1]
    items += [2]
    return found, x, items, [1, 2] == items, "a" < "b", 3 not in items


class Truth:
    def __init__(self, value):
        self.value = value

    def __bool__(self):
        note("bool")
        return self.value


class Sized:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        note("len")
        return self.n


class Container:
    def __init__(self, *items):
        self.items = items

    def __contains__(self, item):
        note("contains")
        return self.items.count(item)

    def __iter__(self):
        note("iter")
        return Steps(len(self.items))

    def __getitem__(self, index):
        return self.items[index]


class Steps:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Number:
    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        note("add")
        if not isinstance(other, Number):
            return NotImplemented
        return Number(self.v + other.v)

    def __radd__(self, other):
        note("radd")
        return Number(self.v + other)

    def __eq__(self, other):
        note("eq")
        return self.v == other.v if isinstance(other, Number) else NotImplemented

    def __lt__(self, other):
        return self.v < other.v

    __hash__ = None


@program
def python_methods():
    found = []
    for thing in (Truth(True), Truth(False), Sized(0), Sized(2)):
        found.append("yes" if thing else "no")
        found.append(not thing)
        found.append(thing and 1)
        found.append(thing or 2)
        while thing:
            break
    container = Container(1, 2, 3)
    found.append(2 in container)
    found.append(5 not in container)
    found.extend(x for x in container)
    for step in container:
        note(step)
    found.append((Number(1) + Number(2)).v)
    found.append((1 + Number(2)).v)
    found.append(Number(1) == Number(1))
    found.append(Number(1) != 5)
    found.append(Number(1) < Number(2) < Number(3))
    return [v if isinstance(v, (str, int)) else type(v).__name__ for v in found]


class BadInit:
    def __init__(self, what):
        return what


class BadBool:
    def __bool__(self):
        return 2


class BadIter:
    def __iter__(self):
        return 5


class BadLen:
    def __len__(self):
        return -1


@program
def wrong_results():
    for attempt in (
        lambda: BadInit(5),
        lambda: not BadLen(),
    ):
        try:
            attempt()
        except (TypeError, ValueError) as error:
            note(error)
    return None


def wrong_results_of_named_methods():
    for attempt in (lambda: 1 if BadBool() else 2, lambda: [*BadIter()]):
        try:
            attempt()
        except TypeError as error:
            note(error)
    try:
        for _ in BadIter():
            pass
    except TypeError as error:
        note(error)
    return None


if sys.version_info < (3, 15):  # whose errors name the class of the method: see known-gaps.md
    program(wrong_results_of_named_methods)


@program
def imports():
    import os.path as path
    from math import floor, sqrt

    try:
        from math import missing_name
    except ImportError as error:
        note(error)
        missing_name = None
    return path.basename("a/b"), floor(sqrt(10)), missing_name


@program
def exception_groups():
    try:
        try:
            raise ExceptionGroup("group", [ValueError(1), KeyError(2), ValueError(3)])
        except* ValueError as group:
            note(len(group.exceptions), type(sys.exc_info()[1]).__name__)
    except ExceptionGroup as rest:
        note(str(rest), len(rest.exceptions))
    try:
        raise ExceptionGroup("all", [KeyError(2)])
    except* KeyError:
        note("all handled")
    return sys.exc_info()


@program
def try_return_finally():
    def f(n):
        for i in range(3):
            try:
                if n == 0:
                    return "return"
                if n == 1:
                    continue
                if n == 2:
                    break
                raise ValueError(n)
            finally:
                note("finally", n, i)
                if n == 4:
                    return "swallowed"  # noqa: B012
        return "end"

    found = [f(n) for n in range(3)]
    try:
        f(3)
    except ValueError as error:
        note(error)
    return found, f(4)


@program
def introspection():
    x = 1

    def inner(y):
        z = x + y
        return sorted(locals()), sys._getframe().f_code.co_name, sys._getframe(1).f_code.co_name, z

    return inner(2), sorted(locals())[0], sys._getframe().f_lineno


@program
def walrus_and_chains():
    if (n := len("abc")) > 2:
        note(n)
    a = b = [n]
    b[0] += 1
    a.append(a[0] if 1 < n <= 3 != 4 else None)
    return a is b, a


def hidden_apply(f, items):
    found = []
    for item in items:
        found.append(f(item))
    return found


def hidden_fold(items):
    total = 0
    for item in items:
        total = total + item
    return total


@program
def frames_that_stand_for_c():
    def twice(v):
        note(sys._getframe(1).f_code.co_name)
        return v * 2

    doubled = hidden_apply(twice, [1, 2])
    try:
        hidden_apply(lambda v: 1 // v, [1, 0])
    except ZeroDivisionError as error:
        note(error)
    try:
        hidden_fold([1, "a"])
    except TypeError as error:
        note(error)
    return doubled, hidden_fold([1, 2, 3])


@program
def uncaught():
    note("before")
    with Manager("u"):
        try:
            raise_deep(1)
        finally:
            note("finally")


@program
def uncaught_from_generator():
    for value in erring():
        note(value)


@program
def uncaught_with_cause():
    try:
        {}["missing"]
    except KeyError as error:
        raise RuntimeError("wrapped") from error


@program
def uncaught_stop_iteration():
    g = counting(0)
    next(g)


@program
def uncaught_type_error():
    x = [1]
    return x + (1 + "a")


class Attributes:
    @property
    def method(self):
        note("method")
        return lambda *args: ("called", args)

    @property
    def rate(self):
        return 3


@program
def properties_that_are_called():
    subject = Attributes()
    return subject.method(1, 2), subject.rate + 1


class Noisy(Exception):
    def __init__(self):
        note("made")


class Shifting(dict):
    def __getitem__(self, key):
        note(key)
        return key * 2


@program
def comparisons_that_decide():
    seen = []
    for other in (Ordered(1), Ordered(3)):
        if Ordered(2) < other:
            seen.append("less")
        while not Ordered(2) > other:
            break
        else:
            seen.append("more")
    return seen


class Ordered:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return [] if self.value >= other.value else [1]

    def __gt__(self, other):
        return self.value > other.value


@program
def generators_that_ignore_their_end():
    def ignoring():
        try:
            yield 1
        except GeneratorExit:
            note("ignored")
            yield 2

    running = ignoring()
    next(running)
    try:
        running.close()
    except RuntimeError as error:
        note(error)
    seen = list(running)
    return seen


def sending():
    received = []
    try:
        while len(received) < 3:
            received.append((yield len(received)))
    finally:
        note("sent", *received)
    return received


@program
def delegation_that_is_sent_to():
    def outer():
        return (yield from sending())

    running = outer()
    next(running)
    seen = [running.send("a"), running.send("b")]
    try:
        running.send("c")
    except StopIteration as error:
        seen.append(error.value)
    return seen


@program
def class_body_with_locals():
    class Made:
        one = 1
        names = sorted(locals())
        two = [one for one in range(2)]

    return Made.names, Made.two


@program
def slices_and_texts():
    items, start, stop = [1, 2, 3, 4], 1, 3
    items[start:stop] = [7]
    return items[start:], items[:stop], f"{items!r:>20}{start!s}{stop:03}"


@program
def supers():
    class Base:
        rate = 3

        def method(self):
            return note("base")

    class Derived(Base):
        def method(self):
            return super().method(), super().rate, super(Derived, self).rate

    return Derived().method()


class Callable:
    """Is no descriptor: a class attribute that is called without a receiver."""

    def __init__(self, name):
        self.name = name

    def __call__(self, *args):
        note(self.name, *[type(arg).__name__ for arg in args])
        return self.name


class Unbound:
    __enter__ = Callable("enter")
    __exit__ = Callable("exit")


class Static:
    @staticmethod
    def __enter__():
        return note("static enter")

    @classmethod
    def __exit__(cls, *args):
        note("class exit", cls.__name__, args[1])
        return True


class OnlyEnter:
    def __enter__(self):
        note("never")


class OnlyExit:
    def __exit__(self, *args):
        note("never")


@program
def exits_of_every_kind():
    with Unbound() as a, Static() as b:
        raise ValueError(a)
    with Unbound():
        note("inside")
    for kind in (OnlyEnter, OnlyExit, int):
        try:
            with kind():
                note("never")
        except TypeError as error:
            note(error)
    for number in range(3):
        with Static():
            if number == 1:
                break
            continue
    return a, b, number


@program
def reductions_of_generators():
    values = [3, 0, 5]
    made = tuple(value + 1 for value in values), list(value for value in values)
    return made, all(value for value in values), any(value > 4 for value in values), set(values)


@program
def annotated_functions():
    kind = int

    def inner(a: kind, *rest: str, flag: bool = False) -> "text":
        return a, rest, flag

    return inner(1, 2), inner.__annotations__, inner.__defaults__, inner.__kwdefaults__


@program
def spread_calls():
    def called(*args, **kwargs):
        note(len(args), sorted(kwargs))
        return args

    made = called(*[1, 2]), called(*(), **{"a": 1}), called(1, *[2], b=2, **{})
    try:
        called(**{"a": 1}, **{"a": 2})
    except TypeError as error:
        note(error)
    return made


# Template strings, since 3.14.
_TEMPLATES = """
@program
def template_strings():
    name, width = "x", 5
    made = t"{name!r:>{width}}-{name}{width + 1:03}", t"", t"{name=}", t"a" t"{width!s}"
    return [(each.strings, each.values, [*map(repr, each.interpolations)]) for each in made]


@program
def template_strings_that_fail():
    try:
        return t"{missing}"
    except NameError as error:
        note(error)
    try:
        return t"{1}{1 / 0}"
    except ZeroDivisionError as error:
        note(error)
"""
if sys.version_info >= (3, 14):
    exec(compile(_TEMPLATES, __file__, "exec"))
