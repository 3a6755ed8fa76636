"""The statements of random programs: see `_grammar`. Long, for it is one list."""

from __future__ import annotations

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
    "<e> = <E>",
    "<e>.add(<I>)",
    "<e>.discard(<I>)",
    "<e>.remove(<I>)",
    "<i> = <e>.pop()",
    "<e> |= <E>",
    "<e> -= {<I>}",
    "<e>.update(<L>)",
    "<k> = <K>",
    "<k>.append(<I>)",
    "<k>.appendleft(<I>)",
    "<i> = <k>.popleft()",
    "<k>.rotate(<I>)",
    "<k>.extend(<L>[:2])",
    "<k>[0] = <I>",
    "<p> = <P>",
    "<p>.a = <I>",
    "<p>.b = <A>",
    "<p> += <P>",
    "del <p>.a",
    "<i>, q = <P>",
    "<f> += <I>",
    "<f> *= <F>",
    "<i> += <I>",
    "<i> -= <t>.shape[0]",
    "<i> *= <I>",
    "<i> //= <I>",
    "<s> += <S>[:2]",
    "<f> = <t>.shape[0] * <F>",
    "<i> = <t>.shape[0]",
    "<i> = <t>.numel() // <i>",
    "<d>[<i>] = <A>",
    "<d>[<i>, <S>] = <A>",
    "<d>[<t>.shape] = <A>",
    "<d>[<t>] = <I>",
    "<d>[<p>] = <I>",
    "<d>[<S>] = <D>",
    "<d>[<o>] = <I>",
    "del <d>[<i>]",
    "<d>.move_to_end(<S>)",
    "<d>['zz'].append(<I>)",
    "<d>.setdefault(<S>, []).append(<A>)",
    "<l>[-1] += <I>",
    "<l>[::2] = <L>",
    "<l>[<I>:] = <G>",
    "<l>[1:1] = <L>[:2]",
    "del <l>[::2]",
    "del <l>[<I>:]",
    "<l>[<t>.shape[0] - 1] = <I>",
    "<l> *= COUNT % 2",
    "<l>.pop(<I>)",
    "<l>.sort(key=lambda q: -q)",
    "<l>.append(<F>)",
    "<l>.append(<t>.shape[0])",
    "<l>[0], <l>[-1] = <l>[-1], <l>[0]",
    "<t>[:, 0] = <T>[0]",
    "<t>[<I>] = <I>",
    "<t>[<t> > 0] = <F>",
    "<t>[0, 0] += <I>",
    "<t>[:1] *= <I>",
    "<t>[0] = <T>[-1]",
    "<t> *= <F>",
    "<t> -= <T>.sum()",
    "<t>[..., -1].fill_(<F>)",
    "<t>.view(-1)[:2].zero_()",
    "<t> = <t>.view(-1)",
    "<t> = <t>[0]",
    "<t> = <t>[1:]",
    "<t> = <t>.t()",
    "<t> = <t>.expand(2, *<t>.shape)",
    "<t>.copy_(<T>)",
    "<t>.clamp_(min=0)",
    "<t>.detach_()",
    "<t>.detach().mul_(<I>)",
    "<t>.unsqueeze_(0)",
    "<t>.t_()",
    "<t>.set_(<T>)",
    "<t>.data.mul_(2)",
    "<t>.data[0] = <F>",
    "<t>.grad = <T>",
    "<t>.grad = None",
    "<t>.requires_grad = <B>",
    "<t>.requires_grad_(<B>)",
    "<T>.sum().backward()",
    "(<t> * <T>).sum().backward(retain_graph=True)",
    "<t>.sum().backward()",
    "<t>.retain_grad()",
    "hooked(<t>, lambda g: g * <I>)",
    "torch.mul(<T>, <I>, out=<t>)",
    "torch.set_grad_enabled(<B>)",
    "torch._foreach_add_([<t>, <t>], <I>)",
    "<t>, <t> = <T>.chunk(2)",
    "<t>, <i> = <T>, <I>",
    "<t>, *q = [<T>, <T>, <I>]",
    "(<t>, <i>), <s> = (<T>, <I>), <S>",
    "<d>['a'], <l>[0] = <I>, <I>",
    "<o>.value, <o>.items = <I>, <L>",
    "for <l>[0] in <L>[:2]: pass",
    "<i> = <l>[0] = <I>",
    "<o>.value = <d>['a'] = <A>",
    "<m>.level = <I>",
    "<m>.level += 1",
    "<m>.mean = <T>",
    "<m>.mean.add_(<I>)",
    "<m>.gain.data = <T>.detach()",
    "<m>.gain = torch.nn.Parameter(<T>.detach())",
    "<m>.gain.grad = None",
    "<m>.note = <A>",
    "<m>.train(<B>)",
    "<m>.eval()",
    "<m>.weights.append(torch.nn.Parameter(torch.ones(2)))",
    "<m>.register_buffer('more', <T>)",
    "<m>.requires_grad_(<B>)",
    "<m>.zero_grad()",
    "<m>.register_forward_pre_hook(lambda a, b: (b[0] + <I>,))",
    "<m>.register_forward_hook(lambda a, b, c: out.append(<A>))",
    "del <m>.mean",
    "del <m>.note",
    "del <m>.gain",
    "<t> = <m>.forward(<T>)",
    "<t> = <m>(<T>)",
    "VAR.set(<A>)",
    "w0 = weakref.ref(<o>)",
    "w0 = weakref.ref(<O>)",
    "out.append(w0() is None)",
    "out.append(cached(<I>))",
    "out.append(cached.cache_info())",
    "cached.cache_clear()",
    "<g> = <G>",
    "out.append(next(<g>, <A>))",
    "out.append(<g>.send(<A>))",
    "out.append(<g>.throw(ValueError(<I>)))",
    "<g>.close()",
    "out.extend(itertools.islice(<g>, 3))",
    "<g>, it = itertools.tee(<L>)",
    "out.append(next(it, None))",
    "del <l>",
    "del <t>",
    "del <d>, <s>",
    "del <o>",
    "del <o>.other",
    "del <o>.value",
    "del COUNT",
    "del TABLE['a']",
    "delattr(<o>, 'items')",
    "<o>.__dict__['value'] = <A>",
    "<o>.__dict__.update(tag=<A>)",
    "<o>.__class__ = Box",
    "<o>.bump = <C>",
    "<o>.other = [<o>]",
    "<o>.items += [<I>]",
    "<o>[0] = <A>",
    "Derived.kind = <S>",
    "Derived.total += <I>",
    "Derived.shared.append(<I>)",
    "Derived.note = <A>",
    "out.append(getattr(<o>, <S>, <I>))",
    "out.append(vars(<p>))",
    "out.append(isinstance(<A>, collections.abc.Iterable))",
    "out.append(type(<A>))",
    "out.append(list(map(type, [<A>, <A>])))",
    "out.append((<A>).__class__.__mro__[:2])",
    "out.append(len(<A>))",
    "out.append(sum(<A>, start=<I>))",
    "out.append(str(<A>)[:0])",
    "out.append(<A> == <A>)",
    "out.append(<A> + <A>)",
    "out.append(<A> is <A>)",
    "out.append(bool(<A>))",
    "out.append([*<A>][:3])",
    "out.append({**<A>})",
    "out.append(<A>[0])",
    "out.append(<A>[<I>:])",
    "out.append(next(iter(<A>)))",
    "out.append(<I> in <A>)",
    "out.append(hash((<I>, <S>)) == hash((<I>, <S>)))",
    "out.append(np.asarray(<L>).sum())",
    "out.append(<t>.detach().numpy() * <I>)",
    "out.append(copy.deepcopy(<A>)) if <B> else None",
    "out.append((lambda a, /, b=<I>, *c, d=<A>, **e: (a, b, c, d, e))(*<L>[:3], **<D>))",
    "out.append((<A>, <A>) < (<A>, <A>))",
    "out.append(max(<L>, key=<C>))",
    "out.append(id(<o>) == id(<o>))",
    "raise KeyError(<A>)",
    "raise Failure(<I>, note=<A>)",
    "assert <A>",
    "torch._check(<t>.shape[0] > 1)",
    "numbers.calls = <I>",
    "out[:] = out[-3:]",
    "random.seed(<I>)",
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
turn = 0
while turn < 3:
    turn += 1
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
if <t>.shape[0] > <I>:
    <block>
