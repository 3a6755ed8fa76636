"""What can be compiled, and what a clear error is for what cannot."""

from __future__ import annotations

import functools
import inspect
import pickle
import subprocess
import sys
import warnings
import weakref
from typing import Any

import pytest
import stator
import torch

X = torch.arange(3.0)


def double(x: Any) -> Any:
    """Twice."""
    return x * 2


compiled_double: Any = stator.compile(double, backend="eager")


@stator.compile(backend="eager")
def triple(x: Any) -> Any:
    return x * 3


class Scale:
    factor = 4

    def method(self, x: Any) -> Any:
        return x * self.factor

    @stator.compile(backend="eager")
    def compiled_method(self, x: Any) -> Any:
        return x * self.factor

    @stator.compile(backend="eager")
    @staticmethod
    def static(x: Any) -> Any:
        return x * 5

    @stator.compile(backend="eager")
    @classmethod
    def of_class(cls, x: Any) -> Any:
        return x * cls.factor

    def __call__(self, x: Any) -> Any:
        return x - self.factor


def report_of(compiled: Any) -> Any:
    return compiled.report


def is_(result: Any, expected: Any) -> bool:
    return torch.equal(result, expected)


def test_decorator_with_arguments_gives_a_function() -> None:
    assert is_(triple(X), X * 3)
    assert report_of(triple).graph_count == 1


def test_function_compiled_by_a_call() -> None:
    assert is_(compiled_double(X), X * 2)


def test_bound_method() -> None:
    scale = Scale()
    compiled = stator.compile(scale.method, backend="eager")
    assert is_(compiled(X), X * 4)
    assert compiled.__self__ is scale
    assert compiled.report.graph_count == 1


def test_methods_in_a_class_body() -> None:
    assert is_(Scale().compiled_method(X), X * 4)
    assert is_(Scale.static(X), X * 5)
    assert is_(Scale.of_class(X), X * 4)
    assert is_(Scale().of_class(X), X * 4)


def test_callable_object() -> None:
    compiled = stator.compile(Scale(), backend="eager")
    assert is_(compiled(X), X - 4)
    assert compiled.report.graph_count == 1


def test_class_compiles_the_calls_of_its_instances() -> None:
    @stator.compile(backend="eager")
    class Shift(Scale):
        factor = 7

    assert isinstance(Shift, type)
    assert is_(Shift()(X), X - 7)
    assert report_of(Shift.__call__).graph_count == 1
    assert not hasattr(Scale.__call__, "report")


