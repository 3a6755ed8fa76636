"""The state of thread and process that changes the results of tensor operations: one native check
and a few cheap ones.

The native check covers grad mode, autocast, determinism, default dtype, matmul precision and
threads. It does not distinguish inference mode from no_grad, and does not cover mode stacks (the
default device is one of those), functorch, or hooks on saved tensors. `ambient` reads these; while
they are all in their resting state, reading their depths is enough.
"""

from typing import Any

import torch
from attrs import field, frozen
from torch._C import _autograd, _functorch
from torch.autograd import forward_ad
from torch.fx import GraphModule
from torch.utils._device import DeviceContext

from stator_guards._guard import Kind
from stator_guards._source import Renderer, State
from stator_guards._tensor import TensorMatch

DEPTHS_WITHOUT_KEYS = (torch._C._len_torch_function_stack,)
DEPTHS_WITH_KEYS = (
    torch.is_inference_mode_enabled,
    torch._C._len_torch_dispatch_stack,
    _functorch.get_dynamic_layer_stack_depth,
)
"""States that add dispatch keys to every call of the thread, or take some away: the native check of
a tensor, which compares the keys that a call on it meets, fails in each of them."""


HOOKS = "saved tensor hooks"


def inlined_hooks() -> object:
    """Return the hooks for saved tensors if AOTAutograd compiles them into a graph: a pair of graph
    modules.

    Others are called when the graph runs, whatever they are: `saved_tensors_hooks_are_inlineable`
    in `torch/_functorch/_aot_autograd/utils.py`.
    """
    hooks = _autograd._top_saved_tensors_default_hooks(True)
    is_inlined = hooks is not None and all(isinstance(hook, GraphModule) for hook in hooks)
    return hooks if is_inlined else None


def _mode(mode: object) -> object:
    return (type(mode), mode.device) if isinstance(mode, DeviceContext) else type(mode)


def ambient() -> dict[str, object]:
    """Return the state that the native check does not cover, by name; equal when operations behave
    the same."""
    layers = _functorch.get_interpreter_stack() or ()
    return {
        "inference mode": torch.is_inference_mode_enabled(),
        "function modes": [
            _mode(torch._C._get_function_stack_at(i))
            for i in range(torch._C._len_torch_function_stack())
        ],
        "dispatch modes": [
            type(torch._C._get_dispatch_stack_at(i))
            for i in range(torch._C._len_torch_dispatch_stack())
        ],
        "functorch layers": [(layer.key(), layer.level()) for layer in layers],
        HOOKS: inlined_hooks(),
        "forward AD level": forward_ad._current_level,
    }


AT_REST: dict[str, object] = {
    **{"inference mode": False, HOOKS: None, "forward AD level": -1},
    **{"function modes": [], "dispatch modes": [], "functorch layers": []},
}


@frozen(init=False)
class GlobalState(Kind):
    """Grad and inference mode, autocast, determinism, default dtype and device, mode stacks,
    functorch: as now. Hooks for saved tensors only where the guarded code saves some."""

    native: Any = field(eq=False, repr=False)
    rest: dict[str, object] = field(hash=False)
    described: str

    rank = 28
    needs = "{0.described}"
    fix = "set modes and defaults outside the loop that calls the function, the same for every call"

    def __init__(self, *, saves_tensors: bool = True) -> None:
        rest = ambient()
        if not saves_tensors:
            del rest[HOOKS]
        self.__attrs_init__(torch._C._dynamo.guards.GlobalStateGuard(), rest, described())

    def test(self, value: str, render: Renderer) -> str:
        native = render.once(("GlobalState", self.native), lambda: self.native.check)
        tests = [f"{render.capture(native, 'global_state_check')}()", *self._rest_tests(render)]
        return " and ".join(tests)

    def _rest_tests(self, render: Renderer) -> list[str]:
        if not self.rest.items() <= AT_REST.items():
            before = render.capture(self.rest, "ambient_before")
            return [f"{before}.items() <= {render.capture(ambient, 'ambient')}().items()"]
        read = (
            DEPTHS_WITHOUT_KEYS
            if TensorMatch in render.kinds
            else (*DEPTHS_WITHOUT_KEYS, *DEPTHS_WITH_KEYS)
        )
        depths = [f"not {render.capture(depth, depth.__name__)}()" for depth in read]
        level = render.capture(vars(forward_ad), "forward_ad")
        return [*depths, *self._hook_tests(render), f"{level}['_current_level'] == -1"]

    def _hook_tests(self, render: Renderer) -> list[str]:
        if HOOKS not in self.rest:
            return []
        hooks = render.capture(
            _autograd._top_saved_tensors_default_hooks, "top_saved_tensors_hooks"
        )
        inlined = render.capture(inlined_hooks, "inlined_hooks")
        return [f"({hooks}(True) is None or {inlined}() is None)"]

    def holds(self, value: object, state: State) -> bool:
        return bool(self.native.check()) and self.rest.items() <= ambient().items()

    def found(self, value: object, state: State) -> str:
        now = ambient()
        changed = [
            f"{name} {now[name]} (was {old})" for name, old in self.rest.items() if now[name] != old
        ]
        reason = (
            []
            if self.native.check()
            else [f"{self.native.reason().strip()} changed ({described()})"]
        )
        return ", ".join(reason + changed)


def described() -> str:
    grad = "on" if torch.is_grad_enabled() else "off"
    autocast = (
        "on" if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda") else "off"
    )
    return f"grad {grad}, autocast {autocast}, default dtype {torch.get_default_dtype()}"
