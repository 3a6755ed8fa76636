"""The grammar of random programs, as data.

``<X>`` is an expression of type X, ``<x>`` a variable of it, ``<block>`` a block of statements. Types: T a square float
tensor, I int, F float, B bool, S str, L list of ints, D dict from str, O object, C callable from T to T, A anything.
All variables are bound from the start, so that most programs get far; those that raise are compared all the same. What
can grow is cut short, and nothing calls itself: every program ends.
"""

from __future__ import annotations

VARIABLES: dict[str, tuple[str, ...]] = {
    "T": ("t0", "t1", "t2"),
    "I": ("i0", "i1"),
    "F": ("f0",),
    "B": ("b0",),
    "S": ("s0",),
    "L": ("l0", "l1"),
    "D": ("d0", "d1"),
    "O": ("o0", "o1"),
    "C": ("c0",),
}
NAMES = tuple(name for names in VARIABLES.values() for name in names)

EXPRESSIONS: dict[str, tuple[str, ...]] = {
    "T": (
        "<t>",
        "(<T> + <T>)",
        "(<T> * <I>)",
        "(<T> - <F>)",
        "(<I> - <T>)",
        "<T>.sin()",
        "torch.relu(<T>)",
        "<T>.t()",
        "<t>.view(-1).view(<t>.shape)",
        "(<T> @ <T>)",
        "<t>.clone()",
        "<t>.detach()",
        "torch.where(<T> > <T>, <T>, <T>)",
        "(<T> + <t>[0])",
        "<t>[::1]",
        "<o>.scale(<T>)",
        "<C>(<T>)",
        "<o>(<T>, times=<I>)",
        "torch.stack([<T>, <T>]).sum(0)",
        "sum([<T>, <T>])",
        "[<T> for q in <L>[:2]][-1]",
        "(<T> if <B> else <T>)",
        "torch.zeros_like(<t>)",
        "torch.rand_like(<T>)",
        "torch.nn.functional.dropout(<T>, 0.5)",
        "opaque(<T>)",
        "(<T> / len(<L>))",
        "torch.full_like(<t>, <F>)",
        "(<t> := <T>)",
        "{'k': <T>}['k']",
        "max(<T>, <T>, key=lambda q: <I>)",
        "<T>.expand(<t>.shape)",
        "torch.cat([<T>, <T>])[: <t>.shape[0]]",
        "functools.reduce(torch.add, [<T>, <T>])",
        "(lambda a, b=<I>: a * b)(<T>)",
    ),
    "I": (
        "<i>",
        "1",
        "0",
        "-1",
        "3",
        "(<I> + <I>)",
        "(<I> - <I>)",
        "(<I> * <I> % 7)",
        "(<I> // 2)",
        "len(<L>)",
        "len(<D>)",
        "<l>[0]",
        "<l>[-1]",
        "<t>.shape[0]",
        "<t>.dim()",
        "<o>.value",
        "<o>.missing",
        "sum(<L>)",
        "max(<L>, default=<I>)",
        "len(<S>)",
        "(<I> if <B> else <I>)",
        "(<B> and <I>)",
        "(<I> or <I>)",
        "int(<T>.sum() > 0)",
        "opaque(<I>)",
        "<d>.get(<S>, <I>)",
        "abs(<I>)",
        "failing(<I>)",
        "COUNT",
        "len(TABLE)",
        "LOG.__len__()",
        "random.randrange(5)",
        "next(iter(<L>), <I>)",
        "[*<L>, 1].index(1)",
        "<L>.count(<I>)",
        "len({*<L>})",
        "(<i> := <I>)",
        "<L>[:1].__len__()",
        "hash(<I>) % 5",
        "int(<F>)",
        "round(<F>) % 9",
        "divmod(<I>, 3)[1]",
        "(<I> << 1) % 16",
        "len(<o>)",
        "<o>[0]",
    ),
    "F": (
        "<f>",
        "0.5",
        "-0.0",
        "(<F> + <I>)",
        "(<F> * 0.5)",
        "float(<I>)",
        "random.random()",
        "opaque(<F>)",
        "math.sqrt(abs(<I>))",
    ),
    "B": (
        "<b>",
        "True",
        "False",
        "(<I> > <I>)",
        "(<I> == <I>)",
        "(not <B>)",
        "(<B> or <B>)",
        "(<t> is <t>)",
        "(<o> is <o>)",
        "(<l> is <l>)",
        "(<l> == <l>)",
        "(<I> in <L>)",
        "(<S> in <D>)",
        "isinstance(<A>, int)",
        "isinstance(<o>, SmallBox)",
        "hasattr(<o>, 'tag')",
        "bool(<L>)",
        "bool(<o>)",
        "(<o> == <o>)",
        "(<d> is <d>)",
        "any(q > <I> for q in <L>)",
        "all(<D>)",
        "(<T>.sum() > 0).item()",
        "opaque(<B>)",
        "<t>.requires_grad",
        "torch.is_grad_enabled()",
        "(0 < <I> <= 3)",
        "callable(<A>)",
        "(type(<A>) is int)",
        "(<S> == <S>)",
        "<t>.is_contiguous()",
        "(<I> in <o>)",
        "(<o>.other is <o>)",
    ),
    "S": (
        "<s>",
        "'a'",
        "'b'",
        "f'{<I>}'",
        "f'{<F>:.2f}!'",
        "(<S> + <S>)[:6]",
        "str(<I>)",
        "<o>.kind",
        "repr(<L>)[:5]",
        "'%s' % <I>",
        "<S>.upper()",
        "type(<A>).__name__",
        "', '.join(<D>)[:5]",
        "opaque(<S>)",
    ),
    "L": (
        "<l>",
        "[<I>, <I>]",
        "<l>[1:]",
        "<l>[::-1]",
        "(<L> + <L>)[:5]",
        "[q + <I> for q in <L>]",
        "sorted(<L>)",
        "list(range(<I> % 4))",
        "list(<L>)",
        "<o>.items",
        "[*<L>, <I>][-4:]",
        "list(map(abs, <L>))",
        "[q for q in <L> if q > <I>]",
        "list(<o>)",
        "opaque(<L>)",
        "[b for a, b in zip(<L>, <L>)]",
        "[a + b for a, b in enumerate(<L>)]",
        "list(numbers(<I>))",
        "list(itertools.islice(itertools.chain(<L>, <L>), 3))",
        "LOG[:2].copy()",
        "[len(q) for q in <D>]",
        "list(filter(None, <L>))",
        "list(<L>.__iter__())",
        "copy.copy(<l>)",
        "list(itertools.accumulate(<L>))",
        "<d>.setdefault('list', <L>)",
    ),
    "D": (
        "<d>",
        "{'a': <A>}",
        "{**<D>, 'b': <A>}",
        "dict(<D>)",
        "dict(a=<A>, c=<A>)",
        "{q: <I> for q in <D>}",
        "(<D> | <D>)",
        "TABLE",
        "opaque(<D>)",
        "dict(zip('xy', <L>))",
        "vars(<o>)",
        "copy.copy(<d>)",
    ),
    "O": (
        "<o>",
        "Box(<I>)",
        "SmallBox(<I>, <L>)",
        "<o>.bump(<I>)",
        "<o>.bump()",
        "HELD",
        "opaque(<O>)",
        "(<O> if <B> else <O>)",
        "copy.copy(<o>)",
        "Box(value=<I>, items=<l>)",
    ),
    "C": (
        "<c>",
        "torch.sin",
        "<o>.scale",
        "(lambda a: a + <I>)",
        "(lambda a, b=<T>: a * b)",
        "functools.partial(torch.mul, <T>)",
        "<o>",
        "torch.nn.functional.relu",
    ),
    "A": (
        "<I>",
        "<T>",
        "<S>",
        "<L>",
        "<t>",
        "<o>",
        "None",
        "<D>",
        "<B>",
        "<F>",
        "(<I>, <A>)",
        "<l>",
        "<d>",
        "{<I>, <I>}",
        "iter(<L>)",
        "range(<I>)",
        "slice(<I>, None)",
        "(q for q in <L>)",
    ),
}

