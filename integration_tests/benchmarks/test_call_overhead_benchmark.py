"""The harness of the call overhead benchmark, on toy programs in this process."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from integration_tests.benchmarks import __main__ as bench
from integration_tests.benchmarks.real_models import _measure, _page, _table, child, command
from integration_tests.benchmarks.real_models._measure import Figures, measure
from integration_tests.benchmarks.real_models._processes import Measured, Place, measure_in_turns
from integration_tests.benchmarks.real_models._replay import Replay
from integration_tests.benchmarks.real_models._results import Environment, Store
from integration_tests.benchmarks.real_models._sides import SIDES, Stator
from integration_tests.benchmarks.real_models._workload import Figure, Program, Workload, always
from integration_tests.benchmarks.real_models.workloads import MODELS, PROGRAMS, QUICK, WORKLOADS


def add(x: Tensor, y: Tensor) -> Tensor:
    return x + y


def toy(**settings: Any) -> Workload:
    return Workload("toy", lambda: Program(add, always(torch.ones(2), torch.ones(2))), **settings)


def figures(
    steady: float = 2e-6,
    early: float = 3e-4,
    slowest: dict[int, float] | None = None,
    cold: float = 0.0,
) -> Figures:
    return Figures(
        steady, early, slowest or {2: 4e-6}, recompiled=0, graph_calls=1, first=0.5, cold=cold
    )


def measured(name: str, ours: Figures, theirs: Figures) -> Measured:
    return Measured(name, {"stator": [ours], "torch": [theirs]})


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_measure, "_ROUNDS", 2)
    monkeypatch.setattr(_measure, "_SECONDS_PER_ROUND", 1e-4)


class TestReplay:
    def graph(self, fn: Callable[..., Any]) -> torch.fx.GraphModule:
        return torch.fx.symbolic_trace(fn)

    def test_graph_runs_for_real_in_its_first_call_only(self) -> None:
        replay = Replay()
        run = replay(self.graph(lambda x: (x + 1,)), [])
        first = run(torch.zeros(1))
        replay.end_call()
        assert first[0].item() == 1
        assert run(torch.ones(1)) is first

    def test_outputs_of_one_call_return_in_their_order_again_and_again(self) -> None:
        replay = Replay()
        run = replay(self.graph(lambda x: (x + 1,)), [])
        recorded = [run(torch.full((1,), float(i))) for i in range(3)]
        replay.end_call()
        assert [run(None) for _ in range(6)] == [*recorded, *recorded]

    def test_graph_compiled_in_a_later_call_is_recorded_there(self) -> None:
        replay = Replay()
        old = replay(self.graph(lambda x: (x + 1,)), [])
        output = old(torch.zeros(1))
        replay.end_call()
        new = replay(self.graph(lambda x: (x * 2,)), [])
        assert new(torch.full((1,), 3.0))[0].item() == 6
        assert old(None) is output

    def test_recording_anew_forgets_graphs_that_no_call_uses(self) -> None:
        replay = Replay()
        used, unused = (replay(self.graph(lambda x: (x + 1,)), []) for _ in range(2))
        unused(torch.zeros(1))
        replay.end_call()
        replay.record_next_call()
        used(torch.zeros(1))
        replay.end_call()
        assert replay.graph_calls() == 1
        assert replay.seconds_per_call() > 0

    def test_time_of_real_runs_is_given_once(self) -> None:
        replay = Replay()
        replay(self.graph(lambda x: (x + 1,)), [])(torch.zeros(1))
        assert replay.take_real_seconds() > 0
        assert replay.take_real_seconds() == 0


class TestMeasuring:
    @pytest.mark.parametrize("side", SIDES)
    def test_figures_of_a_toy(self, side: str) -> None:
        torch.compiler.reset()
        found = measure(toy(first_calls=5), SIDES[side]())
        assert found.graph_calls == 1
        assert found.recompiled == 0
        assert set(found.slowest) == {2, 3, 4, 5}
        assert found.early == pytest.approx(sum(found.slowest.values()))
        assert found.cold != 0
        assert found.first > found.early

    def test_call_that_compiles_is_left_out_of_the_first_calls(self) -> None:
        def arguments(number: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
            dtype = torch.float64 if number == 2 else torch.float32
            return (torch.ones(2, dtype=dtype), torch.ones(2)), {}

        workload = Workload("changing", lambda: Program(add, arguments), first_calls=5)
        found = measure(workload, Stator())
        assert found.recompiled == 1
        assert 3 not in found.slowest

    def test_gradient_mode_is_that_of_the_workload(self) -> None:
        seen = []

        def driver(compiled: Callable[..., Any]) -> Callable[..., Any]:
            def run(x: Tensor) -> None:
                seen.append(torch.is_grad_enabled())
                compiled(x)

            return run

        def make() -> Program:
            return Program(nn.Linear(2, 2), always(torch.ones(2)), driver)

        for gradients in (False, True):
            workload = Workload("linear", make, gradients=gradients, first_calls=2)
            measure(workload, Stator())
            assert set(seen) == {gradients}
            seen.clear()

    def test_time_over_eager_is_divided_by_the_breaks(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        times = iter([12.0, 2.0] * 3)
        monkeypatch.setattr(_measure, "_best", lambda run, program, number: next(times))
        found = measure(toy(figure=Figure.OVER_EAGER, breaks=2, first_calls=2), Stator())
        assert found.steady == 5.0

    def test_collection_of_garbage_is_as_before_afterwards(self) -> None:
        import gc

        measure(toy(first_calls=2), Stator())
        assert gc.isenabled()
        assert gc.get_freeze_count() == 0


class TestProcesses:
    def test_compilers_alternate(self) -> None:
        ran = []

        def run(workload: Workload, side: str, place: Place) -> Figures:
            ran.append(side)
            return figures()

        found = measure_in_turns(toy(), Place(), 2, run)
        assert ran == ["stator", "torch", "stator", "torch"]
        assert [len(each) for each in found.figures.values()] == [2, 2]

    def test_failure_is_kept_and_not_tried_again(self) -> None:
        ran = []

        def run(workload: Workload, side: str, place: Place) -> Figures | str:
            ran.append(side)
            return "out of order" if side == "torch" else figures()

        found = measure_in_turns(toy(), Place(), 2, run)
        assert ran == ["stator", "torch", "stator"]
        assert found.errors == {"torch": "out of order"}
        assert _table.row_of(toy(), found) is None
        assert "torch: out of order" in _table.failure_line(found)

    def test_caches_of_a_process_are_its_own(self) -> None:
        environment = Place().environment("/somewhere")
        assert environment["TORCHINDUCTOR_CACHE_DIR"].startswith("/somewhere")

    def test_tree_takes_the_place_of_what_is_installed(self, tmp_path: pathlib.Path) -> None:
        (tmp_path / "packages" / "stator" / "src").mkdir(parents=True)
        path = Place(tree=tmp_path).environment("/somewhere")["PYTHONPATH"]
        assert path.split(os.pathsep)[:2] == [
            str(tmp_path),
            str(tmp_path / "packages" / "stator" / "src"),
        ]

    def test_child_names_libraries_that_are_not_installed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        workload = Workload("toy", lambda: Program(add, always()), ("no_such_library",))
        monkeypatch.setitem(WORKLOADS, "toy", workload)
        with pytest.raises(SystemExit, match="not installed: no_such_library"):
            child.main("toy", "stator")


class TestTable:
    def test_figures_are_medians_over_processes(self) -> None:
        ours = [figures(steady) for steady in (1e-6, 9e-6, 2e-6)]
        row = _table.row_of(toy(), Measured("toy", {"stator": ours, "torch": [figures(4e-6)]}))
        assert row is not None
        assert row.ratio == pytest.approx(0.5)

    def test_line_of_a_model(self) -> None:
        row = _table.row_of(
            toy(), measured("toy", figures(2e-6, 3e-4, {7: 4e-6}), figures(4e-6, 6e-4))
        )
        assert row is not None
        assert (
            _table.model_line(row)
            == "| toy | 2.0 | 4.0 | 0.50 | 0.50 | 2.0 (call 7) | 0 / 0 | 1 / 1 |"
        )

    def test_slowest_call_is_compared_with_a_cold_one_where_that_was_measured(self) -> None:
        warm, cold = figures(2e-6, slowest={2: 8e-6}), figures(2e-6, slowest={2: 8e-6}, cold=4e-6)
        either = Measured("toy", {"stator": [warm, cold], "torch": [figures(4e-6)]}, {})
        row = _table.row_of(toy(), either)
        assert row is not None
        assert "| 4.0 / 2.0 (call 2) |" in _table.model_line(row)

    def test_line_of_a_program_over_eager(self) -> None:
        workload = toy(figure=Figure.OVER_EAGER, breaks=1, target="4 us")
        row = _table.row_of(workload, measured("toy", figures(8e-6), figures(4e-6)))
        assert row is not None
        assert _table.program_line(row) == "| toy | 8.0 | 4.0 | 2.00 | - | - | 4 us |"

    def test_slowest_call_is_one_that_is_slow_in_every_process(self) -> None:
        processes = [figures(slowest={2: 5e-6, 40: 9e-6}), figures(slowest={2: 6e-6, 3: 8e-6})]
        assert _table.slowest_call(processes) == (2, 5e-6)
        assert _table.slowest_call([figures(slowest={2: 5e-6}), figures(slowest={3: 8e-6})]) == (
            0,
            5e-6,
        )

    def test_summary_has_geometric_mean_and_maximum(self) -> None:
        rows = [
            _table.row_of(toy(), measured("toy", figures(each), figures(4e-6)))
            for each in (1e-6, 16e-6)
        ]
        text = _table.summary([row for row in rows if row is not None])
        assert text.startswith(
            "2 workloads: geometric mean 1.00, maximum 4.00; calls 2-100: geometric mean 1.00"
        )


class TestCommand:
    def test_part_of_a_name_selects_all_that_contain_it(self) -> None:
        names = [workload.name for workload in command.selected(["STILB"])]
        assert names == ["distilbert"]

    def test_no_name_selects_everything(self) -> None:
        assert len(command.selected([])) == len(WORKLOADS)

    def test_unknown_name_is_refused(self) -> None:
        with pytest.raises(SystemExit, match="no workload is named 'nothing'"):
            command.selected(["nothing"])

    def test_enough_models_of_public_packages(self) -> None:
        assert sum(bool(workload.libraries) for workload in MODELS.values()) >= 30
        assert set(QUICK) <= set(WORKLOADS)
        assert not set(MODELS) & set(PROGRAMS)

    def test_results_in_the_file_are_not_measured_again(
        self,
        tmp_path: pathlib.Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        counted = []

        def count(workload: Workload, place: Place, repeats: int) -> Measured:
            counted.append(workload.name)
            return measured(workload.name, figures(), figures())

        monkeypatch.setattr(command, "measure_in_turns", count)
        arguments = ["--save", str(tmp_path / "found.json"), "--resume", "two tensors"]
        command.main(arguments)
        command.main(arguments)
        assert counted == ["two tensors"]
        assert capsys.readouterr().out.count("| two tensors | 2.0 | 2.0 | 1.00 |") == 2

    def test_names_of_the_bench_session_print_only(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(bench, "PAGE", pathlib.Path("/nowhere/page.md"))
        bench.main(["--list"])
        assert capsys.readouterr().out.split("\n")[:-1] == list(WORKLOADS)


def test_store_gives_back_what_it_was_given(tmp_path: pathlib.Path) -> None:
    store = Store.read(tmp_path / "results.json")
    found = measured("toy", figures(), figures(1e-6))
    store.of(Environment("3.11.1", "2.13.0")).workloads["toy"] = found
    store.write()
    assert Store.read(store.path).of(Environment("3.11.1", "2.13.0")).workloads == {"toy": found}
    assert not Store.read(store.path).of(Environment("3.11.1", "2.14.0")).workloads


def test_environment_is_that_of_the_interpreter() -> None:
    version = "{}.{}.{}".format(*sys.version_info[:3])
    found = Environment.of(Place())
    assert found.python == version
    assert found.torch.partition("+")[0] == torch.__version__.partition("+")[0]


def test_page_has_a_part_for_each_interpreter_and_names_what_is_missing(
    tmp_path: pathlib.Path,
) -> None:
    store = Store(tmp_path / "results.json")
    for python in ("3.13.1", "3.9.1"):
        results = store.of(Environment(python, "2.13.0")).workloads
        results["gpt2"] = measured("gpt2", figures(), figures())
    text = "\n".join(_page.lines(store))
    assert text.index("### CPython 3.9.1") < text.index("### CPython 3.13.1")
    assert text.count("| gpt2 | 2.0 | 2.0 | 1.00 |") == 2
    assert "Not measured here: " in text
    assert "two tensors" in text.partition("Not measured here: ")[2]
