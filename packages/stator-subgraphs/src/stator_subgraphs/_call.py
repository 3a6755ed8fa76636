"""Recording one call: run it once on fakes, then write the node down."""

import builtins
import operator
from collections.abc import Sequence
from functools import cache, partial, wraps
from typing import Any

import torch
from stator_bytecode.errors import Unsupported
from stator_variables import Args, GraphValue, Kwargs, give_warning
from torch import Tensor
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import compute_unbacked_bindings

from stator_subgraphs._boundary import Foreign
from stator_subgraphs._captured_graph import Body
from stator_subgraphs._fake import MODE_CALLS, has_body, reading_scalars, refuse_wrappers, run
from stator_subgraphs._fake_kernel import CALLERS, add_fake_kernels
from stator_subgraphs._mutation import NodeTarget, Watched, called, may_write, storage_of
from stator_subgraphs._outer_value import local_value, part_of
from stator_subgraphs._random_operator import undisturbed
from stator_subgraphs._refusal import (
    Operation,
    refuse,
    refuse_expanded,
    refuse_new_leaves,
    refuse_setting,
)
from stator_subgraphs._schema import computes_by_elements, takes_number, without_keywords
from stator_subgraphs._state import GraphState
from stator_subgraphs._structure import constant_argument, rebuild, tensors_in
from stator_subgraphs._symbol import symbols_of_any
from stator_subgraphs._value_check import may_raise, name_of
from stator_subgraphs._warning_capture import CapturedWarning, WarningCapture


def record_reading_numbers(
    state: GraphState, target: NodeTarget, args: Args, kwargs: Kwargs
) -> GraphValue:
    """Record a call; tensors where the operator takes a number become one, where fakes have
    none."""
    try:
        return record_call(state, target, args, kwargs, None, None)
    except Unsupported as refusal:
        numbers = _tensors_as_numbers(target, args, kwargs)
        if refusal.reason != "data-dependent-output" or not numbers:
            raise
    mark = state.journal.mark()
    try:
        read = {key: read_number(state, traced) for key, traced in numbers.items()}
        args = [read.get(i, arg) for i, arg in enumerate(args)]
        kwargs = {name: read.get(name, arg) for name, arg in kwargs.items()}
        return record_call(state, target, args, kwargs, None, None)
    except Unsupported:
        state.journal.rollback(mark)
        raise


def read_number(state: GraphState, traced: GraphValue) -> GraphValue:
    """Record `item()` of a tensor: a number without a hint, which no guard can use."""
    with reading_scalars(state.mode):
        return record_call(state, "item", (traced,), {}, None, None)


def _tensors_as_numbers(
    target: NodeTarget, args: Args, kwargs: Kwargs
) -> dict[int | str, GraphValue]:
    """Find tensors where an operator takes a number, by position or name: it reads them itself when
    it runs."""
    given: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    return {
        key: value
        for key, value in given
        if type(value) is GraphValue
        and isinstance(value.example, Tensor)
        and takes_number(target, key)
    }


def record_call(
    state: GraphState,
    target: NodeTarget,
    args: Args,
    kwargs: Kwargs,
    body: Body | None,
    example: Any,
) -> GraphValue:
    """See `OutputGraph.call`. Nothing is recorded when this raises."""
    target = _writable(target, args)
    args, kwargs = without_keywords(target, args, kwargs)
    operation = _operation(state, target, args, kwargs, body)
    examples, tensors = operation.args, operation.tensors
    watched = Watched.of(tensors, may_write(target, kwargs))
    mode = MODE_CALLS.get(target)
    before = mode.look(*examples) if mode is not None else None
    heard: list[CapturedWarning] = []

    if target is give_warning:
        heard.append(_given_by_program(state, *args))
    elif body is not None:
        example = body.outputs
    elif example is None:
        with WarningCapture(state.location, heard):
            example = _propagate(state, target, examples, operation.kwargs)
        refuse_new_leaves(example, tensors)
    traced = _write_down(state, target, args, kwargs, example)
    _refuse_raising_after_write(state, traced.node)
    if heard:
        traced.node.meta["warns"] = heard

    changed = watched.changed() if body is None else _gives(state, body, traced)
    if changed:
        _note_write(state, traced.node, changed)
        if any(_is_lasting(operation, tensor) for tensor in watched.with_new_history()):
            state.journal.assign(state.root.facts, lasting=True)
        _refuse_change(operation, watched, changed, into_output="out" in kwargs)
    if mode is not None:
        _note_mode(state, traced.node, partial(mode.undo, before, examples, example))
    return traced


