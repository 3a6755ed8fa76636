"""The fake world of one compilation: one `FakeTensorMode` over one `ShapeEnv`, and operators run in
it, under the modes that they change.

Nothing of the process changes by running an operator here: no kernel runs and no memory is touched.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, cached_property
from typing import Any

import attrs
import torch
from stator_bytecode.errors import Unsupported
from stator_variables import STATE_SETTERS, Args, Kwargs, Setter, filtered
from torch import Tensor, fx
from torch._dispatch.python import enable_python_dispatcher
from torch._functorch import config
from torch._guards import Source as AnyTorchSource
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.amp import autocast_mode
from torch.autograd import grad_mode
from torch.autograd.graph import increment_version, saved_tensors_hooks
from torch.fx.experimental.symbolic_shapes import ShapeEnv, StatefulSymbolicContext
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from stator_subgraphs._inference_views import as_views
from stator_subgraphs._mutation import NodeTarget, called
from stator_subgraphs._structure import tensors_in

NO_POINTERS = config.patch(fake_tensor_allow_unsafe_data_ptr_access=False)
"""One for all: each makes a context variable, which the thread's context then keeps for ever."""
PLAIN = (Tensor, torch.nn.Parameter, torch.nn.Buffer)


@cache
def _import_what_it_needs() -> None:
    """The first `ShapeEnv` of a process imports modules of torch that keep all frames around them,
    as `torch.fx.wrap` does, and what the program has in these. In a thread of its own there are
    none."""
    importing = threading.Thread(target=ShapeEnv)
    importing.start()
    importing.join()


def new_fake_mode(shape_env: ShapeEnv) -> FakeTensorMode:
    """A mode whose tensors never hand out a data pointer: an address read while tracing would be
    baked in."""
    with NO_POINTERS:
        return FakeTensorMode(shape_env=shape_env)


class World:
    """The mode and the `ShapeEnv` of one compilation, made when something first has to be fake: in
    many a trace nothing ever has."""

    def __init__(self, capture_data: bool, context: TracingContext) -> None:
        self._capture_data = capture_data
        self._context = context
        self.learned: Sequence[Any] = ()  # the facts that the `ShapeEnv` relies on

    @cached_property
    def mode(self) -> FakeTensorMode:
        _import_what_it_needs()
        allowed = self._capture_data
        env = ShapeEnv(allow_scalar_outputs=allowed, allow_dynamic_output_shape_ops=allowed)
        mode = new_fake_mode(env)
        self.learned = env.guards
        self._context.fake_mode = mode
        return mode

    @cached_property
    def env(self) -> ShapeEnv:
        env = self.mode.shape_env
        assert env is not None
        return env

    @property
    def is_made(self) -> bool:
        return "mode" in self.__dict__


def fake_input(
    mode: FakeTensorMode,
    tensor: Tensor,
    source: AnyTorchSource,
    context: StatefulSymbolicContext,
    static: bool,
) -> FakeTensor:
    """`tensor` without its memory: a parameter stays one, a view a view, a leaf a leaf.

    Static shapes take the path without `ShapeEnv`: twice as fast, and the *value* of a 0-d tensor
    becomes no symbol.
    """
    with (
        _quiet(tensor),
        torch._C.DisableTorchFunctionSubclass(),
    ):  # it may be a view of a tensor that overrides it
        if static:
            return mode.from_tensor(tensor, static_shapes=True, source=source)
        return mode.from_tensor(tensor, source=source, symbolic_context=context)


@contextmanager
def _quiet(tensor: Tensor) -> Iterator[None]:
    """torch reads `.grad` of every tensor; it hides the warning about a non-leaf from people, not
    from `-W error`."""
    if tensor.is_leaf or not tensor.requires_grad:
        yield
        return
    with filtered("ignore", "The .grad attribute of a Tensor that is not a leaf"):
        yield


def refuse_subclass(tensor: Tensor, name: str) -> None:
    """Plain tensors are understood, and those with others in them; another subclass has ways of its
    own everywhere."""
    if type(tensor) in PLAIN:
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            raise Unsupported(
                "functorch-tensor", f"{name} is a tensor inside a torch.func transform"
            )
        return
    if is_lazy(tensor):
        raise Unsupported(
            "uninitialized-parameter",
            f"{name} has no shape yet",
            "run the module once before compiling",
        )
    if not is_traceable_wrapper_subclass(tensor):
        raise Unsupported("tensor-subclass", f"{name} is a {type(tensor).__qualname__}")


def refuse_wrappers(inputs: Sequence[object]) -> None:
    """Reject wrapper tensors in a graph with bodies: their parts do not show writes and shared
    memory."""
    if any(map(is_traceable_wrapper_subclass, inputs)):
        raise Unsupported(
            "tensor-subclass", "a tensor with others in it, beside an operator with a body"
        )


