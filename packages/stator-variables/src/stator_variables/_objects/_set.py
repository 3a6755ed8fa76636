"""Sets: what is known of one, its order, how a new one is made, and how changes of an existing one
are replayed.

The order follows from the hashes of the elements and from the steps that made the set, where these
are known. `_set_members` builds an existing one, reads and changes; `_set_methods` has the methods.

A set that is made while tracing remembers the calls of C that made and changed it. They are written
into the entry as they are, so the set it makes has the order of plain Python; done here as well,
with real elements, they give the order.
"""

import functools
from collections.abc import Sequence
from types import WrapperDescriptorType
from typing import Any

from attrs import Factory, define, frozen
from stator_guards import CallSource, CapturedSource, Custom, Source

from stator_variables import _trackers as k
from stator_variables._emitter import Emitter, filled, made_empty
from stator_variables._hash_key import Identity
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._hash_results import has_results
from stator_variables._objects._keys import HashedTracker, runs_user_code
from stator_variables._objects._tuple import TupleTracker
from stator_variables._space import Space
from stator_variables._trace._capture_state import Phase
from stator_variables._tracker import (
    MISSING,
    KeyOf,
    SubstituteOf,
    VariableTracker,
    is_a,
    is_pending,
    made_of,
)

CREATING = frozenset({"copy", "union", "intersection", "difference", "symmetric_difference"})
"""Steps that make the set, from all of their operands; the others change it."""
SetStep = tuple[str, Any]
_ATOMS = (int, bool, float, str, bytes)


@define(eq=False, repr=False, slots=False)
class SetTracker(HashedTracker, weak_references=("steps_taken", "before")):
    """A set or frozenset: hashed key to item tracker. The order is that of insertion; reading it is
    a break.

    One from outside is not read until all of it is needed: until then `known` has its additions.
    `steps` are the calls that made or changed it, (method, argument): C's order follows from them.
    """

    base = set
    steps_taken: list[SetStep] = Factory(list)
    unread: Any = None  # the call that reads it
    before: dict[Any, Any] = Factory(dict)  # what was read

    def settle(self) -> None:
        super().settle()
        if self.unread is not None:
            self.unread(self)

    @property
    def steps(self) -> list[SetStep]:
        super().settle()
        return self.steps_taken

    @steps.setter
    def steps(self, steps: list[SetStep]) -> None:
        self.steps_taken = steps

    def constant(self) -> Any:
        # of unknown order
        if self.cls is not frozenset or self.unread is not None or len(self.entries) > 1:
            return MISSING
        return made_of(frozenset, (item.constant() for item in self.entries.values()))

    def hash_key(self, t: Space, part: KeyOf) -> object:
        if not isinstance(self.cls.__hash__, WrapperDescriptorType):
            return MISSING
        return frozenset(self.entries)

    def substitute(self, t: Space, part: SubstituteOf) -> object:
        if self.cls not in (set, frozenset):
            return MISSING
        if all(item.is_known for item in self.entries.values()):
            return made_again(t, self)  # in its order
        return self.cls([part(item) for item in self.entries.values()])

    def fills_by_user_code(self, t: Space) -> bool:
        """Return True if filling it hashes items in the program: see `DictTracker`."""
        return has_results(t) and (
            bool(self.steps_taken)
            or any(map(runs_user_code, self.known))
            or any(map(runs_user_code, self.before))
        )

    def rebuild(self, e: Emitter) -> str:
        """Made by the steps of the program: the order of its elements follows from them."""
        steps, by_user_code = self.steps, self.fills_by_user_code(e.t)
        if steps and steps[0][0] in CREATING:
            name = _created(e, self, by_user_code, *steps[0])
            write_steps(e, by_user_code, name, steps[1:])
            return name
        if self.cls is set and (by_user_code or any(method != "add" for method, _ in steps)):
            name = e.bind(self, "set()")
            write_steps(
                e, by_user_code, name, steps or [("add", item) for item in self.entries.values()]
            )
            return name

        bind = functools.partial(e.bind_later, Phase.CHANGES) if by_user_code else e.bind
        if self.cls is frozenset and [method for method, _ in steps] == ["update"]:
            whole = steps[0][1]
            return (
                e.expr(whole)
                if whole.cls is frozenset
                else bind(self, f"{e.capture(frozenset)}({e.expr(whole)})")
            )

        items = e.listed(self.entries.values())
        if self.cls in (set, frozenset):
            return bind(self, f"{e.capture(self.cls)}([{items}])")
        if issubclass(self.cls, frozenset):
            return filled(e, self, bind(self, made_empty(e, self.cls, f", [{items}]")))
        name = bind(self, made_empty(e, self.cls))
        (e.later[Phase.CHANGES].lines if by_user_code else e.lines).append(
            f"set.update({name}, [{items}])"
        )
        return filled(e, self, name)

    def replay(self, e: Emitter) -> None:
        undecided = [("add", item) for (item,) in self.undecided]
        steps = self.steps_taken + undecided
        write_steps(e, self.fills_by_user_code(e.t), e.expr(self), steps)


def derived(
    cls: type, entries: dict[Any, Any], method: str, *operands: VariableTracker
) -> SetTracker:
    """The set that `method` makes of the operands, as they are now."""
    steps = [(method, tuple(map(as_operand, operands)))]
    return SetTracker(frozenset if issubclass(cls, frozenset) else set, entries, steps)


