"""The fake world of one compilation: one `FakeTensorMode` over one `ShapeEnv`, and operators run in it, under
the modes that they change.

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
from stator_variables import filtered
from torch import fx
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
from stator_subgraphs._structure import tensors_in

Target = Callable[..., Any] | str
NO_POINTERS = config.patch(fake_tensor_allow_unsafe_data_ptr_access=False)
"""One for all: each makes a context variable, which the thread's context then keeps for ever."""
PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
SPARSE_CONTENTS = frozenset(
    "_nnz values indices _values _indices col_indices row_indices is_coalesced sparse_dim dense_dim _dimI _dimV".split()
)


@attrs.frozen
class ShapeOptions:
    """What the `ShapeEnv` may do. The defaults refuse results that depend on data, as `torch.compile` does."""

    scalar_outputs: bool = False
    dynamic_output_shapes: bool = False
    duck_shapes: bool | None = None
    specialize_zero_one: bool = True
    prefer_deferred_asserts: bool = False

    def shape_env(self) -> ShapeEnv:
        _import_what_it_needs()
        return ShapeEnv(
            allow_scalar_outputs=self.scalar_outputs,
            allow_dynamic_output_shape_ops=self.dynamic_output_shapes,
            duck_shape=self.duck_shapes,
            specialize_zero_one=self.specialize_zero_one,
            prefer_deferred_runtime_asserts_over_guards=self.prefer_deferred_asserts,
        )


@cache
def _import_what_it_needs() -> None:
    """The first `ShapeEnv` of a process imports modules of torch that keep all frames around them, as `torch.fx.wrap`
    does, and what the program has in these. In a thread of its own there are none."""
    importing = threading.Thread(target=ShapeEnv)
    importing.start()
    importing.join()


def new_fake_mode(shape_env: ShapeEnv) -> FakeTensorMode:
    """A mode whose tensors never hand out a data pointer: an address read while tracing would be baked in."""
    with NO_POINTERS:
        return FakeTensorMode(shape_env=shape_env)


class World:
    """The mode and the `ShapeEnv` of one compilation, made when something first has to be fake: in many a trace
    nothing ever has."""

    def __init__(self, shapes: ShapeOptions, context: TracingContext) -> None:
        self._shapes = shapes
        self._context = context
        self.learned: Sequence[Any] = ()  # the facts that the `ShapeEnv` relies on

    @cached_property
    def mode(self) -> FakeTensorMode:
        env = self._shapes.shape_env()
        mode, self.learned = new_fake_mode(env), env.guards
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
    mode: FakeTensorMode, tensor: torch.Tensor, source: AnyTorchSource, context: StatefulSymbolicContext, static: bool
) -> FakeTensor:
    """`tensor` without its memory: a parameter stays one, a view a view, a leaf a leaf.

    Static shapes take the path without `ShapeEnv`: twice as fast, and the *value* of a 0-d tensor becomes no symbol.
    """
    with _quiet(tensor), torch._C.DisableTorchFunctionSubclass():  # it may be a view of a tensor with a say in that
        if static:
            return mode.from_tensor(tensor, static_shapes=True, source=source)
        return mode.from_tensor(tensor, source=source, symbolic_context=context)


@contextmanager
def _quiet(tensor: torch.Tensor) -> Iterator[None]:
    """torch reads `.grad` of every tensor; it hides the warning about a non-leaf from people, not from `-W error`."""
    if tensor.is_leaf or not tensor.requires_grad:
        yield
        return
    with filtered("ignore", "The .grad attribute of a Tensor that is not a leaf"):
        yield


def refuse_subclass(tensor: torch.Tensor, name: str) -> None:
    """Plain tensors are understood, and those with others in them; another subclass has ways of its own everywhere."""
    if type(tensor) in PLAIN:
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            raise Unsupported("functorch-tensor", f"{name} is a tensor inside a torch.func transform")
        return
    if is_lazy(tensor):
        raise Unsupported("uninitialized-parameter", f"{name} has no shape yet", "run the module once before compiling")
    if not is_traceable_wrapper_subclass(tensor):
        raise Unsupported("tensor-subclass", f"{name} is a {type(tensor).__qualname__}")


def refuse_wrappers(inputs: Sequence[Any]) -> None:
    """For a graph with bodies: what they write to, and which memory they share, is not seen in the parts."""
    if any(map(is_traceable_wrapper_subclass, inputs)):
        raise Unsupported("tensor-subclass", "a tensor with others in it, beside an operator with a body")


def refuse_quantizing(target: Target) -> None:
    """The fake of a quantized tensor would be a plain one, which nothing needs to dequantize."""
    name = _name(target)
    if name.startswith(("quantize_per_", "_empty_affine_quantized", "_empty_per_channel_affine_quantized")):
        raise Unsupported("no-fake-kernel", f"{name}: it gives a quantized tensor")


