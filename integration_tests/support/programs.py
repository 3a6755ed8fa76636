"""Small programs of plain Python and tensors, one idea each: what has to survive breaks at every
place.

Each is a function of the tensor ``x`` and of a ``Bag`` of things that live outside of it. They
return whatever there is to see; the rest is seen in the arguments afterwards. What checkers would
forbid is here on purpose.
"""

# mypy: ignore-errors
# ruff: noqa: B012, B023, C416, F821, PLE0643, PLR0124, PLR0133, PLW0120, UP031

from __future__ import annotations

import collections
import contextlib
import enum
import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

PROGRAMS: dict[str, Callable[[Tensor, Bag], Any]] = {}


@dataclass
class Bag:
    """What a program may read and change besides its tensor."""

    numbers: list[Any] = field(default_factory=lambda: [3, 1, 2])
    names: dict[str, Any] = field(default_factory=lambda: {"a": 1, "b": 2})
    seen: set[Any] = field(default_factory=lambda: {1, 5})
    recent: collections.deque[Any] = field(
        default_factory=lambda: collections.deque([1, 2, 3], maxlen=3)
    )
    nested: dict[str, list[int]] = field(default_factory=lambda: {"deep": [1, 2]})
    log: list[Any] = field(default_factory=list)
    tensor: Tensor = field(default_factory=lambda: torch.arange(6.0).reshape(2, 3))


def program(fn: Callable[[Tensor, Bag], Any]) -> Callable[[Tensor, Bag], Any]:
    PROGRAMS[fn.__name__.replace("_", " ")] = fn
    return fn


# closures and names


@program
def closures_share_a_cell(x: Tensor, bag: Bag) -> Any:
    total = 0

    def add(n: int) -> int:
        nonlocal total
        total += n
        return total

    def read() -> int:
        return total

    first = add(2)
    x = x * read()
    second = add(3)
    return x + first - second, total, read()


@program
def late_binding_and_default_capture(x: Tensor, bag: Bag) -> Any:
    late = [lambda: i for i in range(3)]
    early = [lambda i=i: i for i in range(3)]
    return [fn() for fn in late], [fn() for fn in early], x + sum(fn() for fn in early)


@program
def a_closure_escapes(x: Tensor, bag: Bag) -> Any:
    count = 1

    def scale(y: Tensor) -> Tensor:
        return y * count

    bag.log.append(scale(x))
    count = 4
    return scale(x), scale(x + 1)


COUNTER = 0
SETTINGS: dict[str, Any] = {"factor": 2}


@program
def globals_are_written(x: Tensor, bag: Bag) -> Any:
    global COUNTER
    COUNTER = 0
    for _ in range(2):
        COUNTER += 1
        SETTINGS["factor"] = COUNTER + 1
    return x * SETTINGS["factor"] + COUNTER, COUNTER


@program
def locals_are_deleted(x: Tensor, bag: Bag) -> Any:
    y = x + 1
    z = y
    del y
    try:
        return y
    except UnboundLocalError as error:
        return z, str(error)


@program
def walrus_and_chained_comparison(x: Tensor, bag: Bag) -> Any:
    if (n := len(bag.numbers)) > 2 and 1 < n <= 3 < 10:
        x = x + n
    return [last := item for item in bag.numbers], last, x


# generators and iterators


def produce(x: Tensor, log: list[Any]) -> Iterator[Any]:
    got = None
    try:
        for i in range(3):
            got = yield x + i
            log.append(got)
    finally:
        log.append("closed")
    return got


@program
def a_generator_is_sent_to(x: Tensor, bag: Bag) -> Any:
    parts = produce(x, bag.log)
    first = next(parts)
    second = parts.send("hello")
    third = parts.send(7)
    return first + second * third, next(parts, "end")


@program
def a_generator_is_closed(x: Tensor, bag: Bag) -> Any:
    parts = produce(x, bag.log)
    y = next(parts)
    parts.close()
    return y, list(parts), bag.log[-1]


@program
def a_generator_is_thrown_into(x: Tensor, bag: Bag) -> Any:
    parts = produce(x, bag.log)
    next(parts)
    try:
        parts.throw(KeyError("in"))
    except KeyError as error:
        bag.log.append(error.args)
    return x * 2


def delegate(x: Tensor, log: list[Any]) -> Iterator[Any]:
    value = yield from produce(x, log)
    log.append(value)
    yield from [x, x + 1]


@program
def yield_from(x: Tensor, bag: Bag) -> Any:
    return [part * 2 for part in delegate(x, bag.log)]


