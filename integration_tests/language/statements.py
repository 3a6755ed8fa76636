"""Statements of everyday Python, one a line, over classes that answer in unusual ways: what each
gives or raises.

`EXPRESSIONS` are returned; in `STATEMENTS` a backslash and an n end a line. Each is the body of a
function.
"""

# A statement is a line.

from __future__ import annotations

PRELUDE = r"""
import abc, collections, contextlib, copy, dataclasses, enum, functools, inspect, itertools, math, operator, re, string, types, typing
import torch
LOG = []
def raiser(e):
    def f(*a, **k): raise e
    return f
class It:
    def __init__(self, n, exc=StopIteration): self.n=n; self.exc=exc
    def __iter__(self): return self
    def __next__(self):
        self.n -= 1
        if self.n < 0: raise self.exc
        return self.n
class Seq:
    def __init__(self, n, exc=IndexError): self.n=n; self.exc=exc
    def __getitem__(self, i):
        if i >= self.n: raise self.exc(i)
        return i*10
class Len(Seq):
    def __len__(self): return self.n
class V:
    def __init__(self, v): self.v=v
    def __eq__(self, o): LOG.append(("eq", self.v)); return self.v == getattr(o,'v',o)
    def __hash__(self): return hash(self.v)
    def __lt__(self, o): LOG.append(("lt", self.v)); return self.v < o.v
    def __repr__(self): return f"V({self.v})"
class Mul:
    def __mul__(self, o): return "mul"
    def __index__(self): return 2
class Right:
    def __radd__(self, o): LOG.append("radd"); return ("radd", o)
    def __rmul__(self, o): return NotImplemented
    def __index__(self): return 2
class Keyed:
    def __getattr__(self, n):
        if n == "keys": return lambda: ["a"]
        raise AttributeError(n)
    def __getitem__(self, k): return 3
class Unkeyed:
    def keys(self): return self.missing
class NoHash:
    def __eq__(self, o): return True
class Gen:
    def __iter__(self):
        yield 1; yield 2
class CP:
    @functools.cached_property
    def cp(self): LOG.append("cp"); raise AttributeError("in cp")
    def __getattr__(self, n): return "got "+n
class MCP(torch.nn.Module):
    @functools.cached_property
    def cp(self): raise AttributeError("in cp")
    @property
    def dev(self): return next(self.parameters()).device
class Sup(CP):
    @property
    def q(self): raise AttributeError("q")
class SubSup(Sup):
    def get(self): return super().q
class CM:
    def __init__(self, sw=False): self.sw=sw
    def __enter__(self): LOG.append("in"); return self
    def __exit__(self, *e): LOG.append(("out", e[0] and e[0].__name__)); return self.sw
class CMEnterRaises(CM):
    def __enter__(self): raise ValueError("enter")
class CMExitRaises(CM):
    def __exit__(self, *e): raise KeyError("exit")
class NoExit:
    def __enter__(self): return 1
class NewOther:
    def __new__(cls): return 5
    def __init__(self): LOG.append("init")
class InitReturns:
    def __init__(self): return 3
class Meta(type):
    def __call__(cls, *a): LOG.append("metacall"); return super().__call__(*a)
    def __len__(cls): return 7
    def __iter__(cls): return iter("ab")
    def __contains__(cls, o): return o == 1
    def __getitem__(cls, k): return k
    def __bool__(cls): return False
    def __eq__(cls, o): return "metaeq"
    __hash__ = type.__hash__
class WithMeta(metaclass=Meta):
    def __init__(self, *a): self.a = a
class Sub1(int):
    def __add__(self, o): return "sub1 add"
    def __radd__(self, o): return "sub1 radd"
class SubStr(str):
    def __str__(self): return "substr!"
    def __format__(self, s): return "fmt "+s
class SubList(list):
    def __iter__(self): return iter([9,9])
    def __len__(self): return 1
    def __getitem__(self, i): return "gi"
class SubDict(dict):
    def __iter__(self): return iter(["z"])
    def keys(self): return ["k1"]
    def __getitem__(self, k): return "v"+str(k)
    def items(self): return [("i", 1)]
class DescNonData:
    def __get__(self, o, c): return ("nd", o is None, c.__name__)
class DescData(DescNonData):
    def __set__(self, o, v): LOG.append(("set", v))
class HasDesc:
    nd = DescNonData(); d = DescData()
@dataclasses.dataclass(order=True)
class DC:
    a: int
    b: list = dataclasses.field(default_factory=list, compare=False)
    c: int = dataclasses.field(default=3, repr=False)
@dataclasses.dataclass(frozen=True)
class FDC:
    a: int
class Col(enum.Enum):
    R=1; G=2
class Fl(enum.Flag):
    A=1; B=2; C=4
class IE(enum.IntEnum):
    X=1; Y=2
def gen(n):
    try:
        for i in range(n):
            got = yield i
            LOG.append(got)
    finally:
        LOG.append("fin")
    return "ret"
def deleg(n):
    r = yield from gen(n)
    yield r
class Slots:
    __slots__=("a",)
class Idx:
    def __index__(self): return 2
class Abc(abc.ABC):
    @abc.abstractmethod
    def m(self): ...
@functools.total_ordering
class TO:
    def __init__(self,v): self.v=v
    def __eq__(self,o): return self.v==o.v
    def __lt__(self,o): return self.v<o.v
class Rev:
    def __reversed__(self): return iter([3,2,1])
class Fmt:
    def __format__(self, s): return f"<{s}>"
    def __repr__(self): return "Fmt()"
class Cmp:
    def __eq__(self, o): return NotImplemented
    def __lt__(self, o): return NotImplemented
class Call:
    def __call__(self, *a, **k): return a, k
class DelA:
    def __delattr__(self, n): LOG.append(("del", n))
    def __setattr__(self, n, v): LOG.append(("set", n, v)); object.__setattr__(self, n, v)
NT = collections.namedtuple("NT", "a b", defaults=[2])
BUSY = BlockingIOError(11, "again")
DQ = collections.deque([1, 2, 3], 4)
DD = collections.defaultdict(int, a=1)
MC = operator.methodcaller("split", "a", maxsplit=1)
IG = operator.itemgetter(slice(1, 3))
OBJ = object()
class RaisingKey:
    def __hash__(self): return hash(OBJ)
    def __eq__(self, o): raise ValueError("eq")
KD = {RaisingKey(): 1}
class Trunc:
    def __trunc__(self): return 4
LST = [1, 2, 3, 4, 5, 6]
SET1, SET2, SET3 = {1, 5}, {"a", 2, 1}, {9, 17, 1}
FS = frozenset((33, 1, 17))
SIZE = torch.Size((1, 2))
def _fn():
    a = 4
    def f(): return a
    return f
FN = _fn()
SLOT = V(4)
SET4 = {8, 1, 2}
class PT(tuple, enum.Enum):
    A = (1, 2)
    B = (2, 1)
POLICY = [torch.ops.aten.mm.default]
class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a): return a * 2
    @staticmethod
    def backward(ctx, g): return g * 3
"""

