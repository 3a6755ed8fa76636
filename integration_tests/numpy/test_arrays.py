"""NumPy arrays are captured where torch's NumPy layer gives what NumPy gives, over the memory that
NumPy has, and everything else is NumPy's own."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import stator
import torch
import torch._numpy as layer
from numpy.typing import NDArray

from integration_tests.corpora.models import Call
from integration_tests.numpy.array_programs import PROGRAMS
from integration_tests.support.counting import Counting, graphs_of_torch_compile
from integration_tests.support.description import Tolerance
from integration_tests.support.oracle import assert_same

LAYER: Any = layer
Array = NDArray[Any]
CLOSE = Tolerance(1e-5, 1e-6)
VALUES = np.array([-3.0, 0.0, 1.5, np.nan, -1.0, 0.5, 7.0, 2.5, -2.5, 1.0, 3.5, -0.5])
DTYPES = ("float64", "int64", "float32", "uint8", "bool")
FORMS = """(x)|(x, y)|(x, 2)|(x, axis=0)|([x, y])|(x > 0, x, 0.0)|(x, (3, 2))|(2, 5)|(x, x.T)|(3)
(2.5, x)|(x, axis=-1, keepdims=True)|(x, -1)|(x, y, y)|([x, y], axis=1)|(x, idx)|(x, idx, axis=1)|((2, 3))|(x, 0, 1)
(x, np.float32(3))|(x, dtype=np.float32)|(x[0], y[1])|(x, axis=None)|(x, out=np.zeros((2, 3)))|(x, ddof=1)|(0, 1, 5)
('ij,ij->i', x, y)|(x, 0.5)|(x, [25, 50], axis=0)|(x[:2, :2])|(x[:, ::-1], y)""".replace(
    "\n", "|"
).split("|")
MODULES = {"": (np, LAYER), "linalg.": (np.linalg, LAYER.linalg), "fft.": (np.fft, LAYER.fft)}
FUNCTIONS = [
    f"np.{prefix}{name}"
    for prefix, (ours, theirs) in MODULES.items()
    for name in dir(ours)
    if callable(getattr(theirs, name, None)) and not isinstance(getattr(ours, name), type)
    if not name.startswith(("_", "empty"))
]
METHODS = [
    f"x.{name}"
    for name in vars(LAYER.ndarray)
    if not name.startswith("_") and hasattr(np.ndarray, name)
]
OPERATORS = "+ - * / // % ** @ & | ^ << >> < <= == != > >=".split()
NAMES = [*FUNCTIONS, *METHODS]


def arrays(dtype: str) -> Call:
    """Of two rows; the second goes the other way round."""
    values = np.abs(VALUES) if dtype == "uint8" else VALUES
    with np.errstate(invalid="ignore"):
        x = (
            (np.nan_to_num(values) if dtype != "float64" else values)
            .astype(dtype)[:6]
            .reshape(2, 3)
        )
    return Call((x, x[:, ::-1].copy(), np.array([[0, 1, 1], [1, 0, 0]])))


def of_text(text: str) -> Callable[..., Any]:
    function: Callable[..., Any] = eval(f"lambda {text}", {"np": np, "torch": torch})
    return function


def written(text: str) -> Callable[..., Any]:
    """A function of two arrays and indices that gives the value of an expression, and the array it
    may have changed."""
    found: dict[str, Any] = {"np": np, "torch": torch}
    exec(f"def run(x, y, idx):\n    return {text}, x", found)
    return found["run"]  # type: ignore[no-any-return]


def works(text: str, dtype: str) -> bool:
    try:
        written(text)(*arrays(dtype).args)
    except Exception:  # a form that this function does not have
        return False
    return True


def check(text: str, dtype: str) -> None:
    fn = written(text)
    stator.reset()
    compiled = stator.compile(fn, backend="eager")
    # of an integer divided by zero torch makes an error: then the program runs itself
    with np.errstate(all="ignore"):
        assert_same(
            fn, compiled, lambda: arrays(dtype), calls=2, tolerance=CLOSE, graphs_may_raise=True
        )


def cases(name: str, forms: list[str]) -> list[tuple[str, str]]:
    texts = [
        name + (form.replace("(x)", "()").replace("(x, ", "(") if name[0] == "x" else form)
        for form in forms
    ]
    return [
        (text, dtype) for text in dict.fromkeys(texts) for dtype in DTYPES if works(text, dtype)
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_function_gives_what_numpy_gives(name: str) -> None:
    for text, dtype in cases(name, FORMS)[:2]:
        check(text, dtype)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_function_gives_what_numpy_gives_in_every_form(name: str) -> None:
    for text, dtype in cases(name, FORMS):
        check(text, dtype)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("operator", OPERATORS)
def test_operator_gives_what_numpy_gives(operator: str) -> None:
    for text in (
        f"(x {operator} y.T[0, 0])",
        f"(x {operator} 2)",
        f"(2 {operator} x)",
        f"(x {operator} y)",
    ):
        for dtype in DTYPES:
            if works(text, dtype):
                check(text, dtype)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_gives_what_numpy_gives_in_no_more_graphs_than_torch_compile(name: str) -> None:
    fn, make = PROGRAMS[name]
    counting = Counting()
    compiled = stator.compile(fn, backend=counting)
    assert_same(fn, compiled, lambda: Call(make()), calls=3, tolerance=CLOSE)
    assert counting.count <= max(1, graphs_of_torch_compile(fn, *make())), compiled.report


def test_numbers_that_the_dtype_of_an_array_has_not() -> None:
    def f(a: Array) -> Any:
        return a.clip(-1), a > -1, a == 300, np.clip(a, 1, 300)

    assert_same(
        f,
        stator.compile(f, backend="eager"),
        lambda: Call((np.arange(4, dtype=np.uint8),)),
        calls=2,
    )


def test_array_over_the_memory_of_an_input_that_is_written_breaks() -> None:
    """An entry that took two inputs for apart does not serve a call where they are not."""

    def f(a: Array, b: Array) -> Any:
        a += 1
        return b * 2

    compiled = stator.compile(f, backend="aot_eager")
    assert_same(f, compiled, lambda: Call((np.ones(3), np.ones(3))), calls=1)
    memory = np.ones(4)
    assert compiled(memory[:3], memory[1:]).tolist() == [4, 4, 2]


@pytest.mark.parametrize("change", ["dtype", "shape", "strides", "writeable", "class"])
def test_entry_of_an_array_serves_no_other_kind_of_array(change: str) -> None:
    other: dict[str, Callable[[], Any]] = {
        "dtype": lambda: np.arange(6, dtype="float32").reshape(2, 3),
        "shape": lambda: np.arange(12.0).reshape(4, 3),
        "strides": lambda: np.arange(6.0).reshape(3, 2).T,
        "writeable": lambda: np.broadcast_to(np.arange(3.0), (2, 3)),
        "class": lambda: np.arange(6.0).reshape(2, 3).view(np.matrix),
    }
    turns = iter([np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3)] * 2)

    def call() -> Call:
        return Call((next(turns),))

    def f(a: Array) -> Any:
        return a * 2, a.sum(axis=0), a.strides

    compiled = stator.compile(f, backend="eager")
    assert_same(f, compiled, call, calls=1)
    assert_same(f, compiled, lambda: Call((other[change](),)), calls=2)


def quotient(a: Any, b: Any) -> Any:
    return a / b


def quotient_inside(a: Any, b: Any) -> Any:
    with np.errstate(all="raise"):
        return a / b


def quotient_of_numbers(a: Any, b: Any) -> Any:
    return np.float64(1.0) / np.float64(0.0), a + b


@pytest.mark.filterwarnings("ignore")
def test_an_error_state_that_raises_is_a_guard() -> None:
    ones, zeros = np.ones(2), np.zeros(2)
    compiled = stator.compile(quotient, backend="eager")
    assert compiled(ones, zeros)[0] == np.inf
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        compiled(ones, zeros)
    assert compiled(ones, zeros)[0] == np.inf
    inside = stator.compile(quotient_inside, backend="eager")
    assert inside(ones, ones)[0] == 1.0
    with pytest.raises(FloatingPointError, match="divide by zero"):
        inside(ones, zeros)


def test_what_numpy_warns_of_for_numbers_is_said_on_each_call() -> None:
    compiled = stator.compile(quotient_of_numbers, backend="eager")
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="divide by zero") as caught:
            compiled(torch.ones(2), 1)
        assert len(caught) == 1


COPIES = (
    "np.array(x)|np.array(x, copy=True)|np.array(x, copy=None)|np.array(x, np.float64)|np.array(x, None)|np.asarray(x)|"
    "np.array(x[0])|np.array(x, copy=False)|np.asarray(x, copy=True)|np.copy(x)|np.array(x.numpy())|np.array(object=x)"
)


@pytest.mark.parametrize("text", COPIES.split("|"))
def test_what_numpy_warns_of_for_tensors_is_said_on_each_call(text: str) -> None:
    def f(x: torch.Tensor) -> Any:
        try:
            return x + 1, make(x) * 2
        except ValueError as error:
            return error.args

    make = eval(compile(f"lambda x: {text}", __file__, "eval"), {"np": np})
    assert_same(f, stator.compile(f, backend="eager"), lambda: (torch.ones(3),))


def test_a_remainder_of_zero_has_the_sign_of_the_divisor() -> None:
    def f(a: Array, b: Array, n: Array) -> Any:
        c = a.copy()
        c %= b
        return a % b, a % -3, 3.0 % b, np.remainder(a, b), np.divmod(a, b), c, a[0] % b, n % -2

    zeros = np.array([0.0, -0.0, 1.5, -1.5, 3.0, -3.0])
    a, b = (grid.ravel() for grid in np.meshgrid(zeros, zeros[2:]))
    counting = Counting()
    compiled = stator.compile(f, backend=counting)
    for _ in range(2):
        for ours, theirs in zip(
            f(a, b, np.arange(-3, 3)), compiled(a, b, np.arange(-3, 3)), strict=True
        ):
            assert np.array_equal(ours, theirs)
            assert np.array_equal(np.signbit(ours), np.signbit(theirs))
    assert counting.count == 1


NUMBERS = [
    np.float64(2.5),
    np.float32(0.1),
    np.float16(2.5),
    np.int32(2),
    np.uint8(2),
    np.bool_(True),
    np.complex64(2),
]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: type(number).__name__)
def test_an_item_is_set_to_what_torch_takes_for_a_number(number: Any) -> None:
    def f(x: torch.Tensor, n: float) -> Any:
        y, said = x * 2, []
        for at in (0, slice(1, None), [0, 1]):
            try:
                y[at] = type(number)(n)
                y.__setitem__(at, number)
            except TypeError as error:
                said.append(str(error))
        return y, said

    assert_same(f, stator.compile(f, backend="eager"), lambda: (torch.ones(3), 3))


MADE = """torch.tensor(v)|torch.tensor([v])|torch.tensor((v, 1))|torch.tensor([[1.5], [v]])|torch.tensor([v, v > 0])
torch.as_tensor(v)|torch.asarray([v, 2])|torch.tensor(data=v)|torch.as_tensor(v, None)|torch.tensor([v], dtype=None)
torch.tensor([v, x.shape[0]])|torch.tensor([[], [v]])|torch.tensor([v], dtype=torch.complex64)|torch.tensor([v, n])
torch.tensor(v * n)|torch.tensor([np.float64(n), x.shape[0] / 2])|torch.tensor([x.sum(), v])|torch.tensor([None, v])"""


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: type(number).__name__)
@pytest.mark.parametrize("text", [text for line in MADE.split("\n") for text in line.split("|")])
def test_a_number_of_numpy_gives_a_tensor_its_dtype(text: str, number: Any) -> None:
    """The graph holds it as a number of Python's, which would be of the default dtype."""
    fn = eval(f"lambda x, v, n: (x + 1, {text})")
    calls = iter(range(2, 5))

    def call() -> tuple[Any, ...]:
        n = next(calls)
        return torch.ones(n), number, n

    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, call)


