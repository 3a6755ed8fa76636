"""match statements (`match_class`, `match_keys` in Python/ceval.c)."""

from typing import Any

from stator_bytecode import OperationSteps, operation, settle

from stator_variables._objects._lookup import overrides
from stator_variables._objects._program_error import attempt, throw
from stator_variables._objects._tuple import TupleTracker
from stator_variables._protocols import _instances
from stator_variables._space import Space
from stator_variables._tracker import MISSING, VariableTracker
from stator_variables._trackers import NONE, ClassTracker, ConstantTracker

_SELF_MATCHING = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)


_SEQUENCE, _MAPPING = (
    1 << 5,
    1 << 6,
)  # Py_TPFLAGS_SEQUENCE, Py_TPFLAGS_MAPPING: the flags that the interpreter tests


def match_sequence(subject: VariableTracker) -> ConstantTracker:
    return ConstantTracker(bool(subject.cls.__flags__ & _SEQUENCE))


def match_mapping(subject: VariableTracker) -> ConstantTracker:
    return ConstantTracker(bool(subject.cls.__flags__ & _MAPPING))


def match_keys(t: Space, subject: VariableTracker, keys: Any) -> VariableTracker:
    if subject.base is not dict or overrides(t, subject.cls, "get"):
        raise t.unsupported("match-mapping", f"a mapping pattern over a {subject.cls.__name__}")
    hashed = [t.key_of(key) for key in keys.items]
    if len(set(hashed)) < len(hashed):
        raise t.unsupported("match-mapping", "a mapping pattern with a repeated key")
    found = [t.lookup(subject, key) for key in hashed]
    return NONE if any(value is MISSING for value in found) else TupleTracker(found)


@operation
def match_class(
    t: Space, subject: VariableTracker, cls: Any, count: int, names: TupleTracker
) -> OperationSteps:
    if cls.base is not type:
        throw(TypeError, "called match pattern must be a class")
    if not (yield from settle(_instances.is_instance(t, subject, cls))):
        return NONE
    positional = yield from _positional_names(t, cls, count)
    found: list[Any] = []
    if positional is None:
        found.append(subject)
        positional = []

    wanted = [*positional, *(name.constant() for name in names.items)]
    if len(set(wanted)) < len(wanted):
        raise t.unsupported(
            "bad-arguments", f"a pattern of {cls.value.__name__} with a repeated attribute"
        )
    for name in wanted:
        value = yield from attempt(t, AttributeError, MISSING, t.get_attribute, subject, name)
        if value is MISSING:
            return NONE
        found.append(value)
    return TupleTracker(found)


def _positional_names(t: Space, cls: ClassTracker, count: int) -> OperationSteps:
    """Names from `__match_args__`; None when the subject itself is the one positional match."""
    if not count:
        return []
    args = yield from attempt(t, AttributeError, MISSING, t.get_attribute, cls, "__match_args__")
    if args is MISSING:
        if count == 1 and issubclass(cls.value, _SELF_MATCHING):
            return None
        args = TupleTracker([])
    names = [item.constant() for item in args.items] if args.cls is tuple else [None]
    if not all(type(name) is str for name in names[:count]):
        raise t.unsupported(
            "bad-arguments", f"a __match_args__ of {cls.value.__name__} that is no tuple of names"
        )

    if len(args.items) < count:
        allowed = len(args.items) or int(issubclass(cls.value, _SELF_MATCHING))
        s = "" if allowed == 1 else "s"
        throw(
            TypeError,
            f"{cls.value.__name__}() accepts {allowed} positional sub-pattern{s} ({count} given)",
        )
    return names[:count]
