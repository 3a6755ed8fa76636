"""Integers of any size, `//`, `%` and shifts on negatives, float formatting, complex numbers,
bytes, str methods."""

# mypy: ignore-errors

from __future__ import annotations

import decimal
import fractions

from integration_tests.corpora.behaviours import program


@program
def integers_of_any_size(x, n, box):
    big = 2**100 + n
    return (
        big,
        big // 3,
        big % 7,
        -big >> 3,
        big.bit_length(),
        hash(big),
        str(big),
        int("1" * 30),
        big * 1.0,
        x + (big % 5),
    )


@program
def floor_division_modulo_and_shifts_on_negatives(x, n, box):
    found = [
        -7 // n,
        -7 % n,
        7 // -n,
        7 % -n,
        divmod(-7, n),
        -1 >> n,
        -5 << n,
        ~n,
        -n ^ 3,
        -n & 0xFF,
        -(n**3) // 2,
    ]
    found += [
        -7.5 // n,
        -7.5 % n,
        divmod(7.5, -2),
        pow(n, -1, 7),
        pow(3, n, 5),
        n**-1,
        (-n) ** 2,
        -(n**2),
        (-8) ** (1 / 3),
    ]
    return found, x * (-7 % n)


@program(breaks="operator-error")
def arithmetic_errors(x, n, box):
    for bad in (
        lambda: 1 << -n,
        lambda: n // 0,
        lambda: n % 0.0,
        lambda: 0.0**-1,
        lambda: pow(2, -1, 4),
        lambda: divmod(1, 0),
        lambda: 2.0**5000,
        lambda: int(float("inf")),
    ):
        try:
            box.log.append(bad())
        except (ValueError, ArithmeticError) as error:
            box.log.append((type(error), str(error)))
    return x + 1


@program
def int_methods_and_conversions(x, n, box):
    return (
        n.bit_length(), n.bit_count(), n.to_bytes(2, "big"), int.from_bytes(b"\x01\x02", "little"), int("ff", 16), int(" 12 "),
        int(3.9), int(-3.9), n.numerator, n.real, n.conjugate(), n.as_integer_ratio(), hex(n), oct(n), bin(-n), bool(n), float(n),
        complex(n), round(n, -1), round(2.5), round(-1.5), round(2.675, 2), chr(97 + n), ord("a"), abs(-n), x + 1,
    )  # fmt: skip


@program
def float_formatting_and_methods(x, n, box):
    f = n / 3
    return (
        f"{f}", f"{f:.3f}", f"{f:e}", f"{f:g}", f"{1e20:g}", f"{1e-7}", f"{100000.0:,}", repr(0.1 + 0.2), str(1e16), f.hex(), f.is_integer(),
        (2.5).as_integer_ratio(), float("nan"), float("-inf"), float("1e3"), float.fromhex("0x1p4"), f // 1, f % 1, -0.0, 0.0 == -0.0, x * f,
    )  # fmt: skip


@program(breaks="operator-error")
def float_comparisons_with_nan_and_infinity(x, n, box):
    nan, inf = float("nan"), float("inf")
    return (
        nan == nan,
        nan != nan,
        nan < n,
        inf > n,
        nan in [nan],
        [nan] == [nan],
        max(1.0, nan),
        min(nan, 1.0),
        inf - inf,
        sorted([3, inf, -inf]),
        x * inf,
    )


@program
def complex_numbers(x, n, box):
    c = complex(n, -1)
    return (
        c,
        c.real,
        c.imag,
        c.conjugate(),
        abs(3 + 4j),
        c * 2,
        c**2,
        c / (1 + 1j),
        -c,
        c == n - 1j,
        complex("1+2j"),
        str(c),
        f"{c:.1f}",
        hash(c) == hash(complex(n, -1)),
        bool(0j),
        x + 1,
    )


@program
def booleans_are_integers(x, n, box):
    yes = n > 2
    return (
        yes + 1,
        yes * x,
        True + True,
        ~True if n > 100 else -1,
        yes & True,
        yes ^ 1,
        True / 2,
        [1, 2][yes],
        str(yes),
        int(yes),
        isinstance(yes, int),
        sum([True, yes]),
        yes is True,
        not yes,
    )


@program(breaks="construction")
def bytes_and_bytearrays(x, n, box):
    b = b"ab" + bytes([n])
    a = bytearray(b"xyz")
    a[0] = n + 64
    a.append(33)
    a += b"!!"
    del a[1]
    return (
        b,
        b[0],
        b[1:],
        b * 2,
        b.hex(),
        b.upper(),
        b"a" in b,
        b.find(b"b"),
        b.decode("latin-1"),
        list(b),
        bytes(3),
        a,
        len(a),
        bytes(a),
        "é".encode(),
        b"%d" % n,
        x + 1,
    )