HELD = "np.arange(6.)[:3] + x.numpy()|torch.from_numpy(np.ones(3)) * x|x + torch.as_tensor(np.array([1.0, 2, 3]))"
HELD += (
    "|np.linspace(0, 1, 3) * np.zeros(3) + x.numpy()|torch.from_numpy(np.eye(3)[0]).add_(x).sin()"
)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("text", HELD.split("|"))
def test_arrays_that_a_graph_holds(text: str, backend: str) -> None:
    fn = of_text(f"x: {text}")
    assert_same(
        fn,
        stator.compile(fn, backend=backend),
        lambda: (torch.arange(3.0),),
        calls=2,
        tolerance=CLOSE,
    )


def of_what_backward_saved(w: Any, x: Any) -> Any:
    y = (w * x).sum()
    x.numpy()[:] += 1
    return torch.autograd.grad(y, w), x._version


def of_an_array_behind_a_tensor(w: Any, x: Any) -> Any:
    array = x.numpy()
    array += 1
    other = torch.from_numpy(array)
    array *= 2
    return x._version, other._version, w * other


@pytest.mark.parametrize("fn", [of_what_backward_saved, of_an_array_behind_a_tensor])
def test_writes_of_arrays_are_not_counted_as_writes_to_tensors(fn: Any) -> None:
    """Autograd does not see them, and refuses nothing for them."""
    assert_same(
        fn,
        stator.compile(fn, backend="eager"),
        lambda: (torch.ones(3, requires_grad=True), torch.ones(3)),
    )


