"""The object that C++ describes a backward to, node by node; it writes the graph down.

Tensors that C++ is given meanwhile are empty: each only represents a node of the graph. Nothing is
computed and no hook is called. See `torch._C._dynamo.compiled_autograd`.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import attrs
import torch
from torch import Tensor
from torch.fx import Node
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode

from stator_subgraphs._compiled_autograd import _operator
from stator_subgraphs._compiled_autograd._aot import aot_backward, is_compiled
from stator_subgraphs._compiled_autograd._backward import CapturedBackward
from stator_subgraphs._compiled_autograd._backward_graph import BackwardGraph
from stator_subgraphs._compiled_autograd._operator import Bound, NodeFunction, given_list
from stator_subgraphs._compiled_autograd._schedule import calling_frame, engine_order
from stator_subgraphs._compiled_autograd._size import symbolic

Run: TypeAlias = Callable[..., Sequence[Tensor | None]]


@attrs.frozen(eq=False)
class _Applied:
    """The call of a node of autograd, and the proxies of its results."""

    node: Node
    function: NodeFunction
    results: list[Tensor]


class _Recording(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Has operators that C++ calls written down instead of run."""

    def __init__(self, record: Callable[..., Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.record = record

    def __torch_dispatch__(
        self, func: object, types: object, args: object = (), kwargs: object = None
    ) -> Tensor:
        return self.record(func, args, kwargs or {})


@attrs.define(eq=False)
class BackwardCapture:
    """One capture.

    `finish` gets what was captured, and returns what C++ will call with the inputs.
    """

    finish: Callable[[CapturedBackward], Run]
    _backward: BackwardGraph = attrs.field(factory=BackwardGraph)
    _last: _Applied | None = None
    _accumulated: Node | None = None
    _is_recording: bool = False
    _is_refused: bool = False

    def begin_capture(
        self,
        inputs: Sequence[Tensor],
        sizes: Sequence[int],
        scalars: Sequence[int | float],
        origins: object,
        accumulates: bool,
        checks_nan: bool,
    ) -> tuple[str, list[Tensor], list[Any], list[Any]]:
        """Return a name, and the proxies of the inputs."""
        backward = self._backward
        backward.begin(engine_order(calling_frame()))
        tensors = [backward.bind(backward.placeholder("saved", i)) for i in range(len(inputs))]
        return "stator", tensors, self._numbers("size", sizes), self._numbers("number", scalars)

    def _numbers(self, kind: str, values: Sequence[int | float]) -> list[Any]:
        """Return the proxies of the numbers among the inputs."""
        backward = self._backward
        return [
            symbolic(backward.graph, backward.placeholder(kind, i), value)
            for i, value in enumerate(values)
        ]

    def close(self) -> None:
        """Drop everything; C++ calls this after the capture, or after an error in it."""
        self._backward.values.clear()
        self._stop_recording()

    def log_compile_reasons(self, reasons: list[str]) -> None:
        """Do nothing: C++ passes reasons that torch's own compiled autograd requests."""

    def set_node_origin(self, name: str, visit: int, context: object) -> None:
        """Begin the node of autograd that is visited next."""
        self._backward.begin_node(name, visit)
        if context is not None:
            _push_mode(_Recording(self._backward.record))
            self._is_recording = True

    def _stop_recording(self) -> None:
        """End what `set_node_origin` began, if it did: for no function that wrote to a view."""
        if self._is_recording:
            _pop_mode()
            self._is_recording = False

    def accumulate(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the sum of two gradients, of which the first may be one already."""
        return self._backward.sum_of(first, second)

    # -- nodes of autograd -------------------------------------------------------------------------
    def bind_function(
        self, name: str, function: Callable[..., Any], is_custom: bool, is_traceable: bool
    ) -> str:
        return _operator.bind(name, Bound(function, is_custom, is_traceable))

    def apply_functional(
        self, name: str, gradients: Sequence[Any], args: Any, metadata: Sequence[Any]
    ) -> list[Tensor]:
        found = _operator.bound(name)
        function = NodeFunction(name, found.function, runs_user_code=not found.is_traceable)
        return self._apply(function, (gradients, *args), len(metadata)).results

    def _apply(self, function: NodeFunction, values: Sequence[Any], count: int) -> _Applied:
        node = self._backward.call(function, *values)
        self._last = _Applied(node, function, self._backward.bind_all(node, count))
        return self._last

    def validate_outputs(
        self, name: str, results: Sequence[Any], args: object, metadata: Sequence[Any]
    ) -> Sequence[Any]:
        """Let the function that gave these results check them, or one that gives them again."""
        if (
            not results or self._backward.visit == 0
        ):  # the engine has checked the gradients it was given
            return results

        last = self._last
        if last is None or any(a is not b for a, b in zip(last.results, results, strict=False)):
            function = NodeFunction("validate_outputs", given_list)
            last = self._apply(function, results, len(results))
        facts = tuple(one and (one[0], one[2], one[3]) for one in metadata)
        sizes = [
            None if one is None else tuple(self._backward.argument(one[1])) for one in metadata
        ]
        last.node.target = self._shared(last.function.expecting(facts))
        last.node.kwargs = {"expected": sizes}
        return last.results

    def _shared(self, function: NodeFunction) -> NodeFunction:
        """Return one object for equal functions, so that the graph has one name for them."""
        key = function.__name__, function.function, function.metadata
        return _functions.setdefault(key, function)

    def accumulate_grad(
        self, variable: Tensor, current: Tensor | None, gradient: Tensor | None, hooked: bool
    ) -> Tensor:
        """Add to `variable.grad`, which the graph reads itself: a hook may have assigned
        another."""
        self._accumulated = self._backward.call(
            _operator.accumulate_grad, variable, gradient, hooked, name="happened"
        )
        return torch.empty(0)

    def proxy_call_backward(
        self,
        gradients: Sequence[Tensor | None],
        metadata: Sequence[Any],
        saved: Sequence[Tensor],
        backward_index: int,
        context: object,
        state_index: int | None,
        opaque_indices: Sequence[int],
    ) -> tuple[Tensor | None, ...]:
        """Call the backward of a function that is written in Python, or that AOTAutograd has
        compiled."""
        self._stop_recording()
        compiled = None if state_index is not None else aot_backward(context)
        more = []
        if compiled is not None:
            more = [self._backward.argument(compiled.sizes_in(context))]

        called = compiled or _operator.call_backward
        function = NodeFunction(type(context).__name__, called, runs_user_code=True)
        lists = [
            self._backward.call(_operator.given_list, *each, name="given")
            for each in (saved, gradients)
        ]
        unpacked = [each.target is _operator.unpack for each in lists[0].all_input_nodes]
        self._is_refused |= any(unpacked) and not is_compiled(context)

        variables = [each is not None for each in metadata]
        node = self._backward.graph.call_function(
            function, (self._backward.placeholder("hook", backward_index), *lists, variables, *more)
        )
        results = self._backward.bind_all(node, sum(variables))
        self._last = _Applied(node, function, results)
        parts = iter(results)
        return tuple(next(parts) if variable else None for variable in variables)

    def call_copy_slices_prologue(
        self, gradients: Sequence[Tensor], *geometry: object
    ) -> Sequence[Tensor]:
        base, view = geometry[:3], geometry[3:]
        return self._backward.bind_all(
            self._backward.call(_operator.cut_out, gradients[0], base, view, name="cut"), 3
        )

    def call_copy_slices_epilogue(
        self, needed: Sequence[bool], whole: Tensor, results: Sequence[Any], part: Tensor
    ) -> Sequence[Tensor | None]:
        function = NodeFunction("put_back", _operator.put_back)
        applied = self._apply(function, (needed, whole, part, results), len(needed))
        return [each if one else None for each, one in zip(applied.results, needed, strict=True)]

    # -- hooks -------------------------------------------------------------------------------------
    def _hooked(self, values: Sequence[Any], node: Node) -> list[Any]:
        bound = self._backward.bind_all(node, len(values))
        return [None if old is None else new for old, new in zip(values, bound, strict=True)]

    def _replaced(self, values: Sequence[Any], i: int, node: Node) -> list[Any]:
        new, old = self._backward.bind(node), self._backward.values[id(values[i])]
        if self._backward.visits and self._backward.visits[self._backward.visit].leads_on:
            self._backward.values[id(new)].before_hooks = old.before_hooks or old
        return [*values[:i], new, *values[i + 1 :]]

    def _call_hook(self, target: Callable[..., Any], index: int, *values: object) -> Node:
        arguments = map(self._backward.argument, values)
        return self._backward.add(
            target, (self._backward.placeholder("hook", index), *arguments), "hooked"
        )

    def tensor_pre_hook(self, values: Sequence[Any], hook: int, i: int) -> Sequence[Any]:
        node = self._call_hook(_operator.tensor_pre_hook, hook, values[i])
        return values if values[i] is None else self._replaced(values, i, node)

    def cpp_tensor_pre_hook(self, values: Sequence[Any], hook: int, i: int) -> Sequence[Any]:
        node = self._backward.call(_operator.run_native_hooks, hook, values[i], name="hooked")
        return self._replaced(values, i, node)

    def pre_hook(self, values: Sequence[Any], hook: int) -> Sequence[Any]:
        return self._hooked(values, self._call_hook(_operator.pre_hook, hook, values))

    def post_hook(self, results: Sequence[Any], values: Sequence[Any], hook: int) -> Sequence[Any]:
        return self._hooked(results, self._call_hook(_operator.post_hook, hook, results, values))

    def post_acc_grad_hook(self, variable: Tensor, hook: int) -> Sequence[Tensor]:
        node = self._call_hook(_operator.post_accumulate_grad_hook, hook, variable)
        node.args = (*node.args, self._accumulated)
        return [variable]

    def unpack_hook(self, hook: int, packed: int) -> Tensor:
        node = self._call_hook(_operator.unpack, hook)
        node.args = (*node.args, self._backward.placeholder("packed", packed))
        return self._backward.bind(node)

    # -- the end -----------------------------------------------------------------------------------
    def end_capture(self, results: Sequence[Any]) -> tuple[Run, Run]:
        """Return the function that C++ calls from now on, and what it will give it first.

        Refusals come here: an error before leaves saved tensors replaced in C++.
        """
        if self._is_refused:
            raise _operator.without_history()
        _operator.share_bound()
        used = self._backward.finish(results)
        captured = CapturedBackward.of(self._backward.graph, used)
        return self.finish(captured), captured.function


_functions: dict[Any, NodeFunction] = {}
"""The functions of all captures, so that equal graphs have the same ones."""
