"""A Point: a place in a running program, as data, and the flat state that belongs to it.

`layout_of` takes a Snapshot apart into the Point (static, hashable: the key of a continuation) and the values (what
differs each time); `frames_from` puts the frames together again, so that a Machine goes on with the whole stack.
Values are opaque: the same code serves trackers and real objects.

    frames  f(x) parked at `g(x) + 1`, g(y) before `y * 2`  =>  Point of two layouts, ("x", "f1_y", "f1_stack0", …)
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from stator_bytecode._breaks._layout import (
    CARRYING,
    CELL,
    NO_PREVIOUS,
    NULL_KIND,
    PREVIOUS,
    VALUE,
    CarriedAt,
    FrameLayout,
    Kind,
    Layout,
    Parts,
    PartsLayout,
    Places,
    RaisedAt,
    places_of,
    split_then,
)
from stator_bytecode._breaks._shape import shapes_of
from stator_bytecode._codec._instruction import Code
from stator_bytecode._machine._frame import (
    NULL,
    Frame,
    FrameState,
    GeneratorState,
    GeneratorStatus,
    LastInstruction,
    Parked,
    PreviousExc,
    Snapshot,
)
from stator_bytecode._machine._saved import frame_state

V = Any
Virtual = Callable[[V], "GeneratorState | Parts | None"]
_PROLOGUE = frozenset({"COPY_FREE_VARS", "MAKE_CELL"})


@attrs.frozen(cache_hash=True)
class Point:
    """The frame stack, outermost first, the innermost before its instruction `pc`; then what is carried as state:
    suspended generators, and objects in parts that hold some."""

    frames: tuple[FrameLayout, ...]
    carried: tuple[Layout, ...] = ()
    _cache: dict[str, Any] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    @property
    def places(self) -> tuple[Places, ...]:
        """Where each frame's values are in the flat state; what is carried follows."""
        if "places" not in self._cache:
            self._cache["places"] = tuple(_all_places((*self.frames, *self.carried)))
        places: tuple[Places, ...] = self._cache["places"]
        return places

    @property
    def count(self) -> int:
        return self.places[-1].stop

    @property
    def parameters(self) -> tuple[str, ...]:
        """Readable names of the flat state, each once."""
        if "parameters" not in self._cache:
            self._cache["parameters"] = tuple(_unique(_names(self)))
        parameters: tuple[str, ...] = self._cache["parameters"]
        return parameters

    def frames_from(
        self,
        values: Iterable[V],
        make_generator: Callable[[GeneratorState], V],
        wrap: Callable[[Any], V] = lambda static: static,
        make_object: Callable[[Any, list[V]], V] = lambda recipe, parts: recipe.build(parts),
    ) -> list[Frame]:
        """The frames again, for `Machine.run`. `wrap` makes a value of a globals or builtins dictionary."""
        return _Restoring(self, list(values), make_generator, wrap, make_object).frames()


def layout_of(
    snapshot: Snapshot,
    virtual: Virtual,
    globals_of: Callable[[FrameState], dict[str, Any]],
) -> tuple[Point, list[V]]:
    """Split `snapshot` into its Point and the flat list of values.

    `virtual` tells which values are generators that nothing but these frames can see: they are carried as state, and
    so are the objects that hold them, in parts. It is asked for locals, for stack positions and for parts. What the
    innermost instruction works on is never taken apart.
    """
    return _Splitting(snapshot, virtual, globals_of).split()


def layout_of_generator(
    generator: GeneratorState, globals_of: Callable[[FrameState], dict[str, Any]]
) -> tuple[FrameLayout, list[V]]:
    """The frame of one suspended generator, for `rebuild_generator`; other generators it holds are plain values."""
    splitting = _Splitting(Snapshot((), None), lambda value: None, globals_of)
    return splitting.frame(_generator_state(generator), generator.status), splitting.values


# taking apart