@program
def a_generator_expression_is_lazy(x: Tensor, bag: Bag) -> Any:
    parts = (x * bag.log.append(i) if i > 5 else x * i for i in bag.numbers)
    bag.numbers.append(4)
    return sum(parts), next(parts, None)


@program
def a_list_that_grows_under_its_loop(x: Tensor, bag: Bag) -> Any:
    for n in bag.numbers:
        if n < 3:
            bag.numbers.append(n + 2)
        x = x + n
    return x


@program
def iterators_shared_and_half_consumed(x: Tensor, bag: Bag) -> Any:
    it = iter(bag.numbers)
    first = next(it)
    pairs = list(zip(it, it, strict=False))
    for i, n in enumerate(reversed(bag.numbers), 5):
        x = x * n + i
    return x + first, pairs, list(it)


@program
def the_iterator_tools(x: Tensor, bag: Bag) -> Any:
    total = x
    for a, b in itertools.chain(zip(bag.numbers, "abc", strict=True), bag.names.items()):
        total = total + (a if isinstance(a, int) else b)
    chosen = [*map(operator.neg, filter(None, [0, 1, 2])), *itertools.islice(itertools.count(3), 2)]
    return (
        total,
        chosen,
        any(n > 2 for n in bag.numbers),
        all(bag.names),
        sorted(bag.numbers, key=lambda n: -n),
    )


@program
def comprehensions(x: Tensor, bag: Bag) -> Any:
    grid = [[x * i + j for j in range(2)] for i in range(2)]
    squares = {n: n * n for n in bag.numbers if n != 2}
    return (
        grid,
        squares,
        {n % 2 for n in bag.numbers},
        [n for row in [[1, 2], [3]] for n in row if n > 1],
    )


class Countdown:
    def __init__(self, start: int) -> None:
        self.now = start

    def __iter__(self) -> Countdown:
        return self

    def __next__(self) -> int:
        if self.now == 0:
            raise StopIteration
        self.now -= 1
        return self.now


@program
def a_user_iterator(x: Tensor, bag: Bag) -> Any:
    countdown = Countdown(3)
    for n in countdown:
        x = x + n
    else:
        x = x * 2
    a, *b = Countdown(4)
    return x, countdown, a, b


# exceptions


def fails(x: Tensor, kind: type[Exception]) -> Tensor:
    y = x + 1
    if len(y) == 2:
        raise kind("bad", 3)
    return y


@program
def an_exception_is_handled(x: Tensor, bag: Bag) -> Any:
    try:
        x = fails(x, ValueError)
    except (KeyError, IndexError):
        x = x * 0
    except ValueError as error:
        x = x * len(error.args)
    else:
        x = x * 100
    finally:
        bag.log.append("finally")
    return x


@program
def an_exception_is_chained(x: Tensor, bag: Bag) -> Any:
    try:
        try:
            fails(x, KeyError)
        except KeyError as error:
            bag.log.append(x + 1)
            raise ValueError("outer") from error
    except ValueError as error:
        return type(error.__cause__), error.__cause__ is error.__context__, error.args, x * 2


@program
def an_exception_leaves(x: Tensor, bag: Bag) -> Any:
    bag.log.append("before")
    try:
        return fails(x, LookupError)
    finally:
        bag.log.append(x * 2)


@program
def finally_overrides_return(x: Tensor, bag: Bag) -> Any:
    for n in range(3):
        try:
            if n == 1:
                return x * 2
            bag.log.append(n)
        finally:
            if n == 1:
                break
    return x * 3


@program
def a_bare_raise(x: Tensor, bag: Bag) -> Any:
    try:
        try:
            return {}["missing"]
        except KeyError:
            bag.log.append("seen")
            raise
    except KeyError as error:
        return error.args, x + 1


@program
def operator_errors_of_python(x: Tensor, bag: Bag) -> Any:
    found = []
    for attempt in (
        lambda: [][1],
        lambda: 1 // 0,
        lambda: int("x"),
        lambda: None.nothing,
        lambda: "a" + 1,
    ):
        try:
            attempt()
        except Exception as error:
            found.append((type(error).__name__, str(error)))
    return found, x + len(found)


# with


class Manager:
    def __init__(self, log: list[Any], *, swallow: bool) -> None:
        self.log, self.swallow = log, swallow

    def __enter__(self) -> Manager:
        self.log.append("in")
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        self.log.append(("out", None if kind is None else kind.__name__))
        return self.swallow


