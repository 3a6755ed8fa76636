"""Comprehensions and walrus scoping; star-arguments in every position; f-strings with every
conversion; `match`; chained comparison; slices with tensors and symbolic bounds; `global`; `del`;
`assert`; `lambda`; imports inside."""

# mypy: ignore-errors

from __future__ import annotations

import dataclasses
import enum

from integration_tests.corpora.behaviours import program


@program
def comprehensions_have_a_scope_of_their_own(x, n, box):
    i = "outer"
    found = [i * x for i in range(n)]
    nested = [[a + b for a in range(b)] for b in range(n)]
    flat = {(a, b): a * b for a in range(n) for b in range(a) if (a + b) % 2}
    return i, found, nested, flat, {a % 2 for a in box.items}


@program
def a_comprehension_in_a_class_body_sees_globals(x, n, box):
    class Body:
        size = n
        items = [size for size in range(size)]

    return Body.items, Body.size, x + 1


@program
def walrus_binds_in_the_function(x, n, box):
    if (size := len(box.items)) > 2 and any((last := i) > 2 for i in box.items):
        x = x + size
    total = 0
    running = [total := total + i for i in box.items]
    while (n := n - 1) > 0:
        x = x * n
    return size, last, running, total, n, x


def spread(a, /, b, *rest, c=3, **more):
    return a, b, rest, c, more


@program
def star_arguments_in_every_position(x, n, box):
    found = [
        spread(1, 2),
        spread(*[1, 2, n]),
        spread(1, *[2], 3, *(4, n)),
        spread(1, **{"b": n}),
        spread(1, n, **{"c": 2}, **{"d": x}),
        spread(*"ab", *box.items, c=n, **box.table),
        spread(0, b=1, a=n),
    ]
    for bad in (
        lambda: spread(),
        lambda: spread(1, 2, b=3),
        lambda: spread(a=1, b=2),
        lambda: spread(1, 2, **{1: 2}),
    ):
        try:
            bad()
        except TypeError as error:
            found.append(str(error))
    return found


@program(breaks="repeated-keyword")
def repeated_keywords_are_refused(x, n, box):
    for bad in (
        lambda: spread(1, 2, c=1, **{"c": 2}),
        lambda: spread(1, 2, **{"d": 1}, **{"d": 2}),
    ):
        try:
            bad()
        except TypeError as error:
            box.log.append(str(error))
    return x + 1


@program
def star_targets(x, n, box):
    a, *b = box.items
    *c, d = range(n)
    (e, [f, *g]), h = (1, "xyz"), x
    [first, *_], *rest = [(1, 2), 3, 4]
    for i, *j in [(1, 2, 3), (4,)]:
        box.log.append((i, j))
    return a, b, c, d, e, f, g, h, first, rest


class Shown:
    def __repr__(self):
        return "R<é>"

    def __str__(self):
        return "S"

    def __format__(self, spec):
        return f"F[{spec}]"


@program
def f_strings_with_every_conversion(x, n, box):
    shown, width, pi = Shown(), 10, 3.14159
    return [
        f"{shown}|{shown!r}|{shown!s}|{shown!a}|{shown:abc}|{shown!r:>8}",
        f"{n=}|{n = }|{n!r:>4}|{n:04d}|{n:+}|{n:x}|{n:b}|{n:,}|{n:e}",
        f"{pi:.2f}|{pi:{width}.{n}f}|{pi:<{width}}|{pi:%}|{pi!r}",
        f"{box.text:*^{width}}|{box.text!r}|{{literal}}|{'nested ' + f'{n}'}",
        f"{box.items}|{box.table}|{(1, n)}|{None}|{True}|{1j}|{b'b'}",
        f"{'a' if n > 2 else 'b'}{[i for i in range(n)]}{x.shape[0]}",
    ]


class Unshown:
    def __repr__(self):
        return 3


