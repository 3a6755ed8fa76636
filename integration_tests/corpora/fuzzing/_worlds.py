"""What changes between the calls of a program, as data: see `_grammar`. Long, for it is one list.

A world is a part of what a program finds in its globals: how it is read, and what becomes of it.
``<word>`` is one of `WORDS`. `swap` puts a value in the place of another, and `back` undoes all
that was swapped, so that what was seen before is seen again: see `_changes`. Left out is what plain
Python or torch does not determine, what leaves nothing to compare (a `__getattribute__` that gives
one thing for all names), the names of classes (parts of texts of exceptions), and a deleted
`__new__` (CPython does not go back to that of `object`).
"""

from __future__ import annotations

import attrs

PRELUDE = """\


def defaulted(a, b=2, *, k=3):
    return a, b, k


def closing(v):
    def inner(a=0):
        return v, a
    return inner


class Plain:
    mark = 1

    def __init__(self, v=1):
        self.v = v

    def get(self):
        return self.v

    @property
    def prop(self):
        return self.v + 1

    @classmethod
    def made(cls):
        return cls.__name__, cls.mark

    @staticmethod
    def stat(a):
        return a


class Under(Plain):
    pass


class Slotted:
    __slots__ = ('v', 'w')

    def __init__(self):
        self.v = 1


class Meta(type):
    def __call__(cls, *args):
        return type.__call__(cls, *args)

    @property
    def tag(cls):
        return 'meta'


class Metaed(metaclass=Meta):
    def __init__(self, a=1):
        self.a = a


class Items(list):
    pass


class Names(dict):
    pass


closed = closing(4)
PLAIN, UNDER, SLOTTED, POINT, SPACE = Plain(), Under(2), Slotted(), Point(1, 2), types.SimpleNamespace(a=1)
BOUND, PART = PLAIN.get, functools.partial(defaulted, 1, k=2)
WEIGHT, DATUM, ARRAY = torch.ones(2, requires_grad=True), torch.arange(3.), np.arange(3)
SETS, DEQUE, NESTED = {1, 2}, collections.deque([1, 2]), {'l': [1, [2]], 't': (1, [3])}
ITEMS, NAMED = Items([1, 2]), Names(a=1)
SEQ = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
"""

