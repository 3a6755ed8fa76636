"""Native frames that represent frames of the Machine: the code shape and the prologue of every stub
and continuation.

The code has the user's name, file, lines, globals and *the same local slots*, so `locals()`,
zero-argument `super()` and tracebacks see what they would have seen. Its one argument is the flat
state, in slot 0, which the prologue unpacks:

    slot 0  state           =>  every slot as it was; cells are the very cells
    stack                   =>  [operands, or the whole stack], with `sys.exc_info()` as it was

CPython reads locals and cells by slot and checks nothing, so a cell is put back with STORE_FAST.
"""

import dis
from collections.abc import Callable, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

import attrs

from stator_bytecode._breaks._glue import Glue
from stator_bytecode._breaks._layout import NULL_KIND, CarriedAt, FlatIndices, FrameLayout, SlotKind
from stator_bytecode._codec._raw import assemble
from stator_bytecode._codec._raw_instruction import Raw, RawHandler

GeneratorPlace = Callable[[CarriedAt], "int | None"]
"""The index of a generator object in the state, or None where it is left out."""

VARIADIC = 0x04 | 0x08
"""CO_VARARGS, CO_VARKEYWORDS."""
SUSPENDING = 0x20 | 0x80 | 0x200
"""CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR. Not CO_ITERABLE_COROUTINE: it allows `yield from`
a coroutine."""


@attrs.frozen
class Shape:
    """The fields in which the native code object differs from the user's: an argument in slot 0."""

    replacements: dict[str, Any]
    cells: tuple[int, ...]
    n_free: int
    arguments: int
    extra_slot: bool = False


def has_extra_slot(code: CodeType) -> bool:
    """Return True if slot 0 is the state's alone: of a function that has free variables at most."""
    return not (code.co_varnames or code.co_cellvars)


def moved(raws: list[Raw], code: CodeType) -> list[Raw]:
    """Instructions of the user's, fresh ones, with their slots where the native frame has them."""
    if has_extra_slot(code):
        for raw in raws:
            raw.arg += raw.opcode in _SLOTTED
    return raws


_SLOTTED = frozenset({*dis.haslocal, *dis.hasfree})


def shape_of(code: CodeType) -> Shape:
    variables, cells, free = code.co_varnames, code.co_cellvars, code.co_freevars
    # a cell that is an argument too keeps its slot; a free variable cannot be one
    if not variables:
        variables = (*cells, ".state")[:1]
    replacements: dict[str, Any] = {
        "co_varnames": variables,
        "co_nlocals": len(variables),
        "co_cellvars": cells,
        "co_freevars": free,
    }

    arguments = (
        code.co_argcount
        + code.co_kwonlyargcount
        + bool(code.co_flags & 4)
        + bool(code.co_flags & 8)
    )
    if not code.co_argcount:
        replacements |= {"co_argcount": 1, "co_posonlyargcount": 0, "co_kwonlyargcount": 0}
        replacements["co_flags"] = code.co_flags & ~VARIADIC
        arguments = 1

    slots = variables + tuple(name for name in cells if name not in variables)
    return Shape(
        replacements,
        tuple(map(slots.index, cells)),
        len(free),
        arguments,
        has_extra_slot(code),
    )