class _Splitting:
    def __init__(
        self,
        snapshot: Snapshot,
        virtual: Virtual,
        globals_of: Callable[[FrameState], dict[str, Any]],
    ) -> None:
        self.snapshot = snapshot
        self.virtual = virtual
        self.globals_of = globals_of
        self.values: list[V] = []
        self.carried: list[GeneratorState | Parts] = []
        self.operands = {id(value) for value in _operands(snapshot)}

    def split(self) -> tuple[Point, list[V]]:
        frames = tuple(self.frame(state, _status(state)) for state in self.snapshot.frames)
        layouts = tuple(self._layout(carried) for carried in self.carried)  # which grows: each may hold others
        return Point(frames, layouts), self.values

    def _layout(self, carried: GeneratorState | Parts) -> Layout:
        if isinstance(carried, Parts):
            return PartsLayout(carried.recipe, tuple(self._kind(value, VALUE) for value in carried.values))
        return self.frame(_generator_state(carried), carried.status)

    def frame(self, state: FrameState, status: GeneratorStatus | None) -> FrameLayout:
        cells = cell_slots(state.code) if state.pc >= prologue_length(state.code) else frozenset()
        slots = tuple(self._kind(value, CELL if slot in cells else VALUE) for slot, value in enumerate(state.slots))
        stack = tuple(self._kind(value, VALUE) for value in state.stack)
        if state.handled is not None:
            self.values.append(state.handled)
        if state.names is not None:
            self.values.append(state.names)
        return FrameLayout(
            code=state.code,
            pc=state.pc,
            slots=slots,
            stack=stack,
            globals=self.globals_of(state),
            handled=state.handled is not None,
            then=None if state.then is None else split_then(state.then, self.values),
            hidden=state.hidden,
            generator=status,
            has_names=state.names is not None,
        )

    def _kind(self, value: V, plain: Kind) -> Kind:
        if value is NULL:
            return NULL_KIND
        if type(value) is PreviousExc:
            if value.value is None:
                return NO_PREVIOUS
            self.values.append(value.value)
            return PREVIOUS
        if type(value) is LastInstruction:
            return RaisedAt(value.index)
        carried = self.virtual(value)
        if carried is None or (isinstance(carried, Parts) and id(value) in self.operands):
            self.values.append(value)
            return plain
        return self._carried(carried)

    def _carried(self, carried: GeneratorState | Parts) -> CarriedAt:
        for index, state in enumerate(self.snapshot.frames):
            if state.generator is carried:
                return CarriedAt(index, True)
        for index, known in enumerate(self.carried):
            if known is carried:
                return CarriedAt(index, False)
        self.carried.append(carried)
        return CarriedAt(len(self.carried) - 1, False)


def _operands(snapshot: Snapshot) -> tuple[V, ...]:
    """What the innermost instruction works on."""
    if not snapshot.frames:
        return ()
    state = snapshot.frames[-1]
    return tuple(state.stack[-depth] for depth in shapes_of(state.code.instructions[state.pc]).used)


def _status(state: FrameState) -> GeneratorStatus | None:
    return None if state.generator is None else GeneratorStatus.RUNNING


def _generator_state(generator: GeneratorState) -> FrameState:
    state = frame_state(generator.frame)
    if generator.status is GeneratorStatus.CLOSED:
        # What a finished frame still held is gone.
        return attrs.evolve(state, slots=(NULL,) * len(state.slots), stack=(), handled=None, names=None, then=None)
    return state


def cell_slots(code: Code) -> frozenset[int]:
    """Slots that hold a cell, where they hold anything."""
    cells = {slot for slot, name in enumerate(code.slots) if name in code.raw.co_cellvars}
    return frozenset(cells | set(range(len(code.slots) - code.n_free, len(code.slots))))


def prologue_length(code: Code) -> int:
    length = 0
    while code.instructions[length].op in _PROLOGUE:
        length += 1
    return length


def _all_places(layouts: tuple[Layout, ...]) -> Iterator[Places]:
    start = 0
    for layout in layouts:
        places = places_of(layout, start)
        start = places.stop
        yield places


# names


