"""Functions that generated entries call at run time."""

import builtins
import collections
import contextlib
import copy
import itertools
import types
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs
import torch
from stator_guards import CallSource, Source, shown_as
from torch import Tensor

from stator_variables._defining_module import module_of
from stator_variables._pure import DTYPES, NUMPY
from stator_variables._runtime._message_filter import filtered
from stator_variables._tracker import Args, Kwargs


def make_function(
    code: types.CodeType,
    globals_: dict[str, Any],
    name: str,
    qualname: str,
    closure: tuple[types.CellType, ...],
) -> types.FunctionType:
    """A function object as MAKE_FUNCTION makes it."""
    function = types.FunctionType(code, globals_, name, None, closure or None)
    function.__qualname__ = qualname
    function.__module__ = globals_.get("__name__", function.__module__)
    return function


def as_inference(outputs: Sequence[Any], made: Sequence[int], plain: Sequence[int]) -> list[Any]:
    """Return the outputs of a graph as if made in inference mode.

    Tensors `made` in it are marked as such, over the same memory, and views that it took of others,
    `plain` ones, are detached from autograd.
    """
    found = list(outputs)
    with torch.inference_mode():
        for place in made:
            if not found[place].is_inference():
                found[place] = found[place].new_empty(0).set_(found[place])
    for place in plain:
        if found[place].requires_grad:
            found[place] = found[place].detach()
    return found


def filled(
    name: str,
    size: Sequence[int],
    stride: Sequence[int],
    dtype: torch.dtype,
    device: torch.device,
    *args: object,
    **kwargs: object,
) -> Any:
    """Return a new tensor of this layout that the method `name` filled with random numbers."""
    made = torch.empty_strided(size, stride, dtype=dtype, device=device)
    return getattr(made, name)(*args, **kwargs)


@shown_as("what {0} refers to")
def living(reference: Any) -> object:
    """Return the referent of a weak reference. Raises ReferenceError if it has died since the
    guards were checked."""
    if (found := reference()) is None:
        raise ReferenceError("the object is gone")
    return found


def found_again(match: Any) -> object:
    """A match like this one, made again: a program makes one of its own on each call."""
    of, where = match.re, (match.string, match.pos, match.endpos)
    found = (*(way(*where) for way in (of.search, of.match, of.fullmatch)), *of.finditer(*where))
    return next(each for each in found if each is not None and each.regs == match.regs)


def base_of_c(cls: type) -> type:
    """The class whose `__new__`, one of C, makes the storage of instances of `cls`."""
    return next(
        base for base in cls.__mro__ if type(vars(base).get("__new__")) is types.BuiltinFunctionType
    )


def unset(member: Any, owner: object) -> None:
    """Empty a slot, which may have been filled only while tracing."""
    with contextlib.suppress(AttributeError):
        member.__delete__(owner)


def advanced(iterator: Iterator[Any], steps: int) -> Iterator[Any]:
    """A fresh builtin iterator, moved on by `steps` items."""
    for _ in range(steps):
        next(iterator)
    return iterator


def unasked(iterator: object) -> Any:
    """Return an iterator whose `__iter__` C may call: a class of the program's would observe the
    call."""
    method = next(
        (vars(cls)["__iter__"] for cls in type(iterator).__mro__ if "__iter__" in vars(cls)), None
    )
    return iterator if type(method) is types.WrapperDescriptorType else preceded(iterator)


def preceded(iterator: Any, *first: Any) -> Iterator[Any]:
    """Return an iterator over these items, then over those of the iterator, stepped on demand."""
    return map(next, itertools.chain([iter(first)] * len(first), itertools.repeat(iterator)))


def teed(shared: Any, at: int) -> Any:
    """Return the iterator of a `tee` at this item. Others continue with it, also those that are not
    real."""
    (first,) = itertools.tee(preceded(shared.it, *shared.items), 1)
    shared.it = advanced(copy.copy(first), len(shared.items))
    return advanced(first, at)


