"""Objects turned back into source: cells, functions, exceptions, instances, iterators, generators."""

import functools
import types
import weakref
from collections.abc import Sequence
from typing import Any

from stator_bytecode import (
    NULL,
    GeneratorFactory,
    GeneratorStatus,
    TracebackFactory,
    layout_of_generator,
    set_exception_field,
)
from stator_guards import TypeIs

from stator_variables import _kinds as k
from stator_variables._builtin import _iterators
from stator_variables._emit import _itertools
from stator_variables._emit._emitter import (
    Emitter,
    RaisedBefore,
    StaysInGraph,
    StillRunning,
    filled,
    made_empty,
    rebuilders,
    refers_to,
)
from stator_variables._library import _inference
from stator_variables._lifetime._closing import has_clean_up
from stator_variables._objects._exceptions import TracebackTracker, traceback_of
from stator_variables._objects._lookup import defines
from stator_variables._objects._made_exceptions import given_to_new, keeps_in_init
from stator_variables._runtime._support import make_function
from stator_variables._space import real_of, source_of
from stator_variables._tracker import DELETED


@rebuilders.handles(k.CellTracker)
def cell(e: Emitter, vt: Any) -> str:
    name = e.bind(vt, f"{e.capture(types.CellType, 'Cell')}()")
    if vt.content is not NULL:
        e.lines.append(f"{name}.cell_contents = {e.expr(vt.content)}")
    return name


@rebuilders.handles(k.FunctionTracker)
def function(e: Emitter, vt: Any) -> str:
    cells = "".join(f"{e.expr(cell_vt)}, " for cell_vt in vt.closure)
    code = e.capture(vt.code, vt.code.co_name)
    globals_ = e.capture(vt.globals.real, "globals")
    text = (
        f"{e.capture(make_function)}({code}, {globals_}, {vt.name!r}, {vt.qualname!r}, ({cells}))"
    )
    name = e.bind(vt, text)
    if vt.defaults:
        e.lines.append(f"{name}.__defaults__ = ({', '.join(e.expr(d) for d in vt.defaults)},)")
    if vt.kwdefaults:
        inside = ", ".join(f"{key!r}: {e.expr(value)}" for key, value in vt.kwdefaults.items())
        e.lines.append(f"{name}.__kwdefaults__ = {{{inside}}}")
    if isinstance(vt.annotations, k.TupleTracker):
        items = [e.expr(item) for item in vt.annotations.items]
        pairs = ", ".join(f"{a}: {b}" for a, b in zip(items[::2], items[1::2], strict=True))
        e.lines.append(f"{name}.__annotations__ = {{{pairs}}}")
    for field, value in vt.fields.items():
        e.lines.append(f"{name}.{field} = {e.expr(value)}")
    return filled(e, vt, name)


@rebuilders.handles(k.MethodTracker)
def method(e: Emitter, vt: Any) -> str:
    if vt.cls is not types.MethodType:
        if k.is_none(vt.receiver):  # which `__get__` takes for nothing
            return e.bind(vt, f"None.{vt.function.value.__name__}")
        is_of_class = isinstance(vt.function.value, types.ClassMethodDescriptorType)
        receiver = e.expr(vt.receiver)
        args = (
            f"None, {receiver}" if is_of_class else f"{receiver}, type({receiver})"
        )  # 3.11 may crash without it
        return e.bind(vt, f"{e.expr(vt.function)}.__get__({args})")
    if type(real_of(vt.function)) is types.FunctionType:  # anything else would not have been bound
        e.t.guard(source_of(vt.function), TypeIs(types.FunctionType))
    function, receiver = e.expr(vt.function), e.expr(vt.receiver)
    if not defines(e.t, vt.function.cls, "__call__"):  # a classmethod has bound it, since 3.13
        return e.bind(
            vt, f"{e.capture(classmethod, 'Classmethod')}({function}).__get__(None, {receiver})"
        )
    return e.bind(vt, f"{e.capture(types.MethodType, 'Method')}({function}, {receiver})")


@rebuilders.handles(k.ExceptionTracker)
def exception(e: Emitter, vt: Any) -> str:
    if id(vt) in e.t.machine.origins and not e.makes_tracebacks:
        raise RaisedBefore(vt)
    grouped = vt.members.get(k.GROUPED)
    made_of = [vt.args[0], grouped] if grouped is not None else given_to_new(vt)
    args = "".join(f", {e.expr(arg)}" for arg in made_of)
    name = e.bind(vt, made_empty(e, vt.cls, args))
    if grouped is not None and grouped is not vt.args[1]:
        e.lines.append(f"{name}.args = ({e.expr(vt.args[0])}, {e.expr(vt.args[1])})")
    if (base := keeps_in_init(vt.cls)) is not None and vt.made_of is not None:
        e.lines.append(
            f"{base.__name__}.__init__({name}{''.join(f', {e.expr(arg)}' for arg in vt.made_of)})"
        )
    for member, value in vt.members.items():
        if value is not DELETED and "__slots__" in vars(member.__objclass__):
            e.lines.append(f"{e.capture(member)}.__set__({name}, {e.expr(value)})")
    for field in ("cause", "context"):
        if getattr(vt, field) is not None:
            e.lines.append(_field(e, name, field, e.expr(getattr(vt, field))))
    if vt.suppress_context:
        e.lines.append(_field(e, name, "suppress_context", "True"))
    if vt.entries:
        e.lines.append(_field(e, name, "traceback", e.expr(traceback_of(e.t, vt))))
    return filled(e, vt, name)


def _field(e: Emitter, name: str, field: str, value: str) -> str:
    """Sets it as C does: the class may not let attributes be set."""
    return f"{e.capture(set_exception_field)}({name}, '__{field}__', {value})"