WORDS: dict[str, tuple[str, ...]] = {
    "value": (
        *(
            "1",
            "2",
            "0",
            "-1",
            "2.5",
            "True",
            "None",
            "'b'",
            "[1]",
            "(1, 2)",
            "1 << 70",
            "{'a': 2}",
            "-0.0",
            "{1}",
            "b'a'",
        ),
        *(
            "float('nan')",
            "np.float32(2)",
            "collections.deque([1])",
            "Color.RED",
            "Meter(2)",
            "object",
            "Plain",
        ),
        *(
            "torch.ones(2, 2)",
            "torch.tensor(3.)",
            "torch.nn.Parameter(torch.ones(()))",
            "Box(3)",
            "Plain(2)",
            "NET",
        ),
        *("LOG", "TABLE", "(lambda *a: 3)"),
    ),
    "way": (
        *(
            "lambda *a, **k: 3",
            "lambda self, *a: 4",
            "lambda self, *a: a[0] if a else 1",
            "lambda self, *a: True",
        ),
        *(
            "lambda self, *a: LOG.append(1) or 2",
            "lambda self, *a: 'text'",
            "lambda self, *a: NotImplemented",
        ),
        *(
            "lambda self, *a: (_ for _ in ()).throw(AttributeError('gone'))",
            "lambda self, *a: iter([1, 2])",
        ),
        *(
            "lambda self, *a: COUNT",
            "property(lambda self: 5)",
            "classmethod(lambda cls, *a: 6)",
            "None",
            "1",
            "'s'",
        ),
        *(
            "staticmethod(lambda *a: 7)",
            "functools.partial(lambda *a: 8)",
            "functools.partialmethod(lambda *a: 9)",
        ),
        *(
            "functools.cached_property(lambda self: 11)",
            "len",
            "Plain",
            "Box.scale",
            "Plain.get",
            "property()",
        ),
    ),
    "special": tuple(
        f"__{name}__"
        for name in (
            "len bool getattr eq call iter contains getitem hash repr str add iadd lt index format setattr "
            "delattr radd init enter exit int copy deepcopy neg next abs mul rmul float reversed match_args"
        ).split()
    ),
    "plain": ("PLAIN", "UNDER", "Under()", "Plain(3)"),
    "held": ("PLAIN", "UNDER", "PLAIN", "SLOTTED", "SPACE"),
    "class": ("Plain", "Under", "Plain", "Slotted"),
    "name": ("get", "v", "mark", "prop", "made", "stat", "nothing", "new"),
    "box": ("HELD", "o0", "Derived()", "SmallBox(2)"),
    "boxes": ("Box", "SmallBox", "Derived"),
    "boxed": (
        "scale",
        "kind",
        "tag",
        "value",
        "items",
        "double",
        "bump",
        "missing",
        "other",
        "extra",
    ),
    "ask": (
        "len",
        "bool",
        "str",
        "repr",
        "0 * hash",
        "int",
        "list",
        "callable",
        "vars",
        "type",
        "iter",
        "isinstance(0, int) or",
    ),
    "point": ("Point", "Pair", "Meter", "Color", "Frozen", "Slotted", "Metaed", "Meta", "Level"),
    "field": ("a", "b", "note", "tag", "total", "value"),
    "global": tuple(
        "COUNT LOG TABLE HELD PLAIN DATUM SETS DEQUE NESTED SPACE ITEMS NAMED VAR EXTRA".split()
    ),
    "builtin": tuple(
        "len sum isinstance max abs range int sorted list bool str hasattr getattr iter type".split()
    ),
    "tool": (
        "opaque",
        "locals_of",
        "talking",
        "logged",
        "numbers",
        "defaulted",
        "cached",
        "closed",
        "failing",
    ),
    "fn": (
        "defaulted",
        "closed",
        "numbers",
        "Plain.get",
        "Box.scale",
        "Box.bump",
        "opaque",
        "Net.scale",
        "Box.__len__",
    ),
    "tensor": ("WEIGHT", "DATUM", "DATUM", "NET.gain", "NET.mean"),
    "net": ("NET", "NET", "SEQ", "SEQ[0]", "SEQ[1]", "NET.weights"),
    "list": ("LOG", "DEQUE", "NESTED['l'][1]", "NESTED['t'][1]", "ITEMS", "Derived.shared"),
    "dict": ("TABLE", "NESTED", "NAMED"),
}


@attrs.frozen
class World:
    """Expressions that ask it, statements that use it, and what changes it."""

    asks: tuple[str, ...]
    uses: tuple[str, ...]
    changes: tuple[str, ...]


OBJECTS = World(
    asks=(
        "<plain>.get()",
        "<plain>.prop",
        "<plain>.v",
        "<plain>.mark",
        "<plain>.made()",
        "<plain>.stat(1)",
        "<plain>.nothing",
        "<plain>(2)",
        "<plain>[0]",
        "<plain>.get",
        "<ask>(<plain>)",
        "<plain> + 1",
        "<plain> == 1",
        "<plain> < 2",
        "isinstance(UNDER, Plain)",
        "<class>.mark",
        "<class>.get",
        "isinstance(PLAIN, Under)",
        "Under.__mro__[1:]",
        "SLOTTED.v",
        "SLOTTED.w",
        "hasattr(SLOTTED, 'w')",
        "SPACE.a",
        "SPACE",
        "vars(PLAIN)",
        "copy.copy(PLAIN).v",
        "Plain.get(UNDER)",
        "super(Under, UNDER).get()",
        "getattr(UNDER, 'tag', 0)",
        "BOUND()",
        "BOUND == PLAIN.get",
        "operator.attrgetter('v')(PLAIN)",
        "[*<plain>]",
    ),
    uses=(
        "PLAIN.v += 1",
        "del PLAIN.v",
        "UNDER.new = 3",
        "SLOTTED.w = n",
        "SPACE.a = n",
        "if PLAIN: out.append('p')",
    ),
    changes=(
        *("swap(<class>, '<name>', <way>)",) * 4,
        *("swap(<class>, '<special>', <way>)",) * 6,
        *("swap(<class>, '<name>', <value>)",) * 2,
        *("type.__delattr__(<class>, '<name>')",) * 2,
        *("type.__delattr__(<class>, '<special>')",) * 2,
        *("swap(<held>, '<name>', <value>)",) * 2,
        *("swap(<held>, '<name>', <way>)",) * 2,
        "delattr(<held>, '<name>')",
        "vars(<held>)['<name>'] = <value>",
        "vars(<held>).clear()",
        "BOUND = UNDER.get",
        "swap(<held>, '__dict__', {'v': 5})",
        "swap(<held>, '__class__', <class>)",
        "swap(Under, '__bases__', (Box,))",
        "SLOTTED.w = <value>",
        "del SLOTTED.v",
        "swap(Slotted, 'w', Slotted.v)",
        "swap(Slotted, 'v', 5)",
        "PLAIN.v = UNDER",
        "swap(globals(), 'UNDER', PLAIN)",
        "swap(globals(), 'Plain', Box)",
        "swap(PLAIN, 'get', UNDER.get)",
    ),
)