@program
def a_with_that_swallows(x: Tensor, bag: Bag) -> Any:
    with Manager(bag.log, swallow=True) as manager:
        x = x + len(manager.log)
        fails(x, ValueError)
        x = x * 100
    with Manager(bag.log, swallow=False), Manager(bag.log, swallow=True):
        return x * 2


@program
def a_with_left_by_continue_and_break(x: Tensor, bag: Bag) -> Any:
    for n in range(4):
        with Manager(bag.log, swallow=False):
            if n == 1:
                continue
            if n == 3:
                break
            x = x + n
    return x


@contextlib.contextmanager
def scoped(log: list[Any]) -> Iterator[int]:
    log.append("enter")
    try:
        yield 3
    except ValueError as error:
        log.append(error.args)
    finally:
        log.append("exit")


@program
def contextlib_managers(x: Tensor, bag: Bag) -> Any:
    with scoped(bag.log) as n:
        x = x * n
        raise ValueError(n)
    with contextlib.suppress(KeyError):
        x = x + {}["no"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(Manager(bag.log, swallow=False))
        stack.callback(bag.log.append, "called back")
        x = x - 1
    return x


@program
def modes_are_left(x: Tensor, bag: Bag) -> Any:
    with torch.no_grad():
        y = x * 2
        inside = torch.is_grad_enabled()
        try:
            with torch.enable_grad():
                z = x * 3
                raise ValueError
        except ValueError:
            bag.log.append(torch.is_grad_enabled())
    return y, z, y.requires_grad, z.requires_grad, inside, torch.is_grad_enabled()


# classes


class Base:
    kind = "base"

    def __init__(self, x: Tensor, **extra: Any) -> None:
        self.x = x
        self.__dict__.update(extra)

    def value(self) -> Any:
        return self.x + 1

    @classmethod
    def make(cls, x: Tensor) -> Base:
        return cls(x, made=cls.__name__)

    @staticmethod
    def double(x: Tensor) -> Tensor:
        return x * 2


class Derived(Base):
    __slots__ = ("slot",)
    kind = "derived"

    def __init__(self, x: Tensor, **extra: Any) -> None:
        super().__init__(x * 2, **extra)
        self.slot = 5

    def value(self) -> Any:
        return super().value() * self.slot

    @property
    def half(self) -> Any:
        return self.x / 2

    @half.setter
    def half(self, new: Any) -> None:
        self.x = new * 2

    def __getattr__(self, name: str) -> str:
        if name.startswith("dynamic"):
            return name.upper()
        raise AttributeError(name)


@program
def inheritance_and_properties(x: Tensor, bag: Bag) -> Any:
    made = Derived.make(x)
    made.half = made.half + 1
    made.kind = "own"
    del made.made
    return (
        made.value(),
        made.half,
        Base.double(x),
        made.kind,
        Derived.kind,
        made.dynamic_name,
        hasattr(made, "gone"),
    )


class Vector:
    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Vector):
            return NotImplemented
        return Vector(*(a + b for a, b in zip(self.parts, other.parts, strict=True)))

    def __rmul__(self, factor: Any) -> Any:
        return Vector(*(factor * part for part in self.parts))

    def __getitem__(self, index: Any) -> Any:
        return self.parts[index]

    def __len__(self) -> int:
        return len(self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vector) and self.parts == other.parts

    __hash__ = None

    def __contains__(self, item: Any) -> bool:
        return item == 2

    def __call__(self, n: int) -> Any:
        return self.parts[0] * n

    def __bool__(self) -> bool:
        return len(self.parts) > 1


@program
def operators_of_a_user_class(x: Tensor, bag: Bag) -> Any:
    v = 2 * (Vector(1, 2) + Vector(3, 4))
    try:
        v + 1
    except TypeError as error:
        bag.log.append(str(error))
    w = Vector(x)
    return (
        v.parts,
        v[1],
        v[:1],
        len(v),
        v == Vector(8, 12),
        2 in v,
        7 in v,
        v(3),
        w(2),
        bool(v),
        1 if w else 0,
        [*v],
    )


class Named:
    def __set_name__(self, owner: type, name: str) -> None:
        self.name = "_" + name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else getattr(instance, self.name, 10)

    def __set__(self, instance: Any, value: Any) -> None:
        setattr(instance, self.name, value + 1)


class Described:
    field = Named()
    items: dict[str, int]

    def __init__(self) -> None:
        self.items = {}

    def __setitem__(self, key: str, value: int) -> None:
        self.items[key] = value

    def __delitem__(self, key: str) -> None:
        del self.items[key]

    def __iadd__(self, other: int) -> Described:
        self.field = self.field + other
        return self