class NativeFrame:
    """A writer of the code of one native frame. `places` are the positions of the values in the
    state."""

    def __init__(
        self,
        layout: FrameLayout,
        places: FlatIndices,
        generator_place: GeneratorPlace = lambda kind: None,
    ) -> None:
        self.layout = layout
        self.places = places
        self.generator_place = generator_place
        self.shape = shape_of(layout.raw)
        self.glue = Glue(layout.raw, layout.instruction.positions)

    # prologue

    def start(self, generator: bool = False) -> None:
        self.start_cells()
        if generator:
            self.become_generator()
        else:
            self.glue.emit("RESUME")

    def open(self, handled: int | None) -> int:
        """The frame as it was, but for its stack and slot 0. Gives the number of the first
        instruction of its own."""
        self.start()
        self.restore_slots()
        if handled is not None:
            self.handle(handled)
        return len(self.glue.raws)

    def start_cells(self) -> None:
        """`locals()` requires that MAKE_CELL has run, so it does, although the cells are put
        back afterwards."""
        if self.shape.n_free:
            self.glue.emit("COPY_FREE_VARS", self.shape.n_free)
        for slot in self.shape.cells:
            self.glue.emit("MAKE_CELL", slot)

    def become_generator(self, keep_sent: bool = False) -> None:
        self.glue.emit("RETURN_GENERATOR")
        if not keep_sent:
            self.glue.emit("POP_TOP")
            self.glue.emit("RESUME")

    def load_state(self) -> None:
        self.glue.emit("LOAD_DEREF" if 0 in self.shape.cells else "LOAD_FAST", 0)

    def load(self, place: int) -> None:
        self.load_state()
        self.glue.constant(place)
        self.glue.subscript()

    def restore_slots(self) -> None:
        """All but native slot 0, which has the state. Values follow each other there as in the
        frame."""
        slots = range(1 - self.shape.extra_slot, len(self.layout.slots))
        places = {slot: place for slot in slots if (place := self.places.slots[slot]) is not None}
        if places:
            self._unpack(min(places.values()), len(places))
        for slot in places:
            self.glue.emit("STORE_FAST", slot + self.shape.extra_slot)
        for slot in slots:
            if slot not in places:
                self._restore_slot(slot)

    def _unpack(self, start: int, count: int) -> None:
        """Part of the state, its first value on top."""
        self.load_state()
        self.glue.constant(start)
        self.glue.constant(start + count)
        self.glue.emit("BUILD_SLICE", 2)
        self.glue.subscript()
        self.glue.emit("UNPACK_SEQUENCE", count)

    def restore_first_slot(self) -> None:
        """The state is gone after this."""
        if self.shape.extra_slot:
            self.glue.emit("DELETE_FAST", 0)
        else:
            self._restore_slot(0)

    def _restore_slot(self, slot: int) -> None:
        kind = self.layout.slots[slot]
        first_free = len(self.layout.slots) - self.shape.n_free
        if (place := self._place(kind, self.places.slots[slot])) is not None:
            self.load(place)
        elif slot < self.shape.arguments or slot in self.shape.cells or slot >= first_free:
            self.glue.emit("PUSH_NULL")
        else:
            return
        self.glue.emit("STORE_FAST", slot + self.shape.extra_slot)

    def _place(self, kind: SlotKind, place: int | None) -> int | None:
        return self.generator_place(kind) if isinstance(kind, CarriedAt) else place

    def handle(self, place: int) -> None:
        """Enter the handling of the exception at `place`: leaves the previous one on the stack, for
        POP_EXCEPT."""
        self.load(place)
        self.glue.emit("PUSH_EXC_INFO")
        self.glue.emit("POP_TOP")

    def push(self, depth: int) -> None:
        """Push the value of the stack at `depth`; markers natively mean nothing but to POP_EXCEPT
        and RERAISE."""
        kind = self.layout.stack[depth]
        place = self._place(kind, self.places.stack[depth])
        if kind is NULL_KIND:
            self.glue.emit("PUSH_NULL")
        elif place is not None:
            self.load(place)
        else:
            self.glue.constant(None)

    def hand_on(self) -> None:
        """The state, on the stack; in its slot is the user's value from now on."""
        self.load_state()
        self.restore_first_slot()

    # epilogue

    def clean_up(self, handled: int | None, guarded: Sequence[Raw]) -> None:
        """An exception out of `guarded`, which runs with one previous exception under it, leaves
        its handling first."""
        if handled is None:
            return
        glue = self.glue
        glue.handler = None
        start = glue.emit("COPY", 3)
        glue.emit("POP_EXCEPT")
        glue.emit("RERAISE", 1)
        handler = RawHandler(start, 1, True)
        for raw in guarded:
            raw.handler = handler

    def function(self, generator: bool = False) -> Callable[[Any], Any]:
        """The function of one argument, the state. Its cells are placeholders: the prologue puts in
        the real ones."""
        layout, shape = self.layout, self.shape
        held: dict[str, Any] = {
            "co_consts": tuple(self.glue.consts),
            "co_names": tuple(self.glue.names),
        }
        flags: int = shape.replacements.get("co_flags", layout.raw.co_flags)
        held["co_flags"] = flags if generator else flags & ~SUSPENDING
        replacements = shape.replacements | held
        code = assemble(self.glue.raws, layout.raw, **replacements)

        closure = tuple(CellType() for _ in range(shape.n_free))
        function = FunctionType(
            code, layout.globals, code.co_name, (None,) * (code.co_argcount - 1), closure
        )
        if code.co_kwonlyargcount:
            first = code.co_argcount
            function.__kwdefaults__ = dict.fromkeys(
                code.co_varnames[first : first + code.co_kwonlyargcount]
            )
        return function