EXPRESSIONS = r"""
CP().cp
MCP().cp
MCP().dev
Sup().q
SubSup().get()
SubSup().q
hasattr(MCP(), "cp")
getattr(MCP(), "cp", 4)
list(It(3))
list(It(3, ValueError))
list(map(lambda v: next(iter([])), [1, 2]))
list(filter(raiser(StopIteration()), [1]))
[*zip(It(2), It(3))]
sum(It(4))
max(It(0))
max(It(0), default=5)
min([], key=len, default=None)
list(Seq(3))
list(Seq(3, StopIteration))
list(Seq(3, KeyError))
20 in Seq(3)
5 in Seq(3)
list(reversed(Len(3)))
list(reversed(Seq(3)))
list(reversed(Rev()))
iter(Seq(2)).__next__()
V(1) in [V(2), V(1)]
[V(2), V(1)].index(V(1))
[V(2), V(1)].count(V(1))
{V(1): 2}[V(1)]
{V(1), V(1), V(2)}
sorted([V(3), V(1), V(2)])
NoHash() in {1: 2}
hash(NoHash())
{NoHash(): 1}
(1, NoHash()) == (1, 2)
dict([(1, 2), (3,)])
dict([(1, 2), 3])
dict(a=1, **{"a": 2})
"".join(["a", 1])
",".join(Gen())
[*Gen(), *It(2)]
NewOther()
InitReturns()
len(WithMeta), list(WithMeta), 1 in WithMeta, WithMeta["k"], bool(WithMeta), WithMeta == 3
WithMeta(1).a
Sub1(1) + 2, 2 + Sub1(1), 2 - Sub1(1), Sub1(1) - 2
f"{SubStr('a')}", str(SubStr('a')), f"{SubStr('a'):>3}", "%s" % SubStr("a"), "".join([SubStr("a")])
list(SubList([1,2])), len(SubList()), [*SubList([1])], SubList([1])[0], sorted(SubList([3]))
list(SubDict(a=1)), dict(SubDict(a=1)), {**SubDict(a=1)}, SubDict(a=1)["q"]
dict(**SubDict(a=1))
HasDesc().nd, HasDesc.nd, HasDesc().d, HasDesc.d
DC(1) < DC(2), DC(1, [1]) == DC(1, [2]), DC(1), dataclasses.asdict(DC(1)), dataclasses.replace(DC(1), a=5)
setattr(FDC(1), "a", 3)
hash(FDC(1)) == hash(FDC(1))
Col(1), Col["R"], Col.R.value, Col.R == Col.R, list(Col), Col.R in Col, Col.R.name
Col(3)
Col["Q"]
Fl.A | Fl.B, Fl.A & Fl.B, ~Fl.A, Fl(3), Fl.A in (Fl.A | Fl.C), bool(Fl.A & Fl.B)
IE.X + 1, IE.X < IE.Y, f"{IE.X}", str(IE.X), IE(2)
list(gen(3))
list(deleg(2))
next(gen(0))
gen(2).send(1)
gen(1).throw(KeyError("t"))
Slots().a
setattr(Slots(), "b", 1)
[1, 2, 3][Idx()], "abc"[Idx()], range(5)[Idx()], [0] * Idx()
"a" * Idx(), (1,) * Idx(), Idx() * [1]
Abc()
TO(1) <= TO(1), TO(1) >= TO(2), sorted([TO(2), TO(1)])[0].v, max(TO(1), TO(3)).v
f"{Fmt():abc}", f"{Fmt()!r:>8}", "{:x}".format(Fmt()), format(Fmt()), "{0!s:*^9}".format(Fmt())
Cmp() == 1, Cmp() != 1
Cmp() < 1
Call()(1, k=2), Call()(*[1], **{"a": 2})
NT(1), NT(1)._replace(b=5), NT._make([1, 2]), NT(1).a, NT._fields, NT(1)._asdict(), NT(1) + (3,)
NT()
round(2.5), round(3.5), round(-0.5), round(2.567, 2), round(1234, -2)
divmod(-7, 2), -7 // 2, -7 % 2, 7 % -2, divmod(7.5, -2), -7.5 // 2
1 // 0
1 % 0
1.0 / 0
0 ** -1
pow(2, -1, 5), pow(3, 4, 5), 2 ** -1, (-8) ** (1/3)
int("12x")
int("ff", 16), int(" 12 "), int("1_000"), float("1e3"), float("nan") != float("nan")
float("x")
chr(-1)
ord("ab")
"abc"[5]
[1, 2][5]
(1, 2)[-3]
{}["q"]
[].pop()
{}.popitem()
set().pop()
[1].remove(2)
"a".index("b")
[1, 2, 3][::0]
"%d" % "a"
"%s %s" % (1,)
"%s" % (1, 2)
"{} {}".format(1)
"{a}".format(b=1)
"{:d}".format("a")
f"{1:s}"
None + 1
"a" + 1
[1] + (2,)
1 < "a"
None < None
[1] < ["a"]
len(5)
iter(5)
next(5)
5()
5[0]
abs("a")
-"a"
~1.5
not NoHash()
isinstance(1, 5)
issubclass(1, int)
isinstance(1, (int, "a"))
super().x
print.foo
int.foo
x.foo
(lambda a: a)()
(lambda a, b=1: a)(1, 2, 3)
(lambda *, a: a)()
(lambda a, /: a)(a=1)
(lambda a: a)(1, a=2)
(lambda a: a)(b=2)
print(*5)
(lambda **k: k)(**5)
(lambda **k: k)(**{1: 2})
{**enumerate([1, 2])}
{**Keyed()}, dict(Keyed()), dict(**Keyed()), (lambda **k: k)(**Keyed())
{**Unkeyed()}
dict(Unkeyed())
(lambda **k: k)(**Unkeyed())
(lambda **k: k)(**[1])
iter(3, 4)
functools.partial(5)
functools.partial()
functools.partial(functools.partial(int, base=2), '10')()
iter(int, 0).__next__()
reversed(Col.R)
list(reversed(Col))
int(collections.deque())
float(functools.partial(int))
int(bytearray(b"12")), float(bytearray(b"1.5"))
[*types.SimpleNamespace(a=1)]
[1, 2][collections.deque()]
[1] + collections.deque()
",".join(3)
int[0]
list[int], typing.List[int]
[1, 2][2**70]
[1, 2].pop(2**70)
(1, 2)[slice(1.5)]
[1, 2][slice("a")], x[slice(1)]
{x.dim(): 1}.get(slice(1))
{slice(1): 2}
(1, slice(2)) in {1}
[1] * Mul(), Mul() * [1]
[1] * Right(), Right() * (1,), "a" * Right()
[1] + Right(), (1,) + Right(), collections.deque([1]) + Right(), SubList([1]) + Right()
[].__add__(Right())
x.shape + 1
collections.namedtuple(typename="P", field_names="a b")(1, 2)
str.upper.__get__(None, None)
type.__call__(type, 5)
types.MethodType(Call(), 1) == types.MethodType(Call(), 1), types.MethodType(Call(), 1).__func__(2)
getattr(BUSY, "characters_written", "none"), BUSY.errno
ExceptionGroup("a", [])
BaseExceptionGroup("a", [KeyboardInterrupt(2)]).exceptions[0].args
dict.__new__(dict())
torch.return_types.max((x,))
int(Idx()), x + 1
float(Idx()), x + 1
int(Trunc()), x + 1
type.__new__(type, "A", [], {})
collections.deque.__new__(collections.deque, 1)
collections.deque([1], "a")
collections.deque([1], 2.5)
KD.get(OBJ, 0)
collections.defaultdict(3)
collections.OrderedDict([(1,)])
collections.OrderedDict([()])
BlockingIOError(1, "a", 3).characters_written
types.CellType(3).cell_contents
raiser(1).__closure__[0].cell_contents, x + 1
len(types.MappingProxyType(Seq(3)))
types.MappingProxyType(Seq(3)).keys()
types.MappingProxyType([1])
MC("bac a"), x + 1
IG([1, 2, 3, 4]), x + 1
[1].index(1, "a")
tuple.__getnewargs__((1, x))
(1, 2).__getnewargs__()
[v.v for v in sorted([V(i * 7 % 70) for i in range(70)])][:5], len(LOG), x + 1
functools.cmp_to_key(lambda a, b: b - a).obj
operator.itemgetter(1).foo
operator.itemgetter(1).__doc__, x + 1
str(x).translate({49: 50}), x + 1
"abc".format(x) + "d", x + 1
"{0:{0:{0}}}".format(x, 1, 2)
"{:{:{}}}".format(V(1), Fmt(), 3)
"{".format(x)
"{0[]}".format(x)
"{0.}".format(V(1))
"{} {0}".format(x, 1)
"{0} {}".format(x, 1)
"{0} {}".format(V(1), V(2))
"{} {0}".format(V(1), V(2))
"{:{0}}".format(V(1), V(2))
"{} {}".format(V(1))
"{a}".format(V(1))
"{0}".format_map({"a": V(1)})
"{}".format_map({"a": V(1)})
"{a}".format_map({"a": V(1)})
"{a.v}{a}{{}}".format_map({"a": V(1)})
"{0} {1} {0}".format(V(1), V(2))
"{:{}} {}".format(V(1), "", V(2))
"{a} {} {0}".format(V(1), V(2), a=V(3))
"{a} {".format(V(1))
"{0} {".format(Fmt())
"{0.zz[]}".format(V(1))
"{5[]}".format(V(1))
"{99999999999999999999}".format(V(1))
"{0.v[]}".format(V(1))
"{".format_map({"a": V(1)})
"{0!x}".format(V(1))
"{} {0}".format(V(1))
"{0!x}{".format(V(1))
"{0!a} {0!s} {0!r}".format(V("\u00e4"))
"{0:{1}}".format(3, str(x))
"{0:>{1}}".format(V("a").v, 4) + str(x)
tuple.__new__(tuple, (1,), 2)
torch.Size([1, 2]).count(1), torch.Size([1, 2]).index(2), torch.Size((1, 2)) + (3,), x + 1
torch.broadcast_shapes((2, 1), (1, 3)).count(2), (1,) + torch.broadcast_shapes((2, 1), (1, 3)), x + 1
SIZE.count(1), SIZE + (1,), (1,) + SIZE, SIZE == (1, 2), (1, 2) == SIZE, [*SIZE], x + 1
vars(WithMeta)["__module__"], sorted(vars(type("Z", (), {"q": 1})))[-1], x + 1
type("Z", (), {"q": 1}).__dict__["q"], x + 1
(lambda: 1).__closure__, FN.__closure__[0].cell_contents, FN.__code__.co_freevars, x + 1
types.CellType.cell_contents.__get__(5)
types.CellType.cell_contents.__get__(FN.__closure__[0]), x + 1
torch.return_types.max((x, x)).values, x + 1
torch.return_types.max((x, x, x))
PT.A.count(1), PT.A[1], len(PT.A), x + 1
PT.A + (3,), PT.A * 2, PT.A[:1], PT.A.index(2), x + 1
PT.A == (1, 2), (1, 2) == PT.A, PT.A < PT.B, PT.B != PT.A, x + 1
(0,) + PT.A, tuple(PT.A), [*PT.A], 1 in PT.A, x + 1
x.reshape(PT.A), x + 1
operator.add(SIZE, (1,)), operator.getitem(SIZE, 0), operator.mul(SIZE, 2), operator.concat(SIZE, (2,)), x + 1
torch.Size([1, 2]).__add__((3,)).count(1), copy.copy(SIZE).count(1), copy.deepcopy(SIZE).index(2), x + 1
torch.func.grad(lambda a: (a.sum(), a.sum()))(x)
torch.func.vmap(lambda a: a[0] + a[1])(collections.deque([x, x]))
torch.func.vmap(lambda a: a["q"] + 1)(collections.defaultdict(list, q=x))
torch.func.vmap(lambda a, b: a + b["c"], in_dims=(0, {"d": 0}))(x, {"c": x})
torch.func.vmap(lambda a, b: a + b[0], in_dims=(0, (0, 0)))(x, [x, x])
torch._higher_order_ops.while_loop(lambda a: (a.sum() < 9, a.sum() < 3), lambda a: (a + 1,), (x,))
""".strip().splitlines()

