"""List, dict, set, deque with maxlen, OrderedDict, defaultdict, Counter, ChainMap, array: every
mutating method, on arguments, globals, closure contents, class attributes, default arguments;
identity, order and content kept."""

# mypy: ignore-errors

from __future__ import annotations

import bisect
import collections
import heapq
from array import array

import stator

from integration_tests.corpora.behaviours import Box, program


@program
def every_list_method(x, n, box):
    a = box.items
    a.append(x)
    a.extend(iter([7, n]))
    a.insert(1, "in")
    a.insert(-100, "first")
    a.remove(1)
    popped = a.pop(), a.pop(0), a.pop(-2)
    a += "ab"
    a *= 2
    a[0], a[-1] = "zero", n
    a[2:4] = [8, 9, 10]
    a[::5] = ["s"] * len(a[::5])
    del a[1], a[-2:]
    a.reverse()
    return popped, a is box.items, a.count(2), a.index("a"), a.copy() is a


@program
def lists_are_sorted_and_cleared(x, n, box):
    alias = box.items
    box.items.sort(key=lambda i: -i)
    box.nested["deep"][1].clear()
    box.nested["deep"].sort(key=str)
    box.log[:] = alias
    box.log[1:1] = [n, x]
    return alias, x + 1


@program
def list_writes_that_fail_change_nothing(x, n, box):
    a = box.items
    for bad in (
        lambda: a.pop(100),
        lambda: a.remove("no"),
        lambda: a.__setitem__(50, 1),
        lambda: a.__delitem__(-50),
        lambda: a.__setitem__(slice(0, 4, 2), [1]),
        lambda: a.extend(3),
        lambda: a.insert("x", 1),
        lambda: a.index(77),
    ):
        try:
            bad()
        except (IndexError, ValueError, TypeError) as error:
            box.log.append((type(error), str(error)))
    return a, x + 1


@program
def an_extend_that_fails_half_way_keeps_the_first_half(x, n, box):
    def source():
        yield 1
        yield n
        raise ValueError("half")

    for write in (box.items.extend, box.members.update, box.ring.extend):
        try:
            write(source())
        except ValueError as error:
            box.log.append(str(error))
    return x + 1


@program
def every_dict_method(x, n, box):
    d = box.table
    d["new"] = x
    d.update({"u": 1}, v=n)
    d.update([("w", 2)])
    d |= {"or": 3}
    found = d.setdefault("a", 5), d.setdefault("s", []), d.pop("b"), d.pop("zz", n), d.popitem()
    d["s"].append(1)
    del d["u"]
    d["a"] += n
    return found, list(d), d is box.table


@program
def dicts_are_cleared_and_refilled(x, n, box):
    keys = box.table.keys()
    before = list(keys)
    box.table.clear()
    box.table["b"] = n
    box.table["a"] = x
    return before, list(keys), len(box.table)


@program(breaks="set-order")
def every_set_method(x, n, box):
    s = box.members
    s.add(n)
    s.discard(100)
    s.discard(5)
    s.update([20, 21], (n + 30,))
    s.remove(20)
    s |= {40}
    s &= {1, n, 40, 21}
    s -= {21}
    s ^= {1, 50}
    s.difference_update([50])
    s.intersection_update({n, 40, 60})
    s.symmetric_difference_update([60])
    try:
        s.remove("none")
    except KeyError as error:
        box.log.append(error.args)
    return s is box.members, len(s), sorted(s), x + 1


@program
def a_set_is_popped_and_cleared(x, n, box):
    alone = {n}
    got = alone.pop()
    box.members.clear()
    box.members.add("new")
    try:
        alone.pop()
    except KeyError as error:
        return got, str(error), x + 1


@program
def every_deque_method(x, n, box):
    q = box.ring
    q.append(n)
    q.appendleft("left")
    q.extend([7, 8])
    q.extendleft([9, x])
    popped = q.pop(), q.popleft()
    q.append(1)
    q.rotate(1)
    q.rotate(-2)
    q[0] = "zero"
    del q[1]
    q.insert(0, 2)
    q.remove(2)
    q.reverse()
    q += [5]
    q *= 2
    return popped, q.maxlen, q.count(5), list(q), q is box.ring, 5 in q


