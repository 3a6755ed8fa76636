"""A Point: a place in a running program, as data, and the flat state that belongs to it.

`layout_of` takes a Snapshot apart into the Point (static, hashable: the key of a continuation) and
the values (what differs each time); `frames_from` puts the frames together again, so that a Machine
goes on with the whole stack. Values are opaque: the same code serves trackers and real objects.

    frames  f(x) parked at `g(x) + 1`, g(y) before `y * 2`
    =>      Point of two layouts, ("x", "f1_y", "f1_stack0", …)
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from attrs import Factory, define, field, frozen

from stator_bytecode._breaks import _layout as layouts
from stator_bytecode._breaks._description import descriptions_of
from stator_bytecode._breaks._shape import shapes_of
from stator_bytecode._codec._decode import cell_slots
from stator_bytecode._codec._instruction import Code
from stator_bytecode._machine import _frame
from stator_bytecode.errors import Unsupported

V = Any
Virtual = Callable[[V], "_frame.GeneratorState | layouts.Virtualized | None"]
_PROLOGUE = frozenset({"COPY_FREE_VARS", "MAKE_CELL"})


@frozen(cache_hash=True, slots=False)
class Point:
    """The frame stack, outermost first, the innermost before its instruction `pc`; then what is
    carried as state: suspended generators, and objects in parts that hold some."""

    frames: tuple[layouts.FrameLayout, ...]
    carried: tuple[layouts.Layout, ...] = ()

    @cached_property
    def laid_out(self) -> tuple[Any, ...]:
        """The layouts of the frames, then of the carried objects."""
        return (*self.frames, *self.carried)

    @cached_property
    def places(self) -> tuple[layouts.FlatIndices, ...]:
        """The positions of each layout's values in the flat state."""
        return tuple(_all_places(self.laid_out))

    @property
    def count(self) -> int:
        return self.places[-1].stop

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Readable names of the flat state, each once."""
        return tuple(_unique(_names(self)))

    @cached_property
    def descriptions(self) -> tuple[str, ...]:
        """Words for each value of the flat state, for messages: `the loop over xs` for `stack0`."""
        return tuple(descriptions_of(self.frames, self.carried))

    def frames_from(
        self,
        values: Iterable[V],
        make_generator: Callable[[_frame.GeneratorState], V],
        wrap: Callable[[Any], V] = lambda static: static,
        make_object: Callable[[Any, list[V]], V] = lambda recipe, parts: recipe.build(parts),
    ) -> list[_frame.Frame]:
        """The frames again, for `Machine.run`. `wrap` makes a value of a globals or builtins
        dictionary."""
        return _Restoring(self, list(values), make_generator, wrap, make_object).frames()


def layout_of(
    snapshot: _frame.Snapshot,
    virtual: Virtual,
    globals_of: Callable[[_frame.Frame], dict[str, Any]],
) -> tuple[Point, list[V]]:
    """Split `snapshot` into its Point and the flat list of values.

    `virtual` decides which values are generators that nothing but these frames can reach: they are
    carried as state, and so are the objects that hold them, in parts. It is called for locals, for
    stack positions and for parts. The operands of the innermost instruction are never virtualized.
    """
    return _Splitting(snapshot, virtual, globals_of).split()


def layout_of_generator(
    generator: _frame.GeneratorState, globals_of: Callable[[_frame.Frame], dict[str, Any]]
) -> tuple[layouts.FrameLayout, list[V]]:
    """The frame of one suspended generator, for `GeneratorFactory`; other generators it holds are
    plain values."""
    splitting = _Splitting(_frame.Snapshot((), None), lambda value: None, globals_of)
    return splitting.frame(_generator_state(generator), generator.status), splitting.values


# taking apart


@define(eq=False)
class _Splitting:
    snapshot: _frame.Snapshot
    virtual: Virtual
    globals_of: Callable[[_frame.Frame], dict[str, Any]]
    values: list[V] = Factory(list)
    carried: list[_frame.GeneratorState | layouts.Virtualized] = Factory(list)
    operands: set[int] = field(init=False)

    @operands.default
    def _worked_on(self) -> set[int]:
        """The identities of what the innermost instruction works on."""
        if not self.snapshot.frames:
            return set()
        state = self.snapshot.frames[-1]
        return {
            id(state.stack[-depth]) for depth in shapes_of(state.code.instructions[state.pc]).used
        }

    def split(self) -> tuple[Point, list[V]]:
        running = _frame.GeneratorStatus.RUNNING
        frames = tuple(
            self.frame(state, running if state.generator else None)
            for state in self.snapshot.frames
        )
        # which grows: each may hold others
        layouts = tuple(map(self._layout, self.carried))
        return Point(frames, layouts), self.values

    def _layout(self, carried: _frame.GeneratorState | layouts.Virtualized) -> layouts.Layout:
        if isinstance(carried, layouts.Virtualized):
            kinds = tuple(self._kind(value, layouts.VALUE) for value in carried.values)
            return layouts.VirtualizedLayout(carried.recipe, kinds)
        return self.frame(_generator_state(carried), carried.status)

    def frame(
        self, state: _frame.Frame, status: _frame.GeneratorStatus | None
    ) -> layouts.FrameLayout:
        cells = (
            cell_slots(state.code.raw, state.code.slots)
            if state.pc >= prologue_length(state.code)
            else ()
        )
        slots = tuple(
            self._kind(value, layouts.CELL if slot in cells else layouts.VALUE)
            for slot, value in enumerate(state.slots)
        )
        stack = tuple(self._kind(value, layouts.VALUE) for value in state.stack)
        if state.handled is not None:
            self.values.append(state.handled)

        if state.names is not None:
            raise Unsupported("class-body", "a class body cannot be entered in its middle")

        return layouts.FrameLayout(
            code=state.code,
            pc=state.pc,
            slots=slots,
            stack=stack,
            globals=self.globals_of(state),
            handled=state.handled is not None,
            then=None if state.then is None else self._then(state.then),
            hidden=state.hidden,
            generator=status,
        )

    def _then(self, then: _frame.Then) -> layouts.ThenLayout:
        self.values += then.values
        return layouts.ThenLayout(then.kind, len(then.values), then.name)

    def _kind(self, value: V, plain: layouts.SlotKind) -> layouts.SlotKind:
        if value is _frame.NULL:
            return layouts.NULL_KIND
        if type(value) is _frame.PreviousExc:
            if value.value is None:
                return layouts.NO_PREVIOUS
            self.values.append(value.value)
            return layouts.PREVIOUS
        if type(value) is _frame.LastInstruction:
            return layouts.RaisedAt(value.index)

        carried = self.virtual(value)
        if carried is None or (
            isinstance(carried, layouts.Virtualized) and id(value) in self.operands
        ):
            self.values.append(value)
            return plain
        return self._carried(carried)

    def _carried(self, carried: _frame.GeneratorState | layouts.Virtualized) -> layouts.CarriedAt:
        for index, state in enumerate(self.snapshot.frames):
            if state.generator is carried:
                return layouts.CarriedAt(index, True)
        for index, known in enumerate(self.carried):
            if known is carried:
                return layouts.CarriedAt(index, False)
        self.carried.append(carried)
        return layouts.CarriedAt(len(self.carried) - 1, False)


def _generator_state(generator: _frame.GeneratorState) -> _frame.Frame:
    state = generator.frame.copy()
    if generator.status is _frame.GeneratorStatus.CLOSED:
        # What a finished frame still held is gone.
        state.slots, state.stack = [_frame.NULL] * len(state.slots), []
        state.handled = state.names = state.parked = None
    return state


def prologue_length(code: Code) -> int:
    return next(
        at for at, instruction in enumerate(code.instructions) if instruction.op not in _PROLOGUE
    )


def _all_places(carrying: tuple[layouts.Layout, ...]) -> Iterator[layouts.FlatIndices]:
    start = 0
    for layout in carrying:
        places = layouts.flat_indices_of(layout, start)
        start = places.stop
        yield places


# names


def _names(point: Point) -> Iterator[str]:
    for index, layout in enumerate(point.frames):
        yield from _names_of(layout, f"f{index}_" if index else "")
    for index, carried in enumerate(point.carried):
        if isinstance(carried, layouts.VirtualizedLayout):
            parts = enumerate(carried.slots)
            yield from (
                f"o{index}_part{number}" for number, kind in parts if kind in layouts.CARRYING
            )
        else:
            yield from _names_of(carried, f"g{index}_")


def _names_of(layout: layouts.FrameLayout, prefix: str) -> Iterator[str]:
    for slot, kind in zip(layout.code.slots, layout.slots, strict=True):
        if kind in layouts.CARRYING:
            yield prefix + (
                "argument" + slot[1:] if slot.startswith(".") else re.sub(r"\W", "_", slot)
            )

    for depth, kind in enumerate(layout.stack):
        if kind in layouts.CARRYING:
            yield (
                f"{prefix}previous_exc{depth}"
                if kind is layouts.PREVIOUS
                else f"{prefix}stack{depth}"
            )
    if layout.handled:
        yield prefix + "exc"
    if layout.then is not None:
        yield from (f"{prefix}then{index}" for index in range(layout.then.count))


def _unique(names: Iterable[str]) -> Iterator[str]:
    taken: set[str] = set()
    for name in names:
        while name in taken:
            name += "_"
        taken.add(name)
        yield name


# putting together


@define(eq=False)
class _Restoring:
    point: Point
    values: list[V]
    make_generator: Callable[[_frame.GeneratorState], V]
    wrap: Callable[[Any], V]
    make_object: Callable[[Any, list[V]], V]
    # generators and objects, by the number of their layout
    made: dict[int, V] = Factory(dict)

    def frames(self) -> list[_frame.Frame]:
        """Frames first without contents, so that generators can be linked whatever refers to
        them."""
        numbered = [
            (n, layout)
            for n, layout in enumerate(self.point.laid_out)
            if isinstance(layout, layouts.FrameLayout)
        ]
        frames = [self._empty(layout) for _, layout in numbered]
        for (number, layout), frame in zip(numbered, frames, strict=True):
            if layout.generator is not None:
                self.made[number] = self._link(frame, layout.generator)
        for (number, layout), frame in zip(numbered, frames, strict=True):
            self._fill(frame, layout, self._values_of(number))
        return frames[: len(self.point.frames)]

    def _empty(self, layout: layouts.FrameLayout) -> _frame.Frame:
        frame_globals = layout.globals
        builtins = frame_globals.get("__builtins__", __builtins__)
        builtins = builtins if isinstance(builtins, dict) else vars(builtins)
        return _frame.Frame(
            code=layout.code,
            globals=self.wrap(frame_globals),
            builtins=self.wrap(builtins),
            slots=[],
            pc=layout.pc,
            hidden=layout.hidden,
        )

    def _link(self, frame: _frame.Frame, status: _frame.GeneratorStatus) -> V:
        frame.generator = _frame.GeneratorState(frame, status)
        return self.make_generator(frame.generator)

    def _fill(self, frame: _frame.Frame, layout: layouts.FrameLayout, values: Iterator[V]) -> None:
        frame.slots = [self._value(kind, values) for kind in layout.slots]
        frame.stack = [self._value(kind, values) for kind in layout.stack]
        frame.handled = next(values) if layout.handled else None
        frame.wait(None if layout.then is None else layout.then.restore(values))

    def _value(self, kind: layouts.SlotKind, values: Iterator[V]) -> Any:
        if kind in layouts.CARRYING:
            return _frame.PreviousExc(next(values)) if kind is layouts.PREVIOUS else next(values)
        if isinstance(kind, layouts.CarriedAt):
            return self._carried(kind.index + (0 if kind.running else len(self.point.frames)))
        if isinstance(kind, layouts.RaisedAt):
            return _frame.LastInstruction(kind.index)
        return _frame.PreviousExc(None) if kind is layouts.NO_PREVIOUS else _frame.NULL

    def _carried(self, number: int) -> V:
        """Return a carried value: a generator that exists already, or a virtualized object, made on
        first use."""
        layout = self.point.laid_out[number]
        if number not in self.made and isinstance(layout, layouts.VirtualizedLayout):
            values = self._values_of(number)
            self.made[number] = self.make_object(
                layout.recipe, [self._value(kind, values) for kind in layout.slots]
            )
        return self.made[number]

    def _values_of(self, number: int) -> Iterator[V]:
        places = self.point.places[number]
        return iter(self.values[places.start : places.stop])
