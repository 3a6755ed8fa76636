"""The library: itertools, functools, operator, heapq, bisect, collections.abc, array in everyday
use."""

# mypy: ignore-errors

from __future__ import annotations

import functools
import itertools
import operator

from integration_tests.corpora.behaviours import program


@program
def infinite_iterators(x, n, box):
    count, cycle = itertools.count(n, 2), itertools.cycle("ab")
    return (
        [next(count) for _ in range(3)],
        [next(cycle) for _ in range(5)],
        list(itertools.repeat(x, 2)),
        next(itertools.repeat(n)),
        list(zip(itertools.count(), "xy")),
    )


@program
def finite_iterators(x, n, box):
    items = [1, 2, 3, n, 5]
    return (
        list(itertools.chain([1], "a", (x,))), list(itertools.chain.from_iterable([[1], [n]])), list(itertools.compress("abc", [1, 0, n])),
        list(itertools.dropwhile(lambda i: i < 3, items)), list(itertools.takewhile(lambda i: i < 3, items)), list(itertools.filterfalse(lambda i: i % 2, items)),
        list(itertools.islice(items, 1, n)), list(itertools.islice(items, None, None, 2)), list(itertools.starmap(pow, [(2, n), (3, 2)])),
        list(itertools.zip_longest("ab", [1], fillvalue=n)), list(itertools.pairwise(items)), list(itertools.accumulate(items)), list(itertools.accumulate(items, operator.mul, initial=1)),
    )  # fmt: skip


@program
def combinatoric_iterators(x, n, box):
    return (
        list(itertools.product("ab", range(2))),
        list(itertools.permutations([1, n], 2)),
        list(itertools.combinations("abc", 2)),
        list(itertools.combinations_with_replacement("ab", 2)),
        len(list(itertools.product([0, 1], repeat=n))),
        x + 1,
    )


@program
def grouping(x, n, box):
    rows = [("a", 1), ("a", 2), ("b", n)]
    return (
        [
            (key, [v for _, v in group])
            for key, group in itertools.groupby(rows, key=lambda r: r[0])
        ],
        [k for k, _ in itertools.groupby("aabba")],
        x + 1,
    )


@program
def tees_and_batches(x, n, box):
    a, b = itertools.tee(iter([1, 2, n]))
    next(a)
    return list(a), list(b), list(zip(*[iter(range(6))] * 2)), x + 1


@program
def operator_functions(x, n, box):
    class Thing:
        value = n

        def method(self, a, b=1):
            return a, b

    return (
        operator.add(1, n), operator.itemgetter(1)([0, n]), operator.itemgetter("a", "b")({"a": 1, "b": n}), operator.attrgetter("value", "__class__.__name__")(Thing()),
        operator.methodcaller("method", 1, b=n)(Thing()), operator.contains([n], n), operator.getitem([1, 2], 0), operator.truth(n), operator.not_(n), operator.is_(n, None),
        operator.index(n), operator.concat([1], [n]), operator.countOf([1, n, n], n), operator.indexOf([0, n], n), operator.iadd([1], [2]), operator.mul(x, n), operator.neg(x), operator.floordiv(7, n),
    )  # fmt: skip


@program(breaks="builtin")
def operator_functions_that_write(x, n, box):
    operator.setitem(box.items, 0, n)
    operator.delitem(box.table, "a")
    operator.iadd(box.items, [n])
    return box.items, box.table, operator.length_hint(iter(box.items)), x + 1


@program
def partial_and_reduce_with_tensors(x, n, box):
    return (
        functools.reduce(operator.add, [x, x * 2, n]),
        functools.partial(operator.mul, n)(x),
        sorted([(2, "b"), (1, "a")], key=operator.itemgetter(0)),
        max([1, n], key=operator.neg),
    )


@program
def builtin_functions(x, n, box):
    return (
        all(i for i in box.items),
        any(i > n for i in box.items),
        sum(box.items, n),
        list(zip("ab", [1, n])),
        list(map(str, box.items)),
        divmod(7, n),
        pow(2, n),
        round(n / 3, 2),
        sorted(box.items),
        [*reversed(box.items)],
        max(box.items, default=0),
        list(filter(None, [0, n])),
        abs(-n),
        hash("a") == hash("a"),
        ascii("é"),
        chr(65 + n),
        x + 1,
    )


@program
def slices_of_iterators_and_windows(x, n, box):
    it = iter(range(10))
    head = list(itertools.islice(it, n))
    return head, list(it), [sum(w) for w in zip(range(5), range(1, 5))], x[: len(head)]
