"""The grammar of random programs, as data.

``<X>`` is an expression of type X, ``<x>`` a variable of it, ``<block>`` a block of statements.
Types: T a square float tensor, I int, F float, B bool, S str, L list of ints, D dict from str, O
object, C callable from T to T, E set, K deque, P plain value (dataclass, named tuple, enum, number
of its own), M module, G iterator, A anything. All variables are bound from the start, so that most
programs get far; those that raise are compared all the same. What can grow is cut short, and
nothing calls itself: every program ends.
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
    "E": ("e0",),
    "K": ("k0",),
    "P": ("p0",),
    "M": ("m0",),
    "G": ("g0",),
}
NAMES = tuple(name for names in VARIABLES.values() for name in names)

PRELUDE = """\
COUNT = 1
LOG = [1]
TABLE = {'a': 1, 'n': 2}
HELD = Box(2)
NET = Net()
VAR = contextvars.ContextVar('VAR', default=1)


def numbers(n):
    yield from range(n % 4)
    LOG.append(n)
    yield COUNT


@functools.lru_cache(maxsize=2)
def cached(a):
    LOG.append(a)
    return a + 1


class Derived(Box):
    total = 0
    shared = []

    def __init__(self, *args):
        super().__init__(*args)
        Derived.total += 1
"""

START = """\
global COUNT, LOG, TABLE, HELD
out = []
t0, t1, t2 = x, y, x + 1
i0, i1, f0, b0, s0 = n, 1, 1.5, True, 'a'
l0, l1, d0, d1 = bag[0], [3, 1, 2], bag[1], {'a': 1}
o0, o1, c0 = bag[2], Box(), torch.cos
e0, k0, p0, m0, g0 = {1, 2}, collections.deque(l1), Point(n, l0), NET, iter(l1)
w0 = weakref.ref(o1)
"""

END = f"""\
return (out, {", ".join(name for name in NAMES if name not in ("c0", "g0"))}, c0(x), [*itertools.islice(g0, 3)],
        Derived.total, Derived.shared, vars(numbers), VAR.get())"""
"""What is returned: all variables, and what else a program may have changed."""