BOXES = World(
    asks=(
        "<box>.double",
        "<box>.kind",
        "<box>.items",
        "<box>[0]",
        "<box>.missing",
        "<box>.bump(1).value",
        "<box>.scale(x)",
        "<box>(x)",
        "<ask>(<box>)",
        "<box> == HELD",
        "<boxes>.kind",
        "1 in <box>",
        "[*<box>]",
        "hasattr(<box>, 'tag')",
        "isinstance(o0, SmallBox)",
        "Derived(1).scale(x)",
        "copy.deepcopy(HELD).value",
        "Derived.kind",
        "w0() is o1",
    ),
    uses=(
        "HELD += 1",
        "HELD.value = 5",
        "HELD.items.append(COUNT)",
        "a, *b = HELD",
        "for q in HELD: out.append(q)",
        "t1 = HELD.scale(x) * COUNT",
        "match o0:\n    case Box(value=q): out.append(q)",
    ),
    changes=(
        *("swap(<boxes>, '<boxed>', <way>)",) * 4,
        *("swap(<boxes>, '<special>', <way>)",) * 6,
        *("swap(<boxes>, '<boxed>', <value>)",) * 2,
        *("type.__delattr__(<boxes>, '<special>')",) * 2,
        *("swap(HELD, '<boxed>', <value>)",) * 2,
        *("swap(HELD, '<boxed>', <way>)",) * 2,
        *("vars(HELD).pop('<boxed>', None)",) * 2,
        "swap(HELD, '__class__', SmallBox)",
        "swap(HELD, '__class__', Plain)",
        "swap(Derived, '__bases__', (SmallBox,))",
        "swap(globals(), 'HELD', SmallBox(2))",
        "swap(globals(), 'HELD', copy.deepcopy(HELD))",
        "HELD.items.append(<value>)",
        "HELD.items = LOG",
        "HELD.other = HELD",
        "swap(globals(), 'Box', Plain)",
        "swap(toolbox, 'Box', Plain)",
        "swap(SmallBox, '__bases__', (Plain, Box))",
        "swap(Derived, 'total', <value>)",
        "Derived.shared.append(<value>)",
    ),
)