@program
def ascii_of_objects(x, n, box):
    found = [
        f"{Shown()!a:>9}",
        ascii(Shown()),
        ascii([Shown(), "é", n]),
        ascii(box.text),
        ascii(Shown),
    ]
    for value in (Unshown(), [Unshown()]):
        try:
            found.append(ascii(value))
        except TypeError as error:
            found.append(str(error))
    return found, x + n


@program
def format_and_percent(x, n, box):
    return [
        "{} {1} {0}".replace("{}", "{2}").format(1, n, 2),
        "{a.__class__.__name__} {b[0]} {c[k]}".format(a=n, b=box.items, c={"k": 1}),
        "{!r:>6}|{:<4}|".format("a", n),
        "%s %r %d %5.2f %x %%" % ("a", "b", n, 1.5, 255),
        "%(k)s-%(n)03d" % {"k": "v", "n": n},
        format(n, "05"),
        format(3.0, ".1e"),
        x + 1,
    ]


class Color(enum.Enum):
    RED = "r"
    BLUE = "b"


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Positional:
    __match_args__ = ("first", "second")

    def __init__(self, first, second):
        self.first, self.second = first, second


def classify(subject):
    match subject:
        case None | True | False:
            return "singleton"
        case int() | float() if subject < 0:
            return "negative"
        case 0 | 1.5:
            return "value"
        case int(number):
            return ("int", number)
        case "":
            return "empty"
        case str(text):
            return text.upper()
        case []:
            return "nothing"
        case [only]:
            return ("one", only)
        case [1, *middle, 9]:
            return ("between", middle)
        case [Point(x=0), _]:
            return "point in list"
        case (a, b):
            return ("pair", a, b)
        case {"kind": "k", **rest}:
            return ("mapping", rest)
        case {"deep": {"er": [_, value]}}:
            return ("deep", value)
        case Point(x, y=0):
            return ("on axis", x)
        case Point(1 | 2 as small, other):
            return ("small", small, other)
        case Positional(first, second=Point() as point):
            return ("positional", first, point.x)
        case Color.RED:
            return "red"
        case {}:
            return "some mapping"
        case bytes() | bytearray():
            return "bytes"
        case _:
            return "other"


@program
def match_statements_of_every_pattern(x, n, box):
    subjects = [
        None,
        True,
        -n,
        0,
        1.5,
        n,
        "",
        box.text,
        [],
        [n],
        [1, n, 9],
        [1, 9],
        [Point(0, 1), 2],
        (n, x),
        {"kind": "k", "z": n},
    ]
    subjects += [
        {"deep": {"er": [0, n]}},
        Point(n, 0),
        Point(1, n),
        Point(7, 7),
        Positional(n, Point(1, 1)),
        Color.RED,
        Color.BLUE,
        {"other": 1},
    ]
    subjects += [b"b", range(2), "ab", {1, 2}, 2.5, box.ordered, box.ring]
    return [classify(subject) for subject in subjects], x + 1


@program
def a_match_on_wrong_positional_patterns(x, n, box):
    try:
        match Positional(1, 2):
            case Positional(a, b, c):
                return a
    except TypeError as error:
        box.log.append(str(error))
    try:
        match n:
            case int(a, b):
                return a
    except TypeError as error:
        return str(error), x + 1


@program
def chained_comparisons_evaluate_once_and_stop(x, n, box):
    def note(value):
        box.log.append(value)
        return value

    return (
        note(1) < note(n) < note(4) < note(3) < note(9),
        note(1) == note(1) != note(n),
        1 < n in box.items,
        box.log,
    )


@program
def slices_with_symbolic_bounds(x, n, box):
    wide = x.repeat(2, 4)
    k = x.shape[0] - 1
    return (
        wide[:, :n],
        wide[k:, -n:],
        wide[:: x.shape[0]],
        wide[..., n - 1],
        box.items[n - 2 : k + 1],
        "abcdef"[:n],
    )


