"""Lowering of a graph in pieces."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import attrs
import torch
from torch import Tensor
from torch.fx import GraphModule, Node, map_arg

from stator_backends import _session
from stator_backends._alias import FrozenInputs, InputGuard, Overlap, SameInput, has_storage
from stator_backends._backend import BackendSpec, Compiled
from stator_backends._graph_facts import example_of, memory_of, placeholders
from stator_backends._pieces._backward import divide_at_backward
from stator_backends._pieces._division import SETS_STATE, Division, NodeRun, computes, runs_of
from stator_backends._pieces._driver import Piece, ValueOrigins, driver_of, piece_of, shares_memory
from stator_backends._pieces._reasons import divide
from stator_backends._pieces._structure import structure_of

ROUNDS = 20
"""The number of times that a graph is divided again for an operator which a compiler refuses; then
the piece with it runs natively as a whole."""


@attrs.frozen
class Uncompiled:
    """An operator that runs as it is: the node of the graph, the reason, and where the program has
    it."""

    node: str
    reason: str
    where: str


@attrs.frozen
class CompiledPiece:
    """A piece of a divided graph: the number of its operators, the module or else the line that
    they belong to, and the number of the first piece with the same code, which may be itself."""

    op_count: int
    place: str
    code: int


class LoweredPiece(Protocol):
    """The lowering of one piece; `refused` if AOTAutograd does not take it, perhaps because of
    `refused_at`."""

    @property
    def callable(self) -> Compiled: ...
    @property
    def guards(self) -> tuple[InputGuard, ...]: ...
    @property
    def shape_guards(self) -> tuple[Any, ...]: ...
    @property
    def refused(self) -> str: ...
    @property
    def refused_at(self) -> Node | None: ...


LowerPiece = Callable[[GraphModule, Sequence[Any], _session.AmbientState], LoweredPiece]


@attrs.frozen(eq=False)
class Divided:
    """A graph in pieces. `guards` are over the inputs of the whole graph."""

    driver: GraphModule
    guards: tuple[InputGuard, ...]
    shape_guards: tuple[Any, ...]
    uncompiled: tuple[Uncompiled, ...]
    pieces: tuple[CompiledPiece, ...]


def divided_further(
    gm: GraphModule, spec: BackendSpec, division: Division, gradients: bool
) -> list[NodeRun]:
    """Return the runs of a graph, which begins with this grad mode. Each that is to be compiled
    keeps its meaning as a graph of its own."""
    while True:
        runs, values = runs_of(gm, division, gradients), ValueOrigins.of(gm)
        nodes = {node.name: node for node in gm.graph.nodes}
        is_final = True

        for run in runs:
            if run.is_native:
                continue
            inner = Division()
            piece = piece_of(gm, run, values)
            divide(piece.module, spec, inner)
            for node, reason in inner.native.items():
                is_final &= not division.add([nodes[node.name]], reason)
            is_final &= not divide_at_backward(gm, piece, division)
            starts = {nodes[node.name] for node in inner.starts if node.name in nodes}
            is_final &= starts <= division.starts
            division.starts |= starts

        if is_final:
            return runs


@attrs.define(eq=False)
class DividedLowering:
    """One lowering in pieces. `lower_piece` compiles one, under the modes at its beginning."""

    gm: GraphModule
    inputs: Sequence[Any]
    spec: BackendSpec
    division: Division
    lower_piece: LowerPiece
    ambient: _session.AmbientState
    rounds: int = 0
    known: dict[tuple[Node, ...], tuple[Piece, LoweredPiece]] = attrs.field(factory=dict)
    shares: bool = True
    """True if pieces of one structure are compiled once: the backend does not look at sources."""
    made: dict[Hashable, LoweredPiece] = attrs.field(factory=dict)
    """Compiled pieces by their structure, those of earlier graphs included."""
    managers: dict[Node, Any] = attrs.field(factory=dict)
    """The results of setters of modes, which those that restore the modes take."""

    def lower(self) -> Divided:
        """Compile all pieces; those that are refused are divided at the operator concerned."""
        while True:
            runs = divided_further(self.gm, self.spec, self.division, self.ambient.grad)
            values = ValueOrigins.of(self.gm)
            compiled: dict[NodeRun, tuple[Piece, LoweredPiece]] = {}
            with self._modes():
                is_complete = all(self._lower_run(run, values, compiled) for run in runs)
            if is_complete:
                return self._divided(runs, values, compiled)

    @contextmanager
    def _modes(self) -> Iterator[None]:
        """Begin with the modes at the entry of the graph, and restore the present ones."""
        present = _session.AmbientState.capture()
        try:
            self.ambient.install()
            yield
        finally:
            present.install()

    def _lower_run(
        self,
        run: NodeRun,
        values: ValueOrigins,
        compiled: dict[NodeRun, tuple[Piece, LoweredPiece]],
    ) -> bool:
        """Lower one run, or set the modes that it sets; return False if the graph has to be divided
        again."""
        if run.is_native:
            self._set_modes(run)
            return True
        if run.nodes in self.known:
            compiled[run] = self.known[run.nodes]
            return True

        piece = piece_of(self.gm, run, values)
        examples = self._examples(piece)
        if not all(map(_is_describable, examples)):
            self._refuse(run, "a view of what was written to in another mode")
            return False

        made = self._made(piece, examples)
        if made.refused:
            self._refuse(run, made.refused, made.refused_at)
            return False
        if not are_about_inputs(made.guards, self._positions(piece)):
            self._refuse(run, "memory that values of the graph share")
            return False
        self.known[run.nodes] = compiled[run] = piece, made
        return True

    def _made(self, piece: Piece, examples: list[Any]) -> LoweredPiece:
        """Compile a piece, unless one of the same structure was compiled."""
        modes = _session.AmbientState.capture()
        structure = structure_of(piece, examples, modes) if self.shares else None
        if structure is not None and structure in self.made:
            return self.made[structure]
        made = self.lower_piece(piece.module, examples, modes)
        if structure is not None and _is_shareable(made):
            self.made[structure] = made
        return made

    def _refuse(self, run: NodeRun, reason: str, at: Node | None = None) -> None:
        """Let the refused operator run natively; or all of the run, if it is not known which."""
        self.rounds += 1
        nodes = [node for node in run.nodes if at is not None and node.name == at.name]
        if self.rounds > ROUNDS:
            nodes = []
        self.division.add(nodes or run.nodes, reason)

    def _positions(self, piece: Piece) -> list[int]:
        """Return the positions, among the inputs of the graph, of those of a piece; -1 for other
        values."""
        positions = {node: i for i, node in enumerate(placeholders(self.gm))}
        return [positions.get(node, -1) for node in piece.inputs]

    def _set_modes(self, run: NodeRun) -> None:
        """Run what sets modes: the next piece is compiled under them."""
        managers = self.managers.__getitem__
        for node in run.nodes:
            if SETS_STATE in node.meta:
                target: Any = node.target
                args, kwargs = map_arg(node.args, managers), map_arg(node.kwargs, managers)
                self.managers[node] = target(*args, **kwargs)

    def _examples(self, piece: Piece) -> list[Any]:
        """Return what a piece is compiled for: real inputs of the graph, and else fake values.

        An input that was written to before may have another history by now, and one that shares
        memory with a value of the graph has to do so in the example, too: these are fake.
        """
        real = dict(zip(placeholders(self.gm), self.inputs, strict=True))
        inner = [node for node in piece.inputs if node not in real]
        written = self._written_before(piece)
        examples = []
        for node in piece.inputs:
            example = example_of(node)
            is_written = has_storage(example) and memory_of(example) in written
            is_real = node in real and not is_written and not shares_memory(node, inner)
            examples.append(real[node] if is_real else example)
        return examples

    def _written_before(self, piece: Piece) -> set[int]:
        written: set[int] = set()
        for node in self.gm.graph.nodes:
            if node is piece.run.nodes[0]:
                break
            written |= set(node.meta.get("writes", ()))
        return written

    def _divided(
        self,
        runs: Sequence[NodeRun],
        values: ValueOrigins,
        compiled: Mapping[NodeRun, tuple[Piece, LoweredPiece]],
    ) -> Divided:
        functions = {run: (piece, made.callable) for run, (piece, made) in compiled.items()}
        driver = driver_of(self.gm, runs, values, functions)

        guards: list[InputGuard] = []
        shape_guards: list[Any] = []
        for piece, made in compiled.values():
            positions = self._positions(piece)
            guards += [translated(guard, positions) for guard in made.guards]
            shape_guards += made.shape_guards

        uncompiled = [
            Uncompiled(node.name, self.division.native[node], where_of(node))
            for run in runs
            if run.is_native
            for node in run.nodes
            if self.division.native.get(node) and computes(node)
        ]
        pieces = tuple(_described(compiled))
        return Divided(driver, tuple(guards), tuple(shape_guards), tuple(uncompiled), pieces)


def _described(
    compiled: Mapping[NodeRun, tuple[Piece, LoweredPiece]],
) -> Iterator[CompiledPiece]:
    first: dict[int, int] = {}
    for number, (run, (_, made)) in enumerate(compiled.items()):
        code = first.setdefault(id(made), number)
        yield CompiledPiece(len(run.nodes), _place_of(run), code)


def _place_of(run: NodeRun) -> str:
    """Return the innermost module that most nodes of a run belong to, if one is called inside of
    the graph; else the line of the first node."""
    counts: Counter[tuple[int, str]] = Counter()
    for node in run.nodes:
        modules = [*node.meta.get("nn_module_stack", {}).values()]
        counts.update((depth, str(name)) for depth, (name, _) in enumerate(modules) if depth)
    most = [each for each, count in counts.items() if 2 * count > len(run.nodes)]
    return max(most)[1] if most else where_of(run.nodes[0])


def _is_shareable(made: LoweredPiece) -> bool:
    """Return False for code that holds values of its inputs, or relies on numbers."""
    holds_values = any(isinstance(guard, FrozenInputs) for guard in made.guards)
    return not made.refused and not made.shape_guards and not holds_values


def _is_describable(example: Any) -> bool:
    """Return False for a view that autograd refuses to describe, since its base was written to in
    another mode."""
    try:
        return not isinstance(example, Tensor) or example.is_leaf in (True, False)
    except RuntimeError:
        return False


@attrs.frozen
class OverInputs:
    """A guard of a piece, over the inputs of the whole graph."""

    guard: InputGuard
    positions: tuple[int, ...]

    def holds(self, inputs: Sequence[Any]) -> bool:
        return self.guard.holds([inputs[position] for position in self.positions])


def are_about_inputs(guards: Sequence[InputGuard], positions: Sequence[int]) -> bool:
    """Return True if guards of a piece are about nothing but inputs of the whole graph."""
    return not guards or all(positions[i] >= 0 for guard in guards for i in _read_by(guard))


def _read_by(guard: InputGuard) -> Iterable[int]:
    """Return the positions that a guard reads; an unknown one may read the last."""
    match guard:
        case SameInput(first=first, second=second):
            return first, second
        case Overlap(overlapping=overlapping, separate=separate):
            return overlapping | separate
        case FrozenInputs(tensors=tensors):
            return tensors
    return (-1,)


def translated(guard: InputGuard, positions: Sequence[int]) -> InputGuard:
    """Return a guard over the inputs of a piece as one over those of the whole graph."""
    match guard:
        case SameInput(first=first, second=second):
            return SameInput(positions[first], positions[second])
        case Overlap(overlapping=overlapping, separate=separate):
            meeting = frozenset(positions[i] for i in overlapping)
            return Overlap(meeting, frozenset(positions[i] for i in separate))
        case FrozenInputs(tensors=tensors):
            return FrozenInputs({positions[i]: tensor for i, tensor in tensors.items()})
    return OverInputs(guard, tuple(positions))


def where_of(node: Node) -> str:
    """Return the line of the program that a node belongs to: the innermost outside of torch."""
    lines = str(node.meta.get("stack_trace", "")).splitlines()
    places = [line.strip() for line in lines if line.startswith('  File "')]
    of_program = [place for place in places if not place.startswith(f'File "{_TORCH}')]
    return next(iter([*reversed(of_program), *reversed(places)]), "")


# with a separator, as torch_geometric is not of torch
_TORCH = str(Path(torch.__file__).parent) + os.sep