---
if (q := <A>):
    out.append(q)
    <block>
---
if <I>:
    <block>
elif <L>:
    <block>
else:
    <block>
---
for <i> in range(<t>.shape[0]):
    <loop>
---
for q in <t>:
    out.append(q.sum())
    <loop>
---
for q in <G>:
    out.append(q)
    if len(out) > 20:
        break
    <loop>
else:
    <block>
---
for q in <A>:
    out.append(q)
    if len(out) > 20:
        break
    <loop>
---
for q in <e>:
    <loop>
---
for q in <k>:
    <loop>
---
for q in list(<m>.parameters()):
    <loop>
---
for <s>, q in <d>.items():
    <loop>
---
turn = 0
while (turn := turn + 1) < 4:
    <loop>
else:
    <block>
---
try:
    <block>
except* ValueError as group:
    out.append(len(group.exceptions))
    <block>
---
try:
    <block>
    raise ExceptionGroup('all', [ValueError(<I>), KeyError(<A>)])
except* ValueError as group:
    out.append(group.exceptions[0].args)
except* (KeyError, TypeError):
    <block>
---
try:
    <block>
except TypeError:
    <block>
except (AttributeError, RuntimeError) as error:
    out.append(type(error).__name__)
    <block>
except:
    <block>
    raise