def test_class_of_modules_compiles_their_calls() -> None:
    @stator.compile(backend="eager")
    class Twice(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    assert is_(Twice()(X), X * 2)
    assert report_of(Twice._call_impl).graph_count == 1
    assert not hasattr(torch.nn.Module._call_impl, "report")


def test_partial() -> None:
    def add(x: Any, y: Any, *, z: int) -> Any:
        return x + y + z

    compiled = stator.compile(functools.partial(add, X, z=3), backend="eager")
    assert is_(compiled(1), X + 4)
    assert compiled.report.graph_count == 1


def test_function_written_in_c() -> None:
    assert is_(stator.compile(torch.sin, backend="eager")(X), torch.sin(X))


def test_compiled_function_is_compiled_anew_from_its_original() -> None:
    again = stator.compile(triple, backend=lambda graph, inputs: graph.forward)
    assert is_(again(X), X * 3)
    assert again.__wrapped__ is inspect.unwrap(triple)
    assert again.report.graph_count == 1


def test_decorated_compiled_function_keeps_its_decorator() -> None:
    @functools.wraps(triple)
    def plus_one(x: Any) -> Any:
        return triple(x) + 1

    assert is_(stator.compile(plus_one, backend="eager")(X), X * 3 + 1)
    assert is_(stator.compile(lambda x: -plus_one(x), backend="eager")(X), -X * 3 - 1)


def test_compiled_function_is_inlined_by_another() -> None:
    outer = stator.compile(lambda x: triple(x) + 1, backend="eager")
    assert is_(outer(X), X * 3 + 1)
    assert (outer.report.graph_count, outer.report.op_count) == (1, 2)


def test_disabled_by_the_option_gives_the_function_itself() -> None:
    assert stator.compile(double, disable=True) is double


def test_looks_like_the_original() -> None:
    assert compiled_double.__name__ == "double"
    assert compiled_double.__doc__ == "Twice."
    assert compiled_double.__wrapped__ is double
    assert inspect.signature(compiled_double) == inspect.signature(double)
    assert weakref.ref(compiled_double)() is compiled_double


def test_decorated_function_is_pickled_by_reference() -> None:
    assert pickle.loads(pickle.dumps(triple)) is triple


@pytest.mark.parametrize("subject", [3, "f", property(lambda self: 1), int, Scale.factor])
def test_what_cannot_be_called_is_refused(subject: Any) -> None:
    with pytest.raises(stator.InvalidUse, match="cannot compile"):
        stator.compile(subject, backend="eager")


def test_scripted_function_is_refused() -> None:
    with pytest.raises(stator.InvalidUse, match=r"torch\.jit"):
        stator.compile(torch._C.ScriptFunction.__new__(torch._C.ScriptFunction), backend="eager")


def test_unknown_backend_is_told_with_the_names_that_exist() -> None:
    with pytest.raises(stator.UnknownBackend, match="did you mean 'inductor'") as error:
        stator.compile(double, backend="indcutor")
    assert "aot_eager" in error.value.known
    assert isinstance(error.value, stator.InvalidUse)


@pytest.mark.parametrize(
    "keywords",
    [
        {"options": {"orcle": True}},
        {"options": {"recompile_limit": 0}},
        {"options": {"oracle": "yes"}},
        {"fullgraph": 1},
        {"dynamic": "yes"},
        {"backend": "inductor", "mode": "fastest"},
        {"backend": "inductor", "options": {"no_such_setting": 1}},
    ],
)
def test_invalid_options_are_refused_at_once(keywords: dict[str, Any]) -> None:
    with pytest.raises(stator.InvalidOption):
        stator.compile(double, **{"backend": "eager", **keywords})


def test_object_that_is_no_backend_is_refused() -> None:
    with pytest.raises(stator.InvalidUse, match="not a backend"):
        stator.compile(double, backend=3)  # type: ignore[call-overload]


def failing(graph: Any, inputs: Any) -> Any:
    raise RuntimeError("no such luck")


def test_backend_that_raises_is_named_with_its_error_as_cause() -> None:
    with pytest.raises(stator.BackendFailed, match=r"'failing'.*no such luck") as error:
        stator.compile(double, backend=failing)(X)
    assert isinstance(error.value.__cause__, RuntimeError)
    assert isinstance(error.value, stator.StatorError)


def test_fallback_runs_plainly_and_asks_the_backend_once() -> None:
    asked = []

    def backend(graph: Any, inputs: Any) -> Any:
        asked.append(graph)
        raise RuntimeError

    compiled = stator.compile(double, backend=backend, options={"fallback": True})
    assert is_(compiled(X), X * 2)
    assert is_(compiled(X), X * 2)
    assert len(asked) == 1
    assert compiled.report.breaks[0].reason == "backend-failed"


@pytest.mark.parametrize("given", [None, 3, (), "the tensor itself"])
def test_backend_whose_function_gives_no_tuple_of_outputs_is_named(given: Any) -> None:
    def strange(graph: Any, inputs: Any) -> Any:
        return lambda x: graph(x)[0] if given == "the tensor itself" else given

    with pytest.raises(stator.BackendFailed, match=r"'strange'.*running the graph"):
        stator.compile(double, backend=strange)(X)
    forgiven = stator.compile(double, backend=strange, options={"fallback": True})
    assert is_(forgiven(X), X * 2)


def test_function_of_a_backend_is_called_by_the_entry_itself_after_its_first_call() -> None:
    callers: list[str] = []

    def backend(graph: Any, inputs: Any) -> Any:
        def run(x: Any) -> Any:
            callers.append(sys._getframe(1).f_code.co_name)
            return graph(x)

        return run

    compiled = stator.compile(double, backend=backend)
    for _ in range(3):
        assert is_(compiled(X), X * 2)
    assert [name.startswith("entry_") for name in callers] == [False, True, True]


def test_backend_that_cannot_be_hashed() -> None:
    class Backend:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, graph: Any, inputs: Any) -> Any:
            return graph.forward

    assert is_(stator.compile(double, backend=Backend())(X), X * 2)


def test_generator_function_says_so_once_and_runs_plainly() -> None:
    def count(x: Any) -> Any:
        yield x

    async def wait(x: Any) -> Any:
        return x

    for function, kind in ((count, "generator"), (wait, "coroutine")):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            assert stator.compile(function, backend="eager") is function
        assert [(kind in str(each.message), each.filename) for each in found] == [(True, __file__)]


def test_fullgraph_raises_where_it_would_break() -> None:
    def broken(x: Any) -> Any:
        stator.graph_break()
        return x

    with pytest.raises(stator.Unsupported, match="graph_break") as error:
        stator.compile(broken, backend="eager", fullgraph=True)(X)
    assert error.value.where.filename == __file__


def test_importing_stator_is_quick() -> None:
    """What takes long to import is imported by the first compilation that needs it."""
    program = "import sys, torch, stator; print(*{'sympy', 'torch._numpy', 'torch._dynamo'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