def regrouped(iterator: Any, target: object, *last: object) -> Any:
    """A `groupby` that has given the group of `target`; `last` are the key and the value that
    nobody has taken yet."""
    with filtered("ignore", "Pickle, copy, and deepcopy support"):  # since 3.12
        iterator.__setstate__((*(last or (target, None)), target))
    if not last:
        next(itertools._grouper(iterator, target))  # type: ignore[attr-defined]
    return iterator


def past_group() -> Iterator[Any]:
    """A group of a `groupby` that has gone on to another."""
    parent: Any = itertools.groupby(())
    made, _ = (itertools._grouper(parent, None) for _ in range(2))  # type: ignore[attr-defined]
    return made  # type: ignore[no-any-return]


def pooled(cls: type, rows: Iterator[Any], args: Args, named: dict[str, Any]) -> Iterator[Any]:
    """One of the combinations of itertools, where an iterator over a list of its items stands."""
    state: Any = rows.__reduce__()
    made = cls(*args, **named)
    return advanced(made, state[2]) if len(state) > 2 else finished(made)


def standing(iterator: Any, index: int) -> object:
    """Return an iterator that reads items by index, made to continue at this one."""
    iterator.__setstate__(index)
    return iterator


_set_class = object.__dict__["__class__"].__set__


def _layout(cls: type) -> tuple[int, ...]:
    return cls.__basicsize__, cls.__itemsize__, cls.__dictoffset__, cls.__weakrefoffset__


def can_be_long(cls: type) -> bool:
    """Return True if an instance can be of another class for a moment: `reversed_from`."""
    return _layout(cls) == _layout(_Empty) and cls.__flags__ & _HEAP_TYPE != 0


_HEAP_TYPE = 1 << 9


def reversed_from(sequence: Any, index: int) -> object:
    """Return `reversed(sequence)` at `index`, which may be past the end.

    C reads the length, and goes no further. For that moment another class defines it.
    """
    cls = type(sequence)
    _set_class(sequence, type("Long", (_Empty,), {"__len__": lambda self: index + 1}))
    try:
        return reversed(sequence)
    finally:
        _set_class(sequence, cls)


class _Empty:
    def __getitem__(self, index: int) -> Any:
        raise IndexError(index)


def exhausted_by_items() -> Iterator[Any]:
    """One over an object that has only `__getitem__`, at its end."""
    return finished(iter(_Empty()))


def placed(iterator: Any, through: list[Any], index: int) -> object:
    """An iterator over a list, made to stand at `index`. Past the end is a place, too: there the
    list is longer for a moment."""
    size = len(through)
    list.extend(through, [None] * (index + 1 - size))
    iterator.__setstate__(index)
    list.__delitem__(through, slice(size, None))
    return iterator


def finished(iterator: Iterator[Any]) -> Iterator[Any]:
    """A builtin iterator at its end."""
    for _ in iterator:
        pass
    return iterator


def spoiled(container: Any, make: Callable[[Any], Iterator[Any]], most: int) -> Iterator[Any]:
    """An iterator over `container`, which will find it changed.

    Sets compare sizes, and end up with at most `most` items; deques count what is done to them.
    """
    if isinstance(container, deque):
        held, made = list(container), make(container)
        deque.append(container, None)
        deque.clear(container)
        deque.extend(container, held)
        return made
    marks = {object() for _ in range(most + 1)}
    set.update(container, marks)
    made = make(container)
    set.difference_update(container, marks)
    return made