---
try:
    <block>
except Failure as error:
    out.append((error.args, error.note))
    raise KeyError(<A>) from None
finally:
    out.append(<I>)
---
try:
    <block>
    raise Failure(<I>)
except Exception as error:
    error.add_note(<S>)
    held = error
    <block>
out.append((type(held), held.args))
---
for q in <L>[:3]:
    try:
        <loop>
    except Exception as error:
        out.append(type(error))
        continue
    finally:
        <block>
---
try:
    <block>
except Exception:
    pass
---
try:
    <block>
except Exception:
    pass
---
with Guarded(out):
    <block>
    raise ValueError(<I>)
---
with Guarded(out), logged(LOG) as <i>:
    <block>
---
with contextlib.ExitStack() as stack:
    stack.enter_context(Guarded(out))
    stack.callback(out.append, <A>)
    <block>
---
with contextlib.nullcontext(<A>) as q:
    out.append(q)
    <block>
---
with torch.set_grad_enabled(<B>):
    <block>
---
with torch.inference_mode(<B>):
    <block>
---
with torch.autocast('cpu', dtype=torch.bfloat16, enabled=<B>):
    <block>
---
with catching(out, <I>) as <s>:
    <block>
---
match <A>:
    case {'a': q, **rest}:
        out.append((q, rest))
        <block>
    case (int(), q) | [q]:
        out.append(q)
    case str() as q if q:
        <block>
    case Box(value=q):
        <block>
    case None | True:
        <block>
    case [*q]:
        out.append(len(q))
---
match <P>:
    case Point(a=0 | 1, b=q):
        <block>
    case Pair(q, 1) | Point(q, _):
        out.append(q)
    case Color.RED:
        <block>
    case _ if <B>:
        <block>
---
match <I>, <S>:
    case 1 | 2, q:
        <block>
    case q, 'a':
        <block>
---
def inner(a, b=<l>):
    <nonlocal>
    b.append(<I>)
    <nested>
    return b
out.append(inner(<I>))
out.append(inner(<I>))
---
def inner(a):
    <nonlocal>
    def deeper():
        <nonlocal>
        <nested>
        return a
    <nested>
    return deeper
q = inner(<A>)
<block>
out.append(q())
---
def inner(a, /, b, *, c=<I>):
    return [a, b, c]
