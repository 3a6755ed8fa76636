"""All operator dunders of user classes with reflected and in-place forms; conversions, comparison,
truth, length, containment, items."""

# mypy: ignore-errors

from __future__ import annotations

from integration_tests.corpora.behaviours import program


class Number:
    def __init__(self, v):
        self.v = v

    def _both(self, other):
        return other.v if isinstance(other, Number) else other


OPERATORS = "add sub mul truediv floordiv mod pow matmul lshift rshift and or xor divmod".split()
for _name in OPERATORS:

    def _forward(self, other, _name=_name):
        return NotImplemented if isinstance(other, str) else (_name, self.v, self._both(other))

    def _reflected(self, other, _name=_name):
        return (
            NotImplemented if isinstance(other, str) else ("r" + _name, self._both(other), self.v)
        )

    def _in_place(self, other, _name=_name):
        self.v = ("i" + _name, self.v, self._both(other))
        return self

    setattr(Number, f"__{_name}__", _forward)
    setattr(Number, f"__r{_name}__", _reflected)
    if _name in ("add", "mul", "or"):
        setattr(Number, f"__i{_name}__", _in_place)


@program
def operator_dunders_with_reflected_and_in_place_forms(x, n, box):
    a, b = Number(1), Number(n)
    found = [
        a + b,
        a - 1,
        2 * a,
        a / b,
        a // 2,
        7 % a,
        a**b,
        a @ b,
        a << 1,
        1 >> a,
        a & b,
        1 | a,
        a ^ 1,
        divmod(a, 2),
        divmod(2, a),
    ]
    alias = a
    a += 1
    b -= 1
    for bad in (lambda: alias + "s", lambda: "s" - alias, lambda: [] * Number(1)):
        try:
            found.append(bad())
        except TypeError as error:
            found.append(str(error))
    return found, a is alias, a.v, b, x + 1


class Special(Number):
    def __radd__(self, other):
        return "special"


@program
def the_reflected_method_of_a_subclass_goes_first(x, n, box):
    return Number(1) + Special(n), Special(1) + Number(2), Special(1) + Special(n), x + 1


class Unary:
    def __neg__(self):
        return "neg"

    def __pos__(self):
        return "pos"

    def __invert__(self):
        return "invert"

    def __abs__(self):
        return "abs"

    def __round__(self, digits=None):
        return ("round", digits)

    def __trunc__(self):
        return 3

    def __floor__(self):
        return "floor"

    def __ceil__(self):
        return "ceil"

    def __int__(self):
        return 4

    def __float__(self):
        return 4.5

    def __complex__(self):
        return 1j

    def __index__(self):
        return 2


@program(breaks="builtin")
def unary_and_conversion_dunders(x, n, box):
    import math
    import operator

    u = Unary()
    found = [
        -u,
        +u,
        ~u,
        abs(u),
        round(u),
        round(u, n),
        math.floor(u),
        math.ceil(u),
        math.trunc(u),
        int(u),
        float(u),
    ]
    return (
        found,
        complex(u),
        operator.index(u),
        box.items[u],
        hex(u),
        bin(u),
        list(range(u)),
        "ab" * u,
        math.sqrt(Unary()),
        x + 1,
    )


class Ordered:
    def __init__(self, v):
        self.v = v

    def __eq__(self, other):
        return self.v == other.v if isinstance(other, Ordered) else NotImplemented

    def __lt__(self, other):
        return self.v < other.v

    def __le__(self, other):
        return self.v <= other.v

    def __repr__(self):
        return f"O({self.v})"


@program
def comparison_dunders_and_their_reflections(x, n, box):
    a, b = Ordered(1), Ordered(n)
    found = [
        a == b,
        a != b,
        a < b,
        a <= b,
        a > b,
        a >= b,
        a == 1,
        a != 1,
        min(b, a).v,
        max(a, b).v,
        [a] == [Ordered(1)],
    ]
    items = sorted([b, a, Ordered(0)])
    try:
        a < 1
    except AttributeError as error:
        found.append(str(error))
    try:
        {a: 1}
    except TypeError as error:
        found.append(str(error))
    return found, [i.v for i in items], Ordered.__hash__, str(items), x + 1


class Collection:
    def __init__(self, *items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, key):
        return ("slice", key.start, key.stop) if isinstance(key, slice) else self.items[key]

    def __setitem__(self, key, value):
        self.items[key] = value

    def __delitem__(self, key):
        del self.items[key]

    def __contains__(self, item):
        return item == "magic"

    def __missing__(self, key):
        return key


class Truthy:
    def __init__(self, answer):
        self.answer = answer

    def __bool__(self):
        return self.answer


@program
def container_dunders_and_truth(x, n, box):
    c = Collection(1, n, x)
    c[0] = 5
    del c[1]
    found = [
        len(c),
        c[0],
        c[1:2],
        "magic" in c,
        5 in c,
        bool(c),
        bool(Collection()),
        not Truthy(n > 2),
        [*c][0],
    ]
    for bad in (lambda: bool(Truthy(1)), lambda: len(Lengthy(-1)), lambda: len(Lengthy("a"))):
        try:
            found.append(bad())
        except (TypeError, ValueError) as error:
            found.append(str(error))
    return found, 1 if Truthy(True) else 2, c


class Lengthy:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n