@program
def descriptors_and_item_methods(x: Tensor, bag: Bag) -> Any:
    described = Described()
    before = described.field
    described.field = 4
    described["a"] = 1
    described["b"] = 2
    del described["a"]
    described += 3
    return described, before, x * described.field, isinstance(Described.field, Named)


@program
def a_class_made_inside(x: Tensor, bag: Bag) -> Any:
    log = bag.log

    class Local(Base):
        factor = 3

        def value(self) -> Any:
            log.append(self.factor)
            return super().value() * self.factor

    return Local(x).value() + Local.factor, Local.__name__, len(Local.__mro__)


@dataclass(frozen=True)
class Pair:
    left: Any
    right: Any = 2

    def __post_init__(self) -> None:
        if self.right == 0:
            raise ValueError("zero")


class Triple(NamedTuple):
    a: Any
    b: Any
    c: int = 3


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@program
def dataclasses_named_tuples_enums(x: Tensor, bag: Bag) -> Any:
    pair = Pair(x)
    other = replace(pair, right=5)
    try:
        pair.left = 1
    except AttributeError as error:
        bag.log.append(type(error).__name__)
    triple = Triple(x, 2)._replace(b=4)
    a, b, c = triple
    return (
        other.left * other.right,
        a * b + c,
        Color(2).name,
        Color.RED is Color["RED"],
        [m.value for m in Color],
    )


# calls


def everything(a: Any, /, b: Any, *rest: Any, c: Any = 3, **more: Any) -> Any:
    return a, b, rest, c, more


@program
def arguments_in_every_position(x: Tensor, bag: Bag) -> Any:
    more = {"d": 4, "c": 5}
    found = [
        everything(1, 2),
        everything(1, *[2, 3], 4),
        everything(*(1, 2), **more),
        everything(1, b=x, e=6),
    ]
    try:
        everything(1, **{"a": 2})
    except TypeError as error:
        bag.log.append(str(error))
    return found, [*bag.numbers, 9, *bag.names], {**bag.names, "z": x}


def fib(n: int, x: Tensor) -> Tensor:
    return x if n < 2 else fib(n - 1, x) + fib(n - 2, x * 2)


@program
def recursion(x: Tensor, bag: Bag) -> Any:
    return fib(4, x)


def traced(fn: Any = None, *, times: int = 1) -> Any:
    if fn is None:
        return functools.partial(traced, times=times)

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        for _ in range(times - 1):
            result = fn(result, **kwargs)
        return result

    return wrapper


@traced(times=3)
def grow(x: Tensor, by: int = 2) -> Tensor:
    return x * by


@program
def decorators_and_partials(x: Tensor, bag: Bag) -> Any:
    triple = functools.partial(grow, by=3)
    return grow(x), triple(x), grow.__name__, functools.reduce(operator.add, [x, x, 1])


@program
def match_statements(x: Tensor, bag: Bag) -> Any:
    found = []
    for subject in (1, "a", [1, 2, 3], {"k": x, "z": 1}, Pair(1, 2), (x,), None, 4.5, Color.RED):
        match subject:
            case int(n) if n > 3:
                found.append("big")
            case 1 | 2:
                found.append("small")
            case str() as text:
                found.append(text)
            case [first, *others]:
                found.append((first, others))
            case {"k": value, **rest}:
                found.append((value + 1, rest))
            case Pair(left=left, right=2):
                found.append(left)
            case Color.RED:
                found.append("red")
            case None:
                found.append(None)
            case _:
                found.append("other")
    return found


@program
def text(x: Tensor, bag: Bag) -> Any:
    n, name = 42, "ab"
    return (
        f"{n:>5}|{name!r:6}|{n / 7:.2f}|{bag.names}|{n=}",
        "%s-%d" % (name, n),
        "x".join(bag.names),
        x + len(name),
    )


@program
def integers_and_slices(x: Tensor, bag: Bag) -> Any:
    items = list(range(10))
    items[2:5] = [0]
    items[::3] = [7] * len(items[::3])
    del items[-2:]
    return items, -7 // 2, -7 % 3, 2**70, 1 << 5, ~6, x[1:], x[..., 0], x[:, None].shape, x[0:1, -1]


# what is written


