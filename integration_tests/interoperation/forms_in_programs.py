"""Further forms in which programs use `torch.compile`, mostly around other tools of torch.

Each returns its results, as those of `forms_of_use.py` do.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import copy
import functools
import io
import pickle
import queue
import threading
import types
import warnings
import weakref
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn.utils import fusion, parametrizations, parametrize, prune, stateless
from torch.optim import swa_utils

from integration_tests.interoperation.forms_of_use import Compile, Form, Layer, X, plus, seeded

FORMS: dict[str, Form] = {}
# without annotations in torch
pruning: Any = prune
averaging: Any = swa_utils
tracing: Any = torch.jit


def form(function: Any) -> Any:
    """Add a form, whose name is that of its function."""
    FORMS[function.__name__] = function
    return function


# -- classes and methods ---------------------------------------------------------------------------
@form
def single_dispatch_method(compile: Compile) -> Any:
    class Scale:
        @functools.singledispatchmethod
        def apply(self, k: Any, x: Tensor) -> Tensor:
            return x - 1

        @apply.register
        def _(self, k: int, x: Tensor) -> Tensor:
            return x * k

        @apply.register
        def _(self, k: str, x: Tensor) -> Tensor:
            return x + len(k)

    scale = Scale()
    compiled = compile(scale.apply)
    return [compiled(k, X) for k in (2, "ab", 1.5, None)]


@form
def single_dispatch_over_compiled(compile: Compile) -> Any:
    @functools.singledispatch
    def apply(k: Any, x: Tensor) -> Tensor:
        return x

    apply.register(int, compile(lambda k, x: x * k))
    apply.register(str, compile(lambda k, x: x + len(k)))
    return apply(3, X), apply("abc", X), apply(None, X)


@form
def method_objects_in_a_class_body(compile: Compile) -> Any:
    class Methods:
        amount = 2.0
        doubled = staticmethod(compile(lambda x: x * 2))
        scaled: Any = classmethod(compile(lambda cls, x: x * cls.amount))
        partial = functools.partialmethod(compile(lambda self, k, x: x * k), 3.0)

    class Other(Methods):
        amount = 4.0

    one = Methods()
    return one.doubled(X), Methods.scaled(X), Other.scaled(X), one.partial(X)


@form
def decorated_call(compile: Compile) -> Any:
    class Callable:
        def __init__(self, k: float) -> None:
            self.k = k

        @compile
        def __call__(self, x: Tensor) -> Tensor:
            return x * self.k

    return Callable(2.0)(X), Callable(3.0)(X)


@form
def decorated_forward(compile: Compile) -> Any:
    class Decorated(Layer):
        @compile
        def forward(self, x: Tensor, *, doubled: bool = False) -> Any:
            return super().forward(x, doubled=doubled)

    model = seeded(Decorated)
    return model(X), model(X, doubled=True), seeded(Decorated)(X)


@form
def compiled_in_init(compile: Compile) -> Any:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.run = compile(self._run)
            self.head = compile(nn.Linear(3, 2))

        def _run(self, x: Tensor) -> Any:
            return self.linear(x).relu()

        def forward(self, x: Tensor) -> Any:
            return self.head(self.run(x))

    model = seeded(Model)
    return model(X), sum(p.numel() for p in model.parameters())


@form
def compiled_on_first_use(compile: Compile) -> Any:
    class Lazy:
        @functools.cached_property
        def run(self) -> Any:
            return compile(self._run)

        def _run(self, x: Tensor) -> Tensor:
            return x * self.k

        k = 2.0

    lazy = Lazy()
    first = lazy.run(X)
    lazy.k = 3.0
    return first, lazy.run(X)


@form
def abstract_and_protocol_classes(compile: Compile) -> Any:
    class Base:
        def step(self, x: Tensor) -> Any:
            raise NotImplementedError

        @compile
        def run(self, x: Tensor) -> Any:
            return self.step(x) + 1

    class Double(Base):
        def step(self, x: Tensor) -> Any:
            return x * 2

    with contextlib.suppress(NotImplementedError):
        Base().run(X)
    return Double().run(X)


@form
def descriptor_that_compiles(compile: Compile) -> Any:
    class Compiled:
        def __init__(self, function: Any) -> None:
            self.function = compile(function)

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            return self if instance is None else functools.partial(self.function, instance)

    class User:
        k = 5.0

        @Compiled
        def run(self, x: Tensor) -> Tensor:
            return x * self.k

    return User().run(X)


# -- functions -------------------------------------------------------------------------------------
@form
def async_generator(compile: Compile) -> Any:
    compiled = compile(plus)

    async def batches() -> AsyncIterator[Tensor]:
        for k in range(3):
            await asyncio.sleep(0)
            yield compiled(X + k)

    async def collect() -> Any:
        return [each async for each in batches()]

    return asyncio.run(collect())


@form
def generator_that_receives(compile: Compile) -> Any:
    def running() -> Iterator[Any]:
        total = torch.zeros(2, 3)
        while True:
            x = yield total
            if x is None:
                return
            total = compiled(total, x)

    compiled = compile(lambda total, x: total * 0.9 + x)
    running_total: Any = running()
    next(running_total)
    return [running_total.send(X * k) for k in (1, 2, 3)]


@form
def generator_expression_of_calls(compile: Compile) -> Any:
    compiled = compile(plus)
    return torch.stack([*(compiled(X, k) for k in (0.5, 1.5, 2.5))])


@form
def replaced_code_of_a_function(compile: Compile) -> Any:
    def fn(x: Tensor) -> Tensor:
        return x * 2

    compiled = compile(types.FunctionType(fn.__code__, fn.__globals__, "renamed"))
    return compiled(X), compiled.__name__


@form
def wrapped_attribute(compile: Compile) -> Any:
    """Libraries unwrap what they are given."""

    @functools.wraps(plus)
    def outer(x: Tensor) -> Any:
        return compiled(x)

    compiled = compile(plus)
    return outer(X), getattr(outer, "__wrapped__")(X)


@form
def weak_reference_to_compiled(compile: Compile) -> Any:
    compiled = compile(lambda x: x * 2)
    reference = weakref.ref(compiled)
    called: Any = reference()
    return called(X)


@form
def hashed_and_compared(compile: Compile) -> Any:
    first, second = compile(plus), compile(lambda x: x)
    return len({first, second}), first in {first: 1}, first != second


@form
def context_variable(compile: Compile) -> Any:
    scale: contextvars.ContextVar[float] = contextvars.ContextVar("scale", default=1.0)
    compiled = compile(lambda x: x * scale.get())
    first = compiled(X)
    context = contextvars.copy_context()
    context.run(scale.set, 3.0)
    return first, context.run(compiled, X), compiled(X)


# -- modules ---------------------------------------------------------------------------------------
@form
def method_of_a_wrapped_module(compile: Compile) -> Any:
    class Parallel(nn.Module):
        """Like DataParallel: holds the module, and calls its forward in a method."""

        def __init__(self, module: nn.Module) -> None:
            super().__init__()
            self.module = module

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return self.gather([self.module(each, **kwargs) for each in args[0].split(1)])

        def gather(self, outputs: list[Tensor]) -> Tensor:
            return torch.cat(outputs)

    wrapped: Any = Parallel(seeded(Layer))
    wrapped.module.embed = compile(wrapped.module.embed)
    wrapped.gather = compile(wrapped.gather)
    first = wrapped.module.embed(X), wrapped(X), compile(wrapped)(X, doubled=True)
    return first, compile(nn.DataParallel(seeded(Layer)))(X)


@form
def copies_of_a_compiled_module(compile: Compile) -> Any:
    compiled = compile(seeded(Layer))
    compiled(X)
    deep, shallow = copy.deepcopy(compiled), copy.copy(compiled)
    deep.load_state_dict({name: value * 2 for name, value in compiled.state_dict().items()})
    return deep(X), shallow(X), compiled(X)


@form
def saved_and_loaded(compile: Compile) -> Any:
    compiled = compile(seeded(Layer))
    compiled(X)
    file = io.BytesIO()
    torch.save(compiled.linear.state_dict(), file)
    file.seek(0)
    other = compile(Layer())
    missing = other.linear.load_state_dict(torch.load(file, weights_only=True))
    return other(X), list(missing.missing_keys)


@form
def pickled_original(compile: Compile) -> Any:
    compiled = compile(seeded(Layer))
    compiled(X)
    original = getattr(compiled, "_orig_mod", compiled)
    return pickle.loads(pickle.dumps(original))(X)


@form
def parametrized_layer(compile: Compile) -> Any:
    class Symmetric(nn.Module):
        def forward(self, weight: Tensor) -> Tensor:
            return weight.triu() + weight.triu(1).transpose(-1, -2)

    layer = seeded(Layer)
    compiled = compile(layer)
    before = compiled(X)
    parametrize.register_parametrization(layer.linear, "weight", Symmetric())
    after = compiled(X)
    with parametrize.cached():
        within = compiled(X)
    parametrize.remove_parametrizations(layer.linear, "weight")
    return before, after, within, compiled(X)


@form
def normalized_and_pruned_weights(compile: Compile) -> Any:
    layer = seeded(Layer)
    compiled = compile(layer)
    parametrizations.weight_norm(layer.linear)
    first = compiled(X)
    parametrize.remove_parametrizations(layer.linear, "weight")
    pruning.l1_unstructured(layer.linear, "weight", amount=4)
    second = compiled(X)
    pruning.remove(layer.linear, "weight")
    return first, second, compiled(X)


@form
def fused_layers(compile: Compile) -> Any:
    model = seeded(lambda: nn.Sequential(nn.Conv1d(2, 4, 1), nn.BatchNorm1d(4)))
    x = torch.linspace(-1, 1, 16).reshape(2, 2, 4)
    compile(model)(x)
    model.eval()
    expected = compile(model)(x)
    fused = fusion.fuse_conv_bn_eval(model[0], model[1])
    return expected, compile(fused)(x)


@form
def hooks_on_the_compiled_module(compile: Compile) -> Any:
    compiled, seen = compile(seeded(Layer)), list[Any]()
    first = compiled(X)
    handles = [
        compiled.register_forward_pre_hook(lambda module, args: (args[0] * 2,)),
        compiled.register_forward_hook(lambda module, args, out: seen.append(out.shape)),
        compiled.register_forward_hook(lambda module, args, out: out + 1),
    ]
    second = compiled(X)
    for handle in handles:
        handle.remove()
    return first, second, compiled(X), seen


@form
def backward_hooks_on_the_compiled_module(compile: Compile) -> Any:
    compiled, seen = compile(seeded(Layer)), list[Any]()
    compiled.register_full_backward_hook(lambda module, given, got: seen.append(got[0].shape))
    x = X.clone().requires_grad_()
    compiled(x).sum().backward()
    return x.grad, seen


@form
def averaged_weights(compile: Compile) -> Any:
    model = seeded(Layer)
    averaged = swa_utils.AveragedModel(model, multi_avg_fn=averaging.get_ema_multi_avg_fn(0.5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled, compiled_average = compile(model), compile(averaged)
    results = []
    for _ in range(3):
        optimizer.zero_grad()
        compiled(X).pow(2).sum().backward()
        optimizer.step()
        averaged.update_parameters(model)
        results.append(compiled_average(X))
    return results


@form
def batch_norm_updated_by_swa(compile: Compile) -> Any:
    model = seeded(lambda: nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)))
    compiled = compile(model)
    swa_utils.update_bn([X, X * 2], compiled)
    return compiled.eval()(X), model[1].running_mean


@form
def functional_calls(compile: Compile) -> Any:
    layer = seeded(Layer)
    zeros = {name: torch.zeros_like(value) for name, value in layer.named_parameters()}
    compiled = compile(layer)
    first = torch.func.functional_call(compiled, zeros, (X,))
    call = compile(lambda parameters, x: torch.func.functional_call(layer, parameters, (x,)))
    with stateless._reparametrize_module(layer, zeros):
        third = compiled(X)
    return first, call(zeros, X), third, compiled(X)


@form
def ensemble_of_stacked_modules(compile: Compile) -> Any:
    models = [seeded(Layer) for _ in range(2)]
    parameters, buffers = torch.func.stack_module_state(models)
    base = copy.deepcopy(models[0]).to("meta")

    def run(parameters: Any, buffers: Any, x: Tensor) -> Any:
        return torch.func.functional_call(base, (parameters, buffers), (x,))

    return compile(torch.vmap(run, in_dims=(0, 0, None)))(parameters, buffers, X)


@form
def parameters_changed_by_hand(compile: Compile) -> Any:
    layer = seeded(Layer)
    compiled = compile(layer)
    first = compiled(X)
    layer.linear.weight = nn.Parameter(torch.eye(3))
    second = compiled(X)
    layer.linear = nn.Linear(3, 3, bias=False)
    with torch.no_grad():
        layer.linear.weight.fill_(2)
    layer.register_buffer("extra", torch.ones(1))
    return first, second, compiled(X), [*compiled.state_dict()][-1].rpartition(".")[2]


@form
def frozen_and_unfrozen(compile: Compile) -> Any:
    layer = seeded(Layer)
    compiled = compile(layer)
    found = []
    for trains in (True, False, True):
        layer.requires_grad_(trains)
        found.append(compiled(X).requires_grad)
    compiled(X).sum().backward()
    return found, layer.linear.bias.grad


@form
def module_containers_of_compiled_modules(compile: Compile) -> Any:
    experts = nn.ModuleDict({name: compile(seeded(Layer)) for name in "ab"})
    layers = nn.ModuleList(compile(seeded(Layer)) for _ in range(2))

    def run(x: Tensor, name: str) -> Any:
        for layer in layers:
            x = layer(x)
        return experts[name](x)

    return run(X, "a"), compile(run)(X, "b"), len([*experts.parameters()])


@form
def generation_with_a_configuration(compile: Compile) -> Any:
    """A library compiles its forward by a configuration, once, through `torch.compile`."""

    class Generator(Layer):
        compiled: Any = None

        def get_compiled_call(self, settings: dict[str, Any] | None) -> Any:
            if self.compiled is None:
                self.compiled = torch.compile(self.__call__, **(settings or {}))
            return self.compiled

        def generate(self, x: Tensor, steps: int, settings: dict[str, Any] | None = None) -> Any:
            for step in range(steps):
                forward = self if step == 0 else self.get_compiled_call(settings)
                x = forward(x)
            return x

    model = seeded(Generator)
    with mock.patch("torch.compile", compile):
        return model.generate(X, 4, {"fullgraph": True, "dynamic": False}), model.generate(X, 2)


# -- surroundings ----------------------------------------------------------------------------------
@form
def threads(compile: Compile) -> Any:
    compiled, results = compile(plus), queue.Queue[Any]()

    def work(k: int) -> None:
        results.put((k, compiled(X * k)))

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return [value for _, value in sorted((results.get() for _ in workers), key=lambda x: x[0])]


@form
def pool_of_threads_with_modes_of_their_own(compile: Compile) -> Any:
    compiled, x = compile(plus), X.clone().requires_grad_()

    def under(mode: Any) -> bool:
        with mode():
            return bool(compiled(x).requires_grad)

    with ThreadPoolExecutor(2) as pool:
        return [*pool.map(under, [torch.no_grad, torch.enable_grad] * 2)]


@form
def warnings_as_errors(compile: Compile) -> Any:
    def fn(x: Tensor) -> Tensor:
        warnings.warn("of the program", UserWarning, stacklevel=2)
        return x + 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            compile(fn)(X)
        except UserWarning as warning:
            return str(warning)
    return None


@form
def gradients_of_gradients(compile: Compile) -> Any:
    compiled, x = compile(lambda x: x.pow(3).sum()), X.clone().requires_grad_()
    (first,) = torch.autograd.grad(compiled(x), x, create_graph=True)
    return first, torch.autograd.grad(first.sum(), x)[0]


@form
def checkpointed_compiled(compile: Compile) -> Any:
    compiled, x = compile(seeded(Layer)), X.clone().requires_grad_()
    torch.utils.checkpoint.checkpoint(compiled, x, use_reentrant=False).sum().backward()
    return x.grad


@form
def default_device_and_dtype(compile: Compile) -> Any:
    compiled = compile(lambda: torch.ones(2))
    first = compiled().dtype
    torch.set_default_dtype(torch.float64)
    try:
        second = compiled().dtype
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):
        third = compiled().device
    return first, second, third


@form
def scripted_and_traced_around(compile: Compile) -> Any:
    scripted = torch.jit.script(lambda_free)
    return compile(lambda x: scripted(x) + 1)(X), tracing.trace(compile(plus), X)(X)


def lambda_free(x: Tensor) -> Tensor:
    return x * 2


# -- in place --------------------------------------------------------------------------------------
IN_PLACE: dict[str, Form] = {}


def form_in_place(function: Any) -> Any:
    """Add a form of compiling a module in place."""
    IN_PLACE[function.__name__] = function
    return function


@form_in_place
def with_arguments(compile: Compile) -> Any:
    layer = seeded(Layer)
    compile(layer, fullgraph=True, dynamic=True)
    return [layer(torch.ones(size, 3)) for size in (2, 3, 4)]


@form_in_place
def compiled_in_its_own_init(compile: Compile) -> Any:
    class Model(Layer):
        def __init__(self) -> None:
            super().__init__()
            compile(self)

    return seeded(Model)(X), [*seeded(Model).state_dict()]


@form_in_place
def hooks_of_all_kinds(compile: Compile) -> Any:
    layer, seen = seeded(Layer), list[Any]()
    compile(layer)
    layer.register_forward_pre_hook(lambda module, args: seen.append("pre"))
    layer.register_forward_hook(lambda *args: seen.append(len(args[2])), with_kwargs=True)
    layer.register_full_backward_hook(lambda *args: seen.append("backward"))
    x = X.clone().requires_grad_()
    layer(x, doubled=True).sum().backward()
    return x.grad, seen


@form_in_place
def state_saved_and_loaded(compile: Compile) -> Any:
    layer, other = seeded(Layer), Layer()
    compile(layer)
    compile(other)
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    return other(X)


@form_in_place
def whole_module_saved(compile: Compile) -> Any:
    layer = seeded(Layer)
    compile(layer)
    layer(X)
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    return torch.load(file, weights_only=False)(X)


@form_in_place
def replaced_forward(compile: Compile) -> Any:
    layer = seeded(Layer)
    compile(layer)
    first = layer(X)
    layer.forward = lambda x: x * 2
    return first, layer(X)
