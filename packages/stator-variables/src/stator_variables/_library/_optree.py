"""Functions of optree, which `torch.utils._cxx_pytree` is made of: a structure is flattened and
rebuilt by optree itself, with *marks* in the place of leaves.

    leaves, spec = optree.tree_flatten({"b": x, "a": [y]})

    _C.flatten({"b": mark_0, "a": [mark_1]})  gives  [mark_1, mark_0], and the spec: a constant

So order, kinds of containers and specs are those of the installed release. A structure with nodes
of classes that the program has registered is a break.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable
from typing import Any

from stator_bytecode import OperationSteps, Result, operation, settle
from stator_guards import CallSource, CapturedSource, Equals, Is

from stator_variables._objects import _deque, _dict_entries, _new_values
from stator_variables._objects._list import ListTracker
from stator_variables._objects._program_error import as_program_error
from stator_variables._objects._tuple import TupleTracker
from stator_variables._runtime._contents import has_member
from stator_variables._space import Space
from stator_variables._tracker import (
    MISSING,
    Args,
    FunctionTable,
    Kwargs,
    VariableTracker,
    is_a,
)
from stator_variables._trackers import NONE, ClassTracker, is_none

handlers = FunctionTable("library")


class Mark:
    """The place of a leaf."""

    def __init__(self, vt: VariableTracker) -> None:
        self.vt = vt


class _Undecided(Exception):
    """A node of which the program's predicate has to say if it is a leaf."""


