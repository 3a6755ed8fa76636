"""Iterators half consumed, exhausted, shared by two loops; `zip(it, it)`;
`iter(callable, sentinel)`; `reversed`; `enumerate`."""

# mypy: ignore-errors

from __future__ import annotations

import collections
import itertools

from integration_tests.corpora.behaviours import program


@program
def half_consumed_by_next_and_finished_by_a_loop(x, n, box):
    it = iter(box.items)
    first = next(it)
    rest = [x * i for i in it]
    return first, rest, next(it, "exhausted"), list(it)


@program
def one_shared_by_two_loops(x, n, box):
    it = iter(range(6))
    for i in it:
        x = x + i
        if i == n:
            break
    for j in it:
        x = x * j
    return x, list(it)


@program
def zip_of_an_iterator_with_itself(x, n, box):
    it = iter(range(n + 2))
    pairs = list(zip(it, it))
    return pairs, x + len(pairs), list(it)


@program
def zip_of_unequal_lengths_consumes_what_python_consumes(x, n, box):
    long, short = iter(range(5)), iter(range(2))
    found = list(zip(long, short))
    other = list(zip(short, long))
    return found, other, list(long), x + 1


@program
def zip_strict_names_the_shorter_argument(x, n, box):
    for args in ([1, 2], [1]), ([1], [1, 2]), ([1], [2]):
        try:
            box.log.append(list(zip(*args, strict=True)))
        except ValueError as error:
            box.log.append(str(error))
    return x + 1


@program
def iter_of_a_callable_until_a_sentinel(x, n, box):
    queue = [5, 4, n, 3, 9]
    found = [x * i for i in iter(queue.pop, n)]
    return found, queue


@program
def iter_of_a_closure_until_a_sentinel_with_user_equality(x, n, box):
    class Near:
        def __eq__(self, other):
            box.log.append(other)
            return other > 2

    count = itertools.count()
    return list(iter(lambda: next(count), Near())), x + n, box.log


class Sequence:
    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


class Backwards(Sequence):
    def __reversed__(self):
        yield "backwards"
        yield from self.items


@program
def reversed_of_every_sequence(x, n, box):
    many = [
        [1, n, "c"], (1, n), range(n, 9, 2), range(0), "abc" * n, box.items, box.table, box.table.keys(), box.table.values(),
        box.ordered, {n: 1, "k": x}.items(), box.ring, Sequence(1, 2), Backwards(n), b"ab", {1: n, 2: x},
    ]  # fmt: skip
    found = [list(reversed(thing)) for thing in many]
    started = reversed([1, 2, n])
    found += [
        next(started),
        started,
        type(reversed(many)),
        next(reversed((x, n))),
        [*reversed(many[2])][:1],
    ]
    return found, x + n


@program(breaks="construction")
def reversed_of_what_is_seldom_reversed(x, n, box):
    many = [
        bytearray(b"cd"),
        box.ordered.items(),
        box.ordered.keys(),
        box.raw,
        collections.UserList([1, n]),
        memoryview(b"ef"),
    ]
    return [list(reversed(thing)) for thing in many], x + 1


class Refusing(Sequence):
    __reversed__ = None


@program
def reversed_of_what_has_no_order(x, n, box):
    for thing in ({1, 2}, n, iter([1]), Refusing(1, 2), frozenset(), (i for i in range(2)), None):
        try:
            reversed(thing)
        except TypeError as error:
            box.log.append(str(error))
    return x + 1


@program
def reversed_over_what_changes(x, n, box):
    items = [1, 2, 3, 4]
    it = reversed(items)
    first = next(it)
    items.append(n)
    items[0] = x
    del items[3:]
    return first, list(it), list(it), items


@program
def reversed_and_iteration_by_the_sequence_protocol(x, n, box):
    it = iter(Sequence(1, n, x))
    return (
        next(it),
        list(it),
        list(reversed(Sequence(1, 2))),
        list(reversed(Backwards(n))),
        n in Sequence(1, n),
    )


@program
def enumerate_from_a_start(x, n, box):
    it = enumerate(box.items, n)
    first = next(it)
    return first, [x * i + j for i, j in it], list(enumerate("ab", start=-1)), next(it, None)