STATEMENTS = r"""
a, b = 1
with CM(): return 1
with CM(True): raise ValueError("v")
with CM(): raise ValueError("v")
with CMEnterRaises(): return 1
with CMExitRaises(): raise ValueError("v")
with NoExit(): pass
with 5: pass
with CM() as a, CMEnterRaises() as b: pass
with CM(True), CMExitRaises(True): raise ValueError("v")
with contextlib.suppress(KeyError): {}["a"]
with contextlib.ExitStack() as s: s.enter_context(CM()); s.callback(LOG.append, "cb"); raise KeyError("k")
with contextlib.closing(gen(2)) as g: return next(g)
with contextlib.nullcontext(3) as v: return v
return [*map(raiser(StopIteration(3)), [1])], 2
return next(map(raiser(StopIteration(3)), [1]))
return next(iter(raiser(StopIteration(3)), 1))
return list(iter(raiser(StopIteration(3)), 1))
return next(filter(None, [0]))
return next(zip(It(1, KeyError("q")), [1, 2])), 1
return list(zip(It(1, KeyError("q")), [1, 2]))
return list(enumerate(It(2), 5)), list(enumerate([], 1))
return dict(zip("ab", It(5)))
return [a for a in map(lambda v: v * 2, It(3)) if a]
return {a: b for a, b in [(1, 2), (3, 4)]}, {a for a in "aab"}
return list(g for g in (next(iter([])) for _ in range(2)))
return sorted([3, 1, 2], key=raiser(StopIteration()))
return sorted([1, "a"])
return sorted([V(3), V(1)], reverse=True), sorted("bca", key=str.upper)
return min(V(2), V(1)), max([V(1), V(3)], key=lambda v: -v.v)
return sum([[1], [2]], []), sum([1.5, 2]), sum(["a"], "b")
return sum([1], "a")
return any(It(3)), all(It(3)), any([]), all([])
return any(raiser(KeyError(1))() for _ in [1])
return isinstance(V(1), V), isinstance(WithMeta(), WithMeta), issubclass(Sub1, (str, int)), isinstance(True, int)
return type(V(1)).__name__, type(WithMeta).__name__, V.__mro__, V.__bases__
return type("Q", (V,), {"z": 1})(3).z
return type("Q", (5,), {})
return getattr(V(1), "q")
return getattr(V(1), "q", None), hasattr(V, "v"), getattr(V, "__name__")
return vars(V(1)), dir(Slots())[-1], callable(V), callable(V(1)), callable(Call())
v = V(1)\ndel v.v\nreturn vars(v)
v = V(1)\ndel v.q
v = DelA()\nv.a = 1\ndel v.a\nreturn v.a
return operator.attrgetter("v.real")(V(3)), operator.itemgetter(1, 0)("ab"), operator.methodcaller("upper")("a")
return functools.reduce(lambda a, b: a + b, It(4)), functools.reduce(lambda a, b: a, [], 5)
return functools.reduce(lambda a, b: a, [])
return functools.partial(lambda *a, **k: (a, k), 1, b=2)(3, c=4)
return list(itertools.chain("ab", It(2))), list(itertools.islice(It(5), 1, 4, 2)), list(itertools.takewhile(lambda v: v > 1, It(4)))
return list(itertools.product("ab", repeat=2)), list(itertools.permutations([1, 2, 3], 2)), list(itertools.combinations("abc", 2))
return [(k, list(g)) for k, g in itertools.groupby("aabba")], list(itertools.accumulate([1, 2, 3], operator.mul)), list(itertools.zip_longest("ab", "c"))
return list(itertools.starmap(pow, [(2, 3), (3, 2)])), list(itertools.compress("abc", [1, 0, 1])), list(itertools.pairwise("abc"))
return list(itertools.dropwhile(raiser(KeyError(1)), [1]))
a, b = It(2)\nreturn a, b
a, b = It(3)\nreturn a, b
a, b, c = It(2)\nreturn a, b
a, *b = It(3)\nreturn a, b
a, *b, c = [1]\nreturn a
(a, b), c = [1, 2], 3\nreturn a, b, c
a, b = {"x": 1, "y": 2}\nreturn a, b
a, b = 5
for a in 5: pass
for a, b in [(1, 2), (3,)]: LOG.append(a)
x.z = 1\nreturn x.z
l = [1, 2, 3]\nl[1:2] = It(2)\nreturn l
l = [1, 2, 3]\nl[::2] = [1]\nreturn l
l = [1, 2, 3]\ndel l[5]
l = [1, 2, 3]\nl[Idx()] = 9\ndel l[0]\nreturn l
l = [1]\nl += It(2)\nl *= 2\nreturn l
l = [1]\nl += 5
t = ([],)\ntry: t[0] += [1]\nexcept TypeError as e: return str(e), t
d = {}\nd.setdefault("a", []).append(1)\nd |= {"b": 2}\nreturn d, d | {"c": 3}, list(d.items())
d = {1: 2}\nfor k in d: d[k + 1] = 1
d = {1: 2, 2: 3}\nreturn [d.popitem(), d.pop(5, "no"), d.get(9), list(d)]
d = SubDict(a=1)\nreturn f"{d}", d == {"a": 1}, "a" in d, len(d), {**d}, list(d.items())
s = {1, 2}\ns ^= {2, 3}\nreturn s, s - {1}, s & {3}, s <= {1, 3, 4}, s.isdisjoint({7})
s = {1}\ns |= [2]
return {1} | [2]
s = "aXb"\nreturn s.partition("X"), s.title(), s.center(7, "*"), s.translate({88: "Y"}), s.split("X"), s.join("12"), s[::-1], s.encode()
return "%-5s|%5.1f|%x|%r|%%" % ("a", 2.25, 255, "q"), "%(a)s" % {"a": 1}
return "{:>{w}}".format("a", w=4), "{0[1]} {1.real}".format([1, 2], 3), f"{3.14159:.2f}{10:b}{255:#x}{1000000:,}{0.5:%}"
return f"{x.shape!s:>20}", f"{1=}", f"{[i for i in range(2)]}"
match [1, 2, 3]:\n    case [a, *b]: return a, b
match {"k": 1, "z": 2}:\n    case {"k": v, **rest}: return v, rest
match DC(1):\n    case DC(a=1, c=c): return c
match Col.R:\n    case Col.G: return 1\n    case Col.R: return 2
match 5:\n    case int(n) if n > 5: return 1\n    case 5 | 6 as m: return m
match V(1):\n    case V(1): return 1
g = gen(2)\nnext(g)\ng.close()\nreturn list(g)
g = gen(3)\nnext(g)\ntry: g.throw(ValueError("t"))\nexcept ValueError as e: return str(e), next(g, "end")
g = gen(1)\nnext(g)\ntry: next(g)\nexcept StopIteration as e: return e.value, e.args
g = deleg(2)\nreturn next(g), g.send("s"), next(g), next(g, 0)
g = deleg(2)\nnext(g)\ng.throw(KeyError("k"))
def h():\n    try: yield 1\n    except GeneratorExit: LOG.append("ge"); raise\n    finally: LOG.append("f")\ng = h()\nnext(g)\ndel g\nreturn LOG[:]
def h():\n    raise StopIteration(1)\n    yield\nreturn list(h())
def h():\n    return (yield from It(2))\nreturn list(h())
def h():\n    x = yield 1\n    while x: x = yield x\ng = h()\nreturn next(g), g.send(3), g.send(0)
try:\n    try: raise KeyError(1)\n    finally: raise ValueError(2)\nexcept ValueError as e: return repr(e.__context__), e.__cause__
try:\n    try: raise KeyError(1)\n    except KeyError as k: raise ValueError(2) from None\nexcept ValueError as e: return repr(e.__context__), e.__cause__, e.__suppress_context__
try: raise KeyError\nexcept KeyError as e: return e.args, str(e)
try: raise 5\nexcept TypeError as e: return str(e)
try: raise ValueError from 5\nexcept TypeError as e: return str(e)
try: {}["a"]\nexcept 5: pass
try: {}["a"]\nexcept (ValueError, LookupError) as e: return type(e)
try:\n    raise ExceptionGroup("g", [ValueError(1), KeyError(2)])\nexcept* ValueError as eg: LOG.append(repr(eg.exceptions))\nexcept* KeyError as eg: LOG.append(repr(eg))\nreturn 3
for i in range(3):\n    try:\n        if i == 1: continue\n        if i == 2: break\n    finally: LOG.append(i)\nelse: LOG.append("else")\nreturn i
def r(n): return 1 if n == 0 else n * r(n - 1)\nreturn r(10)
def r(n): return r(n + 1)\ntry: r(0)\nexcept RecursionError as e: return "rec"
f1 = lambda *a, b=2, **k: (a, b, k)\nreturn f1(1, *[2], b=3, **{"c": 4}), f1(b=1)
def q(a, b=[]):\n    b.append(a)\n    return b\nreturn q(1), q(2)
c = 0\ndef inc():\n    nonlocal c\n    c += 1\n    return c\nreturn inc(), inc(), c
class L:\n    y = 3\n    z = [y for _ in range(2)]\n    def m(self): return self.y, __class__.__name__\nreturn L().m(), L.z
class L(V):\n    def __init__(self): super().__init__(9)\n    def __repr__(self): return "L" + super().__repr__()\nreturn repr(L()), L() == V(9)
return copy.copy(V(1)).v, copy.deepcopy([V(1), [2]])[1], copy.copy([1]), copy.deepcopy({"a": (1, [2])})
return math.floor(2.7), math.isclose(0.1 + 0.2, 0.3), math.gcd(12, 18), math.inf, math.prod([1, 2, 3]), math.hypot(3, 4), math.sqrt(-1)
return abs(-3), abs(-2.5), abs(3+4j), bin(5), hex(255), oct(8), chr(97), ord("a"), ascii("é"), repr("a'b")
return int.from_bytes(b"\x01\x02", "big"), (258).to_bytes(2, "little"), (5).bit_length(), 0.5.as_integer_ratio(), 1.5.is_integer(), (3).real
return bytes([1, 2]), bytearray(b"ab")[0], b"a" + b"b", b"%d" % 3, bytes("é", "utf8"), b"ab".hex(), memoryview(b"abc")[1]
return slice(1, 5, 2).indices(4), range(10)[2:8:3], 5 in range(0, 10, 5), range(3) == range(0, 3), len(range(0, -5, -2)), range(5).index(3)
return complex(1, 2) * 1j, complex("1+2j"), (1+2j).conjugate(), 1j ** 2, complex(1, 2) == 1+2j
return 1 < 2 < 3 > 2, 1 if [] else 2, not 0, None or "a", 0 and 1, (1, 2) < (1, 3), [1] == [1.0], True + True, True == 1.0
return list("abc").sort(), [3, 1].sort(key=lambda v: -v), [1, 2].extend(It(2)), [].append(1)
return [1, 2, 3].index(3, 1), (1, 2, 1).count(1), "abcabc".rfind("b"), "a,b".split(",", 1), " a ".strip(), "abc".replace("b", "")
return hash((1, 2)) == hash((1, 2)), hash("a") == hash("a"), hash(1) == hash(1.0), hash(V(5)), id(x) == id(x)
return collections.Counter("aab").most_common(1), collections.OrderedDict(a=1), collections.deque([1, 2], 1), collections.defaultdict(int)["q"], collections.ChainMap({"a": 1}, {"a": 2})["a"]
return string.ascii_lowercase[:3], re.sub("a", "b", "aa"), re.match("(a)(b)?", "a").groups(), re.findall("[0-9]", "1a2")
return typing.get_type_hints(DC), inspect.signature(V.__init__).parameters.keys(), inspect.isclass(V)
return next(x for x in [1, 2] if x > 1), [y := 5, y ** 2], (lambda: (yield))().__next__()
return TO(1) == TO(2), TO(1) != TO(1), TO(2) > TO(1)
assert x is None, "msg"
assert 0, V(1)
assert 0
return undefined_name
del undefined_name
return (undefined := 3), undefined
import math as mm, os.path\nfrom collections import OrderedDict as OD\nreturn mm.pi, OD.__name__, os.path.join("a", "b")
import nonexistent_module
from math import nonexistent
global LOG2\nLOG2 = [1]\nreturn LOG2
a = b = [1]\na += Right()\nreturn a, b
a = b = SubList([1])\na += Right()\nreturn a, b
a = b = [1]\na *= Right()\nreturn a, b, a is b
a, b = collections.deque
def g(): pass\nreturn g.__get__(None)
p = property(len)\np.__init__(str)\nreturn p.fget
class E(Exception):\n    def __setattr__(self, n, v): LOG.append(n); super().__setattr__(n, v)\ne = E("a")\ne.add_note("b")\nreturn e.__notes__, x + 1
e = ValueError()\ne.__notes__ = ()\ne.add_note("a")
g = gen(1)\nlist(g)\nreturn g.close(), x + 1
g = gen(1)\ng.close()\ng.close()\nreturn x + 1
class C:\n    @property\n    def __class__(self): return int\nreturn dir(C()) == dir(C), x + 1
class T(tuple):\n    def __init__(self, *a): LOG.append(a)\nreturn T((1,), 2)
import time\nreturn time.struct_time((1, 2, 3))
class C: a = 1\nreturn sorted(vars(C)), vars(C)["a"]
class C: a = 1\nreturn "a" in C.__dict__, list(C.__dict__)[:2], dict(C.__dict__)["a"]
Sup.zz = 1\nr = "zz" in vars(Sup)\ndel Sup.zz\nreturn r, "zz" in vars(Sup), x + 1
SubSup.zz = 1\nr = hasattr(SubSup(), "zz"), hasattr(Sup(), "zz")\ndel SubSup.zz\nreturn r, SubSup().zz, x + 1
class B:\n    def __mro_entries__(self, b): return (5,)\nclass C(B()): pass
class M(type):\n    @classmethod\n    def __prepare__(m, n, b): return collections.OrderedDict(z=3)\nclass C(metaclass=M): y = 2\nreturn [n for n in vars(C) if len(n) == 1], x + 1
class D:\n    def __set_name__(self, c, n): raise KeyError(n)\nclass C: a = D()
class C: pass\nC.__weakref__ = 3\nreturn C.__weakref__, C().__weakref__, x + 1
class D(collections.deque):\n    def __new__(cls, *a): LOG.append("new"); return super().__new__(cls)\nd = D([1, 2], 3)\nd.z = 4\nreturn d, d.maxlen, d.z
DQ.__init__([5])\nreturn list(DQ), DQ.maxlen, x + 1
DD.__init__(list, b=2)\nreturn dict(DD), DD["c"], x + 1
c = {}\ncollections._count_elements(c, "aab")\nreturn c, x + 1
class C(collections.Counter): pass\nreturn C("aab"), C("aab") + C("b"), x + 1
it = reversed(Len(1))\nr = list(it)\nreturn r, it
it = iter({1})\nr = list(it)\nreturn r, it, x + 1
d = {1: 2}\nit = iter(d)\nd[3] = 4\nnext(it)
d = {1: 2}\nit = iter(d)\ndel d[1]\nd[3] = 4\nreturn next(it)
d = collections.OrderedDict({1: 2})\nit = iter(d)\nd[3] = 4\nnext(it)
s = {1, 2}\nit = iter(s)\ns.discard(1)\ns.add(3)\nreturn list(it), x + 1
s = {1, 2}\nit = iter(s)\ns.discard(1)\ns.add(3)\nreturn it, x + 1
it = itertools.chain([1])\nr = list(it)\nreturn r, it, x + 1
def g():\n    LOG.append(1)\n    return 5 if len(LOG) > 2 else next(it)\nit = iter(g, 5)\nreturn list(it), len(LOG)
l = [1, 2]\ndel l[::0]
l = [1, 2]\nl.__init__([3])\nreturn l
s = {1, 2}\ns.__init__([3])\nreturn s
l = [3, 1, 2]\nl.sort(key=lambda v: l.append(v) or v)\nreturn l
l = [3, 1, 2]\ntry:\n    l.sort(key=lambda v: l.append(v) or v)\nexcept ValueError as e:\n    return l, str(e), x + 1
p = functools.partial(max, 1)\na = p.args\nreturn p.args is a, p(3), x + 1
p = functools.partial(max, 1)\na = p.args\nreturn p, a, x + 1
l = [x]\nl.append(l)\nreturn repr(l), x + 1
l = [1]\nl.append(l)\nreturn repr(l), x + 1
d = {1: V(2)}\nd[3] = d\nreturn repr(d), x + 1
l = [x] * (1 << 21)\nreturn len(l), l[-1] is x
class C: a = slice(None, x)\nreturn C.a.stop, x + 1
k = functools.cmp_to_key(lambda a, b: b - a)(3)\nreturn k.obj, x + 1
l = [3, 1, 2]\nseen = []\nl.sort(key=lambda v: seen.append(len(l)) or v)\nreturn l, seen, x + 1
l = [3, 1, 2]\nl.sort(key=lambda v: l.append(v) or l.pop())\nreturn l
l = [3, 1, 2]\nl.sort(key=lambda v: l.clear() or v)\nreturn l
l = [V(3), V(1), V(2)]\nl.sort(key=lambda v: V(v.v) if not l else 1/0)\nreturn [v.v for v in l], x + 1
l = [3, 1, 2]\ntry:\n    l.sort(key=lambda v: 1 / (v - 1))\nexcept ZeroDivisionError: return l, x + 1
l = [3, 1, 2]\nl.sort(key=lambda v: print(end="") or len(l) + v)\nreturn l, x + 1
class F:\n    def __format__(self, s): LOG.append(s); return "f"\nreturn "{0} {0:a} {".format(F())
class R:\n    def __repr__(self): LOG.append("r"); return "R"\n    def __format__(self, s): LOG.append("f"); return "4"\nreturn "{0!r:{0}}".format(R()), x + 1
s = str(x)\nreturn f"{3:{s}}"
class C(itertools.chain): pass\nreturn list(C.from_iterable([[1], [2]])), type(C.from_iterable([])).__name__, x + 1
class C(itertools.chain): pass\nreturn C.from_iterable([[1], [2]]), x + 1
class C(itertools.chain): pass\nreturn C([1], [2]), x + 1
a, b = itertools.tee(g for g in (1, 2, 3))\nnext(a)\nprint(end="")\nnext(a)\nreturn a, b, x + 1
k = itertools.groupby("aabc")\nn, m = next(k)\nnext(m)\nprint(end="")\nreturn k, m, x + 1
d = {1: None}\nd[1] = iter(d)\nreturn d, x + 1
d = {1: None, 2: 3}\nd[1] = iter(d.items())\nreturn d, x + 1
d = {1: None, 2: 3}\nit = iter(d)\nnext(it)\nd[1] = it\nreturn d, x + 1
def g():\n    LOG.append(1)\n    return 5 if len(LOG) > 2 else next(it, 7)\nit = iter(g, 5)\nreturn list(it), len(LOG)
del Sup.q\nreturn hasattr(Sup(), "zq"), SubSup().get(), x + 1
del CP.cp\nr = Sup().cp\nCP.cp = 3\nreturn r, Sup().cp, x + 1
def walk(v): DQ.pop(); list(DQ); print(end=""); return v\nreturn sorted([2, 1], key=walk), list(DQ), x + 1
def walk(v): LST.pop(); sum(LST); print(end=""); return v\nreturn sorted([2, 1], key=walk), LST, x + 1
def walk(v): LST.pop(0); sum(LST); LST.append(v); print(end=""); return v\nreturn sorted([2, 1], key=walk), LST, x + 1
LST.append(x)\ndef walk(v): LST.pop(); len([*LST]); print(end=""); return v\nreturn sorted([2, 1], key=walk), LST, x + 1
class T(tuple):\n    def __new__(cls, a, b=0): return super().__new__(cls, a)\n    def __init__(self, a, b=0): self.b = b\nreturn T((1,), b=2), T((1,), b=2).b, x + 1
class T(tuple):\n    def __init__(self, a, b=0): self.b = b\nreturn T((1,), b=2).b, x + 1
class T(frozenset):\n    def __init__(self, a, b=0): self.b = b\nreturn T((1,), b=2).b, x + 1
import os\nreturn os.stat_result(range(10), {"st_atime": 4}).st_atime, x + 1
import time\nreturn time.struct_time(range(9), {"tm_zone": "a"}).tm_zone, x + 1
r = reversed(Len(3))\nnext(r)\nreturn r, x + 1
class L(tuple):\n    __slots__ = ()\n    def __len__(self): return 3\n    def __getitem__(self, i): return i\nr = reversed(L())\nnext(r)\nreturn r, x + 1
class L:\n    __slots__ = ("a",)\n    def __len__(self): return 3\n    def __getitem__(self, i): return i\nr = reversed(L())\nnext(r)\nreturn r, next(r), x + 1
class K:\n    def __init__(self, v): self.v = v\n    def __eq__(self, o): D1.clear(); return True\n    __hash__ = None\nD1 = {1: K(1), 2: K(2)}\nreturn D1 == {1: 1, 2: 2}, D1, x + 1
D1 = {}\nclass K:\n    def __eq__(self, o): D2.clear(); return True\nD1, D2 = {1: K(), 2: K()}, {1: 1, 2: 2}\nreturn D1 == D2, D1.keys(), D2, x + 1
SET1.update(SET2 - {1})\nreturn SET1, x + 1
SET1.update({V(1), V(2)} | SET2)\nreturn len(SET1), x + 1
SET1.symmetric_difference_update(SET2)\nSET2.intersection_update(SET1)\nreturn SET1, SET2, x + 1
SET2.update(SET2 ^ {OBJ, 3})\nreturn len(SET2), x + 1
s = frozenset((1, 2)) | frozenset("a")\nreturn list({*s, 3}), list(s | {4}), x + 1
SET1.update(SET3)\nfor i in SET1: LOG.append(i)\nreturn x + 1
s = {OBJ, 1}\ns.update(FS)\nreturn [i for i in s if i is not OBJ], x + 1
s = {1, 2} - {OBJ}\nreturn list(s), x + 1
n = x.shape[0]\nreturn str(n).translate({50: "a"}), f"{n}b".translate({50: "a"}), x + 1
r = DQ.__reversed__()\nnext(r)\nreturn r, x + 1
h = torch.nn.Linear(2, 2).register_forward_hook(print)\nreturn id(h) == id(h), x + 1
h = torch.nn.Linear(2, 2).register_forward_hook(print)\nd = {id(h): 1}\nreturn d[id(h)], x + 1
class C: pass\nC.__weakref__ = 3\nreturn x + 1
c = types.CellType()\ntry: c.cell_contents\nexcept ValueError as e: return str(e), x + 1
c = FN.__closure__[0]\nreturn c.cell_contents, c == FN.__closure__[0], x + 1
v = V(0)\nd = {1: 2}\nv.it = iter(d)\nd[3] = 4\nreturn next(v.it)
v = V(0)\nd = {1: 2}\nv.it = iter(d)\nd[3] = 4\ntry: next(v.it)\nexcept RuntimeError as e: return str(e), x + 1
v = V(0)\nd = {1: 2, 5: 6}\nv.it = iter(d)\nnext(v.it)\ndel d[5]\nd[3] = 4\nreturn next(v.it), x + 1
v = V(0)\ns = {1}\nv.it = iter(s)\ns.add(2)\nreturn next(v.it)
d = {}\nd["it"] = iter(d.values())\nreturn d, x + 1
d = {"it": None}\nd["it"] = iter(d.values())\nreturn d["it"], x + 1
d = {"it": None, 1: 2}\nit = d["it"] = iter(d.values())\nd[x] = it\nreturn it, x + 1
class D(dict): pass\nd = D(it=None)\nd["it"] = iter(d.values())\nreturn d, x + 1
d = collections.OrderedDict(it=None)\nd["it"] = iter(d.values())\nreturn d, x + 1
d = collections.defaultdict(list, it=None)\nd["it"] = iter(d.items())\nreturn d, x + 1
v = V(None)\nd = {v: 1}\nv.v = iter(d)\nreturn d, x + 1
v = V(1)\nd = {v: 1}\nv.z = iter(d)\nreturn d, x + 1
class I:\n    def __init__(s, d): s.it = iter(d)\nd = {1: 2}\nd[1] = I(d)\nreturn d, x + 1
DD["a"] = iter(DD)\nreturn DD["a"], x + 1
d = {1: 2}\nd[1] = zip(iter(d), [x])\nreturn d, x + 1
import time\nreturn time.struct_time(5)
import time\nreturn time.struct_time()
t = frozenset((3,)) | {V(1)}\ns = {1}\ns.update(t)\nreturn len(s | {3}), x + 1
s = set(torch.Size((4, 3)))\ns |= set((5,))\nreturn list(s), x + 1
s = {3}\ns.update(())\ns.update(frozenset())\nreturn list(s), x + 1
s = set("ab").union((1, 2), frozenset((3,)))\nreturn list(s), x + 1
s = {1}.union(torch.Size((4, 3)))\nreturn list(s), x + 1
s = frozenset((1, 2))\nt = {7} | s\nfor i in t: LOG.append(i)\nreturn t, x + 1
s = {1, 2}\ns -= frozenset((2,))\nfor i in s: LOG.append(i)\nreturn x + 1
SET1.clear()\nSET1.add(4)\nreturn SET1, x + 1
SET3.difference_update([1])\nSET3.add(V(1))\nreturn len(SET3), x + 1
SET1.update(SET1 | {c for c in SET3})\nreturn SET1, x + 1
SET1 -= {V(1), V(2)}\nreturn SET1, x + 1
SET1.update(SET1 ^ {5, 6, 7})\nSET1.update(SET1.copy())\nreturn SET1, x + 1
d = {1: 2}\ndef g():\n    for k in d: yield k\ni = g()\nnext(i)\nd[3] = 4\nreturn next(i, 9)
d = {1: 2}\ndef g():\n    for k in d: yield k\ni = g()\nnext(i)\nd[3] = 4\ntry: next(i)\nexcept RuntimeError as e: return str(e), x + 1
d = {1: 2, 2: 3}\nl = [iter(d.items())]\nnext(l[0])\ndel d[1]\nd[3] = 4\nreturn next(l[0]), x + 1
d = {1: 2, 2: 3}\nl = [iter(d)]\nd[3] = 4\nreturn l, x + 1
d = {1: 2, 2: 3}\nl = [iter(d.values())]\nd.clear()\nreturn l, x + 1
d = {1: 2, 2: 3}\nl = [reversed(d.values())]\nd.clear()\nd[1] = 3\nreturn l, x + 1
d = {1: 2, 2: 3}\nl = [reversed(d.values())]\ndel d[2]\nreturn next(l[0])
d = {1: 2, 2: 3}\nl = [iter(d)]\nlist(l[0])\nd[3] = 4\nreturn next(l[0], 7), l, x + 1
d = {1: 2, 2: 3}\nl = [iter(d)]\nnext(l[0])\nd[1] = 5\nreturn next(l[0]), l, x + 1
l = [iter(DD)]\nDD["q"] = 1\nreturn next(l[0])
l = [iter(DD.items())]\nDD["q"] = 1\nreturn l, x + 1
l = [iter(DD)]\nnext(l[0])\ndel DD["a"]\nDD["z"] = 1\nreturn list(l[0]), x + 1
l = [iter(DD)]\nDD.clear()\nreturn list(l[0]), x + 1
DD["q"] = 1\nl = [iter(DD)]\nnext(l[0])\nreturn l, x + 1
d = collections.OrderedDict({1: 2, 2: 3})\nl = [iter(d)]\nd[3] = 4\nreturn next(l[0])
d = collections.OrderedDict({1: 2, 2: 3})\nl = [iter(d.items())]\nd[3] = 4\nreturn l, x + 1
d = collections.OrderedDict({1: 2, 2: 3})\nl = [iter(d)]\nd.move_to_end(1)\nreturn list(l[0]), x + 1
d = collections.OrderedDict({1: 2, 2: 3, 4: 5})\nl = [iter(d)]\nnext(l[0])\nd.move_to_end(1)\nreturn list(l[0]), x + 1
d = {1: 2, 2: 3}\nl = [zip(d, [4, 5, 6])]\nnext(l[0])\ndel d[1]\nreturn list(l[0])
d = {1: 2, 2: 3}\nl = [zip(d, [4, 5, 6])]\nnext(l[0])\ndel d[1]\nreturn l, x + 1
d = {1: 2, 2: 3}\nl = [map(str, d)]\nnext(l[0])\nd.pop(1)\nd.setdefault(5, 6)\nreturn list(l[0]), x + 1
d = {1: 2, 2: 3}\nl = [iter(d)]\nd |= {1: 3}\nd.update({7: 8})\nreturn list(l[0])
d = {1: 2}\nl = [iter(d)]\nd.popitem()\nreturn list(l[0])
v = V(0)\nv.it = iter(v.__dict__)\nreturn next(v.it)
v = V(0)\nl = [iter(v.__dict__)]\nv.z = 3\nreturn next(l[0])
v = V(0)\nl = [iter(vars(v).items())]\nv.z = 3\nreturn l, x + 1
SLOT.z = iter(vars(SLOT))\nreturn next(SLOT.z)
d = {1: 2}\nl = [enumerate(d)]\nd[2] = 3\nprint(end="")\nreturn list(l[0])
d = {1: 2}\ndef h(it): d[2] = 3; return next(it)\nreturn h(iter(d))
d = {1: 2}\ndef h(it): d.setdefault(2, 3); print(end=""); return next(it)\nreturn h(iter(d))
import time\nreturn time.struct_time([1])
import time\nreturn time.struct_time(iter(range(9))).tm_mon, x + 1
d = {1: 2}\nreturn list(map(lambda k: d.update({k + 10: 1}), d))
d = {1: 2}\ntry: list(map(lambda k: d.update({k + 10: 1}), d))\nexcept RuntimeError as e: return str(e), d, x + 1
d = {1: 2, 2: 3}\ntry: return list(map(lambda k: (d.pop(k), d.update({k + 10: 1})), d)), d\nexcept RuntimeError as e: return str(e), d, x + 1
d = {1: 2, 2: 3}\nl = []\nl.extend(d.pop(k) for k in d)
d = {1: 2, 2: 3}\nl = []\ntry: l.extend(d.pop(k) for k in d)\nexcept RuntimeError: return l, d, x + 1
d = {1: 2, 2: 3}\nl = []\ntry: l.extend(map(d.pop, d))\nexcept RuntimeError: return l, d, x + 1
d = {1: 2, 2: 3}\nreturn sum(map(d.pop, list(d))), d, x + 1
d = {}\nd["it"] = iter(d)\nreturn next(d["it"])
d = {}\nd["it"] = iter(d)\ntry: next(d["it"])\nexcept RuntimeError as e: return str(e), x + 1
d = {}\nd["it"] = iter(d)\nreturn d["it"], x + 1
d = {}\nd["it"] = reversed(d)\nreturn d["it"], x + 1
d = {}\nd["it"] = [iter(d)]\nreturn d["it"], x + 1
d = {}\nd["it"] = [iter(d)]\nd["z"] = 3\nprint(end="")\nreturn next(d["it"][0])
d = {1: 2}\nd["it"] = zip(d, "ab")\nprint(end="")\nreturn next(d["it"])
DD["it"] = iter(DD)\nreturn next(DD["it"])
DD["it"] = iter(DD)\nreturn DD["it"], x + 1
d = {1: 2, 2: 3, 3: 4}\nwhile len(d) > 1: d.pop(next(iter(d)))\nreturn d, x + 1
d = {1: 2, 2: 3, 3: 4}\nfor k in list(d): d[k + 3] = d.pop(k)\nreturn d, x + 1
d = {1: 2, 2: 3}\nfor k in d:\n    d[9] = 3\n    break\nreturn d, x + 1
d = {1: 2, 2: 3}\nfor k in d:\n    if k == 2: d[9] = 3\nreturn d
d = {1: 2, 2: 3}\nit = iter(d)\nd = {5: 6}\nd[7] = 8\nreturn next(it), d, x + 1
d = {1: 2, 2: 3}\nit = iter(d)\ndel it\nd[7] = 8\nreturn d, x + 1
global GL\nd = {1: 2}\nGL = iter(d)\nd[2] = 3\nreturn next(GL)
d = {1: 2}\nSLOT.it = iter(d)\nd[2] = 3\nreturn next(SLOT.it)
d = {1: 2}\nLST.append(iter(d))\nd[2] = 3\nreturn next(LST.pop())
d = {1: 2}\nit = iter(d)\ndef f(): return next(it)\nd[2] = 3\nreturn f()
d = {1: 2}\nf = functools.partial(next, iter(d))\nd[2] = 3\nreturn f()
d = {1: 2}\nf = iter(d).__next__\nd[2] = 3\nreturn f()
d = {1: 2}\nf = itertools.chain(d, [4])\nnext(f)\nd[2] = 3\nreturn list(f)
d = {1: 2}\nf = itertools.islice(d, 2)\nd[2] = 3\nreturn list(f)
d = {1: 2}\nf = (i for i in d)\nd[2] = 3\nreturn list(f)
d = {1: 2}\nf = (i for i in d)\nprint(end="")\nd[2] = 3\nreturn f, x + 1
SET4.update({1, 2, 8})\nreturn list(SET4), SET4, x + 1
SET4.update({1: 2, 2: 3, 8: 4})\nreturn SET4, x + 1
SET4.update([1, 2, 8])\nreturn SET4, x + 1
SET4 |= {1, 2, 8}\nreturn SET4, x + 1
global SET4\nSET4 |= {1, 2, 8}\nreturn SET4, x + 1
global SET4\nSET4 |= {1: 2, 2: 3, 8: 4}.keys()\nreturn SET4, x + 1
SET4.update({1, 2}, {8, 1, 2})\nreturn SET4, x + 1
SET4.update(SET4 | {1})\nreturn SET4, x + 1
s = SET4\ns.update(s)\ns.update(set(s))\nreturn s, x + 1
s = SET4\ns &= {1, 2, 8}\nreturn s, x + 1
s = SET4\ns -= {3, 4}\nreturn s, x + 1
s = SET4\ns ^= set()\nreturn s, x + 1
s = SET4\ns.difference_update({8})\ns.add(8)\nreturn s, x + 1
s = SET4\ns.discard(8)\ns.add(8)\nreturn s, x + 1
s = SET4\ns.intersection_update({1, 2, 8, 9})\nreturn s, x + 1
s = SET4\ns.symmetric_difference_update({})\nreturn s, x + 1
s = SET4\ns.update({})\nreturn s, x + 1
s = SET4\ns.update(())\ns.update(torch.Size((1, 2, 8)))\nreturn s, x + 1
s = SET4\ns.update({8, 1, 2})\nfor i in s: LOG.append(i)\nreturn x + 1
s = SET4\ns.update({8, 1, 2})\nt = s | {5}\nreturn t, [i for i in t], x + 1
s = SET4\ns.update({8, 1, 2})\nt = s - {5}\nreturn t, s.copy(), set(s), frozenset(s), x + 1
s = SET4\ns.add(16)\ns.update({8, 1, 2})\nt = s - {5}\nreturn t, s.copy(), set(s), frozenset(s), x + 1
class P(tuple, enum.Enum):\n    A = (1, 2)\nreturn P.A.count(1), x + 1
a, b = PT.A\nreturn a + b, hash(PT.A) == hash((1, 2)), {PT.A: 1}[PT.A], x + 1
s = operator.add(x.shape, (1,))\nreturn s.count(1), s + (1,), s == (2, 1), type(s).__name__, x + 1
s = torch.Size((1, 2)) * 2\nreturn s.count(1), s[1:], type(s), x + 1
s = {1, 2}\ns.__init__((7, 1))\nSET4.update(s)\nSET4.discard(99)\nreturn SET4, list(s), x + 1
SET4.__init__((9, 1))\nreturn SET4, list(SET4), x + 1
SET4 &= SET4\nreturn SET4, x + 1
s = SET4\ns &= s\nreturn s, x + 1
s = SET4\ns.intersection_update(s)\ns.add(16)\nreturn s, x + 1
s = {8, 1, 2}\ns.intersection_update(s)\nt = s | {16}\nSET4.update(t)\nreturn s, t, SET4, x + 1
s = SET4\ns.intersection_update(s)\nt = s | {16}\nfor i in t: LOG.append(i)\nreturn t, x + 1
s = SET4\ns -= s\nt = s | {16}\nreturn t, x + 1
Doubled.extra = 4\nreturn Doubled.apply(x * 1) + Doubled.extra
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts as contexts\nPOLICY.append(POLICY[0])\nw = x.outer(x).requires_grad_()\nreturn checkpoint(lambda a: (a @ a).sin(), w, use_reentrant=False, context_fn=functools.partial(contexts, POLICY)).sum()
class C:\n    def __call__(self): LOG.append(1); return next(it, 7) if len(LOG) % 3 == 2 else 5 if len(LOG) % 3 == 0 else 1\nit = iter(C(), 5)\nreturn list(it), x + 1
n = []\ndef g():\n    n.append(1)\n    return 1 if len(n) == 1 else 5 if len(n) == 3 else next(it, 7)\nit = iter(g, 5)\nreturn list(it), len(n), x + 1
d = {"it": None}\nd["it"] = iter(d)\nd["o"] = V(d["it"])\nreturn d["o"], x + 1
class D(dict): pass\nd = D(a=1)\nd.it = iter(d)\nreturn d, d.it, x + 1
d = collections.OrderedDict(a=1)\nd.it = iter(d)\nreturn d.it, x + 1
class D(dict): pass\nd = D(a=1)\nd["a"] = [iter(d)]\nreturn d["a"][0], x + 1
""".strip().splitlines()