TAKEN = "x.new_tensor(a)|x.new_tensor(a * n, dtype=None)|torch.Tensor(a)|torch.DoubleTensor(a).add_(n)|x[:, i]"
TAKEN += "|torch.as_tensor(a, dtype=x.dtype, device=x.device)|torch.tensor(a, device='cpu', dtype=None)|x[i, 0] + 1"
TAKEN += "|x.__setitem__((0, i), n)|x.int().new_tensor(a, device=None).add_(n)|torch.Tensor(a)[i]"


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("text", TAKEN.split("|"))
def test_arrays_are_taken_where_torch_takes_them(text: str, backend: str) -> None:
    fn = of_text(f"x, a, i, n: (x + 1, {text}, x, a)")
    compiled = stator.compile(fn, backend=backend, fullgraph=True)
    arguments = (torch.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2), np.array([2, 0]), 3)
    assert_same(fn, compiled, lambda: copy.deepcopy(arguments), tolerance=CLOSE)


BACKWARDS = [
    "torch.from_numpy(a[::-1])",
    "torch.tensor(a[::-1])",
    "torch.as_tensor(a[:, ::-1])",
    "x.new_tensor(a[::-1])",
    "x[a[0, ::-1]]",
]


@pytest.mark.parametrize("text", [*BACKWARDS, "torch.from_numpy(a[::-1].copy())"])
def test_no_tensor_goes_backwards(text: str) -> None:
    """torch refuses such an array, and does not give one that goes forward."""
    fn = of_text(f"x, a: (x + 1, {text})")
    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, lambda: (torch.ones(6), np.arange(6).reshape(3, 2)))