@program
def a_list_is_changed(x: Tensor, bag: Bag) -> Any:
    alias = bag.numbers
    alias.append(x)
    bag.numbers.insert(0, 9)
    alias.sort(key=lambda n: 0 if isinstance(n, Tensor) else n)
    last = alias.pop()
    bag.numbers += [5]
    alias.reverse()
    bag.numbers[1] = "one"
    return last, alias is bag.numbers, alias


@program
def dicts_and_sets_are_changed(x: Tensor, bag: Bag) -> Any:
    bag.names["c"] = x
    bag.names.setdefault("d", []).append(1)
    bag.names |= {"e": 5}
    del bag.names["a"]
    popped = bag.names.pop("b")
    bag.seen.add(popped)
    bag.seen.discard(5)
    bag.recent.append(4)
    bag.recent.appendleft(0)
    bag.nested["deep"] += [3]
    return list(bag.names), sorted(bag.seen), list(bag.recent), bag.names.get("zz", x * 2)


@program
def objects_made_here_are_shared(x: Tensor, bag: Bag) -> Any:
    inner: list[Any] = [x]
    outer = {"one": inner, "two": inner}
    inner.append(outer)
    bag.log.append(inner)
    y = x + 1
    inner.append(y)
    return inner, outer["one"] is outer["two"], outer["two"][1] is outer, y


@program
def tensors_are_written_in_place(x: Tensor, bag: Bag) -> Any:
    view = bag.tensor[0]
    view.add_(1)
    bag.tensor[1, 2] = 50
    bag.tensor *= 2
    total = bag.tensor.sum()
    view.zero_()
    y = x.detach().clone()
    y[:, 1] += view[1:3]
    return total, y, view, bag.tensor.sum()


@program
def attributes_of_tensors_and_functions(x: Tensor, bag: Bag) -> Any:
    bag.tensor.note = "noted"
    y = x * 2
    y.tag = [1]
    bag.log.append(y)
    return y.tag, bag.tensor.note, y


@program
def a_loop_on_tensor_values(x: Tensor, bag: Bag) -> Any:
    x = x.detach()
    while x.sum() < 10:
        x = x + 1
        if x[0, 0] > 1.5:
            break
    return x, float(x[0, 0]), x.shape[0], (x > 0).any().item()


@program
def random_numbers(x: Tensor, bag: Bag) -> Any:
    a = torch.rand(2)
    torch.manual_seed(3)
    return a, torch.rand(3), torch.nn.functional.dropout(x, 0.5)


@program
def printing(x: Tensor, bag: Bag) -> Any:
    print("start", x.shape)
    y = x + 1
    print(f"{len(bag.numbers)} numbers")
    return y


@program
def identity(x: Tensor, bag: Bag) -> Any:
    y = x
    pair = (x, x)
    return (
        y is x,
        pair[0] is pair[1],
        x,
        [bag.numbers, bag.numbers],
        bag.tensor is x,
        type(x) is Tensor,
    )


@program
def assertions(x: Tensor, bag: Bag) -> Any:
    assert len(bag.numbers) == 3
    assert x.dim() == 1, f"wrong: {x.dim()}"


# what breaks are hard on


@program
def a_traceback_that_is_kept(x: Tensor, bag: Bag) -> Any:
    try:
        fails(x, ValueError)
    except ValueError as error:
        kept = error
        kept.add_note("noted")
    bag.log.append(kept)
    lines = []
    trace = kept.__traceback__
    while trace is not None:
        lines.append(trace.tb_lineno - a_traceback_that_is_kept.__code__.co_firstlineno)
        trace = trace.tb_next
    return lines[:1], kept.__notes__, x + 1


@program
def an_exception_is_raised_again_later(x: Tensor, bag: Bag) -> Any:
    kept = None
    try:
        fails(x, KeyError)
    except KeyError as error:
        kept = error
    try:
        raise kept
    except KeyError as again:
        bag.log.append(again is kept)
        y = x * 2
    try:
        with Manager(bag.log, swallow=False):
            raise kept from ValueError("cause")
    except KeyError as third:
        bag.log.append(third.__cause__.args)
    return y, kept.__context__ is None


@program
def handlers_inside_handlers(x: Tensor, bag: Bag) -> Any:
    for n in range(3):
        try:
            try:
                if n == 1:
                    raise KeyError(n)
                x = x + n
            except KeyError:
                try:
                    raise IndexError(n)
                except IndexError as inner:
                    bag.log.append(type(inner.__context__).__name__)
                    if n == 1:
                        continue
            finally:
                bag.log.append(("finally", n))
                x = x * 2
        except ValueError:
            bag.log.append("never")
    return x


