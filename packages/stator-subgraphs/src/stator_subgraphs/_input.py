"""Inputs of the root graph: real tensors and numbers become placeholders, with their symbols bound
before them."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from attrs import Factory, define
from stator_bytecode.errors import InternalError, InvalidUse, Unsupported
from stator_guards import AttrSource, CallSource, Source
from stator_variables import Dim, GraphValue, is_new_in_each_call, is_under_level, with_tangent
from torch import Tensor
from torch._guards import Source as AnyTorchSource
from torch._library.fake_class_registry import maybe_to_fake_obj
from torch.fx import GraphModule, Node
from torch.fx.experimental import symbolic_shapes as shapes
from torch.fx.experimental.recording import FakeTensorMeta
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatefulSymbolicContext
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges
from torch.utils.weak import WeakIdKeyDictionary

from stator_subgraphs._boundary import Foreign
from stator_subgraphs._captured_graph import GraphInput
from stator_subgraphs._fake import fake_input, refuse_subclass, refuse_wrappers
from stator_subgraphs._stale_cache import clear_placement_caches
from stator_subgraphs._state import GraphState
from stator_subgraphs._symbol import (
    Symbol,
    formula,
    is_symbol,
    number_for,
    readable_symbols,
    sizes_of,
    symbols_of,
)
from stator_subgraphs._torch_source import TorchSource, WrappedFloatSource, ours

_CACHED = tuple(method for method in vars(ShapeEnv).values() if hasattr(method, "cache_clear"))
"""Some of these caches have no limit, and each key holds its `ShapeEnv`."""
TensorPart = tuple[str, int]  # ("size", 0), ("storage_offset", 0)


@define(eq=False)
class Record:
    """One tensor or number that was read. It outlives a rollback (`live` is then False): shape
    guards may need it."""

    origin: TorchSource
    real: Any
    context: StatefulSymbolicContext | None
    static: bool
    traced: GraphValue
    live: bool = True
    # sizes and the like that had no symbol from the start
    constant: frozenset[TensorPart] = frozenset()
    # its shape then, which the trace may change (`x.t_()`): of a plain tensor
    first: FakeTensorMeta | None = None


@define(eq=False)
class Inputs:
    """All records of one graph. It keeps the real tensors alive, so that an `id` names one tensor
    throughout."""

    state: GraphState
    tensors: dict[int, Record] = Factory(dict)
    numbers: dict[Source, GraphValue] = Factory(dict)
    objects: dict[int, GraphValue] = Factory(dict)
    met_meshes: bool = False  # or what may have one: a tensor with others in it
    records: list[Record] = Factory(list)  # in order of appearance
    described: dict[Node, GraphInput] = Factory(dict)
    contexts: WeakIdKeyDictionary = Factory(WeakIdKeyDictionary)

    # -- tensors -----------------------------------------------------------------------------------
    def tensor(
        self,
        source: Source,
        tensor: Tensor,
        dims: Sequence[Dim],
        hint: str,
        sizes: Source,
    ) -> GraphValue:
        if (known := self.tensors.get(id(tensor))) is not None and known.live:
            return known.traced
        refuse_subclass(tensor, str(source))
        if any(isinstance(held, GraphModule) for held in self.state.held.values()):
            refuse_wrappers([tensor])
        if is_traceable_wrapper_subclass(tensor):
            self._meet_meshes()
        record = self._tensor(TorchSource(sizes), tensor, dims, hint)
        if not is_new_in_each_call(source):
            _mark_static_address(record.traced.node, tensor)
        self.described[record.traced.node] = GraphInput(source, record.traced.example, "tensor")
        return record.traced

    def _tensor(
        self, origin: TorchSource, tensor: Tensor, dims: Sequence[Dim], hint: str
    ) -> Record:
        context = symbolic_context(origin, tensor, dims)
        static = is_static(dims) and type(origin) is TorchSource
        fake = self.fake(origin, tensor, context, static)
        # torch may have a fake of it: another tensor, or its gradient, is a view of it
        static = static and not symbols_of(fake)
        if not static:
            self._bind_symbols(fake, origin.source)
        record = Record(origin, tensor, context, static, self._placeholder(hint, fake, origin))
        if not static:
            record.constant = frozenset(
                (kind, dim) for part, kind, dim in sizes_of(fake) if type(part) is int
            )
            if fake.layout is torch.strided and not is_traceable_wrapper_subclass(fake):
                record.first = FakeTensorMeta.from_fake(fake)
        self._keep(record, id(tensor))
        return record

    def fake(
        self,
        origin: TorchSource,
        tensor: Tensor,
        context: StatefulSymbolicContext,
        static: bool,
    ) -> Any:
        with (
            Foreign(origin.source.name),
            self.state.env.ignore_fresh_unbacked_symbols(),
        ):  # the placeholder binds them
            fake = fake_input(self.state.mode, tensor, origin, context, static)
            return with_tangent(fake, tensor) if is_under_level() else fake

    def _bind_symbols(self, fake: Tensor, source: Source) -> None:
        """Give every free symbol a placeholder before the tensor's own: compilers need a place to
        read it from."""
        readable = readable_symbols(fake, source)
        for symbol in symbols_of(fake):
            if symbol not in self.state.root.symbols:
                self._bind_symbol(symbol, readable.get(symbol) or self._first_source(symbol))

    def _first_source(self, symbol: Symbol) -> Source:
        """Return the first source in `ShapeEnv` of a symbol that is only part of this tensor's
        sizes."""
        return ours(self.state.env.var_to_sources[symbol][0])

    def _bind_symbol(self, symbol: Symbol, source: Source) -> None:
        number = number_for(self.state.env, symbol)
        node = self._placeholder(str(symbol), number, TorchSource(source)).node
        self.described[node] = GraphInput(source, number, "number")

    # -- numbers -----------------------------------------------------------------------------------
    def integer(self, source: Source, value: int, hint: str) -> GraphValue:
        origin = TorchSource(source)
        number = self.state.env.create_unspecified_symint_and_symbol(
            value, origin, DimDynamic.DYNAMIC
        )
        traced = self._placeholder(hint, number, origin)
        self.described[traced.node] = GraphInput(source, number, "number")
        self._keep(Record(origin, value, None, False, traced), None)
        return self.memoize(source, traced)

    def wrapped_float(self, source: Source, value: float, hint: str) -> GraphValue:
        """A float as a tensor of no dimensions: compilers take no floats. The float itself is its
        `item()`."""
        if math.isnan(value) or math.isinf(value):
            raise Unsupported(
                "float-not-finite",
                f"{source} is {value}: it can only be a constant of the graph",
            )
        real = torch.tensor(value, dtype=torch.float64)
        record = self._tensor(WrappedFloatSource(source), real, (), hint)
        self.described[record.traced.node] = GraphInput(source, record.traced.example, "float")
        return record.traced

    def _meet_meshes(self) -> None:
        """Begin with caches that have no mesh of the program: a graph has its own of them."""
        if not self.met_meshes:
            clear_placement_caches()
        self.met_meshes = True

    def unwrapped_float(self, source: Source, value: float, item: GraphValue) -> GraphValue:
        self._keep(Record(TorchSource(source), value, None, False, item), None)
        return self.memoize(source, item)

    # -- objects -----------------------------------------------------------------------------------
    def opaque(self, source: Source, value: object, hint: str) -> GraphValue:
        if (known := self.objects.get(id(value))) is not None:
            return known
        self._meet_meshes()
        fake = maybe_to_fake_obj(self.state.mode, value)
        traced = self._placeholder(hint, fake, TorchSource(source))
        self.described[traced.node] = GraphInput(source, value, "object")
        self.state.journal.put(self.objects, id(value), traced)
        return traced

    # -- what the entry computes before the graph runs ---------------------------------------------
    def entry_integer(self, source: Source) -> GraphValue:
        """A symbol without a hint, which no guard can use."""
        with self.state.env.ignore_fresh_unbacked_symbols():  # the placeholder binds it
            number = self.state.env.create_unbacked_symint()
        traced = self._placeholder(source.name, number, TorchSource(source))
        self.described[traced.node] = GraphInput(source, number, "number")
        return self.memoize(source, traced)

    def entry_tensor(
        self, source: Source, example: Tensor, kind: Literal["tensor", "float"] = "tensor"
    ) -> GraphValue:
        """A tensor that no other value shares memory with, by a fake that is like it."""
        traced = self._placeholder(source.name, example, TorchSource(source))
        self.described[traced.node] = GraphInput(source, example, kind)
        self.state.root.facts.births[traced.node] = example.size(), example.stride()
        traced.node.meta["holds_number"] = kind == "float"
        return traced

    def memoize(self, source: Source, traced: GraphValue) -> GraphValue:
        self.state.root.note_symbol(traced)
        self.state.journal.put(self.numbers, source, traced)
        return traced

    def source_of(self, expression: Any, computed: bool) -> Source | None:
        if (
            computed
            and expression is not None
            and expression.is_integer
            and not is_symbol(expression)
        ):
            symbols = sorted(expression.free_symbols, key=str)
            parts = [self.source_of(symbol, False) for symbol in symbols]
            known = [part for part in parts if part is not None]
            return (
                CallSource(formula(expression, tuple(symbols)), *known)
                if len(known) == len(parts)
                else None
            )

        bound = self.state.root.symbols.get(expression) if is_symbol(expression) else None
        described = None if bound is None else self.described.get(bound.node)
        return described.source if described is not None and described.kind == "number" else None

    # -- both --------------------------------------------------------------------------------------
    def _placeholder(self, hint: str, example: object, origin: TorchSource) -> GraphValue:
        traced = self.state.root.placeholder(hint, example)
        if isinstance(example, Tensor) and not example.is_inference() and example._version:
            # what does not begin with its memory was set to it
            traced.node.meta["version"] = example._version
        # an attribute, not an entry of `meta`, is where AOTAutograd looks
        traced.node._dynamo_source = origin
        self.state.journal.record(lambda: self.described.pop(traced.node))
        return traced

    def _keep(self, record: Record, key: int | None) -> None:
        self.records.append(record)
        if key is not None:
            self.tensors[key] = record
            self.contexts[record.real] = record.context
        self.state.journal.record(lambda: self._retire(record))

    def _retire(self, record: Record) -> None:
        """Facts learned about its symbols stay facts, so what they are about must stay known."""
        record.live = False
        if record.static:
            self.records.remove(record)

    def bound_number(self, source: Source) -> GraphValue | None:
        """Return the number that a placeholder gives for `source`, None where there is none."""
        for traced in self.state.root.symbols.values():
            described = self.described.get(traced.node)
            if described is not None and described.kind == "number" and described.source == source:
                return traced
        return None

    def ordered(self) -> list[GraphInput]:
        """One per placeholder that is left in the root graph, in its order."""
        return [self.described[node] for node in self.state.root.placeholders]

    def examples(self) -> list[Any]:
        """Return the example of each input for the backend: the real tensor, or the symbol."""
        real = {
            record.traced.node: record.real for record in self.records if record.context is not None
        }
        return [
            real.get(node, self.described[node].example) for node in self.state.root.placeholders
        ]

    def release(self) -> None:
        """Release every real tensor, and weak references, which would block `swap_tensors`."""
        self.tensors.clear()
        self.records.clear()
        self.contexts.clear()
        self.state.journal.undo.clear()
        if self.met_meshes:
            clear_placement_caches()
        if not self.state.world.is_made:
            return
        describer = self.state.mode.fake_tensor_converter.meta_converter.describer
        describer.lookup_tensor.clear()
        describer.lookup_storage.clear()
        if self.state.env.var_to_range:
            for cached in _CACHED:
                cached.cache_clear()

    def record_of(self, node: Node) -> Record:
        for record in self.records:
            if record.traced.node is node:
                return record
        raise InternalError(f"{node} is no input")


def _mark_static_address(node: Node, tensor: Tensor) -> None:
    """Mark parameters and buffers, which keep their address between calls; CUDA graphs rely on the
    mark."""
    marked: Literal["guarded", "unguarded"] | None = getattr(
        tensor, "_dynamo_static_input_type", None
    )
    if marked is None and isinstance(tensor, torch.nn.Parameter):
        marked = "unguarded"
    if marked is not None:
        node.meta["tensor_dict"] = {"_dynamo_static_input_type": marked}


# How each dimension of an input is treated, in the words of `ShapeEnv`.

KINDS = {kind: shapes.DimDynamic[kind.upper()] for kind in ("static", "dynamic", "unbacked")}
Constraint = shapes.StrictMinMaxConstraint | shapes.RelaxedUnspecConstraint | None


def symbolic_context(
    source: AnyTorchSource, tensor: Tensor, dims: Sequence[Dim]
) -> shapes.StatefulSymbolicContext:
    """Return the choice of symbols for `tensor`; the same object gives the same symbols when it is
    made fake again."""
    if len(dims) != tensor.dim():
        raise InvalidUse(f"{source} has {tensor.dim()} dimensions, but {len(dims)} are described")
    base = tensor._base if tensor._is_view() else None
    is_wrapper = is_traceable_wrapper_subclass(tensor)
    kind, more = (
        (shapes.SubclassSymbolicContext, _inner(source, tensor))
        if is_wrapper
        else (StatefulSymbolicContext, {})
    )

    return kind(
        dynamic_sizes=[KINDS[dim.kind] for dim in dims],
        dynamic_strides=[
            shapes.DimDynamic.DYNAMIC if dim.stride else shapes.DimDynamic.INFER_STRIDE
            for dim in dims
        ],
        constraint_sizes=[_constraint(dim) for dim in dims],
        constraint_strides=[None] * len(dims),
        unbacked_bounds={
            i: (dim.low, dim.high) for i, dim in enumerate(dims) if _bounded_unbacked(dim)
        }
        or None,
        view_base_context=None
        if base is None
        else symbolic_context(source, base, [Dim()] * base.dim()),
        tensor_source=source,
        **more,
    )


def _inner(source: object, wrapper: Any) -> dict[str, Any]:
    """Return the contexts of the parts of a wrapper, which have no symbols. Those that are no
    tensors (the mesh of a DTensor) need none."""
    held = {name: getattr(wrapper, name) for name in wrapper.__tensor_flatten__()[0]}
    parts = {name: part for name, part in held.items() if isinstance(part, Tensor)}
    named = {name: TorchSource(AttrSource(ours(source), name)) for name in parts}
    contexts = {
        name: symbolic_context(named[name], part, [Dim()] * part.dim())
        for name, part in parts.items()
    }
    return {"inner_contexts": contexts}


def is_static(dims: Sequence[Dim]) -> bool:
    return all(dim.kind == "static" and not dim.stride for dim in dims)


def _constraint(dim: Dim) -> Constraint:
    if dim.kind == "static":
        return None
    if dim.kind == "dynamic" and (dim.low is not None or dim.high is not None):
        low, high = 0 if dim.low is None else dim.low, int_oo if dim.high is None else dim.high
        return shapes.StrictMinMaxConstraint(warn_only=not dim.strict, vr=ValueRanges(low, high))
    return shapes.RelaxedUnspecConstraint(warn_only=False) if dim.strict else None


def _bounded_unbacked(dim: Dim) -> bool:
    return dim.kind == "unbacked" and (dim.low is not None or dim.high is not None)