ORDERS = "a.T|a[::2]|a[:, ::2]|a[1:]|np.asfortranarray(a)|a[:, [1, 0]]|np.swapaxes(a, 0, 1)|x.T.numpy()|a.copy('F')"


@pytest.mark.parametrize("text", ORDERS.split("|"))
def test_a_tensor_of_an_array_has_its_layout(text: str) -> None:
    """`torch.tensor` copies, and keeps the order in memory where nothing is left out."""
    made = of_text(f"x, a: {text}")

    def fn(x: Any, a: Any) -> Any:
        array = made(x, a)
        tensors = (
            torch.tensor(array),
            torch.from_numpy(array),
            torch.tensor(array, dtype=torch.float32),
        )
        return x + 1, [(tensor, tensor.stride(), tensor.is_contiguous()) for tensor in tensors]

    compiled = stator.compile(fn, backend="eager")
    assert_same(
        fn, compiled, lambda: (torch.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4))
    )


SIZED = "np.zeros(x.shape[0])|np.zeros((n, 2), dtype=np.int64)|np.ones([n, n], dtype=bool)|np.arange(n) * 2"
SIZED += "|np.zeros(x.shape)"
SIZED += (
    "|torch.from_numpy(np.zeros(len(x))) + x|x.new_tensor(np.arange(n)) * x|np.zeros(n)[1:] + 2"
)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("text", SIZED.split("|"))
def test_arrays_of_symbolic_sizes(text: str, backend: str) -> None:
    fn = of_text(f"x, n: (x + 1, {text})")
    sizes = iter(range(3, 9))
    compiled = stator.compile(fn, backend=backend, fullgraph=True)

    def make() -> Any:
        n = next(sizes)
        return torch.ones(n), n

    assert_same(fn, compiled, make, calls=5, tolerance=CLOSE)
    assert compiled.report.graph_count == 2


