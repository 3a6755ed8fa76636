"""Programs that run the same plainly and through the Machine: what CPython's own tests do not
reach."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest
from stator_bytecode import interpret
from stator_bytecode.errors import InvalidUse


def context_is_the_nearest_handled_exception() -> Any:
    def fails() -> None:
        raise LookupError("inner")

    try:
        try:
            raise ValueError("outer")
        except ValueError:
            fails()
    except LookupError as error:
        return repr(error.__context__)


def generator_sees_its_callers_exception() -> Any:
    def shows() -> Any:
        yield sys.exc_info()[1]
        try:
            raise KeyError("own")
        except KeyError:
            yield sys.exc_info()[1]
        yield sys.exc_info()[1]

    shown = shows()
    try:
        raise ValueError("callers")
    except ValueError:
        seen = [repr(next(shown)), repr(next(shown))]
    return [*seen, repr(next(shown))]


def stop_iteration_in_a_generator_is_a_runtime_error() -> Any:
    def stops() -> Any:
        yield next(iter(()))

    try:
        return list(stops())
    except RuntimeError as error:
        return str(error), type(error.__cause__).__name__, error.__suppress_context__


def generator_that_ignores_its_end() -> Any:
    def ignores() -> Any:
        try:
            yield 1
        except GeneratorExit:
            yield 2

    running = ignores()
    next(running)
    try:
        running.close()
    except RuntimeError as error:
        return str(error)


def generator_values() -> Any:
    def returns() -> Any:
        yield 1
        return "value"

    running = returns()
    seen: list[Any] = [next(running)]
    for ask in (
        lambda: next(running),
        lambda: running.send(None),
        lambda: running.throw(KeyError("late")),
    ):
        try:
            ask()
        except (StopIteration, KeyError) as error:
            seen.append((type(error).__name__, error.args))
    try:
        returns().send(1)
    except TypeError as error:
        seen.append(str(error))
    return [*seen, running.close(), next(running, "default")]


def class_bodies() -> Any:
    class Meta(type):
        @classmethod
        def __prepare__(mcs, name: str, bases: Any, **kwargs: Any) -> Any:
            return {"prepared": (name, kwargs)}

        def __new__(mcs, name: str, bases: Any, namespace: Any, **kwargs: Any) -> Any:
            return super().__new__(mcs, name, bases, dict(namespace))

        def __init__(cls, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args)

    outside = 5

    class Base(metaclass=Meta, flag=1):
        x: int = outside
        y = [i * outside for i in range(3)]

        def __init__(self, value: int) -> None:
            self.value = value

        def me(self) -> Any:
            return __class__  # type: ignore[name-defined]

    class Derived(Base):
        def __init__(self) -> None:
            super().__init__(7)

    made = Derived()
    return (
        Base.prepared,
        Base.x,
        Base.y,
        made.value,
        made.me() is Base,
        Base.__annotations__,
        Derived.__qualname__,
    )


def imports() -> Any:
    import collections.abc
    from math import floor as down
    from math import pi
    from os import path

    try:
        from math import nothing_like_it  # type: ignore[attr-defined]
    except ImportError as error:
        return (
            path.join("a", "b"),
            down(pi),
            collections.abc.Sized.__name__,
            error.name,
            nothing(error),
            str(error),
        )
    return nothing_like_it


def nothing(error: ImportError) -> Any:
    return error.path is not None or error.__context__


def init_must_return_none() -> Any:
    class Odd:
        def __init__(self) -> None:
            return 1  # type: ignore[return-value]  # noqa: PLE0101

    try:
        return Odd()
    except TypeError as error:
        return str(error)


def spread_calls() -> Any:
    def shows(*args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    texts = []
    bad: Any = 3
    one, two = {"a": 1}, {"a": 2}
    for attempt in (
        lambda: shows(*bad),
        lambda: shows(**bad),
        lambda: shows(**one, **two),
        lambda: shows(1, *bad),
    ):
        try:
            attempt()
        except TypeError as error:
            texts.append(str(error))
    return shows(*[1, 2], 3, *(4,), k=1, **{"z": 2}), texts


def names_deleted_and_unbound() -> Any:
    texts = []

    def reads_late() -> Any:
        return later

    def deletes() -> Any:
        value = 1
        del value
        return value  # type: ignore[name-defined]  # noqa: F821

    for attempt in (reads_late, deletes, lambda: not_defined_anywhere):  # type: ignore[name-defined]  # noqa: F821
        try:
            attempt()
        except NameError as error:
            texts.append((type(error).__name__, str(error)))
    later = 1
    return texts, later


def except_star() -> Any:
    seen: list[Any] = []
    try:
        try:
            raise ExceptionGroup(
                "all",
                [ValueError(1), TypeError(2), ExceptionGroup("in", [ValueError(3), KeyError(4)])],
            )
        except* ValueError as group:
            seen.append(repr(group))
        except* TypeError:
            raise OSError(5)  # noqa: B904
    except ExceptionGroup as rest:
        seen.append(repr(rest))
    return seen


def introspection() -> Any:
    local = 1

    def inner() -> Any:
        return sorted(locals()), local, "interpret" in globals(), eval("1 + 1"), [*vars()]

    return inner(), sorted(dir()), callable(eval)


def scopes_of_comprehensions() -> Any:
    x = "outer"
    made = [lambda: x for x in range(3)]  # noqa: B023
    nested = [[x + y for y in range(x)] for x in range(3)]
    called = [f() for f in made]
    return (
        x,
        called,
        nested,
        {k: v + 1 for k, v in zip("ab", (1, 2), strict=True)},
        {i % 2 for i in range(5)},
    )


class Foreign:
    """An iterator that is no generator, with the methods of one."""

    def __init__(self, log: list[str]) -> None:
        self.log, self.count = log, 0

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> int:
        self.count += 1
        return self.count

    def throw(self, error: Exception) -> str:
        self.log.append(repr(error))
        if isinstance(error, KeyError):
            return "thrown"
        raise StopIteration("stopped") if isinstance(error, IndexError) else error

    def close(self) -> None:
        self.log.append("closed")


class Unclosable(Foreign):
    def __getattribute__(self, name: str) -> Any:
        if name == "close":
            raise OSError("no close")
        return super().__getattribute__(name)


def outcome(function: Callable[..., Any], *arguments: Any) -> str:
    try:
        return repr(function(*arguments))
    except BaseException as error:
        return f"{error!r}, {error.__context__!r}"


def delegation_to_what_is_no_generator() -> Any:
    seen: list[Any] = []

    def delegating(log: list[str], inner: Any) -> Any:
        log.append((yield from inner))
        yield "after"

    for error in (KeyError("k"), IndexError("i"), ValueError("v")):
        log: list[str] = []
        running = delegating(log, Foreign(log))
        next(running)
        seen.append((outcome(running.throw, error), outcome(next, running), log))
    running = delegating([], map(abs, (1, 2)))
    next(running)
    seen.append(outcome(running.throw, ValueError("no method")))
    return seen


def ends_of_delegation() -> Any:
    seen: list[Any] = []

    def delegating(log: list[str], inner: Any) -> Any:
        try:
            yield from inner
        finally:
            log.append("finally")

    hook, sys.unraisablehook = sys.unraisablehook, lambda report: None
    try:
        for cls in (Foreign, Unclosable):
            log: list[str] = []
            running = delegating(log, cls(log))
            next(running)
            seen.append((outcome(running.close), log))
    finally:
        sys.unraisablehook = hook
    return seen


def generators_that_are_running() -> Any:
    seen: list[str] = []

    def inner() -> Any:
        yield 1
        seen.extend(outcome(act) for act in (outer.close, lambda: outer.throw(KeyError("k"))))
        yield 2

    def delegating() -> Any:
        yield from inside

    inside = inner()
    outer = delegating()
    next(outer)
    bound = inside.__next__
    return bound(), seen


class Unprepared(type):
    @classmethod
    def __prepare__(cls, *arguments: Any) -> Any:
        return 3


def unprepared(name: str, bases: Any, names: Any) -> Any:
    return name


setattr(unprepared, "__prepare__", lambda *arguments: 4)


def class_without_a_mapping() -> Any:
    class Made(metaclass=Unprepared):
        pass


def class_of_a_function_without_a_mapping() -> Any:
    class Made(metaclass=unprepared):  # type: ignore[metaclass]
        pass


def class_of_a_native_body() -> Any:
    return builtins.__build_class__(print, "Made")  # type: ignore[arg-type]


def generic_bases() -> Any:
    class Numbers(list[int]):
        pass

    return Numbers.__orig_bases__, Numbers.__mro__[1:]  # type: ignore[attr-defined]


def name_missing_in_a_class() -> Any:
    class Made:
        one = 1
        del one
        del missing  # type: ignore[name-defined]  # noqa: F821


def global_that_is_missing() -> Any:
    global _missing_here
    del _missing_here  # type: ignore[name-defined]


def super_without_a_class() -> Any:
    def method(self: Any) -> Any:
        return (lambda each: [super])(self)[0]().x

    return method(1)


def coroutine_in_a_generator() -> Any:
    async def coroutine() -> None:
        pass

    def delegating() -> Any:
        yield from made

    made = coroutine()
    try:
        return next(delegating())
    finally:
        made.close()


def without_builtins() -> Any:
    seen = []
    for text in ("class Made: pass", "import os", "from math import *\nassert pi > 3"):
        code = compile(f"{text}\n", "text", "exec")
        run = FunctionType(code, {"__builtins__": {"AssertionError": AssertionError}})
        seen.append(outcome(run))
    names: dict[str, Any] = {"__builtins__": builtins}
    FunctionType(code, names)()
    return seen, names["pi"]


ERRORS: tuple[Callable[[], Any], ...] = (
    class_without_a_mapping,
    class_of_a_function_without_a_mapping,
    class_of_a_native_body,
    name_missing_in_a_class,
    global_that_is_missing,
    super_without_a_class,
    coroutine_in_a_generator,
)
PROGRAMS: tuple[Callable[[], Any], ...] = (
    delegation_to_what_is_no_generator,
    ends_of_delegation,
    generators_that_are_running,
    generic_bases,
    without_builtins,
    context_is_the_nearest_handled_exception,
    generator_sees_its_callers_exception,
    stop_iteration_in_a_generator_is_a_runtime_error,
    generator_that_ignores_its_end,
    generator_values,
    class_bodies,
    imports,
    init_must_return_none,
    spread_calls,
    names_deleted_and_unbound,
    except_star,
    introspection,
    scopes_of_comprehensions,
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program_ends_as_natively(program: Callable[[], Any]) -> None:
    assert repr(interpret(program)) == repr(program())


@pytest.mark.parametrize("program", ERRORS, ids=lambda program: program.__name__)
def test_program_raises_as_natively(program: Callable[[], Any]) -> None:
    expected = outcome(program)
    assert "Error" in expected
    assert outcome(interpret, program) == expected


def test_only_python_functions_are_interpreted() -> None:
    with pytest.raises(InvalidUse, match="is no Python function"):
        interpret(len, [1])