def record_known(
    state: GraphState, target: NodeTarget, args: Args, kwargs: Kwargs, example: object
) -> GraphValue:
    """Record a call like one that was recorded before, which did nothing but compute; the example
    is known."""
    traced = _write_down(state, target, args, kwargs, example)
    _refuse_raising_after_write(state, traced.node)
    return traced


def _operation(
    state: GraphState,
    target: NodeTarget,
    args: Args,
    kwargs: Kwargs,
    body: Body | None,
) -> Operation:
    """Return the call on examples; raise Unsupported for one that no graph may contain."""
    tensors: list[Tensor] = []
    examples, example_kwargs = _examples(args, tensors), _examples(kwargs, tensors)
    if tensors and computes_by_elements(called(target)):
        examples, example_kwargs = rebuild((examples, example_kwargs), _float_now)
    operation = Operation(
        target, examples, example_kwargs, tensors, state.root.placeholders, called(target)
    )

    refuse(operation)
    if target in CALLERS:
        add_fake_kernels(state.mode)
    if body is not None or has_body(examples):
        refuse_wrappers(operation.inputs)
    return operation


def _refuse_raising_after_write(state: GraphState, node: Node) -> None:
    if state.root.facts.lasting and (node.meta.get("caught") or may_raise(node)):
        raise Unsupported("operator-error", f"{name_of(node)}: what was written stays if it raises")


def _refuse_change(
    operation: Operation, watched: Watched, changed: list[Tensor], *, into_output: bool
) -> None:
    """Refuse mutations of inputs that a graph cannot repeat, or that operators raise for."""
    refuse_expanded(operation.name, changed)
    refuse_setting(operation)
    if into_output:
        watched.refuse_resizing(operation.name, operation.inputs)
    watched.refuse_reshaping(operation.name)


def _float_now(item: Any) -> Any:
    """The value of a symbolic float, which no guard is about: nothing that a fake has depends on
    it."""
    has_value = isinstance(item, torch.SymFloat) and item.node.has_hint()
    return item.node.hint if has_value else item


def _given_by_program(state: GraphState, text: str, category: str) -> CapturedWarning:
    """A warning that each call gives, at the line that is traced."""
    span = state.location.span()
    return CapturedWarning(
        getattr(builtins, category), text, span.filename, span.line or 0, often=True
    )


def _writable(target: NodeTarget, args: Sequence[object]) -> NodeTarget:
    """fx would write the power of a constant as `-2 ** n`, which Python reads as `-(2 ** n)`; and a
    function in C by its name in `torch`, where `cdist` and `einsum` are others, in Python."""
    if target is operator.pow and isinstance(args[0], int | float):
        return pow
    name = getattr(target, "__name__", "")
    is_hidden = target is getattr(_FUNCTIONS, name, None) and target is not getattr(
        torch, name, target
    )
    return _by_path(target) if is_hidden else target


_FUNCTIONS: Any = torch._C._VariableFunctions