def _names(point: Point) -> Iterator[str]:
    for index, layout in enumerate(point.frames):
        yield from _names_of(layout, f"f{index}_" if index else "")
    for index, carried in enumerate(point.carried):
        if isinstance(carried, PartsLayout):
            yield from (f"o{index}_part{number}" for number, kind in enumerate(carried.slots) if kind in CARRYING)
        else:
            yield from _names_of(carried, f"g{index}_")


def _names_of(layout: FrameLayout, prefix: str) -> Iterator[str]:
    for slot, kind in zip(layout.code.slots, layout.slots, strict=True):
        if kind in CARRYING:
            yield prefix + ("argument" + slot[1:] if slot.startswith(".") else re.sub(r"\W", "_", slot))
    for depth, kind in enumerate(layout.stack):
        if kind in CARRYING:
            yield f"{prefix}previous_exc{depth}" if kind is PREVIOUS else f"{prefix}stack{depth}"
    if layout.handled:
        yield prefix + "exc"
    if layout.has_names:
        yield prefix + "names"
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


class _Restoring:
    def __init__(
        self,
        point: Point,
        values: list[V],
        make_generator: Callable[[GeneratorState], V],
        wrap: Callable[[Any], V],
        make_object: Callable[[Any, list[V]], V],
    ) -> None:
        self.layouts = (*point.frames, *point.carried)
        self.point = point
        self.values = values
        self.make_generator = make_generator
        self.wrap = wrap
        self.make_object = make_object
        self.made: dict[int, V] = {}  # generators and objects, by the number of their layout

    def frames(self) -> list[Frame]:
        """Frames first without contents, so that generators can be linked whatever refers to them."""
        numbered = [(n, layout) for n, layout in enumerate(self.layouts) if isinstance(layout, FrameLayout)]
        frames = [self._empty(layout) for _, layout in numbered]
        for (number, layout), frame in zip(numbered, frames, strict=True):
            if layout.generator is not None:
                self.made[number] = self._link(frame, layout.generator)
        for (number, layout), frame in zip(numbered, frames, strict=True):
            self._fill(frame, layout, self._values_of(number))
        return frames[: len(self.point.frames)]

    def _empty(self, layout: FrameLayout) -> Frame:
        frame_globals = layout.globals
        builtins = frame_globals.get("__builtins__", __builtins__)
        builtins = builtins if isinstance(builtins, dict) else vars(builtins)
        return Frame(
            code=layout.code,
            globals=self.wrap(frame_globals),
            builtins=self.wrap(builtins),
            slots=[],
            pc=layout.pc,
            hidden=layout.hidden,
        )

    def _link(self, frame: Frame, status: GeneratorStatus) -> V:
        frame.generator = GeneratorState(frame, status)
        return self.make_generator(frame.generator)

    def _fill(self, frame: Frame, layout: FrameLayout, values: Iterator[V]) -> None:
        frame.slots = [self._value(kind, values) for kind in layout.slots]
        frame.stack = [self._value(kind, values) for kind in layout.stack]
        frame.handled = next(values) if layout.handled else None
        frame.names = next(values) if layout.has_names else None
        if layout.then is not None:
            frame.parked = Parked(layout.instruction, layout.then.restore(values))

    def _value(self, kind: Kind, values: Iterator[V]) -> Any:
        if kind in CARRYING:
            return PreviousExc(next(values)) if kind is PREVIOUS else next(values)
        if isinstance(kind, CarriedAt):
            return self._carried(kind.index + (0 if kind.running else len(self.point.frames)))
        if isinstance(kind, RaisedAt):
            return LastInstruction(kind.index)
        return PreviousExc(None) if kind is NO_PREVIOUS else NULL

    def _carried(self, number: int) -> V:
        """A generator, which is there already, or an object in parts, which is made when it is first asked for."""
        layout = self.layouts[number]
        if number not in self.made and isinstance(layout, PartsLayout):
            values = self._values_of(number)
            self.made[number] = self.make_object(layout.recipe, [self._value(kind, values) for kind in layout.slots])
        return self.made[number]

    def _values_of(self, number: int) -> Iterator[V]:
        places = self.point.places[number]
        return iter(self.values[places.start : places.stop])