@handlers.handles("optree")
def call(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Call a C function, a method or a class of optree, the first of the arguments."""
    function, *given = args
    target: Any = function.value
    handler = _HANDLERS.get(getattr(target, "__name__", ""))
    if handler is not None and not kwargs:
        return handler(t, given)
    known = [_known(t, vt) for vt in given]
    if kwargs or MISSING in known:
        return MISSING
    try:
        result = target(*known)
    except Exception as error:
        raise as_program_error(t, error) from None
    return _wrapped(t, result)


def _native() -> Any:
    return sys.modules["optree"]._C


def _known(t: Space, vt: Any) -> Any:
    """A constant, a class or a spec."""
    if is_a(vt, ClassTracker):
        return vt.value
    if (value := vt.constant()) is not MISSING:
        return value
    if not issubclass(vt.cls, _native().PyTreeSpec):
        return MISSING
    t.guard(vt.source, Is(vt.real))
    return vt.real


def _wrapped(t: Space, value: Any) -> VariableTracker:
    """The tracker of a result: constants, specs, and containers of these."""
    if type(value) is tuple:
        return TupleTracker([_wrapped(t, item) for item in value])
    if type(value) is list:
        return ListTracker([_wrapped(t, item) for item in value])
    if isinstance(value, bool | int | str | type | None):
        return _new_values.fresh(t, value)
    return t.wrap(value, CapturedSource("spec", value))


# -- there -----------------------------------------------------------------------------------------
class _Structure:
    """A real structure for one of trackers, with the tracker of each of its parts."""

    def __init__(self, t: Space, namespace: str) -> None:
        self.t = t
        self.namespace = namespace
        self.parts: dict[int, tuple[Any, Any]] = {}

    def of(self, vt: Any) -> Any:
        made = self._container(vt)
        if made is MISSING:
            made = None if is_none(vt) else Mark(vt)
        self.parts[id(made)] = made, vt
        return made

    def tracker(self, part: Any) -> Any:
        return NONE if part is None else self.parts[id(part)][1]

    def _container(self, vt: Any) -> Any:
        cls: Any = vt.cls
        if cls in (dict, collections.OrderedDict, collections.defaultdict):
            return self._mapping(vt)
        if cls is collections.deque:
            return cls(map(self.of, vt.items), vt.maxlen)
        if vt.base is tuple and has_member(cls, "_fields"):
            return tuple.__new__(cls, map(self.of, vt.items))
        if cls in (list, tuple):
            return cls(map(self.of, vt.items))
        if _entry(cls, self.namespace) is not None and not is_none(vt):
            raise self.t.unsupported("pytree-class", f"a {cls.__qualname__} in a tree of optree")
        return MISSING

    def _mapping(self, vt: Any) -> Any:
        pairs = [(key.constant(), self.of(item)) for key, item in self.t.items(vt)]
        if any(key is MISSING for key, _ in pairs):
            raise self.t.unsupported("pytree-class", "a dict with objects as keys in a tree")
        if vt.cls is not collections.defaultdict:
            return vt.cls(pairs)
        factory = _known(self.t, vt.default_factory)
        if factory is MISSING:
            raise self.t.unsupported("pytree-class", "a defaultdict with a function of its own")
        return vt.cls(factory, pairs)


def _entry(cls: type, namespace: str) -> Any:
    return sys.modules["optree"].register_pytree_node.get(cls, namespace=namespace)


def _registered() -> int:
    size: int = _native().get_registry_size()
    return size


def _structure(t: Space, tree: VariableTracker, namespace: str) -> tuple[_Structure, Any]:
    t.guard(CallSource(_registered), Equals(_registered()))
    structure = _Structure(t, namespace)
    return structure, structure.of(tree)


# -- and back --------------------------------------------------------------------------------------
def _rebuilt(t: Space, value: Any) -> Any:
    cls: Any = type(value)
    if cls is Mark:
        return value.vt
    if value is None:
        return NONE

    if isinstance(value, dict):
        made = _dict_entries.new_map(t, [], [])
        made.cls = cls
        for key, item in value.items():
            _dict_entries.store(t, made, _new_values.fresh(t, key), _rebuilt(t, item))
        if isinstance(value, collections.defaultdict):
            made.default_factory = _new_values.fresh(t, value.default_factory)
        return made
    items = [_rebuilt(t, item) for item in value]
    if cls is collections.deque:
        return _deque.new_deque(cls, items, value.maxlen)
    return ListTracker(items) if cls is list else TupleTracker(items, cls)


def _refuse_registered(t: Space, spec: Any) -> None:
    """Reject a spec with nodes that a function of the program rebuilds."""
    kinds = sys.modules["optree"].PyTreeKind
    if spec.kind in (kinds.CUSTOM, kinds.STRUCTSEQUENCE):
        raise t.unsupported("pytree-class", f"a {spec.type.__qualname__} in a tree of optree")
    for child in spec.children():
        _refuse_registered(t, child)


# -- the functions ---------------------------------------------------------------------------------
@operation
def _flattened(t: Space, function: Callable[..., Any], given: Args) -> OperationSteps:
    """Return the structure of marks, and the result of a function for it."""
    tree, predicate, *rest = given
    none_is_leaf, namespace = (vt.constant() for vt in rest)
    if MISSING in (none_is_leaf, namespace):
        raise t.unsupported("bad-arguments", "a tree that is flattened with unknown options")
    structure, real = _structure(t, tree, namespace)
    answers: list[bool] = []

    while True:
        asked = iter(answers)

        def is_leaf(node: Any, asked: Any = asked) -> bool:
            answer: bool | None = next(asked, None)
            if answer is None:
                raise _Undecided(node)
            return answer

        try:
            found = function(real, None if is_none(predicate) else is_leaf, none_is_leaf, namespace)
            return structure, found
        except _Undecided as undecided:
            node = structure.tracker(undecided.args[0])
        except Exception as error:
            raise as_program_error(t, error) from None
        answer = yield from settle(t.call(predicate, [node]))
        answers.append((yield from settle(t.truth(answer))))


@operation
def _flatten(t: Space, given: Args) -> OperationSteps:
    structure, (leaves, spec) = yield from settle(_flattened(t, _native().flatten, given))
    return TupleTracker([_leaves(structure, leaves), _wrapped(t, spec)])


@operation
def _flatten_with_path(t: Space, given: Args) -> OperationSteps:
    found = yield from settle(_flattened(t, _native().flatten_with_path, given))
    structure, (paths, leaves, spec) = found
    return TupleTracker([_wrapped(t, paths), _leaves(structure, leaves), _wrapped(t, spec)])


@operation
def _iterate(t: Space, given: Args) -> OperationSteps:
    if not is_none(given[1]):
        raise t.unsupported("bad-arguments", "an iterator over a tree, with a predicate")
    structure, (leaves, _) = yield from settle(_flattened(t, _native().flatten, given))
    return (yield from settle(t.get_iterator(_leaves(structure, leaves))))


def _leaves(structure: _Structure, leaves: list[Any]) -> ListTracker:
    return ListTracker([structure.tracker(leaf) for leaf in leaves])


@operation
def _unflatten(t: Space, given: Args) -> OperationSteps:
    spec, leaves = given
    real = _known(t, spec)
    _refuse_registered(t, real)
    marks = [Mark(vt) for vt in (yield from settle(t.drain(leaves)))]
    try:
        return _rebuilt(t, real.unflatten(marks))
    except ValueError as error:
        raise t.unsupported("operator-error", f"unflatten: {error}") from None


def _flatten_up_to(t: Space, given: Args) -> Result:
    spec, tree = given
    real = _known(t, spec)
    structure, value = _structure(t, tree, real.namespace)
    try:
        return _leaves(structure, real.flatten_up_to(value))
    except ValueError as error:  # its text shows the tree
        raise t.unsupported("operator-error", f"flatten_up_to: {error}") from None


_HANDLERS: dict[str, Callable[[Space, Args], Any]] = {
    "flatten": _flatten,
    "flatten_with_path": _flatten_with_path,
    "PyTreeIter": _iterate,
    "unflatten": _unflatten,
    "flatten_up_to": _flatten_up_to,
}