@cache
def _by_path(function: Any) -> Any:
    """The same under a name that fx writes with its module: `torch._VF.cdist`."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    call.__module__ = "torch._VF"
    return call


def _examples(structure: object, tensors: list[Tensor]) -> Any:
    """Return the structure with examples for the fake run; its tensors are appended to
    `tensors`."""

    def leaf(item: object) -> Any:
        if type(item) is not GraphValue:
            return constant_argument(item)
        if isinstance(example := item.example, Tensor):
            tensors.append(example)
        elif isinstance(example, tuple | list | dict):
            tensors.extend(tensors_in(example))
        return example

    return rebuild(tuple(structure) if isinstance(structure, Sequence) else structure, leaf)


def _gives(state: GraphState, body: Body, traced: GraphValue) -> list[Tensor]:
    """The operator gives what `body` gives; what that wrote to in the graph around."""
    tracer, inner = state.current, body.tracer
    state.journal.assign(inner, call=traced)
    state.journal.put(tracer.called, traced.node, inner)
    return [body.inputs[position] for position in body.written]


def _propagate(state: GraphState, target: NodeTarget, args: Any, kwargs: Kwargs) -> Any:
    pending = len(state.env.pending_fresh_unbacked_symbols)
    try:
        with Foreign(target), undisturbed(target):
            example = run(state.mode, target, args, kwargs)
            # `torch.tensor` makes no fake there
            if type(example) is Tensor and example.is_meta:
                example = state.mode.from_tensor(example)
        if state.env.pending_fresh_unbacked_symbols:  # what it made up for itself is nobody's
            given, made = symbols_of_any(example), state.env.pending_fresh_unbacked_symbols
            made[pending:] = [symbol for symbol in made[pending:] if symbol in given]
        return example
    except BaseException:  # raised again: symbols of a failed call must not await a binding
        del state.env.pending_fresh_unbacked_symbols[pending:]
        state.keeps_history |= _is_refused_view(args)
        raise


def propagated(state: GraphState, target: NodeTarget, args: Args, kwargs: Kwargs) -> Any:
    """Return what a call gives on fakes; no node is recorded."""
    tensors: list[Tensor] = []
    examples, example_kwargs = _examples(args, tensors), _examples(kwargs, tensors)
    refuse(
        Operation(
            target,
            examples,
            example_kwargs,
            tensors,
            state.root.placeholders,
            called(target),
        )
    )
    example = _propagate(state, target, examples, example_kwargs)
    refuse_new_leaves(example, tensors)
    return example


def _is_refused_view(args: object) -> bool:
    """Autograd refuses a write to some views: those made without gradients, or several at once.
    What comes out of a compiled graph is none of these, so that the write, which runs natively,
    would be done."""
    written = next(iter(tensors_in(args)), None)
    base = None if written is None or written.is_inference() else written._base
    return base is not None and base.requires_grad


def _write_down(
    state: GraphState, target: NodeTarget, args: Args, kwargs: Kwargs, example: Any
) -> GraphValue:
    bindings = _bindings(state, target, example)
    tracer = state.current

    def leaf(item: object) -> Any:
        if type(item) is not GraphValue:
            return constant_argument(item)
        return local_value(tracer, item).node

    op = "call_method" if isinstance(target, str) else "call_function"
    node = tracer.node(op, target, rebuild(tuple(args), leaf), rebuild(kwargs, leaf))
    state.annotate(node, example)
    # a record is made where an operator takes it
    if "source_fn_stack" not in node.meta or isinstance(target, type):
        node.meta["source_fn_stack"] = [*tracer.function_stack, (node.name, target)]
    traced = state.issue(node, example)
    if bindings:
        node.meta["unbacked_bindings"] = bindings
        tracer.bind_unbacked(bindings, traced)
        if isinstance(example, Tensor):
            tracer.facts.births[node] = (example.size(), example.stride())
        state.journal.record(lambda: _forget_memos(state))
    return traced


def _bindings(state: GraphState, target: NodeTarget, example: object) -> Any:
    """Return the positions, in the result, of the symbols that this operator made.

    They are computed now, as later it could not be determined which operator made them.
    """
    if not state.env.pending_fresh_unbacked_symbols:
        return None
    with Foreign(target):
        return compute_unbacked_bindings(state.env, example)


def _forget_memos(state: GraphState) -> None:
    """A fake remembers the symbol that `x.item()` gave; after a rollback no node binds that symbol
    any more."""
    state.mode.epoch += 1


def _note_write(state: GraphState, node: Node, changed: list[Tensor]) -> None:
    tracer = state.current
    tracer.facts.effects.add(node)
    tracer.facts.written.extend(changed)
    node.meta["writes"] = frozenset(map(storage_of, changed))

    def undo() -> None:
        tracer.facts.effects.discard(node)
        start = len(tracer.facts.written) - len(changed)
        state.stale.extend(tracer.facts.written[start:])  # some may have been made again since
        del tracer.facts.written[start:]

    state.journal.record(undo)


def _is_lasting(operation: Operation, written: Tensor) -> bool:
    """Return True if it is a view from outside, or of one: a view never loses its history again."""
    views = (one for one in operation.inputs if isinstance(one, Tensor) and one._is_view())
    return any(storage_of(one) == storage_of(written) for one in views)


def _note_mode(state: GraphState, node: Node, undo: Any) -> None:
    state.current.facts.effects.add(node)
    node.meta["sets_state"] = True
    state.mode_undo.append(undo)
    state.journal.record(state.leave_last_mode)


def project(state: GraphState, traced: GraphValue, index: object) -> GraphValue:
    """Return a part of a result. Its node has the line that uses the part first."""
    tracer = state.current
    known = (local_value(tracer, traced).node, index) in tracer.parts
    part = part_of(tracer, traced, index)
    if not known:
        state.annotate(part.node, part.example)
        part.node.meta["source_fn_stack"] = [
            *tracer.function_stack,
            (part.node.name, operator.getitem),
        ]
    return part
