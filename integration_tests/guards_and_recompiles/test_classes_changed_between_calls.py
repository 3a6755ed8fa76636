"""Found by random programs whose world changes between the calls: what a trace has read is relied
on, also what it did not find, and what a class may get later."""

from __future__ import annotations

import enum
import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import stator
import torch

from integration_tests.support.oracle import assert_same


class Changing:
    """A class whose instances are looked at, with what changes it before each further call."""

    def __init__(self, base: type, changes: list[Callable[[Any], None]], *args: Any) -> None:
        self.base, self.changes, self.args = base, changes, args

    def side(self, look: Callable[[Any], Any], compiled: bool) -> Callable[..., Any]:
        cls = type("Looked", (self.base,), {})
        it, changes = cls(*self.args), iter([lambda cls: None, *self.changes])

        def main(it: Any) -> Any:
            try:
                return look(it)
            except Exception as error:
                return type(error), str(error)

        run = stator.compile(main, backend="eager") if compiled else main

        def step() -> Any:
            next(changes)(cls)
            return run(it)

        return step


def assert_seen(
    look: Callable[[Any], Any],
    base: type,
    *changes: Callable[[Any], None],
    args: tuple[Any, ...] = (),
) -> None:
    made = Changing(base, [*changes, *changes], *args)
    assert_same(made.side(look, False), made.side(look, True), tuple, calls=1 + 2 * len(changes))


class Plain:
    v = 1


def having(name: str, value: Any) -> Callable[[Any], None]:
    return lambda cls: setattr(cls, name, value)


def lacking(name: str) -> Callable[[Any], None]:
    return lambda cls: type.__delattr__(cls, name)


def read_p(it: Any) -> Any:
    return it.p


def write_p(it: Any) -> Any:
    it.p = 3
    return "written"


def delete_p(it: Any) -> Any:
    del it.p
    return "deleted"


@pytest.mark.parametrize("look", [read_p, write_p, delete_p])
def test_a_property_gets_what_it_lacked(look: Callable[[Any], Any]) -> None:
    whole = property(lambda self: 5, lambda self, value: None, lambda self: None)
    assert_seen(look, Plain, having("p", property()), having("p", whole))


class Named:
    p = property()


@pytest.mark.parametrize("look", [read_p, write_p, delete_p])
def test_a_property_says_its_name_if_a_class_statement_told_it(look: Callable[[Any], Any]) -> None:
    assert_seen(look, Named, having("p", property()), lacking("p"))


def set_v(it: Any) -> Any:
    it.v = 7
    return it.v


def delete_v(it: Any) -> Any:
    it.v = 1
    del it.v
    return it.v


