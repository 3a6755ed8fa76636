"""What C asks of objects, and of containers and numbers with methods of their own, it asks here:
the same, in order."""

from __future__ import annotations

import builtins
import collections
import importlib
import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

from integration_tests.classes.special_method_programs import OF_CONTAINERS, OF_OBJECTS

NAMES = "bisect collections copy functools heapq io itertools math operator random statistics string torch types"
MODULES = {name: importlib.import_module(name) for name in NAMES.split()}


def programs(text: str) -> list[str]:
    return [program for line in text.strip().split("\n") for program in line.split(" ; ")]


class Log:
    """An int that is asked for all it does, and writes it down."""

    def __init__(self, log: list[Any], value: int) -> None:
        self.log = log
        self.value = value


class Steps:
    def __init__(self, log: list[Any]) -> None:
        self.log = log
        self.at = 0

    def __iter__(self) -> Any:
        self.log.append("iter")
        return self

    def __next__(self) -> int:
        self.log.append("next")
        self.at += 1
        if self.at > 3:
            raise StopIteration
        return self.at

    def __length_hint__(self) -> int:
        self.log.append("hint")
        return 3 - self.at


def value_of(of: Any) -> Any:
    return of.value if isinstance(of, Log) else of


def logged(name: str, answer: Callable[..., Any]) -> None:
    def method(self: Log, *args: Any) -> Any:
        self.log.append((name, *[type(arg).__name__ for arg in args]))
        return answer(self, *args)

    setattr(Log, name, method)


def compared(name: str) -> Callable[..., Any]:
    compare = getattr(operator, name)
    return lambda of, other: (
        compare(of.value, value_of(other))
        if isinstance(value_of(other), int | float)
        else NotImplemented
    )


def computed(name: str, reflected: bool) -> Callable[..., Any]:
    compute = operator.mul if name == "matmul" else getattr(operator, f"__{name}__")

    def method(of: Log, other: Any, *more: Any) -> Any:
        if not isinstance(value_of(other), int):
            return NotImplemented
        sides = of.value, value_of(other)
        return Log(of.log, compute(*(sides[::-1] if reflected else sides)))

    return method


for _name in "lt le gt ge eq ne".split():
    logged(f"__{_name}__", compared(_name))
for _name in "add sub mul floordiv truediv mod pow and or xor lshift rshift matmul".split():
    logged(f"__{_name}__", computed(_name, False))
    logged(f"__r{_name}__", computed(_name, True))
ANSWERS: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, f"__{name}__") for name in ("neg", "pos", "abs", "invert", "index")},
    **{
        name: getattr(builtins, name) for name in ("int", "float", "bool", "hash", "str", "complex")
    },
    **{name: getattr(math, name) for name in ("trunc", "floor", "ceil")},
}
for _name, _answer in ANSWERS.items():
    logged(f"__{_name}__", lambda of, answer=_answer: answer(of.value))
logged("__round__", lambda of, *digits: of.value)
logged("__repr__", lambda of: f"L{of.value}")
logged("__format__", lambda of, spec: f"F{of.value}")
logged("__len__", lambda of: 3)
logged("__length_hint__", lambda of: 3)
logged("__bytes__", lambda of: bytes(3))
logged("__divmod__", lambda of, other: (1, 2))
logged("__rdivmod__", lambda of, other: (1, 2))
logged("__contains__", lambda of, item: True)
logged("__reversed__", lambda of: iter([3, 2, 1]))
logged("__iter__", lambda of: Steps(of.log))
logged("__getitem__", lambda of, key: [1, 2, 3][key] if isinstance(key, int) else Log(of.log, 1))
logged("__setitem__", lambda of, key, value: None)
logged("__delitem__", lambda of, key: None)
logged("__call__", lambda of, *args: Log(of.log, 5))
logged("__copy__", lambda of: of)
logged("__deepcopy__", lambda of, memo: of)
logged("keys", lambda of: ["a", "b"])