CONTAINERS = World(
    asks=(
        "len(LOG)",
        "[*LOG]",
        "sorted(LOG)",
        "1 in LOG",
        "bool(LOG)",
        "LOG == [1, 2]",
        "tuple(LOG)",
        "len(TABLE)",
        "[*TABLE]",
        "sorted(TABLE)",
        "1 in TABLE",
        "bool(TABLE)",
        "TABLE == [1, 2]",
        "tuple(TABLE)",
        "len(SETS)",
        "[*SETS]",
        "sorted(SETS)",
        "1 in SETS",
        "bool(SETS)",
        "SETS == [1, 2]",
        "tuple(SETS)",
        "len(DEQUE)",
        "[*DEQUE]",
        "sorted(DEQUE)",
        "1 in DEQUE",
        "bool(DEQUE)",
        "DEQUE == [1, 2]",
        "tuple(DEQUE)",
        "len(NESTED)",
        "[*NESTED]",
        "sorted(NESTED)",
        "1 in NESTED",
        "bool(NESTED)",
        "NESTED == [1, 2]",
        "tuple(NESTED)",
        "len(ITEMS)",
        "[*ITEMS]",
        "sorted(ITEMS)",
        "1 in ITEMS",
        "bool(ITEMS)",
        "ITEMS == [1, 2]",
        "tuple(ITEMS)",
        "len(NAMED)",
        "[*NAMED]",
        "sorted(NAMED)",
        "1 in NAMED",
        "bool(NAMED)",
        "NAMED == [1, 2]",
        "tuple(NAMED)",
        "LOG[-1]",
        "TABLE.get('a')",
        "TABLE['b']",
        "[*TABLE.items()]",
        "TABLE | {'q': 1}",
        "sum(LOG)",
        "SETS | {7}",
        "DEQUE[0]",
        "NESTED['l'][1][0]",
        "NESTED['t']",
        "copy.deepcopy(NESTED)",
        "ITEMS + [1]",
        "torch.tensor(ITEMS)",
        "{**NAMED}",
        "NAMED['b']",
        "NAMED.setdefault('a', 2)",
        "ITEMS[0]",
        "[*zip(ITEMS, LOG)]",
    ),
    uses=(
        "LOG.append(1)",
        "TABLE['a'] = 5",
        "SETS.add(n)",
        "DEQUE.append(n)",
        "for q in TABLE: out.append(q)",
        "for q in LOG: out.append(q)",
        "ITEMS.append(n)",
        "match TABLE:\n    case {'a': q}: out.append(q)",
    ),
    changes=(
        *("<list>.append(<value>)",) * 2,
        *("<list>[0] = <value>",) * 2,
        *("<list>.clear()",) * 2,
        *("<list>.insert(0, <value>)",) * 2,
        "<dict>['a'] = <value>",
        "<dict>['b'] = <value>",
        "<dict>.pop('a')",
        "<dict>[<value>] = 1",
        "<dict>.clear()",
        "swap(<dict>, 'a', <value>)",
        "swap(TABLE, 'n', <value>)",
        "<dict>['a'] = <dict>.pop('a')",
        "SETS.add(<value>)",
        "swap(globals(), 'TABLE', dict(reversed(TABLE.items())))",
        "swap(globals(), 'TABLE', collections.OrderedDict(TABLE))",
        "swap(globals(), 'TABLE', collections.defaultdict(list, TABLE))",
        "swap(globals(), 'LOG', collections.deque(LOG))",
        "swap(globals(), 'DEQUE', collections.deque(DEQUE, maxlen=2))",
        "NESTED['l'] = NESTED['t']",
        "SETS.clear()",
        "NESTED['l'].append(LOG)",
        "swap(NESTED, 't', (<value>, [3]))",
        "swap(globals(), 'LOG', HELD.items)",
        "swap(globals(), 'LOG', Items(LOG))",
        "swap(globals(), 'TABLE', Names(TABLE))",
        "swap(globals(), 'ITEMS', LOG)",
        *("swap(Items, '<special>', <way>)",) * 3,
        *("swap(Names, '<special>', <way>)",) * 3,
        *("swap(Names, '__missing__', <way>)",) * 3,
        "type.__delattr__(Items, '<special>')",
        "swap(Names, 'keys', <way>)",
        "swap(Names, 'items', <way>)",
    ),
)

