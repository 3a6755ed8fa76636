"""What a person sees of an error: the program's frames, its source, and what to try."""

from __future__ import annotations

import pathlib
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn
from torch._functorch.aot_autograd import aot_module_simplified
from torch.fx import GraphModule

X = torch.ones(3)


def sign(x: Tensor) -> Tensor:
    return x if x.sum() > 0 else -x


def calls_sign(x: Tensor) -> Tensor:
    y = x * 2
    return sign(y.sin()) + y


class Signs(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return sign(x + 1)


def failing(gm: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    raise ValueError("no such thing here")


def _frames(call: Callable[[], object], kind: type[Exception]) -> tuple[Exception, list[str]]:
    """Return the error of a call, and the functions in its traceback."""
    with pytest.raises(kind) as raised:
        call()
    return raised.value, [each.name for each in traceback.extract_tb(raised.value.__traceback__)]


FULL = {"backend": "eager", "fullgraph": True}
CALLS: dict[str, tuple[Callable[[], object], type[Exception]]] = {
    "a break under fullgraph": (lambda: stator.compile(calls_sign, **FULL)(X), stator.Unsupported),
    "a module": (lambda: stator.compile(Signs(), **FULL)(X), stator.Unsupported),
    "a backend": (lambda: stator.compile(sign, backend=failing)(X), stator.BackendFailed),
    "an unknown backend": (lambda: stator.compile(sign, backend="egaer"), stator.UnknownBackend),
    "an unknown option": (
        lambda: stator.compile(sign, options={"no_such_option": 1}),
        stator.InvalidOption,
    ),
    "no callable": (lambda: stator.compile(3), stator.InvalidUse),
    "no callable, as a decorator": (lambda: stator.compile()(3), stator.InvalidUse),
    "no module": (lambda: stator.compile_in_place(3), stator.InvalidUse),  # type: ignore[type-var]
}


@pytest.mark.parametrize("title", CALLS)
def test_no_frame_of_stator_is_between_the_call_and_the_error(title: str) -> None:
    _, names = _frames(*CALLS[title])
    assert names == ["_frames", "<lambda>"]


@pytest.mark.parametrize("title", CALLS)
def test_the_environment_shows_all_frames(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATOR_FULL_TRACEBACK", "1")
    _, names = _frames(*CALLS[title])
    assert len(names) > 2


@pytest.mark.parametrize("title", CALLS)
def test_errors_are_runtime_errors_as_those_of_torch_compile(title: str) -> None:
    _, kind = CALLS[title]
    assert issubclass(kind, RuntimeError)


def test_the_text_shows_the_frames_of_the_program_and_their_source() -> None:
    error, _ = _frames(*CALLS["a break under fullgraph"])
    assert str(error).splitlines() == [
        "cannot capture: a branch on the value of a tensor",
        f'  File "{__file__}", line {calls_sign.__code__.co_firstlineno + 2}, in calls_sign',
        "    return sign(y.sin()) + y",
        "           ^^^^^^^^^^^^^",
        f'  File "{__file__}", line {sign.__code__.co_firstlineno + 1}, in sign',
        "    return x if x.sum() > 0 else -x",
        "                ^^^^^^^^^^^",
        "  reason: data-dependent-branch",
        "  try: use torch.where or torch.cond, or accept the graph break",
    ]


def test_calls_of_modules_are_no_frames_of_the_program() -> None:
    error, _ = _frames(*CALLS["a module"])
    assert "_call_impl" not in str(error)
    assert str(error).count("  File ") == 2


def test_the_cause_of_a_backend_failure_begins_in_the_backend() -> None:
    error, _ = _frames(*CALLS["a backend"])
    cause = error.__cause__
    assert isinstance(cause, ValueError)
    assert [each.name for each in traceback.extract_tb(cause.__traceback__)] == ["failing"]


def test_a_mistake_of_the_caller_has_no_cause_in_our_layers() -> None:
    error, _ = _frames(*CALLS["an unknown backend"])
    assert error.__cause__ is None
    assert error.__suppress_context__
    assert "did you mean 'eager'?" in str(error)


def test_carets_count_characters() -> None:
    def accented(x: Tensor) -> Tensor:
        return ("é", x if x.sum() > 0 else -x)[1]

    with pytest.raises(stator.Unsupported) as raised:
        stator.compile(accented, backend="eager", fullgraph=True)(X)
    _, _, source, carets, *_ = str(raised.value).splitlines()
    begin = carets.index("^")
    assert source[begin : carets.rindex("^") + 1] == "x.sum() > 0"


def test_an_expression_of_several_lines_is_marked_in_its_first_one() -> None:
    # fmt: off
    def long(x: Tensor) -> Tensor:
        return x if (x.sum()
                     > 0) else -x
    # fmt: on

    with pytest.raises(stator.Unsupported) as raised:
        stator.compile(long, backend="eager", fullgraph=True)(X)
    assert "    return x if (x.sum()\n                 ^^^^^^^\n" in str(raised.value)


def test_code_without_source_is_named_by_its_line() -> None:
    namespace: dict[str, Any] = {}
    exec("def made(x):\n    return x if x.sum() > 0 else -x", namespace)
    with pytest.raises(stator.Unsupported) as raised:
        stator.compile(namespace["made"], backend="eager", fullgraph=True)(X)
    assert str(raised.value).splitlines()[1] == '  File "<string>", line 2, in made'


def _printing(count: int) -> Callable[..., Any]:
    """Return a backend whose compiler prints so many lines, and fails."""
    warnings = [f"warning {number}" for number in range(count)]
    printed = "\n".join(["C++ compile error", *warnings, "x.cpp: error: no", *warnings, "ended"])

    def backend(gm: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        raise LookupError("\n".join(warnings)) from OSError(printed)

    return backend


def _failure_of(backend: Callable[..., Any]) -> stator.BackendFailed:
    with pytest.raises(stator.BackendFailed) as raised:
        stator.compile(sign, backend=backend)(X)
    return raised.value


def test_a_long_error_of_a_backend_is_shown_in_part_and_kept_whole_in_a_file(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATOR_REPRO_FOLDER", str(tmp_path))
    failure = _failure_of(_printing(1000))
    assert len("".join(traceback.format_exception(failure)).splitlines()) < 60

    assert isinstance(failure.__cause__, LookupError)
    assert "990 lines, which are in the file" in str(failure.__cause__)
    shown = str(failure.__cause__.__cause__).splitlines()
    assert shown[0] == "C++ compile error"
    assert shown[-1] == "ended"
    assert "x.cpp: error: no" in shown

    assert failure.reason.endswith("\nwarning 999")
    assert str(failure).splitlines()[0].endswith(": LookupError: warning 0")
    assert f"all of it: {failure.log}" in str(failure)
    assert pathlib.Path(failure.log).read_text() == failure.reason


def test_a_short_error_of_a_backend_is_shown_whole(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATOR_REPRO_FOLDER", str(tmp_path))
    failure = _failure_of(_printing(5))
    assert not failure.log
    assert str(failure.__cause__) == "\n".join(f"warning {number}" for number in range(5))
    assert failure.reason in str(failure)


def test_a_long_error_is_left_alone_where_all_frames_are_shown(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATOR_REPRO_FOLDER", str(tmp_path))
    monkeypatch.setenv("STATOR_FULL_TRACEBACK", "1")
    assert len(str(_failure_of(_printing(1000)).__cause__).splitlines()) == 1000


def test_a_long_error_is_shown_whole_where_no_file_can_be_written(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "file"
    folder.write_text("")
    monkeypatch.setenv("STATOR_REPRO_FOLDER", str(folder))
    failure = _failure_of(_printing(1000))
    assert failure.reason in str(failure)


def test_a_path_that_inductor_does_not_quote_has_a_remedy() -> None:
    linked = stator.BackendFailed("inductor", "C++ compile error\nld: cannot find -ltorch")
    assert "into a folder without spaces" in str(linked)


def sums(x: Tensor) -> Tensor:
    y = x.exp() * x.sin()
    return torch.cumsum(y, 0) + y


def _place_of(failure: stator.BackendFailed) -> list[str]:
    """Return the lines about the operator: the last is what the carets mark."""
    lines = [line[2:] for line in str(failure).splitlines() if line.startswith("  ")]
    begin = next((n for n, line in enumerate(lines) if line.startswith("at the operator")), None)
    if begin is None:
        return []
    operator, place, *source = lines[begin : begin + 4]
    place = place.replace(__file__, "FILE")
    if len(source) < 2 or "^" not in source[1]:
        return [operator, place]
    marked = "".join(
        character
        for character, mark in zip(source[0], source[1].ljust(len(source[0])), strict=True)
        if mark == "^"
    )
    return [operator, place, source[0].strip(), marked]


def _failure_in(fn: Callable[..., Any], backend: Callable[..., Any]) -> stator.BackendFailed:
    with pytest.raises(stator.BackendFailed) as raised:
        stator.compile(fn, backend=backend)(torch.ones(3, requires_grad=True))
    return raised.value


def raises_at(node: torch.fx.Node, names: str) -> None:
    if any(name in str(node.target) for name in names.split()):
        raise NotImplementedError("no kernel")


def in_a_loop(gm: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    for node in gm.graph.nodes:
        if "sin" in str(node.target):
            raise NotImplementedError("no kernel")
    return gm.forward


def by_a_function(gm: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    for _number, node in enumerate(gm.graph.nodes):
        raises_at(node, "sin")
    return gm.forward


def by_a_comprehension(gm: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    known = {"exp": 1, "mul": 2}
    [known[str(node.target)] for node in gm.graph.nodes if "sin" in str(node.target)]
    return gm.forward


class Refusing(torch.fx.Interpreter):
    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target == "sin":
            raise NotImplementedError("no kernel")
        return super().call_method(target, args, kwargs)


def by_an_interpreter(gm: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    Refusing(gm).run(*inputs)
    return gm.forward


def by_a_wrapping_error(gm: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    try:
        return in_a_loop(gm, inputs)
    except NotImplementedError as error:
        raise LookupError("this graph is not compiled") from error


def _decomposed(names: str) -> Callable[..., Any]:
    """Return a backend that raises at these operators of the graph of AOTAutograd."""

    def compiler(gm: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        for node in gm.graph.nodes:
            raises_at(node, names)
        return gm.forward

    return lambda gm, inputs: aot_module_simplified(gm, inputs, fw_compiler=compiler)  # type: ignore[arg-type]


OF_SIN = [
    f'File "FILE", line {sums.__code__.co_firstlineno + 1}, in sums',
    "y = x.exp() * x.sin()",
    "x.sin()",
]
BACKENDS = [in_a_loop, by_a_function, by_a_comprehension, by_an_interpreter, by_a_wrapping_error]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backend_that_raises_at_an_operator_names_it_and_its_line(
    backend: Callable[..., Any],
) -> None:
    failure = _failure_in(sums, backend)
    # an inlined comprehension (PEP 709) restores its variable when it raises
    is_lost = backend is by_a_comprehension and sys.version_info >= (3, 12)
    assert _place_of(failure) == ([] if is_lost else ["at the operator sin", *OF_SIN])
    assert "While executing" not in str(failure)


@pytest.mark.parametrize(
    ("names", "place"),
    [
        ("aten.sin", ["at the operator aten.sin.default", *OF_SIN]),
        (
            "aten.cumsum",
            [
                "at the operator aten.cumsum.default",
                f'File "FILE", line {sums.__code__.co_firstlineno + 2}, in sums',
                "return torch.cumsum(y, 0) + y",
                "torch.cumsum(y, 0)",
            ],
        ),
    ],
)
def test_decomposed_operators_are_named_with_the_call_of_the_program(
    names: str, place: list[str]
) -> None:
    assert _place_of(_failure_in(sums, _decomposed(names))) == place


def test_an_operator_in_torch_is_shown_at_the_line_that_calls_torch() -> None:
    layer = nn.Linear(3, 3)

    def layered(x: Tensor) -> Tensor:
        projected: Tensor = layer(x)
        return projected.relu()

    def backend(gm: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        for node in gm.graph.nodes:
            raises_at(node, "linear")
        return gm.forward

    _, place, *source = _place_of(_failure_in(layered, backend))
    assert place.endswith(
        "in test_an_operator_in_torch_is_shown_at_the_line_that_calls_torch.<locals>.layered"
    )
    assert source == ["projected: Tensor = layer(x)", "layer(x)"]


def test_an_operator_without_source_is_named_with_its_line() -> None:
    namespace: dict[str, Any] = {}
    exec("def made(x):\n    return x.sin() + 1", namespace)
    failure = _failure_in(namespace["made"], in_a_loop)
    assert _place_of(failure) == ["at the operator sin", 'File "<string>", line 2, in made']


def test_an_operator_in_a_branch_of_cond_is_named() -> None:
    def chosen(x: Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x.cos() + x.sin(), lambda x: x + 1, (x,))

    def backend(gm: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        graphs = [each.graph for each in gm.modules() if isinstance(each, GraphModule)]
        for graph in graphs:
            for node in graph.nodes:
                raises_at(node, "sin")
        return gm.forward

    operator, _, _, marked = _place_of(_failure_in(chosen, backend))
    assert (operator, marked) == ("at the operator sin", "x.sin()")


def test_an_operator_in_a_piece_of_a_graph_is_named() -> None:
    def divided(x: Tensor) -> Tensor:
        y = x * 2
        y[x > 0] = 0.5
        return y.cos() + y.sin()

    operator, _, _, marked = _place_of(_failure_in(divided, _decomposed("aten.sin")))
    assert (operator, marked) == ("at the operator aten.sin.default", "y.sin()")


def after_the_loop(gm: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    for node in gm.graph.nodes:
        if node.op.startswith("call_"):
            last = node
            break
    raise NotImplementedError(f"{last.name} is only the first operator")


def before_the_graph(gm: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    raise OSError("no compiler is installed")


@pytest.mark.parametrize("backend", [after_the_loop, before_the_graph])
def test_a_failure_that_is_not_about_one_operator_names_none(backend: Callable[..., Any]) -> None:
    failure = _failure_in(sums, backend)
    assert failure.operator == ""
    assert _place_of(failure) == []