def as_operand(vt: VariableTracker) -> Any:
    """Return an operand in the steps of another set: a set that may change as it is now."""
    if not is_a(vt, SetTracker) or issubclass(vt.cls, frozenset):
        return vt
    steps = [("copy", (vt,)), *vt.steps] if vt.source is not None else list(vt.steps)
    return SetTracker(set, dict(vt.entries), steps)


def dict_of(entries: dict[Any, Any]) -> DictTracker:
    """Return the operand for a dict: C reads its length, and allocates at once."""
    return DictTracker(
        dict, {hashed: (key, k.NONE) for hashed, key in entries.items()}, complete=True
    )


def original_of(operand: Any) -> Any:
    """Return the existing set that an operand is a copy of, or the operand itself, which may be
    pending."""
    is_made = not is_pending(operand) and is_a(operand, SetTracker) and operand.source is None
    steps = operand.steps if is_made else None
    if steps and len(steps) == 1 and steps[0][0] == "copy" and steps[0][1][0].source is not None:
        return steps[0][1][0]
    return operand


# -- the steps with real elements ------------------------------------------------------------------
@frozen
class Existing:
    """A set from outside, by its number."""

    index: int


@frozen
class Recipe:
    """The steps without trackers. Operands are real values, recipes, and sets from outside."""

    cls: type
    steps: tuple[tuple[str, tuple[Any, ...]], ...]

    def make(self, *existing: object) -> Any:
        is_frozen = issubclass(self.cls, frozenset)
        if is_frozen and not any(method in CREATING for method, _ in self.steps):
            return frozenset(self._content(existing))
        made = set()
        for method, operands in self.steps:
            real = [_real(operand, existing) for operand in operands]
            if method in CREATING:
                made = getattr(self.cls, method)(*real)
            else:
                getattr(made, method)(*real)
        return made

    def _content(self, existing: Sequence[Any]) -> Any:
        """Return the contents of a frozenset: one iterable, or single elements."""
        if [method for method, _ in self.steps] == ["update"]:
            return _real(self.steps[0][1][0], existing)
        return [operands[0] for _, operands in self.steps]

    def order(self, *existing: object) -> list[Any]:
        return [*self.make(*existing)]


def _real(operand: object, existing: Sequence[Any]) -> object:
    if type(operand) is Existing:
        return existing[operand.index]
    return operand.make(*existing) if type(operand) is Recipe else operand


def recipe_of(t: Space, vt: VariableTracker, existing: list[Any]) -> object:
    """An operand for real; None where not all steps and elements are known.

    Sets from outside are appended.
    """
    vt = original_of(vt)
    if is_a(vt, k.ConstantTracker):
        return vt.value
    if is_a(vt, TupleTracker | DictTracker):
        keys = [*vt.entries] if is_a(vt, DictTracker) else [t.key_of(item) for item in vt.items]
        known = all(type(key) in _ATOMS for key in keys)
        return (dict.fromkeys(keys) if is_a(vt, DictTracker) else keys) if known else None
    if vt.source is not None:
        existing.append(vt)
        return Existing(len(existing) - 1)
    return _recipe_of_new(t, vt, existing)


def _recipe_of_new(t: Space, vt: Any, existing: list[Any]) -> Recipe | None:
    if not all(type(key) in _ATOMS for key in vt.entries):
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


def in_order(t: Space, vt: SetTracker) -> list[Any]:
    """The items in the order of C's set, where that is known: of an existing one that is as it was,
    and of a new one of numbers and strings."""
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


def ordered(t: Space, vt: SetTracker) -> list[Any]:
    """The same, but for a set of fewer than two items, which have one order."""
    return list(vt.entries.values()) if len(vt.entries) < 2 else in_order(t, vt)


def made_again(t: Space, vt: SetTracker) -> Any:
    """A real set like that which the program made.

    Numbers hash alike everywhere; strings, and sets from outside, are guarded.
    """
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


def _created(
    e: Emitter, vt: VariableTracker, by_user_code: bool, method: str, operands: tuple[Any, ...]
) -> str:
    """Before the effects where all operands are there by then: a set from outside is as it was."""
    if by_user_code and any(id(original_of(operand)) in e.t.heap.changed for operand in operands):
        raise e.refuse(vt)
    early = [_early(e, operand) for operand in operands]
    texts = [e.expr(operand) for operand in operands] if None in early else early
    text = f"{e.capture(vt.cls)}.{method}({', '.join(map(str, texts))})"
    if by_user_code:
        return e.bind_later(Phase.CHANGES, vt, text)
    return e.bind(vt, text) if None in early else e.bind_early(vt, text)


def _early(e: Emitter, operand: VariableTracker) -> str | None:
    operand = original_of(operand)
    if operand.source is not None:
        return e.load(operand.source)
    existing: list[Any] = []
    if (recipe := recipe_of(e.t, operand, existing)) is None or existing:
        return None
    return e.capture(recipe.make() if type(recipe) is Recipe else recipe, "operand")


def write_steps(e: Emitter, by_user_code: bool, name: str, steps: list[SetStep]) -> None:
    lines = e.later[Phase.CHANGES].lines if by_user_code else e.lines
    lines += [
        f"set.{method}({name}{'' if item is None else f', {e.expr(_as_it_is(e, item))}'})"
        for method, item in steps
    ]


def _as_it_is(e: Emitter, item: VariableTracker) -> VariableTracker:
    """An existing set that nothing has changed, not a copy of it, which has another order where one
    was discarded."""
    original = original_of(item)
    return item if id(original) in e.t.heap.changed else original