@pytest.mark.parametrize(
    "text",
    [
        "np.zeros(n - 6)",
        "np.zeros(n, 'f4')",
        "np.arange(n - 6)",
        "np.zeros(n, order='F')",
        "np.arange(0, n, dtype=int)",
    ],
)
def test_arrays_of_sizes_that_are_none(text: str) -> None:
    fn = of_text(f"x, n: (x + 1, {text})")
    sizes = iter(range(8, 2, -1))
    assert_same(
        fn, stator.compile(fn, backend="eager"), lambda: (torch.ones(2), next(sizes)), calls=5
    )


def ramps() -> Iterator[tuple[Array, Array]]:
    """Arrays of a changing size, real and complex."""
    while True:
        for size in (2, 3, 4, 5):
            yield np.arange(float(size)), np.arange(size) + 1j


SIZED = """np.bitwise_and(a, len(a))|np.bitwise_and(a > 1, len(a))|np.add(b, len(b))|np.diff(a, n=len(a) - 1)
np.zeros(len(a), dtype='S3')|np.arange(len(a), dtype=np.float32)|np.ones(len(a), dtype='complex64')|np.float32(len(a)) + a"""


@pytest.mark.parametrize("text", [text for line in SIZED.split("\n") for text in line.split("|")])
def test_sizes_beside_arrays(text: str) -> None:
    fn = eval(f"lambda a, b: {text}", {"np": np})
    made = ramps()
    assert_same(fn, stator.compile(fn, backend="eager"), lambda: next(made), calls=4)


NATIVE = """a + np.dtype([('a', int)]).itemsize|(a, np.dtype('f4', align=True))|np.frompyfunc(str, 1, 1)(a)
a + float(np.log(-1.0))|np.add('a', 1)|len(a.sum().reshape(()))|np.broadcast_arrays(a, a[0])|a[:1][::-1]
(b.T, b.real, b.imag, np.real(b), np.conj(b))|x.numpy(force=True)|x.conj().numpy()|x.to_sparse().numpy()
x.clone().requires_grad_().numpy()|torch.nn.Parameter(x).numpy()|np.asarray(torch.nn.Parameter(x))
x.bfloat16().numpy()|torch.nn.Parameter(x).detach().numpy()"""


@pytest.mark.parametrize("text", [text for line in NATIVE.split("\n") for text in line.split("|")])
@pytest.mark.filterwarnings("ignore:future versions will not create a writeable array")
def test_what_torchs_layer_does_not_compute_is_numpys(text: str) -> None:
    fn = eval(f"lambda a, b, x: {text}", {"np": np, "torch": torch})
    x = torch.arange(4.0) + 1j if "conj()" in text else torch.arange(4.0)
    given = (np.arange(6.0).reshape(2, 3), np.arange(3) + 1j, x)
    assert_same(fn, stator.compile(fn, backend="eager"), lambda: copy.deepcopy(given))


DRAWN = """g.integers(0, 5, size=3, dtype=np.uint64)|g.choice(['a', 'b'], size=3)|g.random(3, dtype='f4')"""


@pytest.mark.parametrize("text", DRAWN.split("|"))
def test_arrays_that_no_tensor_can_be_are_drawn_natively(text: str) -> None:
    fn = eval(f"lambda x, g: (x + 1, {text})", {"np": np})
    compiled = stator.compile(fn, backend="eager")
    assert_same(fn, compiled, lambda: (torch.ones(2), np.random.default_rng(1)))