SIMPLE: tuple[str, ...] = (
    "<t> = <T>",
    "<i> = <I>",
    "<l> = <L>",
    "out.append(<A>)",
    "<d> = <D>",
    "<o> = <O>",
    "<b> = <B>",
    "<s> = <S>",
    "<f> = <F>",
    "<c> = <C>",
    "<t> = <t>",
    "<l> = <l>",
    "stator.graph_break()",
    "<t> += <T>",
    "<t>.mul_(<I>)",
    "<t>.add_(<T>)",
    "<t>[0] = <F>",
    "<t>[0].copy_(<T>[0])",
    "<t>.t().add_(<T>)",
    "<t>.tag = <A>",
    "torch.add(<T>, <T>, out=torch.empty(0))",
    "<t> = <t>.zero_()",
    "<t>.requires_grad_()",
    "<t>.data = <T>.data",
    "<l>.append(<I>)",
    "<l>[0] = <I>",
    "<l>[:1] = <L>[:2]",
    "del <l>[0]",
    "<l>.insert(0, <I>)",
    "<l>.reverse()",
    "<l>.sort()",
    "<i> = <l>.pop()",
    "<l> += <L>[:2]",
    "<l>.extend(<L>[:2])",
    "<l>.remove(<I>)",
    "<l>.clear()",
    "random.shuffle(<l>)",
    "<d>[<S>] = <A>",
    "<d>.pop(<S>, None)",
    "<d>.update(<D>)",
    "del <d>[<S>]",
    "<d>['self'] = <d>",
    "<d>.clear()",
    "<d> |= {'z': <I>}",
    "out.append(<d>.popitem())",
    "<o>.value = <I>",
    "<o>.double = <I>",
    "<o>.tag = <A>",
    "<o>.other = <o>",
    "<o>.items = <l>",
    "<o>.items.append(<I>)",
    "<o> += <I>",
    "<o>.value += <I>",
    "del <o>.tag",
    "setattr(<o>, 'tag', <A>)",
    "<o>.other = <A>",
    "COUNT = <I>",
    "COUNT += 1",
    "LOG.append(<I>)",
    "TABLE[<S>] = <A>",
    "TABLE['list'] = <l>",
    "HELD.value = <I>",
    "HELD = <O>",
    "LOG = <L>",
    "bag.append(<A>)",
    "bag[0] = <l>",
    "print(<I>, <S>)",
    "warnings.warn(<S>)",
    "<i>, <i> = <I>, <I>",
    "<i>, *<l> = [*<L>, <I>]",
    "torch.manual_seed(<I> % 5)",
    "out.append([<I>, <A>])",
    "out.append(out[-1:])",
    "assert <B>, <S>",
    "out.append(sorted(<D>))",
    "out.append([(q, w) for q, w in <D>.items()])",
    "out.append({<I>: <A> for q in <L>[:3]})",
    "raise ValueError(<A>)",
)

