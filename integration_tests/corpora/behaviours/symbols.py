"""Symbolic ints, floats and bools in every operator, in formatting, as indices, as keys, in
`range`, `math` and shifts."""

# mypy: ignore-errors

from __future__ import annotations

import math

import torch

from integration_tests.corpora.behaviours import program


@program
def in_every_operator(x, n, box):
    k = x.shape[0]
    return (
        k + n,
        k - n,
        k * n,
        k / n,
        k // n,
        k % n,
        k**2,
        -k,
        +k,
        ~k,
        abs(-k),
        divmod(k, n),
        pow(k, 2),
        k << 1,
        k >> 1,
        k & 1,
        k | 8,
        k ^ n,
        x * k,
    )


@program
def in_comparisons_and_logic(x, n, box):
    k = x.shape[0]
    return (
        k == n,
        k != n,
        k < n,
        k >= n,
        k and n,
        not k,
        1 < k < n,
        k is n,
        min(k, n),
        max(k, n, 4),
        k in (2, 3),
        bool(k - 2),
        x + (1 if k > 2 else 2),
    )


@program
def in_formatting(x, n, box):
    k = x.shape[0]
    return (
        f"{k}|{n:03d}|{k!r}|{k + n:>5}",
        str(k),
        repr(n),
        "%d" % k,
        "{}".format(n),
        str((k, n)),
        x.shape,
        str(x.shape),
        f"{x.shape}",
        x + 1,
    )


@program(breaks="operator-error")
def as_indices_and_slices(x, n, box):
    k = x.shape[0]
    return (
        [10, 20, 30, 40][k],
        "abcdef"[n],
        x[k - 1],
        x[:, n - 2],
        x[-k:],
        range(10)[k:n],
        (1, 2, 3, 4)[-k],
        x[torch.arange(k) % 2],
        box.items[:k],
    )


@program
def as_keys(x, n, box):
    k = x.shape[0]
    d = {k: "rows", n + 10: "n"}
    return d[k], d.get(2), d.get(3, "no"), k in {2, 3}, {n: 1}, {k, n, 2} == {2, n, k}, {(k, n): x}


@program
def in_range_and_loops(x, n, box):
    k = x.shape[0]
    total = 0
    for i in range(k):
        total += i * n
    return (
        total,
        list(range(n, 0, -1)),
        list(range(0, 10, k)),
        [x + i for i in range(n)],
        len(range(k)),
        sum(range(n)),
        k in range(n),
        range(k) == range(0, k),
    )


@program
def in_math(x, n, box):
    k = x.shape[0]
    return (
        math.sqrt(n),
        math.floor(k / 2),
        math.ceil(k / n),
        math.gcd(k, 6),
        math.log2(k),
        math.prod([k, n]),
        math.isclose(k, k),
        math.factorial(n),
        math.pow(k, 2),
        math.trunc(n / k),
        math.comb(n + 2, 2),
        x * math.exp(-k),
    )


@program
def as_floats(x, n, box):
    f = n * 0.5
    return (
        f,
        f"{f:.2f}",
        int(f),
        round(f),
        f.is_integer(),
        f // 1,
        f > 1,
        x * f,
        math.sin(f),
        float(n),
        (f, n)[n > 2],
        str(f),
    )


@program
def conversions(x, n, box):
    k = x.numel()
    return (
        float(k),
        int(k / 2),
        bool(k),
        complex(k),
        str(k),
        chr(96 + n),
        hex(k),
        bin(n),
        k.bit_length(),
        n.real,
        type(k),
        isinstance(k, int),
        hash(n) == n,
        x + k,
    )


@program
def sizes_of_views_and_reshapes(x, n, box):
    y = x.repeat(n, 1)
    return (
        y.shape,
        y.numel(),
        y.reshape(-1).shape[0],
        y.view(n, -1).shape,
        list(y.shape),
        y.size(0),
        y.stride(),
        tuple(y.t().shape),
        len(y),
        y.shape[0] == n * x.shape[0],
        y.shape + (1,),
        y.shape.numel(),
    )


@program
def in_user_classes_and_closures(x, n, box):
    class Holder:
        def __init__(self, size):
            self.size = size

        def __eq__(self, other):
            return self.size == other.size

    a, b = Holder(x.shape[0]), Holder(n)
    return a == b, [h.size for h in (a, b)], (lambda: a.size * n)(), x * b.size


COUNT = 1


@program
def a_global_counter_grows(x, n, box):
    global COUNT
    COUNT += n
    return x * COUNT, f"{COUNT}", list(range(COUNT))[-1]


@program
def a_count_in_an_object_grows(x, n, box):
    box.counts["b"] += n
    box.value = box.counts["b"] / 2
    return x * box.value, box.counts["b"] % 3 == 0


@program(breaks="data-dependent-number")
def items_of_tensors(x, n, box):
    k = int(box.tensor.sum()) + n
    return k, x * k, f"{box.tensor[0, 1].item()}", [0] * (k % 5), k > 10


@program
def bools_and_enumerations_of_symbols(x, n, box):
    wide = x.shape[0] > 2
    return (
        wide,
        wide + 1,
        [wide, not wide],
        {True: "wide", False: "narrow"}[wide],
        x if wide else x * 2,
        str(wide),
        wide is True,
        wide == (n > 2),
        sum([wide, n > 1]),
    )


@program
def a_number_that_is_mixed_over_and_over(x, n, box):
    mixed = n
    for step in range(30):
        mixed ^= (mixed >> 11) ^ (mixed << 5)
        mixed = (mixed * 69069 + step) & 0xFFFFFFFF
    total = sum([n] * 100)
    return mixed, total, x + n


@program
def methods_of_ints_decline_floats(x, n, box):
    return (
        n.__add__(2.5),
        n.__rsub__(1.5),
        n.__lt__(2.5),
        n.__eq__(3.0),
        n.__mul__(True),
        (n * 1.5).__eq__(n),
        x + n,
    )
