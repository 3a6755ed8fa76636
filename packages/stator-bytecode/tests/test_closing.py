"""Which suspended generators observe that they are closed; the oracle is a generator that is
closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from stator_bytecode import decode, names_in_handlers, observes_close

LOG: list[Any] = []
GENERATORS: dict[str, Callable[[], Iterator[Any]]] = {}


def generator(fn: Callable[[], Iterator[Any]]) -> Callable[[], Iterator[Any]]:
    GENERATORS[fn.__name__] = fn
    return fn


@generator
def without_try() -> Iterator[int]:
    yield 1


@generator
def except_another() -> Iterator[int]:
    try:
        yield 1
    except IndexError:
        LOG.append("caught")


@generator
def except_several() -> Iterator[int]:
    try:
        yield 1
    except (IndexError, KeyError):
        LOG.append("caught")
    except Exception as error:
        LOG.append(error)


@generator
def nested_handlers() -> Iterator[int]:
    try:
        try:
            yield 1
        except KeyError:
            LOG.append("inner")
    except ValueError:
        LOG.append("outer")


@generator
def finally_without_a_body() -> Iterator[int]:
    try:
        yield 1
    finally:
        pass


@generator
def inside_a_handler() -> Iterator[int]:
    try:
        raise KeyError
    except KeyError:
        yield 1


@generator
def with_finally() -> Iterator[int]:
    try:
        yield 1
    finally:
        LOG.append("finally")


@generator
def finally_around_except() -> Iterator[int]:
    try:
        try:
            yield 1
        except KeyError:
            LOG.append("caught")
    finally:
        LOG.append("finally")


@generator
def except_all() -> Iterator[int]:
    try:
        yield 1
    except:
        LOG.append("caught")
        raise


@generator
def except_base() -> Iterator[int]:
    try:
        yield 1
    except (KeyError, BaseException):
        LOG.append("caught")
        raise


@generator
def except_its_own() -> Iterator[int]:
    try:
        yield 1
    except GeneratorExit:
        LOG.append("caught")


@generator
def in_a_handler_with_finally() -> Iterator[int]:
    try:
        raise KeyError
    except KeyError:
        try:
            yield 1
        finally:
            LOG.append("finally")


def names_of(fn: Callable[..., Any]) -> dict[str, Any]:
    """Return what the names stand for that the function tests exceptions against."""
    builtins = fn.__globals__["__builtins__"]
    known = vars(builtins) if not isinstance(builtins, dict) else builtins
    return {name: known.get(name) for name in names_in_handlers(decode(fn.__code__))}


def place_of_yield(fn: Callable[..., Any]) -> int:
    (pc,) = [instr.index for instr in decode(fn.__code__).instructions if instr.op == "YIELD_VALUE"]
    return pc + 1


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generator_observes_its_close_if_its_code_runs(name: str) -> None:
    fn = GENERATORS[name]
    made: Any = fn()
    next(made)
    LOG.clear()
    made.close()
    assert observes_close(decode(fn.__code__), place_of_yield(fn), names_of(fn)) is bool(LOG)


@pytest.mark.parametrize(
    "found",
    [GeneratorExit, BaseException, object, "no class", None, type("Own", (GeneratorExit,), {})],
    ids=str,
)
def test_the_names_are_what_the_module_says(found: Any) -> None:
    """`except IndexError` catches whatever the name stands for; what is no exception class
    raises."""
    code = decode(except_another.__code__)
    passes = (
        isinstance(found, type) and issubclass(found, GeneratorExit) and found is not GeneratorExit
    )
    assert observes_close(code, place_of_yield(except_another), {"IndexError": found}) is not passes


def test_only_names_that_are_tested_are_needed() -> None:
    assert names_in_handlers(decode(except_several.__code__)) == {
        "IndexError",
        "KeyError",
        "Exception",
    }
    assert names_in_handlers(decode(with_finally.__code__)) == frozenset()