NETS = World(
    asks=(
        "NET(x)",
        "NET.scale(x)",
        "NET.gain * x",
        "NET.mean",
        "NET.training",
        "NET.level",
        "NET.weights[0]",
        "len(NET.weights)",
        "len(list(NET.parameters()))",
        "[n for n, p in NET.named_parameters()]",
        "[p.requires_grad for p in NET.parameters()]",
        "NET.gain is NET.weights[0]",
        "NET.state_dict()",
        "list(NET.named_buffers())",
        "NET.gain.grad",
        "len(NET._forward_hooks)",
        "hasattr(NET, 'note')",
        "SEQ(torch.ones(2, 2))",
        "SEQ[0](torch.ones(2))",
        "len(SEQ)",
        "[type(q) for q in SEQ]",
        "SEQ[0].in_features",
        "SEQ.training",
        "SEQ[0].bias is None",
        "SEQ[-1]",
        "[n for n, m in SEQ.named_modules()]",
    ),
    uses=(
        "NET.level += 1",
        "t0 = NET(x)",
        "NET.gain.data.mul_(2)",
        "NET(x).sum().backward()",
    ),
    changes=(
        "swap(<net>, 'training', not <net>.training)",
        "<net>.train()",
        "<net>.eval()",
        "<net>.requires_grad_(False)",
        "<net>.requires_grad_(True)",
        "<net>.double()",
        "<net>.float()",
        "<net>.zero_grad()",
        "NET.gain.requires_grad_(False)",
        "swap(NET, 'gain', torch.nn.Parameter(torch.ones(())))",
        "swap(NET, 'gain', NET.weights[0])",
        "NET.gain = None",
        "NET.gain = torch.nn.Parameter(torch.ones(2, 1))",
        "NET.weights[0] = NET.gain",
        "NET.mean = torch.ones(())",
        "NET.weights.append(torch.nn.Parameter(torch.ones(())))",
        "NET.mean = NET.mean.double()",
        "NET.mean = None",
        "NET.register_buffer('more', torch.ones(1))",
        "del NET.gain",
        "del NET.mean",
        "NET.extra = torch.nn.Linear(2, 2)",
        "NET.gain.grad = torch.ones(())",
        "NET.gain.grad = None",
        "<net>._forward_hooks.clear()",
        "SEQ[0].bias = None",
        "<net>.register_forward_hook(lambda m, a, r: LOG.append(2))",
        "<net>.register_forward_hook(lambda m, a, r: r * 2)",
        "<net>.register_forward_pre_hook(lambda m, a: (a[0] + 1,))",
        "<net>._forward_pre_hooks.clear()",
        "<net>.register_full_backward_hook(lambda m, a, b: None)",
        "<net>.forward = lambda q: q - 1",
        "del SEQ[1]",
        "vars(<net>).pop('forward', None)",
        "SEQ[0] = torch.nn.Identity()",
        "SEQ[1] = torch.nn.Tanh()",
        "NET.to(torch.bfloat16)",
        "SEQ.append(torch.nn.Sigmoid())",
        "SEQ[0].weight = torch.nn.Parameter(torch.ones(2, 2))",
        "SEQ[1].inplace = True",
        "SEQ.insert(0, torch.nn.Identity())",
        "NET._buffers['mean'] = torch.tensor(5.)",
        "swap(Net, 'scale', lambda self, x: x)",
        "NET._parameters['gain'] = torch.nn.Parameter(torch.tensor(5.))",
        "swap(Net, 'forward', lambda self, x: x + 1)",
        "swap(Net, '<special>', <way>)",
        "swap(NET, 'level', <value>)",
        "swap(NET, 'note', <value>)",
    ),
)

