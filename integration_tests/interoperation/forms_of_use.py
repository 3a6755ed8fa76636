"""Forms in which programs use `torch.compile`, as functions of the `compile` that they use.

Each returns its results: those of eager code, of torch.compile and of stator are to be equal.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import inspect
import pickle
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from unittest import mock

import torch
from torch import Tensor, nn

Compile = Callable[..., Any]
Form = Callable[[Compile], Any]
F = TypeVar("F", bound=Form)
X = torch.linspace(-1.0, 2.0, 6).reshape(2, 3)

FORMS: dict[str, Form] = {}


def form(function: F) -> F:
    """Add a form, whose name is that of its function."""
    FORMS[function.__name__] = function
    return function


def plus(x: Tensor, shift: float = 1.0) -> Tensor:
    """Add a number to a sine."""
    return x.sin() + shift


def seeded(make: Callable[[], nn.Module]) -> Any:
    torch.manual_seed(0)
    return make()


class Layer(nn.Module):
    """A layer with a method besides `forward`."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.scale = 2.0

    def forward(self, x: Tensor, *, doubled: bool = False) -> Any:
        y = self.linear(x)
        return y * self.scale if doubled else y

    def embed(self, x: Tensor) -> Any:
        return self.linear(x).sin()

    def __len__(self) -> int:
        return 7


class Shift:
    """A class with each kind of method."""

    amount = 3.0

    def __init__(self, own: float = 1.0) -> None:
        self.own = own

    def method(self, x: Tensor) -> Tensor:
        return x * self.own + self.amount

    def __call__(self, x: Tensor) -> Tensor:
        return x.cos() + self.own


# -- decorators ------------------------------------------------------------------------------------
@form
def bare_decorator(compile: Compile) -> Any:
    @compile
    def fn(x: Tensor) -> Tensor:
        return x * 2

    return fn(X)


@form
def decorator_with_parentheses(compile: Compile) -> Any:
    def fn(x: Tensor) -> Tensor:
        return x * 2

    return compile()(fn)(X)


@form
def decorator_with_keywords(compile: Compile) -> Any:
    def fn(x: Tensor, *, k: float = 2.0) -> Tensor:
        return x * k

    compiled = compile(fullgraph=True, dynamic=False)(fn)
    return compiled(X), compiled(X, k=3.0)


@form
def decorator_below_no_grad(compile: Compile) -> Any:
    @torch.no_grad()
    @compile
    def fn(x: Tensor) -> Tensor:
        return x * 2

    return fn(X.clone().requires_grad_()).requires_grad


@form
def decorator_above_no_grad(compile: Compile) -> Any:
    @compile
    @torch.no_grad()
    def fn(x: Tensor) -> Tensor:
        return x * 2

    return fn(X.clone().requires_grad_()).requires_grad


@form
def decorator_of_a_wrapped_function(compile: Compile) -> Any:
    def twice(function: Any) -> Any:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs) * 2

        return wrapped

    return compile(twice(plus))(X, shift=2.0), twice(compile(plus))(X)


@form
def decorated_function_that_recurses(compile: Compile) -> Any:
    @compile
    def power(x: Tensor, n: int) -> Any:
        return x if n == 0 else x * power(x, n - 1)

    return power(X, 3)


@form
def decorator_inside_of_a_function(compile: Compile) -> Any:
    def outer(x: Tensor) -> Any:
        @compile
        def inner(y: Tensor) -> Tensor:
            return y + x

        return inner(x * 2)

    return [outer(X + i) for i in range(3)]


# -- arguments and results -------------------------------------------------------------------------
@form
def positional_and_keyword_only_parameters(compile: Compile) -> Any:
    def fn(a: Tensor, /, b: Tensor, *, c: Tensor) -> Tensor:
        return a - b * c

    compiled = compile(fn)
    return compiled(X, X * 2, c=X * 3), compiled(X, b=X, c=X)


@form
def variable_arguments(compile: Compile) -> Any:
    def fn(*args: Tensor, **kwargs: Tensor) -> Any:
        return sum(args) + sum(kwargs.values())

    compiled = compile(fn)
    return compiled(X, X), compiled(X, a=X * 2, b=X * 3)


