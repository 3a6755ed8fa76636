"""Hooks that do nothing but compute a gradient of another one: a compiler gets them in its graph.

    y.register_hook(lambda grad: grad.clamp(-1, 1))

    y = ...                                       y = GradientHook(...)(...)
    z = y * 2                                     z = y * 2

Such a hook reads its argument, constants, and functions of torch by name. It may run while a
compiler traces the backward, since nothing that it reads can change until then.

What a compiler has of the backward gets zeros where plain autograd computes nothing, which a hook
could make numbers of. So a hook is put into the graph only if all results with gradients depend on
its tensor, and registered behind the graph else.
"""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

import attrs
import torch
from stator_bytecode import NULL, Instruction, decode
from torch import Tensor, fx
from torch._ops import HigherOrderOperator
from torch.fx import Graph, Node
from torch.utils.hooks import RemovableHandle

from stator_variables._emitter import Emitter
from stator_variables._space import Space
from stator_variables._tensors._backward_operators import Differentiated
from stator_variables._tensors._deferred_calls import DeferredCall
from stator_variables._tracker import VariableTracker, is_a, is_pending, real_of, realize
from stator_variables._trackers import FunctionTracker

_STEPS = frozenset(
    "NOP PUSH_NULL COPY SWAP COPY_FREE_VARS LOAD_CONST LOAD_FAST STORE_FAST LOAD_DEREF "
    "UNARY_OP COMPARE_OP CALL RETURN_VALUE".split()
)
_FUNCTIONS = frozenset(
    "abs add clamp clamp_max clamp_min clip clone detach div maximum mean minimum mul multiply "
    "nan_to_num neg negative norm ones_like pow sigmoid sign sub sum tanh true_divide where "
    "zeros_like".split()
)
_OWNERS = (torch, Tensor)
_ORIGINALS = {
    (owner, name): getattr(owner, name)
    for owner in _OWNERS
    for name in _FUNCTIONS
    if hasattr(owner, name)
}
"""The functions and methods of torch that are known to do nothing but compute."""
_NUMBERS = (int, float, bool, type(None))


@attrs.frozen
class GradientHook:
    """A node of a graph: a tensor with a hook, which the compiler traces with the backward."""

    code: CodeType
    defaults: tuple[Any, ...]
    cells: tuple[Any, ...]
    globals: dict[str, Any] = attrs.field(eq=False, repr=False)
    __name__ = "gradient_hook"

    def __call__(self, tensor: Tensor) -> Tensor:
        register: Any = tensor.register_hook
        register(self.hook())
        return tensor

    def fits(self, e: Emitter, call: DeferredCall) -> bool:
        """Return True if nothing outside of the graph has the tensor, the handle, or a variable of
        the hook, and the hook gives what autograd takes."""
        hook, graph = call.args[1], e.t.graph
        seen = [call.result, *hook.closure]
        if any(map(e.has_made, seen)) or pure_hook(hook) != self:
            return False
        node = call.tensor.before.node
        returned = [traced.node for traced in e.outputs]
        if node in returned or _keeps_history(e.t):
            return False
        is_alone = _is_written_once(node, graph) and _is_needed(node, returned, graph)
        return is_alone and _gives_like(call)

    def place(self, e: Emitter, call: DeferredCall) -> None:
        graph: Any = e.t.graph
        with graph.fake_mode, torch.enable_grad():
            _place(graph.current, call.tensor.before.node, self)

    def write(self, e: Emitter) -> None:
        e.lines.append(f"{e.capture(skip_number)}()")

    def hook(self) -> FunctionType:
        cells = tuple(map(_cell_of, self.cells))
        return FunctionType(self.code, self.globals, None, self.defaults, cells)


def _cell_of(value: object) -> Any:
    return (lambda: value).__closure__[0]  # type: ignore[index]  # it has `value`


def pure_hook(vt: VariableTracker) -> GradientHook | None:
    """Return the hook as a node, if it does nothing but compute. No guard is added for another
    one."""
    if is_pending(vt) and not _is_plain(real_of(vt)):
        return None
    if not is_a(vt, FunctionTracker) or not _is_computation(vt.code, vt.globals.real):
        return None
    defaults = [default.constant() for default in vt.defaults or ()]
    cells = [_constant_of(cell) for cell in vt.closure]
    if vt.kwdefaults or not all(type(value) in _NUMBERS for value in (*defaults, *cells)):
        return None
    return GradientHook(vt.code, tuple(defaults), tuple(cells), vt.globals.real)