@program
def slice_objects(x, n, box):
    s = slice(1, n, 2)
    return (
        s.start,
        s.stop,
        s.step,
        s.indices(10),
        box.items[s],
        list(range(10))[s],
        x[s],
        s == slice(1, n, 2),
        x[slice(None), 0],
    )


COUNT = 0


@program
def global_is_declared_and_deleted(x, n, box):
    global COUNT, MADE
    COUNT += n
    MADE = COUNT
    y = x * MADE
    del MADE
    try:
        return MADE
    except NameError as error:
        return str(error), COUNT, y


@program
def del_of_names_items_slices_and_attributes(x, n, box):
    a, b = 1, [0, 1, 2, 3]
    del a, b[0], b[1:2], box.table["a"], box.value
    try:
        return a
    except UnboundLocalError as error:
        box.log.append(str(error))
    try:
        del a
    except UnboundLocalError as error:
        box.log.append(str(error))
    try:
        return box.value
    except AttributeError as error:
        return str(error), b, x + 1


@program
def lambdas_with_every_kind_of_parameter(x, n, box):
    f = lambda a, /, b=2, *c, d=n, **e: (a, b, c, d, e)
    g = lambda: (yield x)
    return f(1), f(1, 3, 4, d=5, z=6), list(g()), (lambda y: lambda z: y * z)(x)(n)


@program
def imports_inside(x, n, box):
    import math
    import os.path as path
    from collections import OrderedDict as Ordered
    from math import floor, pi

    return math.sqrt(n * n), path.join("a", "b"), Ordered(a=n), floor(pi * n), x + math.tau


@program(breaks="import")
def an_import_that_fails(x, n, box):
    try:
        import no_such_module_at_all
    except ImportError as error:
        box.log.append((type(error), str(error), error.name))
    try:
        from math import nothing_here
    except ImportError as error:
        box.log.append((type(error), error.name))
    return x + 1


@program
def conditional_expressions_and_boolean_operators_give_operands(x, n, box):
    return (
        n and box.text or "else",
        [] or {} or n,
        not box.items,
        (x if n > 2 else None),
        n or x,
        0 and x,
        None or box.value,
    )


@program
def augmented_assignment_to_every_target(x, n, box):
    a = n
    a += 1
    a *= 2
    a **= 2
    a //= 3
    a <<= 2
    a |= 1
    a ^= n
    a %= 1000
    box.items[0] += a
    box.items += (1,)
    box.table["a"] -= n
    box.value = 1
    box.value /= 4
    box.nested["deep"][1] *= 2
    box.members |= {n}
    t = (1,)
    t += (n,)
    y = x
    y = y * 1
    y += 1
    y @= y.new_ones(3, 3)
    return a, t, y


@program
def evaluation_order_is_left_to_right(x, n, box):
    def note(value):
        box.log.append(value)
        return value

    d = {note("k1"): note("v1"), note("k2"): note("v2")}
    d[note("index")] = note("value")
    note([0, 0])[note(1)] = note(2)
    spread(note("a"), note("b"), *note([1]), c=note("c"), **note({"d": 1}))
    note(3) + note(4) * note(5)
    return d, x + n


@program
def unpacking_in_displays_and_subscripts(x, n, box):
    d = {(1, 2): "t"}
    return (
        [*box.items, *"ab"],
        (*range(n),),
        {*box.items},
        {**box.table, "c": n, **{"a": 0}},
        d[1, 2],
        x[(0, slice(None))],
    )


@program
def while_else_and_for_else(x, n, box):
    for i in range(n):
        if i == 2:
            break
    else:
        box.log.append("for else")
    while n > 2:
        n -= 1
        if n == 4:
            break
    else:
        box.log.append("while else")
    return x + n


@program
def annotations_of_locals_and_functions(x, n, box):
    value: int = n
    other: "undefined name"

    def inner(a: int, b: str = "b") -> float:
        return a

    return value, inner.__annotations__, inner(1), x + 1


@program
def ellipsis_not_implemented_and_debug(x, n, box):
    return ..., NotImplemented, __debug__, x[..., None], __name__