def refuse_sparse(target: Target, tensors: Sequence[torch.Tensor]) -> None:
    """A fake of a sparse tensor stores no items, however many the tensor itself does; no guard asks for them. Operators
    take one with symbolic sizes for a dense one."""
    sparse = [tensor for tensor in tensors if tensor.layout in SPARSE]
    if sparse and _name(target) in SPARSE_CONTENTS:
        raise Unsupported("data-dependent-shape", f"{_name(target)} of a sparse tensor")
    if any(isinstance(size, torch.SymInt) for tensor in sparse for size in tensor.shape):
        raise Unsupported("no-fake-kernel", f"{_name(target)} of a sparse tensor with symbolic sizes")


DRAW_FLOATS = ("rand", "rand_like", "uniform_", "bernoulli", "multinomial", "poisson", "rrelu", "_standard_gamma")


def refuse_drawing(target: Target, tensors: Sequence[torch.Tensor], dtype: torch.dtype | None) -> None:
    """Their kernels draw no integers; their fakes do, and the graph would raise behind what it wrote."""
    drawn = dtype or next((tensor.dtype for tensor in tensors), torch.float)
    if _name(target) in DRAW_FLOATS and not (drawn.is_floating_point or drawn.is_complex):
        raise Unsupported("no-fake-kernel", f"{_name(target)} of {drawn}")


def refuse_new_leaves(example: Any, given: Sequence[torch.Tensor]) -> None:
    """As of `torch.ones(3, requires_grad=True)`: compilers differentiate a graph by its inputs alone."""
    for tensor in tensors_in(example):
        is_new_leaf = tensor.requires_grad and not tensor._is_view() and tensor.is_leaf  # a stale view may not be asked
        if is_new_leaf and all(tensor is not known for known in given):
            raise Unsupported("graph-result", "a tensor that is made here and requires gradients")


def _name(target: Target) -> str:
    return target if isinstance(target, str) else str(getattr(target, "__name__", ""))


def run(mode: FakeTensorMode, target: Target, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """`target(*args, **kwargs)` on fakes. Shapes with symbols need decompositions in Python; that of `dropout` copies
    where the operator itself gives its input."""
    with mode, nullcontext() if _name(target) == "dropout" else _dispatcher(mode), _scalars(mode, args), _unhooked():
        if isinstance(target, str):
            made = getattr(args[0], target)(*args[1:], **kwargs)
        else:
            made = target(*args, **kwargs)
        if torch.is_inference_mode_enabled():
            name = args[1] if target is getattr else _name(target)
            made = as_views(name, made, tensors_in([*args, *kwargs.values()]))
    _count_writes(_name(target), args, kwargs)
    return made


def _count_writes(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Fakes count no writes of operators over lists of tensors; the fused ones write to almost all that they get."""
    if name.startswith(("_foreach_", "_fused_")) and name.endswith("_"):
        lists = [*args, *kwargs.values()]
        written = tensors_in(lists[:1] if name.startswith("_foreach_") else lists)
        increment_version([tensor for tensor in written if not tensor.is_inference()])


def _unhooked() -> AbstractContextManager[Any]:
    """The program's hooks on tensors that autograd saves are for real ones."""
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return nullcontext() if hooks is None else saved_tensors_hooks(_itself, _itself)


def _itself(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _scalars(mode: FakeTensorMode, args: Sequence[Any]) -> AbstractContextManager[Any]:
    """Whatever a body reads from a tensor was allowed when it was traced."""
    return _reading(mode) if has_body(args) and not mode.allow_scalar_outputs else nullcontext()


def has_body(args: Sequence[Any]) -> bool:
    return any(isinstance(arg, fx.GraphModule) for arg in args)


@contextmanager
def _reading(mode: FakeTensorMode) -> Iterator[None]:
    mode.allow_scalar_outputs = True
    try:
        yield
    finally:
        mode.allow_scalar_outputs = False


def _dispatcher(mode: FakeTensorMode) -> AbstractContextManager[Any]:
    env = mode.shape_env
    return enable_python_dispatcher() if env is not None and env.var_to_range else nullcontext()


# Calls that change a mode of the process, and how to change it back.
#
# Such a call is recorded like any other, and takes effect while tracing so that what follows is traced under it. A
# rollback and the end of the trace set it back: each entry of the table says how.

exit_autocast: Any = autocast_mode._exit_autocast
enter_inference_mode: Any = grad_mode._enter_inference_mode
exit_inference_mode: Any = grad_mode._exit_inference_mode


@attrs.frozen
class ModeCall:
    """`undo(before, args, result)` sets back what a call changed; `before` is what `look` said ahead of it."""

    undo: Callable[[Any, Any, Any], object]
    look: Callable[[], Any] = lambda: None


MODE_CALLS = {
    torch._C._set_grad_enabled: ModeCall(lambda before, *_: torch._C._set_grad_enabled(before), torch.is_grad_enabled),
    autocast_mode._enter_autocast: ModeCall(lambda before, args, entered: exit_autocast(entered)),
    exit_autocast: ModeCall(lambda before, args, result: args[0].__enter__()),
    enter_inference_mode: ModeCall(lambda before, args, entered: exit_inference_mode(entered)),
    exit_inference_mode: ModeCall(lambda before, *_: enter_inference_mode(before), torch.is_inference_mode_enabled),
}
