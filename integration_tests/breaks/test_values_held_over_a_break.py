"""A value of each kind, made before a break and used after it under two names: it is the same
object, and a break more is the most that it costs."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import importlib
import linecache
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import stator
import torch

from integration_tests.support.oracle import assert_same


@dataclasses.dataclass
class Data:
    a: int
    b: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    a: int


Pair = collections.namedtuple("Pair", "a b")


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Flags(enum.Flag):
    A = 1
    B = 2


class Base:
    def __init__(self, v: int = 1) -> None:
        self.v = v

    def m(self, k: int) -> int:
        return self.v + k

    @property
    def p(self) -> int:
        return self.v * 2

    @classmethod
    def c(cls) -> str:
        return cls.__name__


class Derived(Base):
    def m(self, k: int) -> int:
        return super().m(k) + 1

    def sup(self) -> Any:
        return super()


class Slots:
    __slots__ = ("a", "b")

    def __init__(self) -> None:
        self.a = 1


class Items(list[int]): ...


class Callee:
    def __call__(self, k: int) -> int:
        return k + 1


def counting(n: int) -> Iterator[int]:
    yield from range(n)


def decorated(f: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(f)
    def g(*args: Any) -> Any:
        return f(*args)

    return g


MODULES = """
abc contextlib contextvars datetime decimal fractions inspect io itertools math operator pathlib random re
string threading types typing uuid weakref"""
KINDS = """
[1, [2]] ; (1, (2,)) ; {1: {2: 3}} ; {1, 2} ; frozenset({1}) ; b"ab" ; bytearray(b"ab") ; memoryview(b"ab") ; range(3)
slice(1, 2) ; 1 + 2j ; None ; ... ; slice(x.shape[0], None) ; Items([1]) ; Data(1) ; Frozen(1) ; Pair(1, 2)
Color.RED ; Color ; Flags.A | Flags.B ; Base(2) ; Derived(3) ; Slots() ; Callee() ; Derived(1).m ; Derived.m
Derived.c ; Base.p ; Derived(1).sup() ; super(Derived, Derived(2)) ; Base ; type("T", (Base,), {"q": 1})
type("T", (Base,), {})(4) ; lambda k: k ; functools.partial(lambda a, b: a, 1) ; functools.partial(Base, 3)
decorated(lambda k: k) ; operator.itemgetter(0) ; operator.attrgetter("v") ; operator.methodcaller("m", 1)
functools.lru_cache(lambda k: k) ; functools.reduce ; counting(3) ; (i for i in range(3)) ; iter([1, 2])
iter((1, 2)) ; iter({1: 2}) ; iter("ab") ; enumerate([1]) ; zip([1], [2]) ; map(str, [1]) ; filter(None, [1])
reversed([1, 2]) ; iter(lambda: 1, 1) ; itertools.count() ; itertools.chain([1], [2]) ; itertools.groupby([1, 1])
itertools.product([1], [2]) ; itertools.tee([1])[0] ; itertools.accumulate([1, 2]) ; iter(range(3)) ; iter({1})
{1: 2}.keys() ; {1: 2}.items() ; collections.deque([1], maxlen=3) ; collections.OrderedDict(a=1)
collections.defaultdict(list, a=[1]) ; collections.Counter("aab") ; collections.ChainMap({1: 2}, {})
collections.UserDict(a=1) ; collections.UserList([1]) ; types.MappingProxyType({1: 2}) ; types.SimpleNamespace(a=1)
re.compile("a+") ; re.match("a", "abc") ; random.Random(3) ; math.pi ; datetime.timedelta(days=1)
decimal.Decimal("1.5") ; fractions.Fraction(1, 3) ; string.Template("$a") ; io.StringIO("x") ; uuid.UUID(int=3)
pathlib.PurePath("a/b") ; threading.Lock() ; weakref.ref(Data) ; contextvars.ContextVar("of_a_test")
inspect.signature(counting) ; list[int] ; typing.Optional[int] ; int | None ; typing.TypeVar("T") ; abc.ABC ; print
len ; [].append ; "a".join ; {}.get ; int.__add__ ; (1).__add__ ; str.upper ; object() ; type ; property(lambda s: 1)
classmethod(len) ; staticmethod(len) ; Exception("a") ; StopIteration(3) ; KeyError("k") ; contextlib.nullcontext()
contextlib.ExitStack() ; contextlib.suppress(ValueError) ; contextlib.closing(io.StringIO()) ; torch.no_grad()
torch.autocast("cpu") ; torch.inference_mode() ; torch.profiler.record_function("a") ; x + 1 ; (x + 1).view(-1)
x.shape ; x.size(0) ; x.dtype ; x.device ; x.sum().item ; x.add ; torch.add ; nn.functional.relu ; nn.Parameter(x)
nn.Linear(3, 3) ; nn.Sequential(nn.ReLU()) ; nn.ModuleList([nn.ReLU()]) ; x.unbind() ; x.split(1) ; x.max(0)
x.topk(2) ; torch.Size([1, 2]) ; torch.device("cpu") ; torch.Generator() ; torch.finfo(torch.float32) ; x.numpy()
np.float32(1) ; np.array([1.0]) ; np.dtype("f4") ; np.add ; torch ; x.data ; torch.optim.SGD([nn.Parameter(x)], 0.1)
nn.CrossEntropyLoss() ; torch.ops.aten.add.Tensor ; x.__add__ ; type(x) ; x.new_zeros ; torch.func.vmap(torch.sin)
torch.func.grad(lambda v: v.sum()) ; torch.distributions.Normal(x, 1.0) ; x.to_sparse()"""
EXPRESSIONS = [text for line in KINDS.strip().split("\n") for text in line.split(" ; ")]
TEXT = """\
def program(x):
    y = x + 1
    held = {expression}
    pair = [held, held]
    z = y * 2
    stator.graph_break()
    return z + y, held is pair[0], type(held).__name__
"""


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_value_goes_over_a_break(expression: str) -> None:
    name, text = f"<a value held: {expression}>", TEXT.format(expression=expression)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = globals() | {module: importlib.import_module(module) for module in MODULES.split()}
    namespace |= {"np": np, "nn": torch.nn}
    exec(compile(text, name, "exec"), namespace)
    compiled = stator.compile(namespace["program"], backend="eager")
    assert_same(namespace["program"], compiled, lambda: (torch.ones(3),))
    assert "runs plainly" not in str(compiled.report)
    assert compiled.report.graph_count >= 1
