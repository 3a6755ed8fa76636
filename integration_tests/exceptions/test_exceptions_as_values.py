"""Exceptions that the program keeps as values: stored, returned, chained, raised again; with their
tracebacks."""

from __future__ import annotations

import contextlib
import gc
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.counting import Counting

Program = Callable[[Tensor, list[Any]], Any]
CAPTURED: list[Program] = []


def captured(program: Program) -> Program:
    """A program without a break."""
    CAPTURED.append(program)
    return program


class UserError(RuntimeError):
    def __init__(self, code: int, *, x: Tensor) -> None:
        super().__init__(f"code {code}")
        self.code, self.x = code, x


class Box:
    error: Any = None


def inner(x: Tensor) -> Tensor:
    if x.shape[0] == 3:
        raise KeyError(
            "k",
            x.shape[0],
        )
    return x


def outer(x: Tensor) -> Tensor:
    return inner(
        x,
    )


@captured
def stored_in_a_list(x: Tensor, seen: list[Any]) -> Any:
    try:
        raise ValueError("a")
    except ValueError as error:
        seen.append(error)
    return x + len(seen)


@captured
def stored_on_an_object(x: Tensor, seen: list[Any]) -> Any:
    box = Box()
    try:
        outer(x)
    except KeyError as error:
        box.error = error
    return x + 1, box.error, box.error.args


@captured
def returned_from_several_frames(x: Tensor, seen: list[Any]) -> Any:
    try:
        outer(x)
    except KeyError as error:
        return error, x + 1


@captured
def reraised(x: Tensor, seen: list[Any]) -> Any:
    try:
        try:
            outer(x)
        except KeyError as error:
            seen.append(error)
            raise
    except Exception as error:
        return error, x * 2


@captured
def raised_again_by_name(x: Tensor, seen: list[Any]) -> Any:
    try:
        try:
            outer(x)
        except KeyError as error:
            raise error
    except Exception as error:
        return error, x * 2


@captured
def raised_later(x: Tensor, seen: list[Any]) -> Any:
    try:
        outer(x)
    except KeyError as error:
        kept = error
    y = x + 1
    try:
        raise kept
    except KeyError as error:
        seen.append(error)
    return y


@captured
def passed_a_finally(x: Tensor, seen: list[Any]) -> Any:
    def cleaning() -> None:
        try:
            outer(x)
        finally:
            seen.append(1)

    try:
        cleaning()
    except KeyError as error:
        seen.append(error)
    return x + 1


@captured
def raised_from_another(x: Tensor, seen: list[Any]) -> Any:
    try:
        try:
            outer(x)
        except KeyError as error:
            raise RuntimeError("r") from error
    except RuntimeError as error:
        error.add_note("a note")
        error.extra = x + 1  # type: ignore[attr-defined]
        return error


@captured
def raised_from_none(x: Tensor, seen: list[Any]) -> Any:
    try:
        try:
            outer(x)
        except KeyError:
            raise RuntimeError("r") from None
    except RuntimeError as error:
        return error, x + 1


@captured
def chained_three_times(x: Tensor, seen: list[Any]) -> Any:
    try:
        try:
            try:
                outer(x)
            except KeyError:
                seen[9]
        except IndexError as error:
            raise TypeError("t") from error
    except TypeError as error:
        return error, x + 1


@captured
def never_raised(x: Tensor, seen: list[Any]) -> Any:
    seen.append(ValueError(x + 1))
    return ValueError("z", seen)


@captured
def handed_to_a_manager(x: Tensor, seen: list[Any]) -> Any:
    class Manager:
        def __enter__(self) -> Any:
            return self

        def __exit__(self, *args: object) -> bool:
            seen.extend(args)
            return True

    with Manager():
        outer(x)
    return x + 1


@captured
def caught_by_a_generator_manager(x: Tensor, seen: list[Any]) -> Any:
    @contextlib.contextmanager
    def catching() -> Iterator[None]:
        try:
            yield
        except KeyError as error:
            seen.append(error)

    with catching():
        outer(x)
    with contextlib.suppress(KeyError):
        outer(x)
    return x + 1


@captured
def raised_in_a_generator(x: Tensor, seen: list[Any]) -> Any:
    def counting() -> Iterator[int]:
        yield 1
        outer(x)

    try:
        for value in counting():
            seen.append(value)
    except KeyError as error:
        seen.append(error)
    return x + 1


