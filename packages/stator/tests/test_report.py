"""Reports as data and text, and the command line that prints them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import stator
import torch
from stator_variables import throw

X = torch.arange(3.0)


def broken(x: Any) -> Any:
    y = x + 1
    stator.graph_break()
    return y * 2


def test_report_says_where_why_and_what_to_try() -> None:
    compiled = stator.compile(broken, backend="eager")
    compiled(X)
    report = compiled.report
    assert (report.graph_count, report.op_count, report.entry_count) == (2, 2, 2)
    (reason,) = report.breaks
    assert (reason.where.filename, reason.where.function) == (__file__, "broken")
    assert reason.where.line == broken.__code__.co_firstlineno + 2
    assert reason.hint
    assert report.trace_seconds > 0
    text = str(report)
    assert text.startswith("2 graphs, 2 operations, 1 break, 2 entries")
    assert f'File "{__file__}", line {reason.where.line}' in text


def test_a_fault_of_ours_names_the_users_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*args: object) -> None:
        raise TypeError("ours")

    monkeypatch.setattr("stator_subgraphs._call._write_down", fault)
    with pytest.raises(stator.InternalError, match="TypeError: ours") as caught:
        stator.compile(broken, backend="eager")(X)
    assert (caught.value.where.filename, caught.value.where.line) == (
        __file__,
        broken.__code__.co_firstlineno + 1,
    )


def _wrongly_raising() -> stator.Stack:
    def handler(t: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        throw(TypeError, "which math.sqrt does not raise")

    return stator.Stack(operators=lambda: {math.sqrt: handler})


def rooted(x: Any) -> Any:
    return (x + 1) * math.sqrt(4.0)


def test_an_exception_that_did_not_come_is_reported_once_with_its_line() -> None:
    compiled = stator.compile(rooted, backend="eager", stack=_wrongly_raising())
    for _ in range(2):
        assert torch.equal(compiled(X), rooted(X))
    (reason,) = compiled.report.breaks
    assert (reason.reason, reason.where.line) == (
        "no-exception",
        rooted.__code__.co_firstlineno + 1,
    )
    assert "broken for nothing" in str(compiled.report)


def test_an_exception_that_did_not_come_is_an_error_under_fullgraph() -> None:
    with pytest.raises(stator.Unsupported, match=r"no TypeError.* was raised"):
        stator.compile(rooted, backend="eager", fullgraph=True, stack=_wrongly_raising())(X)


def _caught_by_a_generator(x: Any) -> Any:
    def lazily() -> Any:
        try:
            raise KeyError("kept")
        except KeyError:
            yield x + 1
            raise

    iterator = lazily()
    return next(iterator, None), list(iterator)


def _caught_by(take: Any, kind: type[Exception]) -> Any:
    def fn(x: Any) -> Any:
        seen: list[Exception] = []

        class Raising:
            def raises(self) -> Any:
                seen.append(kind("kept"))
                raise seen[-1]

            named = property(raises)
            __next__ = raises

            def __iter__(self) -> Any:
                return self

        take(Raising())
        x.add_(1)
        raise seen[0]

    return fn


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize(
    "fn",
    [
        _caught_by_a_generator,
        _caught_by(lambda it: hasattr(it, "named"), AttributeError),
        _caught_by(lambda it: getattr(it, "named", 3), AttributeError),
        _caught_by(list, StopIteration),
        _caught_by(lambda it: [each for each in it], StopIteration),
        _caught_by(lambda it: next(it, None), StopIteration),
    ],
)
def test_an_exception_that_was_caught_and_is_raised_again_later_is_none_that_did_not_come(
    fn: Any, fullgraph: bool
) -> None:
    compiled = stator.compile(fn, backend="eager", fullgraph=fullgraph)
    for _ in range(2):
        with pytest.raises(Exception, match="kept") as plain:
            fn(x := torch.ones(3))
        with pytest.raises(type(plain.value), match="kept") as ours:
            compiled(y := torch.ones(3))
        assert type(ours.value) is type(plain.value)
        assert torch.equal(x, y)
    assert not compiled.report.missed


def test_what_decided_that_an_exception_came_is_guarded_though_it_was_caught_at_first() -> None:
    def fn(x: Any) -> Any:
        def lazily() -> Any:
            try:
                if x.shape[0] > 3:
                    raise KeyError("kept")
            except KeyError:
                yield x + 1
                raise
            yield x + 2

        iterator = lazily()
        return next(iterator, None), list(iterator)

    compiled = stator.compile(fn, backend="eager", fullgraph=True, dynamic=True)
    for size in (5, 6):
        with pytest.raises(KeyError, match="kept"):
            compiled(torch.ones(size))
    entries, graphs = compiled.report.compile_count, compiled.report.graph_count
    assert torch.equal(compiled(torch.ones(2))[0], torch.full((2,), 3.0))
    assert (compiled.report.compile_count, compiled.report.graph_count) == (entries + 1, graphs + 1)


def test_report_names_guards_with_the_users_line() -> None:
    compiled = stator.compile(lambda x: x + 1, backend="eager")
    compiled(X)
    (guard,) = [guard for guard in compiled.report.guards if "sizes" in guard.kind.needed]
    assert (guard.name, guard.where.filename) == ("x", __file__)
    assert "guard: x is a Tensor of torch.float32" in compiled.report.text(guards=True)


def test_guards_of_items_that_are_passed_on_name_the_line_that_found_them() -> None:
    def fn(items: dict[str, Any], x: Any) -> Any:
        found = items["key"]
        return found, x + 1

    compiled = stator.compile(fn, backend="eager")
    compiled({"key": object()}, X)
    (guard,) = [guard for guard in compiled.report.guards if "'key'" in guard.kind.needed]
    assert guard.where.line == fn.__code__.co_firstlineno + 1


def test_guards_that_no_line_needed_are_shown_without_one() -> None:
    layers = (torch.nn.LayerNorm(3, bias=False) for _ in range(2))
    compiled = stator.compile(torch.nn.Sequential(*layers), backend="eager")
    compiled(X)
    text = compiled.report.text(guards=True)
    assert "input is another object than" in text
    assert "<unknown>" not in text


def test_report_says_why_it_compiled_again() -> None:
    compiled = stator.compile(lambda x: x + 1, backend="eager")
    compiled(X)
    compiled(torch.ones(5))
    (failure,) = compiled.report.recompiles
    assert failure.where.filename == __file__
    assert "compiled again: x was" in str(compiled.report)


def test_entries_have_the_source_of_their_guards() -> None:
    compiled = stator.compile(lambda x: x + 1, backend="eager")
    compiled(X)
    (entry,) = compiled.report.entries
    assert entry.guard_source.startswith("def check(")
    assert "tensors_match(x)" in entry.guard_source
    assert {"entries", "graph_count"} <= {*dir(compiled.report)}


class _Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor, *, flag: bool = True) -> torch.Tensor:
        return self.inner(x) if flag else x


def test_arguments_of_a_module_have_the_names_of_its_forward() -> None:
    compiled = stator.compile(_Scaled(), backend="eager", dynamic=False)
    compiled(torch.ones(2, 3), flag=True)
    compiled(torch.ones(2, 3), flag=False)
    (failure,) = compiled.report.recompiles
    assert failure.source == "flag"


def test_a_guard_of_a_library_module_names_the_line_of_the_program() -> None:
    compiled = stator.compile(_Scaled(), backend="eager", dynamic=False)
    compiled(torch.ones(2, 3))
    compiled(torch.ones(4, 3))
    (failure,) = compiled.report.recompiles
    assert (failure.source, failure.where.filename) == ("x", __file__)
    assert failure.where.function.endswith("_Scaled.forward")


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        y = self.linear(x).sin().cos()
        return x + (y * 2).tanh().sigmoid() * 0.5


def test_equal_blocks_are_shown_once() -> None:
    blocks = torch.nn.Sequential(*(Block() for _ in range(5)))
    compiled = stator.compile(blocks, backend="aot_eager", options={"regions": "always"})
    compiled(X)
    report = stator.report_of(compiled)
    text = str(report)
    assert "  all operators are compiled, in 5 pieces\n" in text
    shared = "one piece of 8 operators is compiled once, x 4: self.1, self.2, self.3, self.4"
    assert shared in text
    pieces = report.data()["entries"][0]["pieces"]
    assert [piece["code"] for piece in pieces] == [0, 1, 1, 1, 1]


def test_graph_that_is_compiled_as_a_whole_has_no_pieces() -> None:
    compiled = stator.compile(rooted, backend="aot_eager")
    compiled(X)
    assert compiled.report.entries[0].pieces == ()
    assert "pieces" not in str(compiled.report)