# -- classes ---------------------------------------------------------------------------------------
class _Quiet:
    """A class that precedes the bases of a class while it is made, so that no `__init_subclass__`
    of theirs runs."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        pass


class _QuietToo:
    """The same for classes whose instances need no `__dict__`: C compares the layouts when it is
    taken away again."""

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: object) -> None:
        pass


def is_hooked(classes: Iterable[type]) -> bool:
    """Return True if one of these classes has an `__init_subclass__` in code of the program."""
    hooks = (vars(cls).get("__init_subclass__") for cls in classes)
    return any(
        isinstance(hook, classmethod) and module_of(hook.__func__) != "typing" for hook in hooks
    )


def new_class(
    metaclass: type,
    name: str,
    bases: tuple[type, ...],
    names: dict[str, Any],
    kwargs: Kwargs,
) -> type:
    """`type.__new__` without the calls of the program's code that it makes: `__set_name__`,
    `__init_subclass__`."""
    later = {key: value for key, value in names.items() if _has_set_name(value)}
    shown = {**names, **dict.fromkeys(later)}
    if is_hooked(cls for base in bases for cls in base.__mro__):
        made = _quietly(metaclass, name, bases, shown)
    else:
        made = type.__new__(metaclass, name, bases, shown, **kwargs)
    for key, value in later.items():
        type.__setattr__(made, key, value)
    return made


def _has_set_name(value: object) -> bool:
    return isinstance(getattr(type(value), "__set_name__", None), types.FunctionType)


def _quietly(metaclass: type, name: str, bases: tuple[type, ...], names: dict[str, Any]) -> type:
    for quiet in (_Quiet, _QuietToo):
        made: type = type.__new__(metaclass, name, (quiet, *bases), names)
        with contextlib.suppress(TypeError):
            made.__bases__ = bases
            return made
    raise TypeError(f"{name} cannot be made without `__init_subclass__` of its bases")


def new_known_class(
    metaclass: type,
    name: str,
    bases: tuple[type, ...],
    names: dict[str, Any],
    kwargs: Kwargs,
) -> type:
    """A class by a metaclass that works on names alone: of Enum, NamedTuple, TypedDict."""
    namespace = metaclass.__prepare__(name, bases, **kwargs)
    for key, value in names.items():
        namespace[key] = value
    made: type = metaclass(name, bases, namespace, **kwargs)
    return made


def new_named_tuple(name: str, fields: Any, options: dict[str, Any]) -> type:
    return collections.namedtuple(name, fields, **options)


def forget_class(made: type) -> None:
    """Remove a class from the subclasses of its bases."""
    for quiet in (_Quiet, _QuietToo):
        with contextlib.suppress(TypeError):
            made.__bases__ = (quiet,)
            return


@shown_as("{0} as a tensor")
def tensor_of(array: Any) -> Any:
    """A tensor over the memory of an array, None where there can be none."""
    if type(array) is not NUMPY.ndarray or not array.flags.writeable or array.dtype not in DTYPES:
        return None
    return None if any(step < 0 for step in array.strides) else torch.from_numpy(array)


def number_tensor(number: object) -> Tensor:
    """Return a number of NumPy as a tensor without dimensions."""
    return torch.from_numpy(NUMPY.asarray(number))


@shown_as("{0} without its class")
def plain_tensor(tensor: object) -> Any:
    """Return a tensor over the same memory, and with the same history, that no Python code
    overrides."""
    return as_subclass(tensor, Tensor)


def as_subclass(tensor: Any, cls: Any) -> object:
    """Return a tensor of the class with the history, whatever mode is on.

    Autograd may have to renew the history first, which must not call the class.
    """
    with torch.enable_grad(), torch._C.DisableTorchFunctionSubclass():
        return Tensor.as_subclass(tensor, cls)


def give_warning(text: str, category: str) -> None:
    """Warn from a graph: `category` names a builtin class."""
    warnings.warn(text, getattr(builtins, category), stacklevel=2)


def give_warning_at(
    text: str, category: type[Warning], filename: str, line: int, names: dict[str, Any]
) -> None:
    """Warn as a line of the module with these globals would (`setup_context` of `_warnings.c`)."""
    module = names.get("__name__") or "<string>"
    registry = names.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, category, filename, line, module, registry)


@attrs.frozen(eq=False)
class NewLeaf:
    """A call makes a tensor without contents, another one each time."""

    cls: Any
    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    __name__ = "new_parameter"

    def __call__(self) -> Any:
        data = torch.empty(self.shape, dtype=self.dtype, device=self.device)
        return Tensor._make_subclass(self.cls, data, self.requires_grad)


def is_new_in_each_call(source: Source) -> bool:
    """Return True for what is read of an object that an entry makes at its start: no guard can be
    about it."""
    return any(type(step) is CallSource and type(step.fn) is NewLeaf for step in source.steps())