@captured
def thrown_into_a_generator(x: Tensor, seen: list[Any]) -> Any:
    def catching() -> Iterator[int]:
        try:
            yield 1
        except KeyError as error:
            seen.append(error)
            yield 2

    values: Any = catching()
    next(values)
    try:
        outer(x)
    except KeyError as error:
        seen.append(values.throw(error))
    return x + 1


@captured
def collected_in_a_group(x: Tensor, seen: list[Any]) -> Any:
    errors = []
    for i in range(3):
        try:
            raise ValueError(i)
        except ValueError as error:
            errors.append(error)
    group = ExceptionGroup("all", errors)
    group.add_note("n")
    try:
        raise group
    except ExceptionGroup as error:
        seen.append(error)
    return group, group.exceptions, x + 1


@captured
def raised_by_builtins(x: Tensor, seen: list[Any]) -> Any:
    failing: list[Callable[[], Any]] = [
        lambda: {"a": 1}["b"],
        lambda: int("q"),
        lambda: None.a,  # type: ignore[attr-defined]
        lambda: undefined,  # type: ignore[name-defined]  # noqa: F821
        lambda: next(iter([])),
        lambda: 1 // 0,
        lambda: len(3),  # type: ignore[arg-type]
        [].pop,
    ]
    for function in failing:
        try:
            function()
        except Exception as error:
            seen.append(error)
    return x + 1


@captured
def raised_in_functions_that_c_calls(x: Tensor, seen: list[Any]) -> Any:
    def key(value: int) -> Any:
        return outer(x)

    for call in (lambda: sorted([1, 2], key=key), lambda: list(map(key, [1]))):
        try:
            call()
        except KeyError as error:
            seen.append(error)
    return x + 1


@captured
def read_from_its_traceback(x: Tensor, seen: list[Any]) -> Any:
    try:
        outer(x)
    except KeyError as error:
        found = error.__traceback__
        seen += [found, found is error.__traceback__]
        while found is not None:
            seen.append(found.tb_lineno)
            found = found.tb_next
    return x + 1


@captured
def without_its_traceback(x: Tensor, seen: list[Any]) -> Any:
    try:
        outer(x)
    except KeyError as error:
        seen.append(error.with_traceback(None))
    try:
        raise seen[0]
    except KeyError as error:
        seen.append(error.__traceback__)
        error.__traceback__ = None
    return x + 1


@captured
def with_the_traceback_of_another(x: Tensor, seen: list[Any]) -> Any:
    try:
        outer(x)
    except KeyError as error:
        try:
            raise TypeError("t").with_traceback(error.__traceback__)
        except TypeError as other:
            seen.append(other)
        third = LookupError("l")
        third.__traceback__, third.__cause__ = error.__traceback__, error
        seen += [third, third.__traceback__ is error.__traceback__]
    return x + 1


@captured
def result_or_error(x: Tensor, seen: list[Any]) -> Any:
    def attempt(fn: Callable[[], Any]) -> Any:
        try:
            return fn(), None
        except Exception as error:
            return None, error

    return attempt(lambda: x + 1), attempt(lambda: outer(x)), attempt(lambda: int("a"))


@captured
def tried_again(x: Tensor, seen: list[Any]) -> Any:
    for i in range(4):
        try:
            if i < 3:
                raise OSError(2, "no", f"file {i}")
            break
        except OSError as error:
            seen.append(error)
    return x * i


@captured
def of_a_class_of_the_program(x: Tensor, seen: list[Any]) -> Any:
    try:
        raise UserError(3, x=x + 1)
    except UserError as error:
        seen += [error, error.x]
        return error


def kept_before_a_break(x: Tensor, seen: list[Any]) -> Any:
    try:
        outer(x)
    except KeyError as error:
        seen.append(error)
    stator.graph_break()
    return x + 1


def kept_after_a_break(x: Tensor, seen: list[Any]) -> Any:
    try:
        outer(x)
    except KeyError as error:
        stator.graph_break()
        seen.append(error)
    return x + 1


def of_an_operator(x: Tensor, seen: list[Any]) -> Any:
    try:
        x @ torch.ones(4)
    except RuntimeError as error:
        seen.append(error)
    return x + 1


STORED = ValueError("from outside")


def from_outside(x: Tensor, seen: list[Any]) -> Any:
    try:
        raise STORED.with_traceback(None)
    except ValueError as error:
        seen.append(error)
    return x + 1