@form
def default_that_changes(compile: Compile) -> Any:
    def fn(x: Tensor, k: float = 2.0) -> Tensor:
        return x * k

    compiled = compile(fn)
    first = compiled(X)
    fn.__defaults__ = (5.0,)
    return first, compiled(X)


@form
def nested_results(compile: Compile) -> Any:
    return compile(lambda x: {"a": [x, (x + 1, 3)], "b": None})(X)


@form
def result_that_is_an_argument(compile: Compile) -> Any:
    return compile(lambda x: (x, x))(X)[0] is X


@form
def numpy_arguments(compile: Compile) -> Any:
    return compile(lambda a: a * 2 + 1)(X.numpy())


@form
def no_tensor_at_all(compile: Compile) -> Any:
    return compile(lambda a, b: a + b)(3, 4)


@form
def wrong_arguments(compile: Compile) -> Any:
    try:
        compile(plus)(X, 1.0, 2.0)
    except TypeError as error:
        return "positional argument" in str(error)
    return None


@form
def exception_of_the_function(compile: Compile) -> Any:
    def fn(x: Tensor) -> Tensor:
        raise ValueError("of the program")

    try:
        compile(fn)(X)
    except ValueError as error:
        return str(error)
    return None


@form
def mutated_argument(compile: Compile) -> Any:
    x, seen = X.clone(), [1]

    def fn(x: Tensor, seen: list[int]) -> None:
        x.add_(1)
        seen.append(2)

    return compile(fn)(x, seen), x, seen


# -- functions -------------------------------------------------------------------------------------
@form
def function_object(compile: Compile) -> Any:
    return compile(plus)(X)


@form
def name_and_documentation(compile: Compile) -> Any:
    compiled = compile(plus)
    return compiled.__name__, compiled.__doc__, str(inspect.signature(compiled))


@form
def lambda_function(compile: Compile) -> Any:
    return compile(lambda x: x.cos())(X)


@form
def closure(compile: Compile) -> Any:
    k = 2.0

    def fn(x: Tensor) -> Tensor:
        return x * k

    compiled = compile(fn)
    first = compiled(X)
    k = 3.0
    return first, compiled(X)


@form
def partial_around_a_function(compile: Compile) -> Any:
    return compile(functools.partial(plus, shift=3.0))(X)


@form
def partial_of_a_compiled_function(compile: Compile) -> Any:
    return functools.partial(compile(plus), shift=3.0)(X)


@form
def function_in_c(compile: Compile) -> Any:
    return compile(torch.sin)(X), compile(torch.nn.functional.relu)(X)


@form
def function_of_torch_func(compile: Compile) -> Any:
    def loss(x: Tensor) -> Tensor:
        return x.sin().sum()

    return compile(torch.func.grad(loss))(X), torch.vmap(compile(plus))(X)


@form
def cached_function(compile: Compile) -> Any:
    @functools.cache
    def factor(n: int) -> int:
        return n * n

    return compile(lambda x: x * factor(3))(X)


@form
def compiled_twice(compile: Compile) -> Any:
    return compile(compile(plus))(X)


@form
def compiled_calling_compiled(compile: Compile) -> Any:
    inner = compile(plus)
    return compile(lambda x: inner(x) * 2)(X)


@form
def given_to_map(compile: Compile) -> Any:
    return list(map(compile(plus), [X, X * 2]))


@form
def generator_function(compile: Compile) -> Any:
    def fn(x: Tensor) -> Iterator[Tensor]:
        yield x
        yield x + 1

    return list(compile(fn)(X))


@form
def generator_inside_of_a_function(compile: Compile) -> Any:
    def fn(x: Tensor) -> Any:
        return sum(x * i for i in range(4))

    return compile(fn)(X)


@form
def coroutine_function(compile: Compile) -> Any:
    async def fn(x: Tensor) -> Tensor:
        await asyncio.sleep(0)
        return x + 1

    return asyncio.run(compile(fn)(X))


