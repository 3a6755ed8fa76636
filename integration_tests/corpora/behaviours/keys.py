"""Objects as keys of dicts and members of sets: `__hash__` and `__eq__` of the program, frozen
dataclasses, one without the other, equal hashes, a hash that is kept, keys inside tuples, keys of
dicts from outside."""

# mypy: ignore-errors

import collections
import dataclasses

from integration_tests.corpora.behaviours import program


class Key:
    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return hash(("key", self.value))

    def __eq__(self, other):
        return isinstance(other, Key) and self.value == other.value


class Crowded(Key):
    def __hash__(self):
        return 7


class Kept(Key):
    kept = None

    def __hash__(self):
        if self.kept is None:
            self.kept = super().__hash__()
        return self.kept


ASKED = []


class Loud(Key):
    def __hash__(self):
        ASKED.append(self.value)
        return 1


@dataclasses.dataclass(frozen=True)
class Version:
    major: int
    minor: object = 1


@program
def a_dict_of_objects(x, n, box):
    table = {Key(1): x, Key(n): x + 1}
    table[Key(1)] = x * 2
    found = table[Key(n)], Key(3) in table, table.get(Key(9)), [key.value for key in table]
    return found, table.pop(Key(1)), len(table), table.setdefault(Key(4), n), table


@program
def frozen_dataclasses_as_keys(x, n, box):
    table = {Version(1): x, Version(n): x + 1, Version(1, (2, Version(3))): 3}
    return (
        table[Version(n)],
        table[Version(1, (2, Version(3)))],
        hash(Version(n)) == hash(Version(n)),
        list(table),
    )


@program
def a_missing_object_is_a_key_error(x, n, box):
    table = {Version(1): 1}
    try:
        table[Version(n)]
    except KeyError as error:
        box.log.append(error.args[0].major)
    del table[Version(1)]
    return table, x + 1


@program
def a_set_of_objects(x, n, box):
    members = {Key(1), Key(n), Key(1)}
    members.add(Key(n))
    members.discard(Key(1))
    other = {Key(5), Key(n)}
    return (
        len(members),
        Key(n) in members,
        members <= other,
        members | {Key(5)} == other,
        x + len(members & other),
    )


@program
def objects_of_one_hash(x, n, box):
    table = {Crowded(1): 1}
    table[Crowded(2)] = 2
    table[Crowded(n)] = x
    del table[Crowded(1)]
    return (
        table[Crowded(n)],
        [key.value for key in table],
        Crowded(9) in table,
        {Crowded(1), Crowded(1)}.pop().value,
    )


@program
def a_hash_that_is_kept_on_the_object(x, n, box):
    key = Kept(n)
    table = {key: x}
    return table[Kept(n)] + 1, key.kept == hash(key), key, table


@program
def objects_in_other_keys_and_containers(x, n, box):
    table = dict([(Key(1), x), (Key(n), 2)])
    table.update({Key(1): 5})
    copied = {key: value for key, value in table.items()}
    counts = collections.Counter([Key(1), Key(n), Key(1)])
    groups = collections.defaultdict(list)
    groups[Key(n)].append(x)
    groups[Key(n)].append(n)
    pair = (Key(1), 2) in {(Key(1), 2): x}
    return (
        copied[Key(1)],
        copied == table,
        counts[Key(1)],
        pair,
        len(groups),
        groups,
        dict.fromkeys([Key(1), Key(1)]),
    )


TABLE = {Key(1): "one", Key(2): "two"}


@program
def a_dict_from_outside(x, n, box):
    found = TABLE.get(Key(n), "none")
    TABLE[Key(n)] = (found, n)
    return found, Key(1) in TABLE, len(TABLE), [key.value for key in TABLE], x + 1


@program
def equality_without_a_hash_and_identity(x, n, box):
    class Alike:
        __hash__ = object.__hash__

        def __eq__(self, other):
            return True

    class Unhashable:
        def __eq__(self, other):
            return True

    try:
        {Unhashable(): 1}
    except TypeError as error:
        box.log.append(str(error))
    one = Alike()
    return len({one: 1, Alike(): x}), one in {one}, Alike() in {one: n}, Alike() in [one], x + 1


@program(breaks="user-hash")
def a_hash_with_an_effect(x, n, box):
    table = {Loud(1): x, Loud(n): n}
    return table, len(ASKED), x + 1


@program
def a_cache_by_objects(x, n, box):
    cache = {}

    def scaled(version):
        if version not in cache:
            cache[version] = x * version.major
        return cache[version]

    return scaled(Version(n)) is scaled(Version(n)), scaled(Version(2)) + 1, len(cache)


class Listed(Key):
    """Its methods make and change objects of their own."""

    def __hash__(self):
        parts = ["listed"]
        parts.append(self.value)
        return hash(tuple(parts))


class Growing(Key):
    noted = 0

    def __hash__(self):
        self.noted += 1
        return hash(self.value)


@program
def a_hash_by_way_of_a_list(x, n, box):
    table = {Listed(n): x}
    table[Listed(1)] = 2
    return table[Listed(n)] + 1, table


@program(breaks="user-hash")
def a_hash_that_counts_on_the_object(x, n, box):
    key = Growing(n)
    table = {key: x}
    return table[key] + 1, key.noted, table


class Number(int):
    def __hash__(self):
        return int.__hash__(self)

    def __eq__(self, other):
        ASKED.append(int(self))
        return int.__eq__(self, other)


class Two:
    def __hash__(self):
        return 2

    def __eq__(self, other):
        ASKED.append(other)
        return other == 2


class Named(str):
    __hash__ = str.__hash__

    def __eq__(self, other):
        ASKED.append(other)
        return str.__eq__(self, other)


numbers, objects, names = {Number(2), 7}, frozenset([Two(), 5]), {Named("a"), "b"}


@program(breaks="user-hash")
def members_of_a_set_are_asked_once_for_a_number(x, n, box):
    return 2 in numbers, n in numbers, x + n


@program(breaks="user-hash")
def members_of_a_frozen_set_are_asked_once_for_a_number(x, n, box):
    return 2 in objects, 5 in objects, n in objects, x + n


@program(breaks="user-hash")
def members_of_a_set_are_asked_once_for_a_text(x, n, box):
    return "a" in names, "b" in names, "c" not in names, x + n


@program(breaks="construction")
def members_of_a_new_set_are_asked_once(x, n, box):
    return 2 in {Number(2)}, n in {Number(n)}, x + n


kept = {Loud(1): 1, Loud(2): 2}
ASKED.clear()


@program(breaks="user-hash")
def a_table_whose_keys_are_not_asked(x, n, box):
    return len(kept), ASKED, x + n
