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
""".strip().splitlines()