out.append(inner(*<L>, **<D>))
---
def wrap(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        out.append(len(args))
        return fn(*args, **kwargs)
    return inner
@wrap
def inner(a, k=<I>):
    <nonlocal>
    <nested>
    return a + k
<t> = inner(<T>)
out.append(inner.__name__)
---
@functools.singledispatch
def chosen(a):
    return 'any'
@chosen.register
def _(a: int):
    return a + 1
out.append((chosen(<I>), chosen(<A>)))
---
@functools.lru_cache(maxsize=2)
def inner(a):
    <nonlocal>
    out.append(a)
    <nested>
    return a
out.append([inner(q) for q in <L>[:3]])
---
fns = [lambda a=q: (a, q) for q in <L>[:3]]
<block>
out.append([fn() for fn in fns])
---
@contextlib.contextmanager
def inner(a):
    <nonlocal>
    <nested>
    try:
        yield a
    except KeyError as error:
        out.append(error.args)
    <nested>
with inner(<A>) as q:
    <block>
---
def producer(a):
    <nonlocal>
    while True:
        try:
            got = yield a
            out.append(got)
        except ValueError as error:
            out.append(error.args)
            a = <A>
            <generator>
        if len(out) > 9:
            return
<g> = producer(<A>)
out.append(next(<g>))
<block>
out.append(<g>.throw(ValueError(<I>)))
out.append(<g>.send(<A>))
---
def producer(a):
    <nonlocal>
    got = yield from <G>
    out.append(got)
    <generator>
<g> = producer(<A>)
<block>
out.append(list(itertools.islice(<g>, 4)))
---
def producer():
    try:
        yield 1
        yield 2
    finally:
        out.append('done')
for q in producer():
    <block>
    break
---
class Local:
    total = 0
    def __init__(self, value=<I>):
        self.value = value
    def __add__(self, other):
        return Local(self.value + getattr(other, 'value', other))
    __radd__ = __add__
    @property
    def twice(self):
        return self.value * 2
    @classmethod
    def make(cls, value):
        cls.total += 1
        return cls(value)
    @staticmethod
    def plain(a, b=<A>):
        return a, b
q = Local.make(<A>)
<block>
out.append(((q + <A>).value, (<I> + q).twice, q.total, q.plain(<I>)))
---
class Local:
    def __init__(self):
        self.seen = []
    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        self.seen.append(name)
        return len(self.seen)
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        out.append(name)
    def __delattr__(self, name):
        out.append(('del', name))
        object.__delattr__(self, name)
q = Local()
q.a = q.b
<block>
del q.a
out.append((q.a, q.seen))
---
class Descriptor:
    def __set_name__(self, owner, name):
        self.name = '_' + name
    def __get__(self, it, owner=None):
        return self if it is None else getattr(it, self.name, <I>)
    def __set__(self, it, value):
        out.append(value)
        setattr(it, self.name, value)
class Local(Box):
    field = Descriptor()
    def __init_subclass__(cls, **named):
        out.append(sorted(named))
class Lower(Local, by=<I>):
    kind = <S>
<o> = Lower(<I>)
<o>.field = <A>
<block>
out.append((<o>.field, type(<o>).field.name))
---
@dataclasses.dataclass
class Local:
    a: int
    b: list = dataclasses.field(default_factory=list)
q = Local(<I>)
q.b.append(<A>)
<block>
out.append((q == Local(<I>), q))
---
class Local(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(()) * <I>)
    def forward(self, a):
        return a * self.w
<m> = Local()
<block>
<t> = <m>.forward(<T>)
---
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, by):
        ctx.by = by
        ctx.save_for_backward(a)
        return a * by
    @staticmethod
    def backward(ctx, g):
        return g * ctx.by, None
<t> = Twice.apply(<T>, <I>)
<block>
---
t9 = <T>.detach().requires_grad_()
<block>
(t9 * <T>).sum().backward()
out.append(t9.grad)
---
t9 = <T>.detach().clone()
v9 = t9.view(-1)
<block>
v9[:1] = <F>
t9.mul_(<I>)
out.append((t9, v9))
<t> = v9
---
token = VAR.set(<A>)
<block>
VAR.reset(token)
---
hook = <m>.register_forward_hook(lambda a, b, c: c + <I>)
<block>
<t> = <m>.forward(<T>)
hook.remove()
---
it = iter(<t>.shape)
for q in it:
    <loop>
---
n9 = <t>.shape[0]
<block>
out.append((n9 + 1, n9 * 2.5, n9 / 2, n9 // 2, n9 % 2, -n9, n9 ** 2, str(n9), n9 == <I>, n9 > 2, n9 & 1, divmod(n9, 2)))
<i> = n9
---
before = len(out)
<block>
del out[before:]
---
<l> = [<I> for q in range(<t>.shape[0])]
<block>
out.append({q: w for q, w in zip(<l>, <L>)})
---
if <B>:
    return out, <A>""".split("\n---\n")
)

STATEMENTS = SIMPLE + COMPOUND

IN_LOOPS = ("break", "continue", "if <B>:\n    break", "if <B>:\n    continue")
IN_GENERATORS = (
    "yield <A>",
    "yield <T>",
    "out.append((yield <I>))",
    "yield from <L>[:3]",
    "if <B>:\n    return",
)

ATTEMPT = """\
try:
{}
except Exception as error:
    out.append((type(error), str(error)[:30]))"""
"""Around many statements: else few programs get far."""