@form
def compiled_function_in_a_coroutine(compile: Compile) -> Any:
    compiled = compile(plus)

    async def step(x: Tensor) -> Any:
        await asyncio.sleep(0)
        return compiled(x)

    async def steps() -> Any:
        return await asyncio.gather(step(X), step(X * 2))

    return asyncio.run(steps())


@form
def context_manager_function(compile: Compile) -> Any:
    entered: list[int] = []

    @contextlib.contextmanager
    def scope() -> Iterator[None]:
        entered.append(1)
        yield
        entered.append(2)

    def fn(x: Tensor) -> Tensor:
        with scope():
            return x * 2

    return compile(fn)(X), entered


# -- methods and classes ---------------------------------------------------------------------------
@form
def bound_method(compile: Compile) -> Any:
    return compile(Shift(2.0).method)(X)


@form
def decorated_method(compile: Compile) -> Any:
    class Decorated(Shift):
        @compile
        def method(self, x: Tensor) -> Tensor:
            return x * self.own

    return Decorated(2.0).method(X), Decorated(3.0).method(X)


@form
def method_assigned_to_its_instance(compile: Compile) -> Any:
    shift: Any = Shift(2.0)
    shift.method = compile(shift.method)
    return shift.method(X)


@form
def static_and_class_methods(compile: Compile) -> Any:
    class Methods(Shift):
        @staticmethod
        @compile
        def static(x: Tensor) -> Tensor:
            return x * 2

        @classmethod
        @compile
        def of_class(cls, x: Tensor) -> Tensor:
            return x * cls.amount

    return Methods.static(X), Methods.of_class(X), Methods().of_class(X)


@form
def property_that_is_compiled(compile: Compile) -> Any:
    class Computed:
        x = X

        @property
        @compile
        def value(self) -> Tensor:
            return self.x * 2

    return Computed().value


@form
def callable_object(compile: Compile) -> Any:
    return compile(Shift(2.0))(X)


@form
def unbound_method(compile: Compile) -> Any:
    return compile(Shift.method)(Shift(2.0), X)


# -- modules ---------------------------------------------------------------------------------------
@form
def module(compile: Compile) -> Any:
    return compile(seeded(Layer))(X)


@form
def module_with_keywords(compile: Compile) -> Any:
    return compile(seeded(Layer))(X, doubled=True)


@form
def names_in_the_state_of_a_module(compile: Compile) -> Any:
    layer = seeded(Layer)
    compile(layer)(X)
    return [*layer.state_dict()]


@form
def attributes_of_a_module(compile: Compile) -> Any:
    compiled = compile(seeded(Layer))
    first = compiled(X, doubled=True)
    compiled.scale = 5.0
    return first, compiled(X, doubled=True), compiled.linear.in_features, len(compiled)


@form
def method_of_a_module_beside_forward(compile: Compile) -> Any:
    layer = seeded(Layer)
    layer.embed = compile(layer.embed)
    return layer.embed(X)


@form
def forward_replaced(compile: Compile) -> Any:
    layer = seeded(Layer)
    layer.forward = compile(layer.forward)
    return layer(X)


@form
def layers_one_by_one(compile: Compile) -> Any:
    model = seeded(lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)))
    for name, child in list(model.named_children()):
        setattr(model, name, compile(child))
    return model(X)


@form
def module_with_hooks(compile: Compile) -> Any:
    layer = seeded(Layer)
    seen: list[Any] = []

    def hook(module: nn.Module, args: Any, result: Tensor) -> Tensor:
        seen.append(result.shape)
        return result + 1

    layer.register_forward_hook(hook)
    return compile(layer)(X), seen


@form
def training_and_evaluation(compile: Compile) -> Any:
    model = seeded(lambda: nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)))
    compiled = compile(model)
    first = compiled(X)
    compiled.eval()
    return first, compiled(X), model.training


@form
def training_step(compile: Compile) -> Any:
    model = seeded(Layer)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = compile(model)
    for _ in range(2):
        optimizer.zero_grad()
        compiled(X).sum().backward()
        optimizer.step()
    return [*model.parameters()]


@form
def whole_step(compile: Compile) -> Any:
    model = seeded(Layer)

    def loss(x: Tensor) -> Any:
        return model(x).pow(2).mean()

    compile(loss)(X).backward()
    return model.linear.weight.grad