def outer_generator(x: Tensor, log: list[Any]) -> Iterator[Any]:
    with Manager(log, swallow=True):
        try:
            got = yield from inner_generator(x, log)
            log.append(got)
        except KeyError as error:
            log.append(("caught", error.args))
            yield x * 7
        raise ValueError("swallowed")
    yield x * 9


def inner_generator(x: Tensor, log: list[Any]) -> Iterator[Any]:
    for i in range(4):
        try:
            sent = yield x * i
            log.append(sent)
        except IndexError:
            log.append("index")
            yield "handled"
    return "inner"


@program
def generators_in_generators(x: Tensor, bag: Bag) -> Any:
    parts = outer_generator(x, bag.log)
    found = [
        next(parts),
        parts.send(1),
        parts.throw(IndexError()),
        next(parts),
        parts.throw(KeyError("k")),
        next(parts),
    ]
    return found, next(parts, "end")


@program
def two_generators_in_step(x: Tensor, bag: Bag) -> Any:
    ones, twos = produce(x, bag.log), produce(x * 2, bag.log)
    found = []
    for one in ones:
        found.append(one + next(twos))
        if len(found) == 2:
            break
    twos.close()
    return found, bag.log


@program
def a_generator_outlives_the_call(x: Tensor, bag: Bag) -> Any:
    parts = produce(x, bag.log)
    next(parts)
    bag.log.append(1)
    return [part for part in parts], (n * x for n in bag.numbers).__next__()


@program
def locals_and_cells_in_comprehensions(x: Tensor, bag: Bag) -> Any:
    scale = 2
    fns = {n: (lambda m=n: [scale * m * k for k in range(m)]) for n in bag.numbers[:3]}
    scale = 3
    return {n: fn() for n, fn in fns.items()}, sorted(locals()), x * scale


@program
def exceptions_in_iteration(x: Tensor, bag: Bag) -> Any:
    def numbers() -> Iterator[int]:
        yield 1
        raise LookupError("over")

    total = 0
    try:
        for n in numbers():
            total += n
    except LookupError as error:
        bag.log.append(error.args)
    try:
        bag.log.append([1 // n for n in (1, 0)])
    except ZeroDivisionError as error:
        return x + total, str(error)


@program
def a_dict_that_changes_under_its_loop(x: Tensor, bag: Bag) -> Any:
    try:
        for key in bag.names:
            bag.names[key + "x"] = x
    except RuntimeError as error:
        return str(error), list(bag.names)


class Meta(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        made.by_meta = True
        return made

    def __getitem__(cls, item: Any) -> Any:
        return (cls.__name__, item)


class Registered(metaclass=Meta):
    known: list[str] = []

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__()
        cls.tag = kwargs.get("tag", "none")

    def __new__(cls, x: Any) -> Any:
        made = super().__new__(cls)
        made.first = x
        return made

    def __init__(self, x: Any) -> None:
        self.second = self.first + 1

    def __enter__(self) -> Any:
        return self.second

    def __exit__(self, *error: Any) -> None:
        self.third = error[0]

    def __format__(self, spec: str) -> str:
        return f"<{spec}>"

    def __lt__(self, other: Any) -> bool:
        return id(self) == 0

    def __index__(self) -> int:
        return 1


@program
def metaclasses_and_special_methods(x: Tensor, bag: Bag) -> Any:
    class Sub(Registered, tag="t"):
        pass

    made = Sub(x)
    with made as second:
        y = second * 2
    return (
        made.by_meta,
        Sub.tag,
        Registered[3],
        f"{made:abc}",
        bag.numbers[made],
        made < made,
        made.third,
        y,
    )


@program
def exits_through_many_blocks(x: Tensor, bag: Bag) -> Any:
    for i in range(3):
        for j in range(3):
            with Manager(bag.log, swallow=False), contextlib.nullcontext(i) as k:
                try:
                    if j == 1:
                        break
                    if i == 2:
                        return x * (k + 1)
                finally:
                    x = x + 1
        else:
            bag.log.append("never")
    return None


@program
def star_targets_and_slices(x: Tensor, bag: Bag) -> Any:
    first, *middle, last = [x, *bag.numbers, x + 1]
    (a, b), [c, *d] = (1, 2), "xyz"
    bag.numbers[1:2] = [a, b, *d]
    bag.nested["deep"][0], bag.log[:] = c, [last]
    for bag.names["a"], *_ in [(5, 6), (7, 8)]:
        pass
    return first, middle, last, c