LOOKS: dict[str, Callable[[Any], Any]] = {
    "__iter__": lambda it: [*it],
    "__contains__": lambda it: 1 in it,
    "__eq__": lambda it: it == 1,
    "__lt__": lambda it: it < 1,
    "__add__": lambda it: it + 1,
    "__radd__": lambda it: 1 + it,
    "__hash__": lambda it: hash(it) and 0,
    "__len__": len,
    "__bool__": bool,
    "__call__": callable,
    "__getattr__": lambda it: it.missing,
    "__getattribute__": lambda it: it.v,
    "__setattr__": set_v,
    "__delattr__": delete_v,
    "__reversed__": lambda it: [*reversed(it)],
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_special_method_becomes_none_and_goes(name: str) -> None:
    assert_seen(LOOKS[name], Plain, having(name, None), lacking(name))


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize(
    "way",
    [
        staticmethod(lambda *args: args),
        classmethod(lambda *args: len(args)),
        functools.partial(lambda *args: len(args)),
        functools.partialmethod(lambda *args: len(args)),
        property(lambda self: lambda *args: len(args)),
        len,
    ],
    ids=lambda way: type(way).__name__,
)
def test_a_special_method_of_another_kind_is_bound_in_its_way(name: str, way: Any) -> None:
    assert_seen(LOOKS[name], Plain, having(name, way), lacking(name))


class Made:
    """Made in place of an answer: its `__init__` gives None, which is not the answer."""

    def __init__(self, *args: Any) -> None:
        self.args = len(args)


@pytest.mark.parametrize("name", ["__iter__", "__len__", "__bool__"])
def test_a_class_as_a_special_method_gives_an_instance(name: str) -> None:
    assert_seen(LOOKS[name], Plain, having(name, Made), lacking(name))


@pytest.mark.parametrize(
    "way", [functools.partialmethod(lambda self: 1), property(lambda self: lambda: 1)]
)
def test_init_gives_none_whatever_it_is(way: Any) -> None:
    assert_seen(lambda it: type(it)().v, Plain, having("__init__", way), lacking("__init__"))


def test_what_iter_gives_becomes_an_iterator() -> None:
    class Steps:
        pass

    base = type("Base", (), {"__iter__": lambda self: Steps()})
    f = stator.compile(lambda it: next(iter(it)), backend="eager")
    for _ in range(2):
        with pytest.raises(TypeError, match="non-iterator"):
            f(base())
        Steps.__next__ = lambda self: 1  # type: ignore[attr-defined]
        assert f(base()) == 1
        del Steps.__next__  # type: ignore[attr-defined]


def test_a_class_begins_to_claim_another() -> None:
    own = having("__getattribute__", lambda self, name: int)
    assert_seen(lambda it: isinstance(it, int), Plain, own, lacking("__getattribute__"))


OF_LISTS: dict[str, Callable[[Any], Any]] = {
    "unpacked": lambda it: [*it],
    "tuple": tuple,
    "sorted": sorted,
    "tensor": torch.tensor,
    "added": lambda it: operator.add([9], it),
    "repeated": lambda it: it * 2,
    "zipped": lambda it: [*zip(it, it, strict=True)],
    "enumerated": lambda it: [*enumerate(it)],
    "item": lambda it: it[0],
    "copied": lambda it: it.copy(),
    "iterator": lambda it: next(iter(it)),
    "long": lambda it: (len(it), bool(it)),
}


@pytest.mark.parametrize("look", OF_LISTS)
@pytest.mark.parametrize("name", ["__iter__", "__getitem__", "__len__"])
def test_a_class_of_lists_begins_to_answer_itself(look: str, name: str) -> None:
    ways = {
        "__iter__": lambda self: iter([7, 8]),
        "__getitem__": lambda self, key: 5,
        "__len__": lambda self: 1,
    }
    assert_seen(OF_LISTS[look], list, having(name, ways[name]), lacking(name), args=([1, 2],))


def named(**given: Any) -> Any:
    return given


OF_DICTS: dict[str, Callable[[Any], Any]] = {
    "dict": dict,
    "unpacked": lambda it: {**it},
    "joined": lambda it: {} | it,
    "items": lambda it: [*it.items()],
    "values": lambda it: [*it.values()],
    "named": lambda it: named(**it),
    "default": lambda it: it.setdefault("a", 2),
    "item": lambda it: it["a"],
    "got": lambda it: it.get("a"),
    "copied": lambda it: it.copy(),
    "has": lambda it: "a" in it,
    "long": lambda it: (len(it), bool(it)),
}


@pytest.mark.parametrize("look", OF_DICTS)
@pytest.mark.parametrize(
    "name", ["__getitem__", "__contains__", "__len__", "__iter__", "__missing__"]
)
def test_a_class_of_dicts_begins_to_answer_itself(look: str, name: str) -> None:
    ways = {"__len__": lambda self: 0, "__iter__": lambda self: iter(["a"])}
    way = ways.get(name, lambda self, key: 5)
    assert_seen(OF_DICTS[look], dict, having(name, way), lacking(name), args=({"a": 1},))


def test_an_attribute_of_a_class_goes_that_nobody_looked_at() -> None:
    class Base:
        v, w = 1, 1

    class Under(Base):
        v, w = 2, 2

        def m(self) -> int:
            return 3

    f = stator.compile(lambda: (Under.v, Under.m), backend="eager")
    assert f() == (2, Under.m)
    del Under.v
    assert f() == (1, Under.m)
    del Base.v
    with pytest.raises(AttributeError, match="type object 'Under' has no attribute 'v'"):
        f()


def test_an_attribute_of_a_class_goes_that_hid_one_of_its_metaclass() -> None:
    class Meta(type):
        v = 1

    class Made(metaclass=Meta):
        v = 2

    f = stator.compile(lambda: Made.v, backend="eager")
    assert f() == 2
    del Made.v
    assert f() == 1


def test_a_metaclass_gets_a_text() -> None:
    class Meta(type):
        pass

    class Made(metaclass=Meta):
        pass

    f = stator.compile(lambda: (str(Made), repr(Made), f"{Made}"), backend="eager")
    for name in ("__repr__", "__str__"):
        assert f() == (str(Made), repr(Made), f"{Made}")
        setattr(Meta, name, lambda cls, name=name: name)
        assert f() == (str(Made), repr(Made), f"{Made}")
        assert name in f()


@pytest.mark.parametrize("kind", [property, staticmethod, classmethod])
def test_a_class_of_descriptors_gets_ways_of_its_own(kind: type) -> None:
    own = type("Own", (kind,), {})
    base = type("Base", (), {"p": own(lambda *args: len(args))})
    get, put = (lambda self, it, cls=None: lambda *args: 8), (lambda self, it, value: None)
    plain, seen = base(), []

    def look(it: Any) -> Any:
        found = it.p
        try:
            it.p = 3
        except AttributeError as error:
            found = str(error)
        return found() if callable(found) else found

    f = stator.compile(look, backend="eager")
    for name, way in (("note", None), ("__set__", put), ("__get__", get)):
        setattr(own, name, way)
        vars(plain).clear()
        expected = look(plain)
        vars(plain).clear()
        seen.append((f(plain), expected))
    assert [ours for ours, _ in seen] == [theirs for _, theirs in seen]


ARRAYS = {
    "read-only": np.frombuffer(bytes(12), np.int32),
    "backwards": np.arange(3)[::-1],
    "objects": np.array([1, "a", None], object),
    "texts": np.array(["a", "b"]),
    "swapped": np.arange(3, dtype=">i4"),
    "fields": np.zeros(2, [("a", int), ("b", float)]),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize(
    "field", ["shape", "size", "ndim", "itemsize", "dtype", "T", "real", "__len__"]
)
def test_fields_of_arrays_that_no_tensor_can_stand_for(name: str, field: str) -> None:
    def f(x: torch.Tensor, array: Any) -> Any:
        found = array.__len__() if field == "__len__" else getattr(array, field)
        return x + 1, str(found)

    array = ARRAYS[name]
    compiled = stator.compile(f, backend="eager")
    for given in (array, np.arange(3), array):
        expected, actual = f(torch.ones(2), given), compiled(torch.ones(2), given)
        assert expected[1] == actual[1]
        assert torch.equal(expected[0], actual[0])


OTHERS = {
    "sparse": lambda: torch.ones(3).to_sparse(),
    "compressed": lambda: torch.eye(2).to_sparse_csr(),
    "mkldnn": lambda: torch.ones(3).to_mkldnn(),
}


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_an_array_beside_a_tensor_without_memory_of_its_own(kind: str) -> None:
    compiled = stator.compile(lambda array, t: (array.sum(), t.dtype, t.layout), backend="eager")
    for other in (torch.ones(3), OTHERS[kind](), torch.ones(3)):
        assert compiled(np.arange(3), other) == (3, other.dtype, other.layout)


def test_an_array_within_a_tensor_of_which_a_view_lies_before_it() -> None:
    """An eager graph gives the same; a backend that moves writes would not."""

    def f(whole: torch.Tensor, view: torch.Tensor, array: Any) -> torch.Tensor:
        found = whole * 2 + view.sum()
        array += 1
        return found

    def given() -> tuple[Any, ...]:
        base = np.zeros(20)
        whole = torch.from_numpy(base)
        return whole, whole[2:4], base[6:8]

    compiled = stator.compile(f, backend="eager")
    assert torch.equal(compiled(*given()), f(*given()))
    assert "over the same memory" in str(compiled.report)


class Opened:
    pass


@pytest.mark.parametrize("text", ["a, *b = obj", "*a, = obj", "a, b = obj", "(a, *b), c = obj, 1"])
def test_what_cannot_be_unpacked_says_so(text: str) -> None:
    """Also where it could be in another call."""
    namespace: dict[str, Any] = {}
    exec(
        f"def run(x, obj):\n try:\n  {text}\n except Exception as error:\n  return x, str(error)\n return x, a",
        namespace,
    )
    made = iter([Opened(), [1, 2], Opened(), 3])
    compiled = stator.compile(namespace["run"], backend="eager")
    assert_same(namespace["run"], compiled, lambda: (torch.ones(2), next(made)), calls=4)


REFUSED = """o.x|o()|o[1]|o + 1|1 < o|iter(o)|next(o)|len(o)|abs(o)|-o|[*o]|{**o}|int(o)|range(o)|"a" + o|round(o)
format(o, "3")|[1, 2][o]|getattr(o, "zz")|delattr(o, "zz")|type(o).zz|o.__class__(1)|object.__init__(o, 1)|1 in o
(lambda a: a)(*o)|sorted([o, o])|isinstance(1, o)|",".join([o])|reversed(o)|o.__enter__()|repr(E("x"))"""


@pytest.mark.parametrize("text", REFUSED.replace("\n", "|").split("|"))
def test_the_name_of_a_class_in_what_c_says(text: str) -> None:
    """A class may be renamed at any time."""

    def sides(compiled: bool) -> Any:
        names: dict[str, Any] = {"C": type("C", (), {}), "E": type("E", (ValueError,), {})}
        look = eval(f"lambda o: {text}", names)

        def main(o: Any) -> Any:
            try:
                return str(look(o))
            except Exception as error:
                return str(error), repr(error)

        run = stator.compile(main, backend="eager") if compiled else main
        for name in ("C", "C", "Renamed", "C"):
            names["C"].__name__ = names["E"].__name__ = name
            yield run(names["C"]())

    assert list(sides(True)) == list(sides(False))


def test_a_name_that_nobody_is_told_of_is_not_relied_on() -> None:
    class Looked:
        pass

    def look(o: Any, x: torch.Tensor) -> Any:
        return hasattr(o, "a"), getattr(o, "b", 1), x + 1

    compiled = stator.compile(look, backend="eager")
    for name in ("Looked", "Renamed"):
        Looked.__name__ = name
        assert compiled(Looked(), torch.ones(2))[:2] == (False, 1)
    assert compiled.report.graph_count == 1


WRITTEN: dict[str, Callable[[Any], Any]] = {
    "str": lambda it: [str(it)],
    "repr": lambda it: [repr(it)],
    "formatted": lambda it: f"{it:>9}",
    "in a tuple": lambda it: repr((it, 1)),
    "by a format": lambda it: "{!r} {}".format(it, it),  # noqa: UP032
    "by a percent": lambda it: "%r %s" % (it, it),  # noqa: UP031
}


@pytest.mark.parametrize("name", ["__str__", "__repr__", "__format__"])
@pytest.mark.parametrize("look", WRITTEN)
@pytest.mark.parametrize("kind", [enum.Enum, enum.IntEnum, enum.Flag, str])
def test_members_of_an_enum_begin_to_write_themselves(kind: Any, look: str, name: str) -> None:
    def sides(compiled: bool) -> Any:
        members: Any = (
            enum.Enum("Members", {"TWO": "two"}, type=kind)
            if kind is str
            else kind("Members", ["ONE", "TWO"])
        )
        run = stator.compile(WRITTEN[look], backend="eager") if compiled else WRITTEN[look]
        yield run(members.TWO)
        for text in ("own", "another"):
            setattr(members, name, lambda self, *spec, text=text: text)
            yield run(members.TWO)

    assert list(sides(True)) == list(sides(False))


@pytest.mark.parametrize(
    "look", [lambda m: getattr(m, "w", 1), lambda m: hasattr(m, "w"), lambda m: m.v]
)
def test_a_module_begins_to_answer(look: Callable[[Any], Any]) -> None:
    def sides(compiled: bool) -> Any:
        module: Any = types.ModuleType("changing")
        module.v = 1
        run = stator.compile(look, backend="eager") if compiled else look
        yield run(module)
        module.__getattr__ = lambda name: name + "!"
        yield run(module)
        del module.v
        yield run(module)
        module.__getattr__ = lambda name: [name]
        yield run(module)

    assert list(sides(True)) == list(sides(False))


def test_a_module_answers_by_what_the_region_gave_it() -> None:
    def fn(module: Any, x: torch.Tensor) -> Any:
        before = getattr(module, "w", 1)
        module.__getattr__ = lambda name: name + "!"
        after = module.w
        del module.__getattr__
        return before, after, hasattr(module, "w"), x + 1

    module = types.ModuleType("changing")
    for run in (fn, stator.compile(fn, backend="eager")):
        assert [run(module, torch.ones(2))[:3] for _ in range(2)] == [(1, "w!", False)] * 2
