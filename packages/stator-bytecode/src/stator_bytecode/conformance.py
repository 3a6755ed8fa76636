"""The kit that a Machine and its Domain must pass: small programs, run plainly and through them.

Derive from `DomainConformance`, and give the two fixtures:

    class TestMyDomain(DomainConformance):
        @pytest.fixture
        def make_domain(self): return MyDomain

        @pytest.fixture
        def call(self): return my_interpreter     # call(fn, *args) gives what fn(*args) gives, or raises what it raises
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from stator_bytecode._domain import Domain
from stator_bytecode.errors import Unsupported

Call = Callable[..., Any]


class Conformance:
    """The base of every kit: a subclass may xfail a test, never weaken it."""

    def test_nothing_weakened(self) -> None:
        kits = [cls for cls in type(self).__mro__ if Conformance in cls.__bases__]
        for kit in kits:
            for name, original in vars(kit).items():
                mine = getattr(type(self), name)
                if not name.startswith("test_") or mine is original:
                    continue
                marks = {mark.name: mark for mark in getattr(mine, "pytestmark", ())}
                assert "xfail" in marks, f"{name} replaces a test of {kit.__name__}"
                assert marks["xfail"].kwargs.get("reason"), f"{name} is xfailed without a reason"


# the programs: over integers, strings, tuples and lists of them, so that any domain can hold their values


def loops(n: int) -> Any:
    total = 0
    for i in range(n):
        if i % 3 == 1:
            continue
        if i > 20:
            break
        total += i
    else:
        total = -total
    while total > 10 and total != 17:
        total -= 3
    return total


def closures(n: int) -> Any:
    count = 0

    def add(step: int = 1, *more: int, scale: int = 1, **named: int) -> int:
        nonlocal count
        count += (step + sum(more) + sum(named.values())) * scale
        return count

    def read() -> int:
        return count

    return [read(), add(), add(n), add(1, 2, scale=n), add(x=n, y=1)]


def unpacks(n: int) -> Any:
    a, (b, *c), d = n, [n, n + 1, n + 2], (n,)
    first, *rest = [*c, *d]
    merged = {"a": a, **{"b": b}}
    return a, b, c, d, first, rest, merged, [x * y for x in c for y in c if x != y]


def handles(n: int) -> Any:
    log: list[Any] = []
    for i in range(3):
        try:
            try:
                log.append(n // i)
            except ZeroDivisionError as error:
                raise ValueError(i) from error
            finally:
                log.append(("finally", i))
        except ValueError as error:
            log.append((type(error.__cause__).__name__, error.args))
    return log


def contexts(n: int) -> Any:
    try:
        try:
            raise KeyError(n)
        except KeyError:
            raise IndexError(n)  # noqa: B904  # the implicit context is what is tested
    except IndexError as error:
        return type(error.__context__).__name__, error.__cause__


class _Suppressing:
    def __init__(self, log: list[Any], kind: type[BaseException]) -> None:
        self.log, self.kind = log, kind

    def __enter__(self) -> _Suppressing:
        self.log.append("in")
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> bool:
        self.log.append("out")
        return kind is self.kind


def withs(n: int) -> Any:
    log: list[Any] = []
    with _Suppressing(log, ValueError) as entered:
        entered.log.append(n)
        raise ValueError(n)
    return log


def _counts(n: int) -> Generator[Any, Any, Any]:
    received: list[Any] = []
    for i in range(n):
        try:
            received.append((yield i))
        except ValueError:
            received.append("thrown")
    return received


def _delegates(n: int) -> Generator[Any, Any, Any]:
    yield (yield from _counts(n))


def generators(n: int) -> Any:
    running = _delegates(n)
    seen = [next(running)]
    seen.append(running.send("sent"))
    seen.append(running.throw(ValueError("x")))
    seen.extend(running)
    return seen, [*_counts(2)], sum(i for i in range(n))


def matches(n: int) -> Any:
    found: list[Any] = []
    for subject in (n, [n, 2, 3], {"k": n, "other": 1}, "text", None):
        match subject:
            case int():
                found.append(("int", subject))
            case [first, *rest]:
                found.append((first, rest))
            case {"k": value, **others}:
                found.append((value, others))
            case str() | None:
                found.append("scalar")
    return found


def formats(n: int) -> Any:
    return f"{n}|{n!r:>5}|{n:03d}|{'a' + 'b'}", str(n) * 2, n in (1, 4), n if n else "none"


def recurses(n: int) -> Any:
    return 0 if n == 0 else 1 + recurses(n - 1)


def unbound(n: int) -> Any:
    if n < 0:
        value = n
    return value


def misses_arguments(n: int) -> Any:
    return recurses()  # type: ignore[call-arg]


def divides_by_zero(n: int) -> Any:
    return n / (n - n)


PROGRAMS: tuple[Callable[[int], Any], ...] = (
    *(loops, closures, unpacks, handles, contexts, withs, generators, matches, formats, recurses),
    *(unbound, misses_arguments, divides_by_zero),
)


class DomainConformance(Conformance):
    """What any Domain and the Machine that runs over it must hold to."""

    deepest = 5000  # calls inside each other

    @pytest.fixture
    def make_domain(self) -> Callable[[], Domain]:
        raise NotImplementedError("give a function that makes a Domain")

    @pytest.fixture
    def call(self) -> Call:
        raise NotImplementedError("give a function that runs fn(*args) through the Machine under test")

    @pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
    def test_program_ends_as_natively(self, call: Call, program: Callable[[int], Any]) -> None:
        assert _ending(call, program, 4) == _ending(_natively, program, 4)

    def test_calls_do_not_recurse_natively(self, call: Call) -> None:
        assert call(recurses, self.deepest) == self.deepest

    def test_every_operation_is_there(self, make_domain: Callable[[], Domain]) -> None:
        domain = make_domain()
        wanted = [name for name in vars(Domain) if not name.startswith("_")]
        assert [name for name in wanted if not callable(getattr(domain, name, None))] == []

    def test_a_mark_can_be_rolled_back_to_twice(self, make_domain: Callable[[], Domain]) -> None:
        domain = make_domain()
        mark = domain.mark()
        domain.rollback(mark)
        domain.rollback(mark)

    def test_what_cannot_be_captured_is_no_exception_of_the_program(self, make_domain: Callable[[], Domain]) -> None:
        assert make_domain().as_raised(Unsupported("some-reason")) is None

    def test_truth_is_a_python_bool(self, make_domain: Callable[[], Domain]) -> None:
        domain = make_domain()
        assert domain.truth(domain.constant(3)) is True
        assert domain.truth(domain.from_bool(False)) is False
        assert domain.is_none(domain.constant(None)) is True


def _natively(fn: Callable[..., Any], *args: Any) -> Any:
    return fn(*args)


def _ending(call: Call, program: Callable[[int], Any], argument: int) -> Any:
    try:
        return call(program, argument)
    except Exception as error:  # the program's own, which is compared
        return type(error), str(error)
