"""Every method of common values, with arguments of every kind: what it gives, raises and changes is
as in Python.

In the default tier a sample, the same on each run; all of them with `-m slow`.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools  # noqa: F401 - named in VALUES
import itertools
import random
import re
import types  # noqa: F401 - named in VALUES
from collections.abc import Iterator
from typing import Any

import pytest
import stator
import torch


class Named(dict[Any, Any]):
    def __missing__(self, key: Any) -> Any:
        return "missing", key


class Items(list[Any]): ...


class Members(set[Any]): ...


class Whole(int): ...


class Word(str): ...


class Row(tuple[Any, ...]): ...


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Pair(collections.namedtuple("Pair", "first second")):
    def total(self) -> Any:
        return self.first + self.second


@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: int = 2


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value

    def method(self, *args: Any) -> Any:
        return self.value, args

    @property
    def doubled(self) -> Any:
        return self.value * 2

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"Box({self.value!r})"


def function(a: Any = 1, *b: Any, c: Any = 2) -> Any:
    return a, b, c


def generator() -> Iterator[Any]:
    try:
        yield (yield 1)
    except ValueError:
        yield "caught"


VALUES = (
    *(
        "'ab a'",
        "''",
        "b'ab a'",
        "5",
        "True",
        "2.5",
        "1+2j",
        "(1, 2, 'a')",
        "()",
        "range(1, 7, 2)",
        "frozenset({1, 2})",
    ),
    *(
        "slice(1, 3)",
        "[3, 1, 2]",
        "[]",
        "{'a': 1, 2: 'b'}",
        "{}",
        "{1, 2}",
        "None",
        "...",
        "{'a': 1, 'b': 2}.keys()",
    ),
    *(
        "{'a': 1}.items()",
        "collections.deque([1, 2, 3], 4)",
        "collections.OrderedDict(a=1, b=2)",
        "Box",
        "Box(1)",
    ),
    *(
        "collections.defaultdict(list, {'a': [1]})",
        "collections.Counter('aab')",
        "function",
        "Box(1).method",
    ),
    *(
        "generator()",
        "iter([1, 2])",
        "Level.LOW",
        "Level",
        "Rights.READ",
        "Named(a=1)",
        "Items([3, 1])",
        "Members({1})",
    ),
    *(
        "Whole(5)",
        "Word('ab')",
        "Row((1, 2))",
        "Pair(1, 2)",
        "Point(1)",
        "ValueError('a', 1)",
        "Box.doubled",
    ),
    *(
        "collections.ChainMap({'a': 1}, {'b': 2})",
        "collections.UserDict(a=1)",
        "collections.UserList([1, 2])",
    ),
    *(
        "types.MappingProxyType({'a': 1})",
        "zip('ab', [1, 2])",
        "map(str, [1, 2])",
        "reversed([1, 2])",
        "enumerate('ab')",
    ),
    *(
        "types.SimpleNamespace(a=1)",
        "functools.partial(max, 3)",
        "torch.Size([2, 3])",
        "torch.float32",
    ),
)
ARGUMENTS = (
    *(
        "",
        "1",
        "'a'",
        "(1, 2)",
        "[1, 2]",
        "None",
        "1, 2",
        "'a', 'b'",
        "{'a': 5}",
        "{1, 2}",
        "1.5",
        "0, 1, 2",
        "'a', 1",
    ),
    *("slice(0, 2)", "b'a'", "-1", "int", "Box", "lambda value: value", "range(2)", "2j"),
)
LEFT_OUT = frozenset(
    "__class__ __init_subclass__ __subclasshook__ __sizeof__ __dir__ __reduce__ __reduce_ex__ __getstate__ __hash__ "
    "mro __subclasses__ __getnewargs__ __doc__ __dict__ __code__ __globals__ __builtins__ __annotations__ __module__ "
    "__new__ gi_frame gi_code __closure__ __weakref__ __init__".split()
)
"""What tells of addresses, sizes, the code itself; or makes an object anew in place."""
_TAKES = re.compile(r"\w+\.\w+\(\) takes ")
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def _made(value: str) -> dict[str, Any]:
    """A world of its own: what may be changed is made anew."""
    return {**globals(), "RECEIVER": eval(value, globals())}


def _calls(value: str) -> list[str]:
    receiver = eval(value, globals())
    found = (
        (name, getattr(receiver, name, None)) for name in dir(receiver) if name not in LEFT_OUT
    )
    named = [
        (name, ARGUMENTS) if callable(attribute) else (name, (None,)) for name, attribute in found
    ]
    pairs: Iterator[Any] = itertools.chain.from_iterable(
        itertools.product([name], args) for name, args in named
    )
    return [name if args is None else f"{name}({args})" for name, args in pairs]


def _run(program: Any) -> Any:
    try:
        found = program(torch.ones(1))
    except (stator.Unsupported, stator.errors.StatorError):
        raise
    except Exception as error:
        text = str(error)  # C names the class or that of the method, by the way it was called
        return type(error), _ADDRESS.sub("0x", _TAKES.sub("takes ", text))
    return [_said(part) for part in found]


def _said(value: Any, depth: int = 0) -> Any:
    if depth > 4 or hasattr(type(value), "__next__"):
        return type(value)
    parts: Any = None
    if isinstance(value, dict):
        parts = [pair for key in value for pair in (key, dict.__getitem__(value, key))]
    elif isinstance(value, set | frozenset):
        parts = sorted(value, key=repr)
    elif isinstance(value, list | tuple | collections.deque):
        parts = [*value]
    elif isinstance(
        value, Box | collections.UserDict | collections.UserList | collections.ChainMap
    ):
        parts = [*vars(value).values()]
    if parts is not None:
        return type(value), [_said(part, depth + 1) for part in parts]
    return type(value), _ADDRESS.sub("0x", repr(value))


def _check(value: str, call: str) -> None:
    """Twice, on a value from outside, which the first call may change, and on one that is made
    inside."""
    for receiver in ("RECEIVER", value):
        text = f"def program(x):\n    receiver = {receiver}\n    return receiver.{call}, receiver, x + 1\n"
        plain, ours = _made(value), _made(value)
        exec(text, plain)
        exec(text, ours)
        compiled = stator.compile(ours["program"], backend="eager", recompile_limit=4)
        for _ in range(2):
            expected, found = _run(plain["program"]), _run(compiled)
            assert found == expected, f"{value}.{call}"
        assert _said(ours["RECEIVER"]) == _said(plain["RECEIVER"]), f"{value}.{call}"
        assert not compiled.report.missed, f"{value}.{call}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("value", VALUES)
def test_some_methods(value: str) -> None:
    calls = _calls(value)
    for call in random.Random(value).sample(calls, min(25, len(calls))):
        _check(value, call)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("value", VALUES)
def test_all_methods(value: str) -> None:
    for call in _calls(value):
        _check(value, call)


@pytest.mark.parametrize(
    ("value", "call"),
    [
        ("None", "__lt__(1)"),
        ("None", "__str__(1.5)"),
        ("None", "__hash__(1)"),
        ("None", "__delattr__('a')"),
        ("()", "__class_getitem__()"),
        ("()", "__class_getitem__(1, 2)"),
        ("Whole(5)", "__pow__(1, 2)"),
        ("Members({1})", "__setattr__('a', 1)"),
        ("Box.doubled", "getter()"),
        ("Level.LOW", "__class__(3)"),
        ("Word('ab')", "__iter__()"),
        ("Box(1).method", "__getattribute__(slice(0, 2))"),
        ("torch.Size([2, 3])", "numel(1)"),
    ],
)
def test_method_that_was_found_wrong(value: str, call: str) -> None:
    _check(value, call)


@pytest.mark.parametrize(
    "call",
    [
        "itertools.combinations([1], None)",
        "itertools.combinations([1], 10**30)",
        "itertools.product([1], repeat=None)",
        "itertools.tee([1], None)",
        "next(itertools.product(range(2000), range(2000)))",
        "__import__('bisect').insort((1, 2), (1, 2))",
        "'ab' % collections.deque()",
        "'ab' % Word('c')",
        "[(Word('c') % []), type(Word('c') % [])]",
        "type(Word('c').format(1))",
        "type(Word('%%') % [])",
        "'ab' * (1, 2)",
        "None * 'ab'",
        "__import__('operator').imul([1], 1.5)",
        "__import__('operator').iadd(1, None)",
        "{}.update([x.sum()])",
        "dict([[1, 2], 3])",
        "torch.cond(True)",
        "torch._check_is_size()",
        "torch.is_grad_enabled(1)",
        "torch.set_grad_enabled('x')",
        "torch._C._set_grad_enabled()",
        "torch.is_autocast_enabled('cpu', 'x', 3)",
        "torch.Tensor.__torch_function__(1)",
    ],
)
def test_function_that_was_found_wrong(call: str) -> None:
    plain, ours = dict(globals()), dict(globals())
    text = f"def program(x):\n    return {call}, x + 1\n"
    exec(text, plain)
    exec(text, ours)
    compiled = stator.compile(ours["program"], backend="eager")
    for _ in range(2):
        assert _run(compiled) == _run(plain["program"])