COMPOUND: tuple[str, ...] = tuple(
    """\
if <B>:
    <block>
---
if <B>:
    <block>
else:
    <block>
---
if <T>.sum() > <I>:
    <block>
---
for <i> in range(3):
    <loop>
---
for <i> in <L>[:4]:
    <loop>
else:
    <block>
---
for <i>, q in enumerate(<L>[:3]):
    <loop>
---
for <s>, q in list(<D>.items())[:3]:
    <loop>
---
for <s> in <d>:
    <loop>
---
for <t> in [<T>, <T>]:
    <loop>
---
for <t> in <C>, <T>:
    <loop>
---
for q in itertools.islice(<l>, 7):
    <loop>
---
w = 0
while w < 3:
    w += 1
    <loop>
---
try:
    <block>
except ValueError as error:
    out.append(error.args)
    <block>
---
try:
    <block>
finally:
    <block>
---
try:
    <block>
except (KeyError, IndexError):
    <block>
else:
    <block>
finally:
    <block>
---
try:
    <block>
    raise KeyError(<I>)
except KeyError as error:
    <block>
    out.append(error.args)
---
try:
    <block>
except Exception as error:
    out.append((type(error), str(error)[:40]))
---
try:
    <block>
except Exception as error:
    raise ValueError(<I>) from error
---
with Guarded(LOG) as <i>:
    <block>
---
with logged(out) as <i>:
    <block>
---
with torch.no_grad():
    <block>
---
with torch.enable_grad(), Guarded(<l>):
    <block>
---
with contextlib.suppress(Exception):
    <block>
---
match <A>:
    case int(q):
        <block>
    case [q, *_]:
        <block>
    case _:
        <block>
---
def inner(a, b=<I>, *, k=<A>):
    <nonlocal>
    <nested>
    out.append(k)
    return a + b
<t> = inner(<T>)
---
def inner(a, *rest, **named):
    <nonlocal>
    <nested>
    out.append((rest, named))
    return a * 2
<c> = inner
<t> = inner(<T>, *<L>[:2], **{'p': <A>})
---
def producer(a):
    <nonlocal>
    <generator>
    yield a
    <generator>
<block>
for q in producer(<A>):
    out.append(q)
---
def producer(a):
    <nonlocal>
    <generator>
    got = yield a
    out.append(got)
    <generator>
    return <I>
g0 = producer(<A>)
out.append(next(g0, None))
<block>
out.extend(g0)
---
def producer(a):
    <nonlocal>
    try:
        <generator>
        yield <A>
    finally:
        <nested>
g0 = producer(<A>)
out.append(next(g0, None))
<block>
g0.close()
---
it = iter(<L>)
out.append(next(it, None))
<block>
out.extend(zip(it, it))
---
class Local(Box):
    shared = <A>
    def bump(self, by=<I>):
        out.append(self.shared)
        return super().bump(by)
<o> = Local(<I>)
---
<block>
if <B>:
    return out, <A>""".split("\n---\n")
)

STATEMENTS = SIMPLE + COMPOUND

IN_LOOPS = ("break", "continue", "if <B>:\n    break", "if <B>:\n    continue")
IN_GENERATORS = ("yield <A>", "yield <T>", "out.append((yield <I>))", "yield from <L>[:3]", "if <B>:\n    return")

PRELUDE = """\
COUNT = 1
LOG = [1]
TABLE = {'a': 1, 'n': 2}
HELD = Box(2)


def numbers(n):
    yield from range(n % 4)
    LOG.append(n)
    yield COUNT
"""

START = """\
global COUNT, LOG, TABLE, HELD
out = []
t0, t1, t2 = x, y, x + 1
i0, i1, f0, b0, s0 = n, 1, 1.5, True, 'a'
l0, l1, d0, d1 = bag[0], [3, 1, 2], bag[1], {'a': 1}
o0, o1, c0 = bag[2], Box(), torch.cos
"""

END = "return out, " + ", ".join(name for name in NAMES if name != "c0") + ", c0(x)"