TENSORS = World(
    asks=(
        "WEIGHT * 2",
        "WEIGHT.requires_grad",
        "WEIGHT.grad",
        "WEIGHT.shape",
        "DATUM + 1",
        "DATUM.sum() + x",
        "DATUM.dtype",
        "DATUM.shape[0]",
        "DATUM.is_contiguous()",
        "DATUM.stride()",
        "WEIGHT.is_leaf",
        "DATUM.tolist()",
        "DATUM._version",
        "DATUM[0].item() > 0",
        "DATUM is WEIGHT",
        "DATUM.data_ptr() == WEIGHT.data_ptr()",
        "DATUM.grad is None",
        "type(DATUM)",
        "torch.ones(2)",
        "torch.tensor(1.5).dtype",
        "torch.get_default_dtype()",
        "torch.is_grad_enabled()",
        "torch.rand(2)",
        "torch.are_deterministic_algorithms_enabled()",
        "torch.is_autocast_enabled('cpu')",
        "x @ x",
        "torch.arange(3.).dtype",
        "(x * WEIGHT.sum()).requires_grad",
        "ARRAY + 1",
        "ARRAY.sum()",
        "ARRAY.shape",
        "torch.from_numpy(ARRAY) * 2",
        "ARRAY[0]",
    ),
    uses=(
        "WEIGHT.sum().backward()",
        "DATUM.add_(1)",
        "ARRAY[0] = 2",
    ),
    changes=(
        "<tensor>.data = torch.ones(2)",
        "<tensor>.data = torch.ones(3, 2).t()",
        "<tensor>.data = <tensor>.data.double()",
        "<tensor>.requires_grad_(True)",
        "<tensor>.requires_grad_(False)",
        "<tensor>.grad = None",
        "<tensor>.note = <value>",
        "<tensor>.grad = torch.ones_like(<tensor>)",
        "<tensor>.detach().resize_(2)",
        "<tensor>.detach().mul_(2)",
        "<tensor>.data.zero_()",
        "<tensor>.register_hook(lambda g: g * 3)",
        "DATUM.set_(torch.ones(5))",
        "DATUM.t_()",
        "DATUM.resize_(2)",
        "DATUM.unsqueeze_(0)",
        "ARRAY[0] = 5",
        "ARRAY.flags.writeable = False",
        "ARRAY.shape = (3, 1)",
        "swap(globals(), 'DATUM', WEIGHT)",
        "swap(globals(), 'DATUM', WEIGHT.detach())",
        "swap(globals(), 'DATUM', torch.arange(3.)[::2])",
        "swap(globals(), 'DATUM', torch.arange(4.)[1:])",
        "swap(globals(), 'DATUM', torch.nn.Parameter(DATUM))",
        "swap(globals(), 'DATUM', DATUM.numpy())",
        "swap(globals(), 'DATUM', torch.ones(3).to_sparse())",
        "swap(globals(), 'DATUM', torch._neg_view(DATUM))",
        "swap(globals(), 'DATUM', torch.ones(3, dtype=torch.complex64).conj())",
        "swap(globals(), 'DATUM', torch.ones(3).as_subclass(type('T', (torch.Tensor,), {})))",
        "swap(globals(), 'WEIGHT', WEIGHT * 1)",
        "swap(globals(), 'ARRAY', np.arange(3.)[::-1])",
        "swap(globals(), 'ARRAY', np.arange(4, dtype=np.int8))",
        "torch.set_default_dtype(torch.float64)",
        "torch.set_default_dtype(torch.float32)",
        "torch.set_grad_enabled(False)",
        "torch.set_grad_enabled(True)",
        "torch.use_deterministic_algorithms(True)",
        "torch.use_deterministic_algorithms(False)",
        "torch.manual_seed(5)",
        "torch.set_autocast_enabled('cpu', True)",
        "torch.set_autocast_enabled('cpu', False)",
        "torch.set_autocast_dtype('cpu', torch.float16)",
        "torch.set_float32_matmul_precision('high')",
    ),
)

NAMES = World(
    asks=(
        "defaulted(1)",
        "defaulted(x)",
        "defaulted(1, k=x)",
        "closed()",
        "closed(x)",
        "PART()",
        "PART(7)",
        "closed.__defaults__",
        "defaulted.__kwdefaults__",
        "vars(defaulted)",
        "list(numbers(n))",
        "cached(n)",
        "cached(1)",
        "cached.cache_info()",
        "COUNT",
        "x * COUNT",
        "COUNT + 1",
        "f'{COUNT}'",
        "COUNT is None",
        "VAR.get()",
        "globals().get('COUNT')",
        "EXTRA",
        "'EXTRA' in globals()",
        "toolbox.Box.kind",
        "toolbox.opaque(1)",
        "toolbox.EXTRA",
        "hasattr(toolbox, 'EXTRA')",
        "toolbox.opaque is opaque",
        "len(l0)",
        "sum(l0)",
        "isinstance(n, int)",
        "max(1, 2)",
        "abs(-1)",
        "range(3)",
        "opaque(1)",
        "locals_of(1, 2)",
        "list(talking(1))",
        "int('1')",
        "sorted([2, 1])",
        "getattr(o0, 'value', 0)",
        "HELD(x)",
        "len(HELD)",
    ),
    uses=(
        "COUNT += 1",
        "with logged(out): out.append(1)",
        "for q in numbers(2): out.append(q)",
        "raise Failure(1, COUNT)",
    ),
    changes=(
        *("swap(globals(), '<global>', <value>)",) * 4,
        *("globals().pop('<global>', None)",) * 2,
        *("swap(globals(), '<builtin>', lambda *a, **k: <value>)",) * 2,
        *("swap(toolbox, '<builtin>', lambda *a, **k: <value>)",) * 2,
        *("swap(globals(), '<tool>', lambda *a, **k: <value>)",) * 2,
        "swap(globals(), '<tool>', <value>)",
        "swap(toolbox, 'opaque', lambda *a: <value>)",
        "swap(toolbox, 'EXTRA', <value>)",
        "swap(globals(), 'toolbox', types.SimpleNamespace(opaque=abs))",
        "swap(<fn>, '__defaults__', (<value>,))",
        "swap(<fn>, '__defaults__', None)",
        "swap(<fn>, '__defaults__', (<value>, <value>))",
        "swap(<fn>, 'note', <value>)",
        "swap(<fn>, '__kwdefaults__', {'k': <value>})",
        "swap(<fn>, '__kwdefaults__', None)",
        "VAR.set(<value>)",
        "swap(<fn>, '__code__', (lambda *a, **k: 5).__code__)",
        "swap(<fn>, '__code__', defaulted.__code__)",
        "swap(closed.__closure__[0], 'cell_contents', <value>)",
        "swap(defaulted.__kwdefaults__, 'k', <value>)",
        "cached.cache_clear()",
        "cached(1)",
        "cached(7)",
        "PART.keywords['k'] = <value>",
        "swap(globals(), 'COUNT', 2)",
        "swap(globals(), 'PART', functools.partial(defaulted, 2, k=3))",
        "PART.__setstate__((PART.func, (5,), {'k': 9}, {}))",
        "swap(globals(), 'COUNT', torch.tensor(1))",
        "swap(globals(), 'COUNT', np.int64(1))",
        "swap(globals(), 'COUNT', True)",
    ),
)

