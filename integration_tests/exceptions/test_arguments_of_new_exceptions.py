"""What new exceptions keep of what they are made with, in `__new__` or in `__init__`: caught, given
back and raised."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

X = torch.ones(2)
FIELDS = "errno strerror filename filename2 value code msg name path extra".split()


class Numbered(OSError):
    """C keeps nothing for it: what it has of `OSError`, its `__init__` did not ask for."""

    def __init__(self, extra: int) -> None:
        self.extra = extra


class Filed(OSError):
    def __init__(self, extra: int) -> None:
        super().__init__(extra, "no", "here", None, "there")
        self.extra = extra


class Own(OSError): ...


class Ended(StopIteration):
    def __init__(self, extra: int) -> None: ...


class Left(SystemExit): ...


class Missing(ImportError):
    def __init__(self, extra: str) -> None:
        super().__init__(extra, extra)


class Slotted(Exception):
    __slots__ = ("extra",)

    def __init__(self, extra: int) -> None:
        self.extra = extra


MAKERS: dict[str, Callable[[], BaseException]] = {
    "an OSError without arguments": OSError,
    "of a text": lambda: OSError("text"),
    "of a number": lambda: OSError(errno.ENOENT, "text"),
    "of a number that no class is for": lambda: OSError(9999, "text"),
    "of a truth": lambda: OSError(True, "text"),
    "of a number in a text": lambda: OSError("2", "text"),
    "of a float": lambda: OSError(2.0, "text"),
    "of None": lambda: OSError(None, "text"),
    "of no text": lambda: OSError(errno.EACCES, None, "file"),
    "with a file": lambda: OSError(errno.ENOENT, "text", "file"),
    "with two files": lambda: OSError(errno.EACCES, "text", "file", None, "other"),
    "with the second file alone": lambda: OSError(errno.EACCES, "text", None, None, "other"),
    "of six": lambda: OSError(1, 2, 3, 4, 5, 6),
    "of its own class": lambda: FileNotFoundError("text"),
    "with another's number": lambda: FileNotFoundError(errno.EACCES, "text"),
    "a number that is no file": lambda: PermissionError(0, 1, 2),
    "a subclass": lambda: Own(errno.ENOENT, "text", "file"),
    "with an own __init__": lambda: Numbered(3),
    "with an own __init__ that asks C": lambda: Filed(3),
    "a StopIteration": lambda: StopIteration(1, 2),
    "a StopIteration that C has not heard of": lambda: Ended(3),
    "a SystemExit of one": lambda: Left(3),
    "a SystemExit of two": lambda: Left(3, 4),
    "an ImportError": lambda: ImportError("text"),
    "an ImportError of two": lambda: ImportError("text", "more"),
    "an ImportError with an own __init__": lambda: Missing("text"),
    "with slots": lambda: Slotted(3),
}


def caught(x: Tensor, make: Callable[[], BaseException]) -> Any:
    try:
        raise make()
    except BaseException as error:
        return (
            x + 1,
            error.args,
            str(error),
            repr(error),
            *[getattr(error, name, "none") for name in FIELDS],
        )


def given(x: Tensor, make: Callable[[], BaseException]) -> Any:
    y = x + 1
    return y, make()


def raised(x: Tensor, make: Callable[[], BaseException]) -> Any:
    y = x + 1
    error = make()
    raise error.with_traceback(None) if y is x else error


def _said(fn: Callable[..., Any], make: Callable[[], BaseException]) -> Any:
    try:
        found = fn(X, make)
    except (stator.Unsupported, stator.errors.StatorError):
        raise
    except BaseException as error:
        found = (error,)
    return [
        (type(part), str(part), repr(part), [getattr(part, name, "none") for name in FIELDS])
        for part in found
    ]


@pytest.mark.parametrize("fullgraph", [True, False])
@pytest.mark.parametrize("program", [caught, given, raised])
@pytest.mark.parametrize("title", MAKERS)
def test_new_exception_keeps_what_python_keeps(
    title: str, program: Callable[..., Any], fullgraph: bool
) -> None:
    compiled = stator.compile(program, backend="eager", fullgraph=fullgraph)
    for _ in range(2):
        assert _said(compiled, MAKERS[title]) == _said(program, MAKERS[title])
    assert len(compiled.report.entries) == 1


def test_number_that_is_not_known_breaks() -> None:
    def of_size(x: Tensor) -> Any:
        return x + 1, OSError(x.shape[0], "text").args

    compiled = stator.compile(of_size, backend="eager", dynamic=True)
    for size in (2, 3, 13):
        assert compiled(torch.ones(size))[1] == of_size(torch.ones(size))[1]
