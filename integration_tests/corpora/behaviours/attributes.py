"""Attributes set and deleted on user objects, modules, functions, types, exceptions; slots;
properties with setters; attributes of tensors; one object returned twice; a returned input is the
same object."""

# mypy: ignore-errors

from __future__ import annotations

import sys
import types

import torch

from integration_tests.corpora.behaviours import program


class Thing:
    __slots__ = ("__dict__", "slot")
    shared = 1

    def __init__(self, value):
        self.value = value

    @property
    def half(self):
        return self.value / 2

    @half.setter
    def half(self, new):
        self.value = new * 2

    @half.deleter
    def half(self):
        del self.value


OLD = Thing(2)
SPACE = types.SimpleNamespace(a=1)
MODULE = types.ModuleType("made")
ERROR = ValueError("old")


def function(y):
    return y


@program
def of_an_existing_object(x, n, box):
    OLD.value += n
    OLD.slot = getattr(OLD, "slot", 0) + 1
    OLD.half = OLD.half + 1
    OLD.tensor = x.detach() * 2
    OLD.shared = n
    if n == 3:
        del OLD.shared
    return OLD.value, OLD.slot, OLD.shared, hasattr(OLD, "gone")


@program
def order_of_the_instance_dictionary(x, n, box):
    thing = Thing(1)
    thing.b = 1
    thing.a = n
    del thing.value
    thing.value = x
    box.zz = 1
    del box.items
    box.items = n
    return list(thing.__dict__), list(box.__dict__), thing


@program
def deleted_by_a_property_and_missing(x, n, box):
    thing = Thing(n)
    del thing.half
    try:
        thing.half
    except AttributeError as error:
        box.log.append(str(error))
    try:
        del thing.slot
    except AttributeError as error:
        box.log.append(str(error))
    return thing.__dict__, x + 1


@program
def of_functions(x, n, box):
    function.calls = getattr(function, "calls", 0) + n
    function.table = {"n": n}
    return function.calls, function.__dict__, x + 1


@program
def of_types(x, n, box):
    Thing.shared += n
    Thing.added = x.detach()
    setattr(Thing, "method", lambda self: self.value + Thing.shared)
    got = Thing(1).method(), Thing.added + 1
    del Thing.added
    return got, hasattr(Thing, "added")


@program(breaks="global-attribute-write")
def of_modules(x, n, box):
    MODULE.value = getattr(MODULE, "value", 0) + n
    this = sys.modules["math"]
    return MODULE.value, this.pi, x * MODULE.value, hasattr(MODULE, "nothing")


@program
def of_namespaces(x, n, box):
    SPACE.a += n
    SPACE.b = x
    del SPACE.b
    return SPACE.a, hasattr(SPACE, "b"), x + 1


@program(breaks="c-attribute-write")
def of_exceptions(x, n, box):
    new = KeyError("k")
    new.extra = x
    new.args = ("changed", n)
    ERROR.code = n
    ERROR.args = (n,)
    ERROR.__cause__ = new
    return new.args, str(new), new, ERROR.args, ERROR.__cause__ is new


@program
def of_tensors(x, n, box):
    y = x * 2
    y.note = [n]
    box.tensor.tag = y
    x.mark = n
    had = hasattr(x, "mark"), hasattr(box.tensor, "none")
    del x.mark
    return y, y.note, box.tensor.tag is y, had, hasattr(x, "mark")


@program
def a_returned_input_is_the_same_object(x, n, box):
    y = x + 1
    return x, y, [x, y, box.items], box.items, y, (box, box.table)


@program
def an_attribute_that_is_rebound_alternates_a_branch(x, n, box):
    if OLD.__dict__.get("cur") is OLD.__dict__.get("a", None):
        OLD.cur, OLD.a = [n], [n]
        y = x + 1
    else:
        OLD.cur = OLD.a
        y = x * 2
    return y, OLD.cur is OLD.a


@program
def aliases_see_each_others_writes(x, n, box):
    other = box
    other.value = n
    box.value += 1
    table = box.__dict__
    table["via"] = n
    return other.value, box.via, table is box.__dict__, x * box.value


@program
def setting_by_dict_update_and_setattr(x, n, box):
    thing = Thing(1)
    thing.__dict__.update({"a": n, "b": x})
    setattr(thing, "c", 3)
    vars(thing)["d"] = 4
    thing.__dict__.pop("a")
    OLD.__dict__["direct"] = n
    return vars(thing), OLD.direct


@program
def replacing_the_instance_dictionary(x, n, box):
    thing = Thing(1)
    thing.__dict__ = {"fresh": n}
    return thing.fresh, hasattr(thing, "value"), x + 1


@program(breaks="tensor-attribute-write")
def requires_grad_and_data_of_tensors(x, n, box):
    y = x.detach().clone()
    y.requires_grad = True
    z = (y * n).sum()
    box.tensor.data = box.tensor.data * 2
    return y, z, box.tensor.requires_grad


@program
def object_setattr_goes_around_the_hook(x, n, box):
    class Guarded:
        def __setattr__(self, name, value):
            raise AttributeError(f"no {name}")

    made = Guarded()
    object.__setattr__(made, "a", n)
    try:
        made.b = 1
    except AttributeError as error:
        return made.a, str(error), x + 1


class Wrapping:
    """Since 3.13 a class method binds what it wraps, whatever that is."""

    of_property = classmethod(property(lambda cls: 3))
    of_another = classmethod(classmethod(lambda *args: len(args)))
    of_a_number = classmethod(3)
    of_a_method = classmethod(types.MethodType(lambda *args: len(args), 3))
    of_a_builtin = classmethod(len)


def looked_at(thing, name):
    found = getattr(thing, name)
    try:
        return found, found()
    except TypeError as error:
        return found, str(error)


@program
def class_methods_bind_what_they_wrap(x, n, box):
    names = ("of_property", "of_another", "of_a_number", "of_a_method", "of_a_builtin")
    return (
        [looked_at(Wrapping, name) for name in names],
        [looked_at(Wrapping(), name) for name in names],
        x + n,
    )


@program
def class_methods_of_a_new_class_bind_what_they_wrap(x, n, box):
    class Made:
        of_property = classmethod(property(lambda cls: n))
        of_another = classmethod(classmethod(lambda *args: len(args)))

    return looked_at(Made, "of_property"), looked_at(Made(), "of_another"), x + n


@program(breaks="bad-arguments")
def methods_are_made_of_what_can_be_called(x, n, box):
    found = []
    for function in (len, Wrapping, n, property()):
        try:
            found.append(types.MethodType(function, box.items))
        except TypeError as error:
            found.append(str(error))
    return found, x + n
