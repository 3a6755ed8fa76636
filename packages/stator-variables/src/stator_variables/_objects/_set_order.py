"""The order of a set, where it is known: it follows from the hashes of the elements and from the steps that made it.

A set that is made while tracing remembers the calls of C that made and changed it. They are written into the entry as
they are, so the set it makes has the order of plain Python; done here as well, with real elements, they tell the order.
"""

from collections.abc import Sequence
from typing import Any

import attrs
from stator_guards import CallSource, CapturedSource, Custom, Source

from stator_variables import _kinds as k
from stator_variables._objects._hashing import Identity
from stator_variables._space import Space
from stator_variables._tracker import is_pending

CREATING = frozenset({"copy", "union", "intersection", "difference", "symmetric_difference"})
"""Steps that make the set, from all of their operands; the others change it."""
_ATOMS = (int, bool, float, str, bytes)


def derived(cls: type, entries: dict[Any, Any], method: str, *operands: Any) -> k.SetTracker:
    """The set that `method` makes of the operands, as they are now."""
    fixed = tuple(map(as_operand, operands))
    steps = None if None in fixed else [(method, fixed)]
    return k.SetTracker(frozenset if issubclass(cls, frozenset) else set, entries, steps)


def as_operand(vt: Any) -> Any:
    """What stands for a set or a sequence as it is now in the steps of another set; None where its order is unknown."""
    if isinstance(vt, k.TupleTracker | k.DictTracker):
        return vt
    if not isinstance(vt, k.SetTracker) or issubclass(vt.cls, frozenset):
        return (
            vt
            if isinstance(vt, k.SetTracker) or isinstance(vt.constant(), frozenset | tuple)
            else None
        )
    if vt.steps is None:
        return None
    steps = [("copy", (vt,)), *vt.steps] if vt.source is not None else list(vt.steps)
    return k.SetTracker(set, dict(vt.entries), steps)


def dict_of(entries: dict[Any, Any]) -> Any:
    """The operand for a dict: C knows the length, and makes room at once."""
    return k.DictTracker(
        dict, {hashed: (key, k.NONE) for hashed, key in entries.items()}, complete=True
    )


def original_of(operand: Any) -> Any:
    """The existing set that an operand is a copy of, or the operand itself, which may be what nobody looked at."""
    is_made = (
        not is_pending(operand) and isinstance(operand, k.SetTracker) and operand.source is None
    )
    steps = operand.steps if is_made else None
    if steps and len(steps) == 1 and steps[0][0] == "copy" and steps[0][1][0].source is not None:
        return steps[0][1][0]
    return operand


# -- the steps with real elements -------------------------------------------------------------------------------------
@attrs.frozen
class Existing:
    """A set from outside, by its number."""

    index: int


@attrs.frozen
class Recipe:
    """The steps without trackers. Operands are real values, recipes, and sets from outside."""

    cls: type
    steps: tuple[tuple[str, tuple[Any, ...]], ...]

    def make(self, *existing: Any) -> Any:
        is_frozen = issubclass(self.cls, frozenset)
        if is_frozen and not any(method in CREATING for method, _ in self.steps):
            return frozenset(self._content(existing))
        made: Any = set()
        for method, operands in self.steps:
            real = [_real(operand, existing) for operand in operands]
            if method in CREATING:
                made = getattr(self.cls, method)(*real)
            else:
                getattr(made, method)(*real)
        return made

    def _content(self, existing: Sequence[Any]) -> Any:
        """What a frozenset is made of: one iterable, or single elements."""
        if [method for method, _ in self.steps] == ["update"]:
            return _real(self.steps[0][1][0], existing)
        return [operands[0] for _, operands in self.steps]

    def order(self, *existing: Any) -> list[Any]:
        return [*self.make(*existing)]


def _real(operand: Any, existing: Sequence[Any]) -> Any:
    if type(operand) is Existing:
        return existing[operand.index]
    return operand.make(*existing) if type(operand) is Recipe else operand


def recipe_of(t: Space, vt: Any, existing: list[Any]) -> Any:
    """An operand for real; None where not all steps and elements are known. Sets from outside are appended."""
    vt = original_of(vt)
    if isinstance(vt, k.ConstantTracker):
        return vt.value
    if isinstance(vt, k.TupleTracker | k.DictTracker):
        keys = (
            [*vt.entries]
            if isinstance(vt, k.DictTracker)
            else [t.key_of(item) for item in vt.items]
        )
        known = all(type(key) in _ATOMS for key in keys)
        return (dict.fromkeys(keys) if isinstance(vt, k.DictTracker) else keys) if known else None
    if vt.source is not None:
        existing.append(vt)
        return Existing(len(existing) - 1)
    return _recipe_of_new(t, vt, existing)


def _recipe_of_new(t: Space, vt: Any, existing: list[Any]) -> Recipe | None:
    if vt.steps is None or not all(type(key) in _ATOMS for key in vt.entries):
        return None
    steps = []
    for method, item in vt.steps:
        if method in ("add", "discard"):
            operands = [t.key_of(item)]
        else:
            operands = [recipe_of(t, one, existing) for one in _operands(method, item)]
        if None in operands:
            return None
        steps.append((method, tuple(operands)))
    return Recipe(vt.cls, tuple(steps))


def _operands(method: str, item: Any) -> tuple[Any, ...]:
    if method in CREATING:
        return tuple(item)
    return () if item is None else (item,)


def in_order(t: Space, vt: Any) -> list[Any]:
    """The items in the order of C's set, where that is known: of an existing one that is as it was, and of a new one of
    numbers and strings."""
    if (
        vt.cls in (set, frozenset)
        and vt.source is not None
        and (vt.cls is frozenset or vt.steps == [])
    ):
        entries = vt.entries
        if type(vt.source) is not CapturedSource and not any(
            type(key) is Identity for key in entries
        ):
            _rely_on_order(t, vt.source, list(vt.real))  # objects were read in their order
        return list(entries.values())
    return [vt.entries[key] for key in made_again(t, vt)]


def made_again(t: Space, vt: Any) -> Any:
    """A real set like that which the program made. Numbers hash alike everywhere; strings, and sets from outside, are
    guarded."""
    existing: list[Any] = []
    recipe = None if vt.source is not None else _recipe_of_new(t, vt, existing)
    if recipe is None:
        raise t.unsupported("set-order", "iteration over a set, whose order depends on hashing")
    real = recipe.make(*[one.real for one in existing])
    if existing or any(type(key) in (str, bytes) for key in real):
        _rely_on_order(t, CallSource(recipe.order, *[one.source for one in existing]), [*real])
    return real


def _rely_on_order(t: Space, source: Source, order: list[Any]) -> None:
    t.guard(
        source, Custom("{fn}({value})", lambda value: [*value] == order, f"in the order {order!r}")
    )