BREAKING: list[Program] = [kept_before_a_break, kept_after_a_break, of_an_operator, from_outside]


def entries_of(found: types.TracebackType | None) -> list[Any]:
    """Return what a traceback shows: names, files, lines and columns."""
    entries = []
    while found is not None:
        code = found.tb_frame.f_code
        position = list(code.co_positions())[found.tb_lasti // 2]
        entries.append((code.co_qualname, code.co_filename, found.tb_lineno, position))
        assert found.tb_frame.f_globals is globals() or code.co_filename != __file__
        found = found.tb_next
    return entries


def described(value: Any, known: dict[int, int]) -> Any:
    """Return everything about a value that is compared; equal numbers stand for one exception."""
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, types.TracebackType):
        return entries_of(value)
    if isinstance(value, list | tuple):
        return [described(each, known) for each in value]
    if not isinstance(value, BaseException):
        return value
    if id(value) in known:
        return known[id(value)]
    known[id(value)] = len(known)
    fields = [value.args, value.__cause__, value.__context__, [*vars(value).items()]]
    parts = getattr(value, "exceptions", ())
    return [
        type(value).__name__,
        str(value),
        value.__suppress_context__,
        entries_of(value.__traceback__),
        described([*fields, parts], known),
    ]


def outcome(program: Program) -> Any:
    seen: list[Any] = []
    result = program(torch.ones(3), seen)
    return described([result, seen], {})


@pytest.mark.parametrize("program", CAPTURED, ids=lambda program: program.__name__)
def test_a_kept_exception_is_what_plain_python_gives(program: Program) -> None:
    counting = Counting()
    compiled = stator.compile(program, backend=counting, fullgraph=True)
    for _ in range(3):
        assert outcome(compiled) == outcome(program)
    assert counting.count == 1


@pytest.mark.parametrize("program", BREAKING, ids=lambda program: program.__name__)
def test_a_kept_exception_is_the_same_where_the_graph_breaks(program: Program) -> None:
    compiled = stator.compile(program, backend="eager")
    for _ in range(3):
        assert outcome(compiled) == outcome(program)


@pytest.mark.parametrize("program", CAPTURED, ids=lambda program: program.__name__)
def test_a_kept_exception_is_the_same_where_everything_breaks(program: Program) -> None:
    options = {"break_everywhere": True}
    compiled = stator.compile(program, backend="eager", options=options)
    assert outcome(compiled) == outcome(program)


def test_each_call_makes_an_exception_and_a_traceback_of_its_own() -> None:
    compiled = stator.compile(stored_in_a_list, backend="eager", fullgraph=True)
    seen: list[Any] = []
    compiled(torch.ones(3), seen)
    compiled(torch.ones(3), seen)
    first, second = seen
    assert first is not second
    assert first.__traceback__ is not second.__traceback__


def test_a_returned_exception_is_printed_like_a_native_one() -> None:
    def printed(program: Program) -> str:
        error, _ = program(torch.ones(3), [])
        return "".join(traceback.format_exception(error))

    compiled = stator.compile(chained_three_times, backend="eager", fullgraph=True)
    assert printed(compiled) == printed(chained_three_times)


def test_a_returned_exception_can_be_raised_outside() -> None:
    def raised(program: Program) -> list[Any]:
        error, _ = program(torch.ones(3), [])
        with pytest.raises(KeyError) as info:
            raise error
        return entries_of(info.value.__traceback__)

    compiled = stator.compile(returned_from_several_frames, backend="eager", fullgraph=True)
    assert raised(compiled) == raised(returned_from_several_frames)


def test_a_dumped_function_makes_the_same_exceptions(tmp_path: Path) -> None:
    compiled = stator.compile(chained_three_times, backend="eager", fullgraph=True)
    expected = outcome(compiled)
    stator.dump(compiled, tmp_path)
    loaded = stator.load(tmp_path)
    assert outcome(loaded) == expected


def test_frames_of_a_made_traceback_hold_no_locals() -> None:
    """The frames that the program ran in have not existed natively: a documented difference."""
    compiled = stator.compile(returned_from_several_frames, backend="eager", fullgraph=True)
    error, _ = compiled(torch.ones(3), [])
    traceback.clear_frames(error.__traceback__)
    found = error.__traceback__
    while found is not None:
        assert found.tb_frame.f_locals == {}
        found = found.tb_next
    gc.collect()