@program
def an_unbounded_deque_and_its_errors(x, n, box):
    q = collections.deque([1, 2])
    q.appendleft(n)
    for bad in (
        lambda: q[10],
        lambda: q.remove("x"),
        lambda: collections.deque().pop(),
        lambda: q.index(99),
        lambda: collections.deque(maxlen=2).insert(0, 1) or collections.deque([1], 1).insert(0, 1),
    ):
        try:
            bad()
        except (IndexError, ValueError) as error:
            box.log.append((type(error), str(error)))
    return q, q.copy(), q + q, q == collections.deque([n, 1, 2]), q.maxlen, x + 1


@program
def every_ordered_dict_method(x, n, box):
    o = box.ordered
    o.move_to_end("x")
    o.move_to_end("z", last=False)
    o["new"] = n
    first = o.popitem(last=False)
    o["y"] = "changed"
    got = o.pop("x"), o.setdefault("q", x)
    try:
        o.move_to_end("none")
    except KeyError as error:
        box.log.append(error.args)
    return (
        first,
        got,
        list(o),
        list(reversed(o)),
        o == collections.OrderedDict([("y", "changed")]),
        o.popitem(),
    )


@program
def order_counts_between_ordered_dicts(x, n, box):
    a, b = collections.OrderedDict(a=1, b=n), collections.OrderedDict(b=n, a=1)
    return a == b, a == dict(b), list(a | b), a != {"a": 1}, repr(a), x + 1


@program
def default_dicts_make_their_values(x, n, box):
    g = box.groups
    g["new"].append(x)
    g["k"] += [1]
    counter = collections.defaultdict(int)
    for letter in "hello":
        counter[letter] += 1
    nested = collections.defaultdict(lambda: collections.defaultdict(list))
    nested["a"][n].append(1)
    plain = collections.defaultdict(None, a=1)
    try:
        plain["b"]
    except KeyError as error:
        box.log.append(error.args)
    return g, counter, nested["a"], "z" in g, g.get("z"), g.default_factory, list(g)


@program
def counters_count(x, n, box):
    c = box.counts
    c.update("abc")
    c.update({"a": n}, z=1)
    c.subtract(["b", "q"])
    c["new"] += 2
    del c["z"]
    other = collections.Counter(a=1, y=n)
    return (
        c["missing"],
        c.most_common(2),
        sorted(c.elements())[:3],
        c + other,
        c - other,
        c & other,
        c | other,
        +c,
        c.total(),
        c == other,
        collections.Counter("aab") <= collections.Counter("aabb"),
        x + 1,
    )


@program
def chain_maps_write_to_the_first(x, n, box):
    m = box.chain
    m["a"] = x
    m["new"] = n
    child = m.new_child({"c": 1})
    child["b"] = "child"
    try:
        del child["a"]
    except KeyError as error:
        box.log.append(str(error))
    return (
        m["b"],
        m.maps[0],
        child["b"],
        list(child),
        len(child),
        "a" in child,
        m.parents,
        child.pop("c"),
        dict(m),
    )


@program(breaks="builtin")
def arrays_of_numbers_are_written(x, n, box):
    a = box.raw
    a.append(n)
    a.extend([5, 6])
    a.insert(0, -1)
    a[1] = 40
    a.reverse()
    a.remove(40)
    popped = a.pop()
    a += array("i", [9])
    a[0:2] = array("i", [0])
    return popped, a.tolist(), a.typecode, len(a), a.index(9), a.count(0), list(a), x + a[0]


@program
def heaps_and_bisection_write_lists(x, n, box):
    heapq.heapify(box.items)
    heapq.heappush(box.items, n)
    least = heapq.heappop(box.items)
    swapped = heapq.heappushpop(box.items, 0), heapq.heapreplace(box.items, 10)
    line = sorted(box.items)
    bisect.insort(line, n)
    return (
        least,
        swapped,
        line,
        bisect.bisect_left(line, n),
        heapq.nsmallest(2, line),
        heapq.nlargest(1, line),
        list(heapq.merge([1, 4], [n])),
        x + 1,
    )