VALUES = World(
    asks=(
        "POINT",
        "POINT.a",
        "POINT == Point(1, 2)",
        "Point(1).b",
        "Point(3)",
        "Point(1) < Point(2)",
        "dataclasses.asdict(POINT)",
        "[f.name for f in dataclasses.fields(POINT)]",
        "dataclasses.replace(POINT, a=5)",
        "Pair(1).b",
        "Pair(1)",
        "Pair(1)[0]",
        "Pair(1)._fields",
        "Frozen(1) == Frozen(1)",
        "hash(Frozen(1)) == hash(Frozen(1))",
        "Color.RED.value",
        "Color(1)",
        "Color.RED.name",
        "[*Color]",
        "len(Color)",
        "Level.LOW + 1",
        "Color['RED']",
        "Level(1).name",
        "Color.RED.note",
        "Meter(2) + 1",
        "1 + Meter(2)",
        "Meter(2) == Meter(2)",
        "f'{Meter(2)}'",
        "-Meter(1)",
        "[1, 2, 3][Meter(1)]",
        "bool(Meter(0))",
        "Meter(1) < Meter(2)",
        "sorted([Meter(2), Meter(1)])",
        "{Meter(1): 2}[Meter(1)]",
        "Meter(1) in [Meter(1)]",
        "Metaed().a",
        "Metaed.tag",
        "isinstance(PLAIN, Metaed)",
        "Metaed(2).a",
        "copy.copy(POINT)",
    ),
    uses=(
        "POINT.a = 9",
        "match POINT:\n    case Point(a=q): out.append(q)",
        "match POINT:\n    case Point(q): out.append(q)",
    ),
    changes=(
        *("swap(<point>, '<special>', <way>)",) * 6,
        *("swap(<point>, '<field>', <way>)",) * 2,
        *("swap(<point>, '<field>', <value>)",) * 2,
        *("type.__delattr__(<point>, '<special>')",) * 2,
        "swap(Point, '__dataclass_fields__', {})",
        "swap(Point.__init__, '__defaults__', (3,))",
        "swap(POINT, 'a', <value>)",
        "swap(Pair.__new__, '__defaults__', (5,))",
        "swap(Color.RED, 'note', <value>)",
        "swap(Color.RED, '_value_', 9)",
        "swap(Point, '__match_args__', ('b',))",
        "swap(Metaed, '__class__', type)",
        "swap(Meta, 'tag', <value>)",
        "swap(Meta, '__call__', lambda cls, *a: PLAIN)",
        "swap(Meta, '__instancecheck__', lambda cls, it: True)",
        "swap(globals(), 'POINT', Pair(1))",
        "swap(globals(), 'Point', Pair)",
        "swap(globals(), 'Meter', Plain)",
    ),
)

WORLDS = (OBJECTS, BOXES, CONTAINERS, NETS, TENSORS, NAMES, VALUES)