@program(breaks="construction")
def a_memoryview_writes_through(x, n, box):
    a = bytearray(4)
    view = memoryview(a)
    view[1] = n
    view[2:4] = b"zz"
    return bytes(a), view.tolist(), len(view), x + 1


@program
def string_methods(x, n, box):
    s = "Hello, World"
    return (
        s.upper(), s.lower(), s.title(), s.swapcase(), s.capitalize(), s.casefold(), s.center(20, "*"), s.ljust(15), s.rjust(15, "-"), s.zfill(15),
        s.split(","), s.rsplit("o", 1), "a\nb\r\nc".splitlines(), s.partition(", "), s.rpartition("o"), s.find("o"), s.rfind("o"), s.index("W"), s.count("l"),
        s.replace("l", "L", n), s.startswith(("He", "x")), s.endswith("ld"), s.strip("Hd"), "  a ".lstrip(), " a ".rstrip(), s.removeprefix("Hello"), s.removesuffix("d"),
        "-".join(["a", "b"]), "a\tb".expandtabs(n), s.isalpha(), "12".isdigit(), "ab1".isalnum(), "a b".isidentifier(), s.encode(), s.translate(str.maketrans("lo", "01")), x + 1,
    )  # fmt: skip


@program
def string_operators_and_slices(x, n, box):
    s = box.text + "abcdef"
    return (
        s[n],
        s[-n:],
        s[::2],
        s[::-1],
        s * n,
        "c" in s,
        s < "b",
        len(s),
        s == "ab" + "abcdef",
        min(s),
        sorted(s),
        [*s][:2],
        list(enumerate(s))[:n],
        "%s" % s,
        s.isupper(),
        x + len(s),
    )


@program
def unicode_and_escapes(x, n, box):
    s = "naïve ☃ \N{SNOWMAN} \U0001f600"
    return (
        s,
        len(s),
        s.encode("utf-16-le")[:n],
        ascii(s),
        repr("a'b\"\n\x00"),
        s.upper(),
        "ß".upper(),
        "ǅ".title(),
        ord(s[-1]),
        "e\u0301" == "é",
        x + 1,
    )


@program(breaks="construction")
def number_text_conversions_that_fail(x, n, box):
    for bad in (
        lambda: int("1.5"),
        lambda: int("z", 36) + int("z", 35),
        lambda: float("x"),
        lambda: complex("1 + 2j"),
        lambda: int([]),
        lambda: int("1", 99),
        lambda: chr(2**40),
        lambda: ord("ab"),
        lambda: bytes([300]),
        lambda: "a" * "b",
        lambda: "abc"[10],
    ):
        try:
            box.log.append(bad())
        except (ValueError, TypeError, OverflowError, IndexError) as error:
            box.log.append((type(error), str(error)))
    return x + 1


class Celsius(float):
    def __add__(self, other):
        return Celsius(float.__add__(self, other))

    @property
    def kelvin(self):
        return self + 273.15


class Id(int):
    def __new__(cls, value, label="none"):
        made = super().__new__(cls, value)
        made.label = label
        return made


class Name(str):
    def shout(self):
        return self.upper() + "!"


@program(breaks="construction")
def subclasses_of_numbers_and_text(x, n, box):
    c, i, s = Celsius(n), Id(n, "mine"), Name("bob")
    return (
        c + 1,
        type(c + 1).__name__,
        c.kelvin,
        i,
        i.label,
        i + 1,
        type(i + 1),
        {i: 1}[n],
        s.shout(),
        s + "x",
        type(s + "x"),
        f"{s:>5}{i:03}",
        s == "bob",
        x * i,
    )


LIMIT = Id(3, "limit")


@program
def a_number_subclass_from_outside(x, n, box):
    return LIMIT + n, LIMIT.label, n < LIMIT, x[: int(LIMIT)], isinstance(LIMIT, int)


@program(breaks="construction")
def decimals_and_fractions(x, n, box):
    return (
        decimal.Decimal("1.10") + n,
        fractions.Fraction(n, 6) * 3,
        decimal.Decimal(1) / 3,
        float(fractions.Fraction(1, n)),
        x + 1,
    )


@program
def sum_min_max_of_mixed_numbers(x, n, box):
    return (
        sum([1, 2.5, True, n]),
        sum([[1], [n]], []),
        sum((i for i in range(n)), 10),
        max(1, n, 2.5),
        min([3, n], key=lambda i: -i),
        max("ab", "b"),
        any([]),
        all([]),
        sum([0.1] * 10),
        x + 1,
    )