@program
def map_and_filter_are_lazy(x, n, box):
    def note(i):
        box.log.append(i)
        return i * x

    lazy = map(note, box.items)
    before = list(box.log)
    first = next(lazy)
    kept = filter(lambda i: i > 1, box.items)
    return (
        before,
        first,
        next(kept),
        list(box.log),
        list(lazy),
        list(kept),
        list(filter(None, [0, n, "", "a"])),
    )


@program
def map_of_several_stops_at_the_shortest(x, n, box):
    it = iter(range(10))
    found = list(map(lambda a, b: a * b, box.items, it))
    return found, next(it), list(map(max, [1, 5], [n, n], [2, 2])), x * 2


@program
def a_list_iterator_sees_what_is_appended_and_stays_exhausted(x, n, box):
    items = [1, 2]
    it = iter(items)
    found = [next(it)]
    items.append(n)
    found += list(it)
    items.append(9)
    return found, list(it), x + sum(items)


@program
def a_list_that_shrinks_under_its_loop(x, n, box):
    items = list(range(n + 3))
    seen = []
    for i in items:
        seen.append(i)
        items.remove(i)
    return seen, items, x * len(seen)


class Counting:
    def __init__(self, stop):
        self.now, self.stop = 0, stop

    def __iter__(self):
        return self

    def __next__(self):
        self.now += 1
        if self.now > self.stop:
            raise StopIteration(self.now)
        return self.now


@program
def a_user_iterator_in_every_consumer(x, n, box):
    a, b = Counting(2)
    return (
        a,
        b,
        list(Counting(n)),
        tuple(Counting(n)),
        sum(Counting(n)),
        max(Counting(n)),
        sorted(Counting(n), reverse=True),
        dict(zip(Counting(2), "ab")),
        [*Counting(1), *Counting(2)],
        2 in Counting(n),
        "-".join(map(str, Counting(n))),
        any(i > 1 for i in Counting(n)),
        set(Counting(n)) == {*range(1, n + 1)},
        x * next(Counting(n)),
    )


OUTSIDE = Counting(50)


@program
def a_user_iterator_from_outside_goes_on_over_calls(x, n, box):
    return [next(OUTSIDE) for _ in range(n)], x + OUTSIDE.now


ITERATOR = iter(range(1000))


@program
def a_builtin_iterator_from_outside_goes_on_over_calls(x, n, box):
    first = next(ITERATOR)
    return first, x * 2, [i for _, i in zip(range(n), ITERATOR)]


@program
def unpacking_counts_and_says_so(x, n, box):
    for items in ([1], [1, 2, 3], iter([1, 2]), {"a": 1, "b": 2}, "xy", (i for i in range(n))):
        try:
            a, b = items
            box.log.append((a, b))
        except ValueError as error:
            box.log.append(str(error))
    try:
        a, b = n
    except TypeError as error:
        box.log.append(str(error))
    return x + 1


@program
def next_with_and_without_default(x, n, box):
    it = iter([x])
    found = [next(it), next(it, n), next(it, None)]
    try:
        next(it)
    except StopIteration as stop:
        found.append((stop.value, stop.args))
    return found


@program
def not_iterable_and_not_an_iterator(x, n, box):
    for attempt in (
        lambda: iter(n),
        lambda: next([1]),
        lambda: list(3),
        lambda: [*None],
        lambda: sum(n),
    ):
        try:
            attempt()
        except TypeError as error:
            box.log.append(str(error))
    return x + 1


@program
def iter_that_returns_no_iterator(x, n, box):
    class Bad:
        def __iter__(self):
            return n

    try:
        list(Bad())
    except TypeError as error:
        return str(error), x * 2


@program
def chained_and_teed(x, n, box):
    it = itertools.chain(box.items, "ab")
    one, two = itertools.tee(it)
    return next(one), list(two), list(one), x + n


@program(breaks="builtin")
def length_hints_and_sizes(x, n, box):
    it = iter(box.items)
    next(it)
    return it.__length_hint__(), len(range(0, n, 2)), x.shape[0]


@program
def dict_iterators_in_both_directions(x, n, box):
    it = iter(box.table.values())
    first = next(it)
    keys = iter(box.ordered)
    next(keys)
    return first, list(it), list(keys), [k for k in reversed(box.ordered)], x * n