def guard_functions(t: Space, vt: Any, tensor: VariableTracker) -> None:
    """Guard that the names which a hook reads lead to the functions to which they lead now: the
    hook itself is interpreted by no trace."""
    steps = decode(vt.code).instructions
    names = sorted({each.arg for each in steps if each.op in ("LOAD_ATTR", "LOAD_METHOD")})
    owners: list[Any] = [tensor]
    if any(each.op == "LOAD_GLOBAL" for each in steps):
        owners.append(t.lookup(vt.globals, "torch"))
    for owner in owners:
        for name in names:
            if hasattr(real_of(owner) if owner is not tensor else Tensor, name):
                realize(t.get_attribute(owner, name))


def _is_plain(real: object) -> bool:
    """Return True for an existing function that computes with its argument alone."""
    if type(real) is not FunctionType or real.__closure__ or real.__defaults__:
        return False
    return _is_computation(real.__code__, real.__globals__)


def _is_computation(code: CodeType, names: dict[str, Any]) -> bool:
    instructions = decode(code).instructions
    reads_torch = any(each.op == "LOAD_GLOBAL" for each in instructions)
    if reads_torch and names.get("torch") is not torch:
        return False
    return all(map(_is_step, instructions))


def _is_step(step: Instruction) -> bool:
    match step.op:
        case "LOAD_GLOBAL":
            return bool(step.arg[0] == "torch")
        case "LOAD_ATTR" | "LOAD_METHOD":
            return step.arg in _FUNCTIONS and _is_of_torch(step.arg)
        case "BINARY_OP":
            return not step.arg.endswith("=")
    return step.op in _STEPS


def _is_of_torch(name: str) -> bool:
    """Return True unless the program has put another function under the name."""
    known = [(owner, _ORIGINALS[owner, name]) for owner in _OWNERS if (owner, name) in _ORIGINALS]
    return all(getattr(owner, name, None) is original for owner, original in known)


def _constant_of(cell: Any) -> Any:
    """Return the number in a cell that was made in the region; `NULL` for others."""
    if is_pending(cell) or cell.source is not None or cell.content is NULL:
        return NULL
    content = cell.content
    return NULL if is_pending(content) else content.constant()


def skip_number() -> None:
    """Count the handle of a hook that the graph has: the next one has the number after it."""
    RemovableHandle.next_id += 1


# -- the place in the graph ------------------------------------------------------------------------
def _keeps_history(t: Space) -> bool:
    graph: Any = t.graph
    return bool(graph.keeps_history or t.state(Differentiated).has_backward)


def _is_written_once(node: fx.Node, graph: Any) -> bool:
    """Return True if only this node gives the tensor, and nothing writes to its memory."""
    example = node.meta["example_value"]
    memory = graph.memory_of(example)
    for other in graph.current.nodes:
        if other is not node and other.meta.get("example_value") is example:
            return False
        if memory in other.meta.get("writes", ()):
            return False
    return node.op.startswith("call_")


def _is_needed(node: fx.Node, returned: list[fx.Node], graph: Any) -> bool:
    """Return True if each gradient that arrives at the graph passes the tensor."""
    passing = {node}
    for other in graph.current.nodes:
        is_body = isinstance(other.target, HigherOrderOperator)  # which may drop a gradient
        if not is_body and _is_trained(other) and not passing.isdisjoint(other.all_input_nodes):
            passing.add(other)
    inputs = graph.current.find_nodes(op="placeholder")
    memory = {graph.memory_of(each.meta["example_value"]) for each in inputs if _is_trained(each)}
    is_written = any(memory & {*other.meta.get("writes", ())} for other in graph.current.nodes)
    trained = [each for each in returned if _is_trained(each)]
    return bool(trained) and passing.issuperset(trained) and not is_written


def _is_trained(node: fx.Node) -> bool:
    example = node.meta.get("example_value")
    parts = example if isinstance(example, tuple | list) else (example,)
    return any(isinstance(part, Tensor) and part.requires_grad for part in parts)


def _gives_like(call: Any) -> bool:
    """Return True if the hook gives a gradient like the one that it is given."""
    given = torch.empty_like(call.tensor.before.example, requires_grad=False)
    try:
        with torch.no_grad():
            made = call.in_graph.hook()(given)
    except (RuntimeError, TypeError, AttributeError):
        return False  # autograd calls it, and it raises in backward
    if not isinstance(made, Tensor) or made.shape != given.shape:
        return False
    return made.dtype == given.dtype and made.device == given.device


def _place(graph: Graph, node: Node, hook: GradientHook) -> None:
    """Let all that uses the value of a node use it with the hook."""
    example: Any = node.meta["example_value"]
    with graph.inserting_after(node):
        hooked = graph.call_function(hook, (node,))
    node.replace_all_uses_with(hooked, lambda user: user is not hooked)
    hooked.meta = {**node.meta, "beside": True}  # other pieces have a part of the gradient alone
    node.meta["example_value"] = example.clone()  # which no other node gives