@rebuilders.handles(k.ObjectTracker)
def object_(e: Emitter, vt: Any) -> str:
    if issubclass(vt.cls, property):  # what it is of, nobody noted
        raise e.refuse(vt)
    name = e.bind(vt, made_empty(e, vt.cls))
    for member, value in vt.members.items():
        if value is not DELETED:
            e.lines.append(f"{e.capture(member)}.__set__({name}, {e.expr(value)})")
    return filled(e, vt, name)


@rebuilders.handles(k.ClassTracker, k.BuiltinTracker)
def captured(e: Emitter, vt: Any) -> str:
    return e.capture(vt.value)


@rebuilders.handles(k.MadeClass)
def made_class(e: Emitter, vt: Any) -> str:
    """What its namespace holds may refer to it, a cell say: such lines wait until it is there."""
    name, start = e.reserve(vt), len(e.lines)
    args = [e.expr(arg) for arg in vt.args]
    text = f"{name} = {e.capture(vt.function)}({', '.join(args)})"
    waiting = e.take_lines(start, name)
    for target in (line.partition(" = ")[0] for line in waiting):
        if target.startswith(tuple(f"{arg}[" for arg in args)) or (
            target.isidentifier() and refers_to(text, target)
        ):
            raise e.refuse(vt)
    e.lines += [text, *waiting]
    for function, rest in vt.steps:
        given = "".join(f", {e.expr(arg)}" for arg in rest)
        e.lines.append(f"{e.capture(function)}({name}{given})")
    return name


@rebuilders.handles(k.SuperTracker)
def super_(e: Emitter, vt: Any) -> str:
    return e.bind(vt, f"super({e.expr(vt.start)}, {e.expr(vt.receiver)})")


@rebuilders.handles(k.IdTracker)
def id_(e: Emitter, vt: Any) -> str:
    thing = e.expr(vt.thing)
    return f"{thing}.id" if isinstance(vt.thing, k.HandleTracker) else f"id({thing})"


@rebuilders.handles(k.StorageTracker)
def storage(e: Emitter, vt: Any) -> str:
    return e.bind(vt, f"{e.expr(vt.tensor)}.untyped_storage()")


@rebuilders.handles(k.AddressTracker)
def address(e: Emitter, vt: Any) -> str:
    return f"{e.expr(vt.thing)}._cdata"


@rebuilders.handles(k.PartialTracker)
def partial(e: Emitter, vt: Any) -> str:
    if vt.args_tuple is not None:  # the program may have kept it, and the new one has another
        raise e.refuse(vt)
    parts = [e.expr(vt.function), *(e.expr(arg) for arg in vt.args)]
    parts += e.keywords(vt.kwargs)
    return filled(e, vt, e.bind(vt, f"{e.capture(functools.partial)}({', '.join(parts)})"))


@rebuilders.handles(k.WeakrefTracker)
def weak_reference(e: Emitter, vt: Any) -> str:
    rest = "" if vt.callback is None else f", {e.expr(vt.callback)}"
    return e.bind(vt, f"{e.capture(weakref.ref)}({e.expr(vt.target)}{rest})")


@rebuilders.handles(k.GraphFunction)
def graph_function(e: Emitter, vt: Any) -> str:
    raise StaysInGraph(vt.begun, e.refuse(vt))


@rebuilders.handles(k.RecipeTracker)
def recipe(e: Emitter, vt: Any) -> str:
    parts = [e.expr(arg) for arg in vt.args]
    if vt.cls is k.KEY_WRAPPER:
        return e.bind(vt, f"{e.capture(functools.cmp_to_key)}({')('.join(parts)})")
    parts += e.keywords(vt.kwargs)
    return e.bind(vt, f"{e.capture(vt.cls)}({', '.join(parts)})")


@rebuilders.handles(k.IteratorTracker)
def iterator(e: Emitter, vt: Any) -> str:
    write = _itertools.write if vt.kind == "application" else _iterators.rebuild
    return e.bind(vt, write(e, vt))


@rebuilders.handles(k.GeneratorTracker)
def generator(e: Emitter, vt: Any) -> str:
    """A generator object that stands where the traced one stood."""
    if vt.state.status is GeneratorStatus.RUNNING:
        raise StillRunning(vt.state, e.refuse(vt))
    if vt.state.frame.hidden:  # it stands for an iterator of C, of another class
        raise e.refuse(vt)
    e.generators.append(vt.state)
    layout, values = layout_of_generator(vt.state, lambda frame: frame.globals.real)
    make = e.capture(GeneratorFactory(layout), f"make_{layout.raw.co_name}")
    parts = "".join(f"{e.expr(value)}, " for value in values)
    name = e.bind(vt, f"{make}(({parts}))")
    if (renamed := k.names_of(vt.state)) is not None:
        e.lines.append(f"{name}.__name__, {name}.__qualname__ = {renamed[0]!r}, {renamed[1]!r}")
    return name


def finalize_generators(e: Emitter, carried: Sequence[Any]) -> None:
    """Suspended generators that nothing can reach any more die with the entry, so that their `finally` blocks run."""
    known = [*carried, *e.generators]
    for vt in list(e.t.cleaning_up):
        if vt.state not in known and has_clean_up(vt.state):
            e.expr(vt)


@rebuilders.handles(TracebackTracker)
def traceback(e: Emitter, vt: Any) -> str:
    if not e.makes_tracebacks:
        raise RaisedBefore(vt.exception)
    return e.bind(vt, f"{e.capture(TracebackFactory(vt.entries), 'traceback')}()")


rebuilders.handles(_inference.InferenceTracker)(_inference.rebuild)