@pytest.mark.parametrize("text", programs(OF_OBJECTS))
def test_what_is_asked_of_an_object(text: str) -> None:
    program = eval(f"lambda a, b, c, x: {text}", dict(MODULES))

    def f(x: Tensor, value: int) -> Any:
        log: list[Any] = []
        try:
            found = program(Log(log, value), Log(log, value + 1), Log(log, value + 2), x)
        except Exception as error:
            found = type(error), str(error)
        return x + 1, tuple(log), type(found)  # before anybody looks at what was found

    compiled = stator.compile(f, backend="eager")
    for _ in range(2):  # the oracle asks objects for their `repr`
        assert compiled(torch.arange(3.0), 1)[1:] == f(torch.arange(3.0), 1)[1:]


LOGS: list[list[Any]] = []
LEFT_ALONE = frozenset(
    "__new__ __init__ __getattribute__ __class_getitem__ __doc__ __reduce__ __reduce_ex__ __getnewargs__ __sizeof__ "
    "__getstate__ __setattr__ __delattr__ __dict__ __weakref__ __module__ __getformat__ __missing__ __copy__".split()
)


def logging_class(base: type) -> type:
    """A subclass whose methods are those of `base`, each written in Python, and written down."""
    methods: dict[str, Any] = {}
    for cls in base.__mro__[:-1]:
        for name, raw in vars(cls).items():
            is_method = callable(raw) and not isinstance(raw, classmethod | staticmethod)
            if (
                is_method
                and name not in methods
                and name not in LEFT_ALONE
                and type(raw) is not CLASS_METHOD
            ):
                methods[name] = logging_method(name, raw)
    return type(f"My{base.__name__}", (base,), methods)


CLASS_METHOD = type(vars(dict)["fromkeys"])


def logging_method(name: str, raw: Any) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if LOGS:
            LOGS[-1].append((name, *[type(arg).__name__ for arg in args]))
        return raw(self, *args, **kwargs)

    return method


VALUES: dict[str, Any] = {
    "list": [1, 2, 3],
    "tuple": (1, 2, 3),
    "dict": {1: 2, 3: 4},
    "set": {1, 2, 3},
    "frozenset": {1, 2},
    "str": "abc",
    "int": 2,
    "float": 2.5,
    "bytes": b"abc",
    "deque": [1, 2, 3],
    "OrderedDict": {1: 2, 3: 4},
}
CLASSES = {
    kind: logging_class(getattr(builtins, kind, None) or getattr(collections, kind))
    for kind in VALUES
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind in VALUES for text in programs(OF_CONTAINERS[kind])]
)
def test_which_methods_of_a_subclass_are_called(kind: str, text: str) -> None:
    program = eval(f"lambda a, x: {text}", dict(MODULES))
    cls, value = CLASSES[kind], VALUES[kind]

    def f(x: Tensor, log: list[Any]) -> Any:
        a = cls(value)
        LOGS.append(log)
        try:
            found = program(a, x)
        except Exception as error:
            found = type(error)
        finally:
            LOGS.clear()
        return x + 1, tuple(log), type(found)

    compiled = stator.compile(f, backend="eager")
    for _ in range(2):
        assert compiled(torch.arange(3.0), [])[1:] == f(torch.arange(3.0), [])[1:]


@pytest.mark.parametrize("base", [dict, collections.OrderedDict])
@pytest.mark.parametrize("part", ["keys", "values", "items"])
def test_a_view_that_is_given_away_is_asked_for_once(base: type, part: str) -> None:
    def given(self: Any) -> Any:
        self.log.append(part)
        return getattr(base, part)(self)

    cls = type("Kept", (base,), {part: given})

    def f(x: Tensor, log: list[Any], breaks: bool) -> Any:
        kept = cls({1: 2})
        kept.log = log
        view = getattr(kept, part)()
        if breaks:
            stator.graph_break()
        return x + 1, view, [*view], log

    compiled = stator.compile(f, backend="eager")
    for breaks in (False, True, True):
        assert str(compiled(torch.ones(1), [], breaks)) == str(f(torch.ones(1), [], breaks))