LIST, DICT, SET, DEQUE = [1], {"a": 1}, {1}, collections.deque([1], maxlen=4)
ORDERED, GROUPS = collections.OrderedDict(a=1, b=2), collections.defaultdict(list)


@program(breaks="set-order")
def globals_are_mutated(x, n, box):
    LIST.append(n)
    DICT[str(n)] = len(LIST)
    SET.add(n)
    DEQUE.append(n)
    ORDERED.move_to_end("a", last=n > 2)
    GROUPS[n].append(1)
    return (
        list(LIST),
        dict(DICT),
        sorted(SET),
        list(DEQUE),
        list(ORDERED),
        dict(GROUPS),
        x * len(LIST),
    )


def keeper():
    kept = {"items": [], "count": collections.Counter()}

    def keep(item):
        kept["items"].append(item)
        kept["count"][item] += 1
        return kept

    return keep


KEEP = keeper()


@program
def closure_contents_are_mutated(x, n, box):
    KEEP(n)
    return list(KEEP(n + 1)["items"]), dict(KEEP(1)["count"]), x + 1


class Registry:
    items = []
    table = {}

    def add(self, item, into=[], *, seen=set()):
        self.items.append(item)
        self.table[item] = len(self.items)
        into.append(item)
        seen.add(item)
        return len(into), len(seen)


@program
def class_attributes_and_defaults_are_mutated(x, n, box):
    found = Registry().add(n), Registry().add(n * 2)
    return (
        found,
        list(Registry.items),
        dict(Registry.table),
        Registry.add.__defaults__[0][-1],
        x + 1,
    )


@program
def containers_that_hold_each_other_and_themselves(x, n, box):
    a, d = [n], {}
    a.append(a)
    d["a"], d["d"] = a, d
    box.items.append(box.items)
    box.table["box"] = box.items
    return a, d, a[1] is a, box.items[-1] is box.items, x + 1


@program
def one_object_twice_is_one_object(x, n, box):
    inner = [x]
    box.log.append(inner)
    box.log.append(inner)
    y = x * 2
    return inner, [inner, inner], {"k": inner}, (y, y), inner is box.log[0]


@program
def tuples_hold_lists_that_change(x, n, box):
    t = ([1], box.items)
    t[0].append(n)
    try:
        t[1] += [x]
    except TypeError as error:
        box.log.append(str(error))
    return t, box.items


@program
def a_new_container_is_put_in_place_of_an_old_one(x, n, box):
    old = box.items
    box.items = [*old, n]
    old.append("old")
    box.table = dict(box.table, n=n)
    return old, box.items, box.table, x + 1


@program(breaks="data-dependent-branch")
def writes_under_a_condition_that_alternates(x, n, box):
    if box.flag:
        box.items.append(x)
    else:
        box.table[n] = x
    for key in [k for k, v in box.table.items() if v == 1]:
        del box.table[key]
    return len(box.items) + len(box.table), x * 2


class Recent(collections.deque):
    pass


class Noting(collections.deque):
    def append(self, item):
        super().append(item)
        self.count = len(self)


class Three(collections.deque):
    def __init__(self, items=()):
        super().__init__(items, maxlen=3)


@program
def a_new_deque_of_a_class_of_its_own_keeps_its_length(x, n, box):
    recent, three = Recent([1, 2], 2), Three([1, 2, 3, n])
    recent.append(n)
    three.appendleft(x)
    return recent, recent.maxlen, three, repr(recent)


@program
def a_new_deque_that_is_kept_goes_on_with_its_length(x, n, box):
    box.log.append(Noting((), maxlen=2))
    for item in (1, x, n):
        box.log[-1].append(item)
    return box.log[-1].count, Recent(maxlen=1), Recent([x])


@program(breaks="graph-break")
def a_new_deque_of_a_class_of_its_own_over_a_break(x, n, box):
    recent = [Recent([x, n], 2), Three(), Noting([1], maxlen=0)]
    stator.graph_break()
    for one in recent:
        one.extend([n, n + 1])
    return recent