@form
def state_dict_into_a_new_module(compile: Compile) -> Any:
    layer, other = seeded(Layer), Layer()
    compile(layer)(X)
    other.load_state_dict(layer.state_dict())
    return compile(other)(X)


@form
def copied_module(compile: Compile) -> Any:
    compiled = compile(seeded(Layer))
    compiled(X)
    copied = copy.deepcopy(compiled)
    with torch.no_grad():
        copied.linear.weight.zero_()
    return copied(X), compiled(X)


@form
def pickled_module(compile: Compile) -> Any:
    layer = seeded(Layer)
    compile(layer)(X)
    return pickle.loads(pickle.dumps(layer))(X)


@form
def moved_module(compile: Compile) -> Any:
    compiled = compile(seeded(Layer))
    compiled(X)
    return compiled.to(torch.float64)(X.double())


@form
def shared_module_in_two_functions(compile: Compile) -> Any:
    layer = seeded(Layer)
    return compile(lambda x: layer(x) + 1)(X), compile(lambda x: layer(x) * 2)(X)


@form
def module_is_an_instance(compile: Compile) -> Any:
    compiled = compile(seeded(Layer))
    return isinstance(compiled, nn.Module), [name for name, _ in compiled.linear.named_parameters()]


# -- modes and surroundings ------------------------------------------------------------------------
@form
def disabled(compile: Compile) -> Any:
    return compile(plus, disable=True)(X)


@form
def under_no_grad_and_inference_mode(compile: Compile) -> Any:
    compiled, x = compile(plus), X.clone().requires_grad_()
    with torch.no_grad():
        first = compiled(x).requires_grad
    with torch.inference_mode():
        second = compiled(x).is_inference()
    return first, second, compiled(x).requires_grad


@form
def under_autocast(compile: Compile) -> Any:
    compiled = compile(seeded(Layer))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return compiled(X).dtype


@form
def changing_sizes(compile: Compile) -> Any:
    compiled = compile(plus)
    return [compiled(torch.ones(size)) for size in (2, 3, 4, 5)]


@form
def patched_compile(compile: Compile) -> Any:
    """Libraries call `torch.compile`; a program may replace it."""
    with mock.patch("torch.compile", compile):
        fn = torch.compile(plus)
        decorated: Any = torch.compile(dynamic=True)(Shift(2.0).method)
    return fn(X), decorated(X)


@form
def reset_between_calls(compile: Compile) -> Any:
    compiled = compile(plus)
    first = compiled(X)
    torch.compiler.reset()
    return first, compiled(X)


# -- in place: these get a function that compiles a module as `Module.compile` does ----------------
IN_PLACE: dict[str, Form] = {}


def form_in_place(function: F) -> F:
    """Add a form of compiling a module in place."""
    IN_PLACE[function.__name__] = function
    return function


@form_in_place
def calls(compile: Compile) -> Any:
    layer = seeded(Layer)
    compile(layer)
    return layer(X), layer(X, doubled=True), type(layer).__name__, [*layer.state_dict()]


@form_in_place
def submodules(compile: Compile) -> Any:
    model = seeded(lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)))
    for child in model:
        compile(child)
    return model(X)


@form_in_place
def hooks(compile: Compile) -> Any:
    layer = seeded(Layer)
    compile(layer)
    layer.register_forward_hook(lambda module, args, result: result + 1)
    return layer(X)


@form_in_place
def training(compile: Compile) -> Any:
    layer = seeded(Layer)
    compile(layer)
    layer(X).sum().backward()
    return layer.linear.weight.grad


@form_in_place
def copies(compile: Compile) -> Any:
    layer = seeded(Layer)
    compile(layer)
    layer(X)
    return copy.deepcopy(layer)(X), pickle.loads(pickle.dumps(layer))(X)


@form_in_place
def inside_of_a_compiled_function(compile: Compile) -> Any:
    layer = seeded(Layer)
    compile(layer)
    model = nn.Sequential(layer, nn.ReLU())
    compile(model)
    return model(X)