def run(mode: FakeTensorMode, target: NodeTarget, args: Args, kwargs: Kwargs) -> Any:
    """`target(*args, **kwargs)` on fakes. Shapes with symbols need decompositions in Python; that
    of `dropout` copies where the operator itself gives its input, as it does in inference mode,
    too."""
    name, given = called(target), tensors_in([*args, *kwargs.values()])

    with (
        mode,
        nullcontext() if name == "dropout" else _dispatcher(mode),
        _scalars(mode, args),
        _unhooked(),
    ):
        if isinstance(target, str):
            made = getattr(args[0], target)(*args[1:], **kwargs)
        elif (
            name == "dropout"
            and torch.is_inference_mode_enabled()
            and _gives_back(target, given[0], args, kwargs)
        ):
            made = given[0]
        else:
            made = target(*args, **kwargs)
        if torch.is_inference_mode_enabled():
            made = as_views(args[1] if target is getattr else name, made, given)

    _count_writes(name, args, kwargs)
    return made


def _gives_back(target: Any, given: Tensor, args: Args, kwargs: Kwargs) -> bool:
    with torch.inference_mode(False), torch.no_grad():
        other = torch.empty_like(given)
        named = {name: other if value is given else value for name, value in kwargs.items()}
        return target(*(other if value is given else value for value in args), **named) is other


def _count_writes(name: str, args: Sequence[object], kwargs: Kwargs) -> None:
    """Fakes count no writes of operators over lists of tensors; the fused ones write to almost all
    that they get."""
    if name.startswith(("_foreach_", "_fused_")) and name.endswith("_"):
        lists = [*args, *kwargs.values()]
        written = tensors_in(lists[:1] if name.startswith("_foreach_") else lists)
        increment_version([tensor for tensor in written if not tensor.is_inference()])


def _unhooked() -> AbstractContextManager[Any]:
    """The program's hooks on tensors that autograd saves are for real ones."""
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return nullcontext() if hooks is None else saved_tensors_hooks(_itself, _itself)


def _itself(tensor: Tensor) -> Tensor:
    return tensor


def _scalars(mode: FakeTensorMode, args: Sequence[object]) -> AbstractContextManager[Any]:
    """Whatever a body reads from a tensor was allowed when it was traced."""
    return (
        reading_scalars(mode) if has_body(args) and not mode.allow_scalar_outputs else nullcontext()
    )


def has_body(args: Args) -> bool:
    return any(isinstance(arg, fx.GraphModule) for arg in args)


@contextmanager
def reading_scalars(mode: FakeTensorMode) -> Iterator[None]:
    """Let operators read numbers from fake tensors: each is a symbol without a hint."""
    before = mode.allow_scalar_outputs
    mode.allow_scalar_outputs = True
    try:
        yield
    finally:
        mode.allow_scalar_outputs = before


def _dispatcher(mode: FakeTensorMode) -> AbstractContextManager[Any]:
    env = mode.shape_env
    return enable_python_dispatcher() if env is not None and env.var_to_range else nullcontext()


# Calls that change a mode of the process, and how to change it back.
#
# Such a call is recorded like any other, and takes effect while tracing so that what follows is
# traced under it. A rollback and the end of the trace set it back, by the function in the table.

exit_autocast: Any = autocast_mode._exit_autocast
enter_inference_mode: Any = grad_mode._enter_inference_mode
exit_inference_mode: Any = grad_mode._exit_inference_mode


@attrs.frozen
class ModeCall:
    """`undo(before, args, result)` sets back what a call changed; `before` is what `look(*args)`
    gave ahead of it."""

    undo: Callable[[Any, Any, Any], object]
    look: Callable[..., Any] = lambda *_: None


def _setter(write: Callable[..., Any], row: Setter) -> ModeCall:
    """The row of a setter of torch's state."""

    def undo(before: object, args: Any, result: object) -> None:
        values = before if isinstance(before, tuple) else (before,)
        count = len(values) - len(row.named)
        write(
            *args[: row.keys], *values[:count], **dict(zip(row.named, values[count:], strict=True))
        )

    return ModeCall(undo, lambda *args: row.read(*args[: row.keys]))


_enter_dual_level: Any = torch._C._enter_dual_level
_exit_dual_level: Any = torch._C._exit_dual_level

MODE_CALLS = {
    **{write: _setter(write, row) for write, row in STATE_SETTERS.items()},
    autocast_mode._enter_autocast: ModeCall(lambda before, args, entered: exit_autocast(entered)),
    exit_autocast: ModeCall(lambda before, args, result: args[0].__enter__()),
    enter_inference_mode: ModeCall(lambda before, args, entered: exit_inference_mode(entered)),
    exit_inference_mode: ModeCall(
        lambda before, *_: enter_inference_mode(before),
        lambda *_: torch.is_inference_mode_enabled(),
    ),
    _enter_dual_level: ModeCall(lambda before, args, level: _exit_dual_level(level)),
    _exit_dual_level: ModeCall(lambda *_: _enter_dual_level()),
}


def is_mode_call(node: torch.fx.Node) -> bool:
    """Return True if the node enters, leaves or sets a mode of torch: gradients, autocast,
    inference, kernels."""
    return node.op == "call_function" and node.target in MODE_CALLS
