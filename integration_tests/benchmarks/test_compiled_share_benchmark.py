"""The harness of the benchmark of compiled shares, on toy programs in this process."""

from __future__ import annotations

import gc
import json
import math
import pathlib
from collections.abc import Callable
from typing import Any

import attrs
import pytest
import torch
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx

from integration_tests.benchmarks.compiled_share import _inductor, _page, child, command
from integration_tests.benchmarks.compiled_share._count import CountingCompiler, operators_in
from integration_tests.benchmarks.compiled_share._inductor import Seconds, Times, measure_times
from integration_tests.benchmarks.compiled_share._measure import Counts, difference, measure
from integration_tests.benchmarks.compiled_share._processes import Ratios, Share, ratios
from integration_tests.benchmarks.compiled_share._profile import (
    marked,
    operators_outside,
    peak_of_memory,
    profiled,
)
from integration_tests.benchmarks.compiled_share._reasons import REASONS, SLOWER
from integration_tests.benchmarks.compiled_share._results import Store
from integration_tests.benchmarks.compiled_share._step import loss_of, whole_step
from integration_tests.benchmarks.compiled_share.workloads import INDUCTOR, WORKLOADS
from integration_tests.benchmarks.real_models._processes import Place
from integration_tests.benchmarks.real_models._workload import Program, Workload, always


def toy() -> Program:
    layer = nn.Linear(2, 2)
    return loss_of(lambda x: layer(x).sin().sum(), [layer], torch.ones(3, 2))


def broken() -> Program:
    """A program that breaks between two operators."""

    def run(x: Tensor) -> Tensor:
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    return Program(run, always(torch.ones(3)))


def counts(outside: int, inside: int, compiled: int, graphs: int = 1) -> Counts:
    return Counts(outside, inside, compiled, graphs)


def share(ours: Counts, theirs: Counts, **differences: float) -> Share:
    plain = counts(100, 0, 0, 0)
    return Share({"plain": plain, "stator": ours, "torch": theirs}, differences, {})


EQUAL = counts(2, 100, 100)


class TestProfile:
    def outside(self, call: Callable[[], Any]) -> list[str]:
        return sorted(operators_outside(profiled(call)[1]))

    def test_operator_that_calls_others_counts_once(self) -> None:
        x = torch.ones(2, 2)
        assert self.outside(lambda: nn.functional.linear(x, x).softmax(-1)) == [
            "aten::linear",
            "aten::softmax",
        ]

    def test_operators_of_a_compiled_graph_are_left_out(self) -> None:
        x = torch.ones(2)
        in_graph = marked(lambda x: x.sin().cos())

        def call() -> Any:
            return in_graph(x.exp()).tan()

        assert self.outside(call) == ["aten::exp", "aten::tan"]

    def test_operators_of_backward_count_and_nodes_of_autograd_do_not(self) -> None:
        x = torch.ones(2, requires_grad=True)
        loss = x.sin().sum()
        found = self.outside(loss.backward)
        assert "aten::cos" in found
        assert not [name for name in found if not name.startswith("aten::")]

    def test_ranges_of_a_program_are_no_operators(self) -> None:
        def call() -> Tensor:
            with torch.profiler.record_function("mine::range"):
                return torch.ones(2)

        assert self.outside(call) == ["aten::ones"]

    def test_operator_of_another_library_counts(self) -> None:
        boxes = torch.library.Library("stator_toy_share", "FRAGMENT")  # type: ignore[no-untyped-call]
        boxes.define("same(Tensor x) -> Tensor")  # type: ignore[no-untyped-call]
        boxes.impl("same", lambda x: x.clone(), "CPU")  # type: ignore[no-untyped-call]
        x = torch.ones(2)
        assert self.outside(lambda: torch.ops.stator_toy_share.same(x)) == [
            "stator_toy_share::same"
        ]

    def test_peak_of_memory_is_what_is_alive_at_once(self) -> None:
        def in_turn() -> None:
            for _ in range(3):
                torch.ones(1000)

        def at_once() -> list[Tensor]:
            return [torch.ones(1000) for _ in range(3)]

        peaks = [peak_of_memory(profiled(call, memory=True)[1]) for call in (in_turn, at_once)]
        assert peaks == [4000, 12000]


class TestCounting:
    def test_getters_of_parts_are_no_operators(self) -> None:
        graph = make_fx(lambda x: torch.max(x.sin(), 0)[0])(torch.ones(3))
        assert operators_in(graph) == 2

    def test_operators_of_bodies_count(self) -> None:
        body = make_fx(lambda x: x.sin().cos())(torch.ones(3))
        graph = torch.fx.Graph()
        graph.output(graph.get_attr("body"))
        assert operators_in(torch.fx.GraphModule({"body": body}, graph)) == 2

    def test_operators_of_a_graph_count_whenever_it_runs(self) -> None:
        counting = CountingCompiler()
        run = counting._counted(make_fx(lambda x: x.sin().cos())(torch.ones(3)))
        for _ in range(3):
            run(torch.ones(3))
        assert (counting.compiled, counting.graphs, counting.run) == (2, 1, 6)


class TestMeasuring:
    @pytest.mark.parametrize("side", ["stator", pytest.param("torch", marks=pytest.mark.slow)])
    def test_training_runs_and_compiles_both_graphs(self, side: str) -> None:
        torch.compiler.reset()
        found = measure(Workload("toy", toy, gradients=True), side).counts
        assert found.graphs == 2
        assert found.inside == found.compiled > 8
        assert found.outside < 8

    def test_plain_program_runs_everything_outside(self) -> None:
        found = measure(Workload("toy", toy, gradients=True), "plain").counts
        assert found.outside > 8
        assert (found.inside, found.compiled, found.graphs) == (0, 0, 0)

    def test_parts_around_a_break_are_inside(self) -> None:
        found = measure(Workload("broken", broken), "stator")
        assert (found.counts.inside, found.counts.compiled, found.counts.graphs) == (2, 2, 2)
        assert found.counts.outside == 0
        assert "graph_break" in found.report

    def test_report_names_the_operators_outside(self) -> None:
        workload = Workload("names", lambda: Program(lambda: torch.ones(2).sin().sin(), always()))
        found = measure(workload, "plain")
        assert found.report.startswith("plain, outside: 2 aten::sin, 1 aten::ones")

    def test_results_of_all_calls_are_kept_as_they_were(self) -> None:
        layer = nn.Linear(2, 2)

        def step() -> Tensor:
            with torch.no_grad():
                layer.weight.add_(1)
            return layer.weight.detach().sum()

        workload = Workload("step", lambda: whole_step(step, [layer]))
        first, second, third = measure(workload, "plain").results
        assert torch.equal(first[1] + 1, second[1])
        assert torch.equal(second[1] + 1, third[1])

    def test_equal_calls_draw_equal_random_numbers(self) -> None:
        workload = Workload("noise", lambda: Program(lambda: torch.rand(3), always()))
        found = [measure(workload, "plain").results for _ in range(2)]
        assert difference(*found) == 0

    def test_times_and_memory_of_a_toy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_inductor, "_ROUNDS", 2)
        workload = Workload("toy", lambda: Program(lambda: torch.ones(1000).sin(), always()))
        kept = torch.ones(5000)
        gc.collect()  # what other tests have left is not to be freed meanwhile
        alive = _inductor._bytes_alive()
        found = measure_times(workload, "plain")
        assert found.memory <= alive + 8000
        assert found.memory >= kept.nbytes + 8000
        assert alive >= kept.nbytes
        for seconds in (found.first, found.steady):
            assert seconds.cpu > 0
            assert seconds.wall > 0


class TestDifference:
    def of(self, ours: list[float], plain: list[float]) -> float:
        return difference([[torch.tensor(ours)]], [[torch.tensor(plain)]])

    def test_difference_is_relative_to_the_largest_value(self) -> None:
        assert self.of([1.0, 0.0, 100.0], [0.0, 0.0, 100.0]) == pytest.approx(0.01)

    def test_equal_results_do_not_differ(self) -> None:
        assert self.of([1.0, math.nan], [1.0, math.nan]) == 0
        assert self.of([], []) == 0

    @pytest.mark.parametrize("ours", [[1.0], [1.0, math.inf]])
    def test_other_sizes_and_infinities_differ_infinitely(self, ours: list[float]) -> None:
        assert self.of(ours, [1.0, 2.0]) == math.inf

    def test_missing_result_differs_infinitely(self) -> None:
        assert difference([[]], [[torch.ones(1)]]) == math.inf


class TestPage:
    def test_two_in_a_hundred_more_are_not_short(self) -> None:
        assert not _page.is_short(share(counts(4, 100, 102), EQUAL))

    @pytest.mark.parametrize("ours", [counts(5, 100, 100), counts(2, 100, 103)])
    def test_more_outside_or_compiled_is_short(self, ours: Counts) -> None:
        assert _page.is_short(share(ours, EQUAL))

    def test_less_inside_is_not_short(self) -> None:
        assert not _page.is_short(share(counts(2, 50, 50), EQUAL))

    def test_what_torch_compile_runs_outside_is_a_reason_to_compile_more(self) -> None:
        theirs = counts(50, 100, 100)
        found = share(counts(10, 160, 160), theirs)
        assert list(_page.exceptions("toy", found)) == [
            "40 operators run compiled that torch.compile leaves outside"
        ]

    def test_graphs_that_torch_compile_runs_several_times_are_a_reason(self) -> None:
        found = share(counts(10, 160, 160), counts(20, 150, 100, 7))
        assert list(_page.exceptions("toy", found)) == [
            "torch.compile breaks, and runs some of its 7 graphs several times"
        ]

    def test_what_is_compiled_twice_has_no_such_reason(self) -> None:
        found = share(counts(10, 160, 320), counts(50, 100, 100))
        assert list(_page.exceptions("toy", found)) == ["short"]

    def test_row_has_both_counts_and_the_reason(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(REASONS, "toy", "a reason")
        line = _page.count_line("toy", share(counts(9, 90, 100, 2), EQUAL))
        assert line == "| toy | 100 | 9 / 2 | 90 / 100 | 100 / 100 | 2 / 1 | a reason |"

    def test_wrong_results_are_in_the_row(self) -> None:
        found = share(EQUAL, EQUAL, stator=0.5, torch=1e-6)
        assert _page.count_line("toy", found).endswith(
            "| stator differs from plain PyTorch by 5e-01 |"
        )
        assert _page.is_wrong(found)
        assert not _page.is_wrong(share(EQUAL, EQUAL, stator=1e-6, torch=0.5))

    def test_failure_of_torch_compile_leaves_our_counts(self) -> None:
        found = Share({"plain": EQUAL, "stator": EQUAL}, {}, {"torch": "an error"})
        assert _page.count_line("toy", found).endswith(
            "| 2 / - | 100 / - | 100 / - | 1 / - | torch.compile fails |"
        )

    def test_failure_of_stator_is_the_row(self) -> None:
        found = Share({"plain": EQUAL}, {}, {"stator": "an\nerror"})
        assert "failed: an error" in _page.count_line("toy", found)
        assert _page.is_wrong(found)

    def test_page_has_both_tables_in_the_order_of_names(self, tmp_path: pathlib.Path) -> None:
        store = Store(tmp_path / "found.json", {"torch": "2.13.0"})
        for name in ("second", "first"):
            store.shares[name] = share(EQUAL, EQUAL)
        store.ratios["first"] = Ratios(0.5, 0.6, 1.0, 0.9, 2.0, commit="1111")
        text = _page.page(store, ["first", "second", "third"])
        assert text.index("| first | 100 |") < text.index("| second | 100 |")
        assert "2 workloads: 4 / 4 operators outside" in text
        assert "| first | 0.50 | 0.60 | 1.00 | 0.90 | 2.00 | above the limit: memory |" in text
        assert "steady call 0.50, at most 0.50; on the wall 0.60" in text
        assert text.count("Rows are of commit 1111.") == 1

    def test_reason_of_a_slow_workload_is_in_its_row(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(SLOWER, "toy", "it is a toy")
        assert _page.slower("toy", Ratios(1.06, 1.0, 1.0, 1.0, 1.0)) == "it is a toy"
        assert _page.slower("toy", Ratios(1.05, 9.0, 1.05, 9.0, 1.02)) == ""

    def test_page_names_the_commit_of_most_rows_and_the_other_ones(self) -> None:
        of_one = attrs.evolve(share(EQUAL, EQUAL), commit="1111")
        of_another = attrs.evolve(of_one, commit="2222")
        shares = {"first": of_one, "second": of_another, "third": of_one}
        assert list(_page.commits(shares)) == [
            "Rows are of commit 1111, but for:",
            "- 2222: second.",
        ]
        assert list(_page.commits({"first": of_one})) == ["Rows are of commit 1111."]
        assert not list(_page.commits({"first": share(EQUAL, EQUAL)}))


def times(seconds: tuple[float, float, float, float]) -> Times:
    """Return the first and the steady time of a process, both of the CPU and on the wall."""
    return Times(Seconds(*seconds[:2]), Seconds(*seconds[2:]), 10)


class TestProcesses:
    def test_ratios_are_of_the_least_times(self) -> None:
        ours = [(3.0, 2.0, 1.0, 9.0), (2.0, 8.0, 9.0, 1.0), (9.0, 9.0, 9.0, 9.0)]
        theirs = [(4.0, 4.0, 4.0, 4.0)]
        found = ratios({"stator": [*map(times, ours)], "torch": [*map(times, theirs)]})
        assert found == Ratios(0.25, 0.25, 0.5, 0.5, 1.0)

    def test_times_are_what_their_process_printed(self) -> None:
        found = times((1.0, 2.0, 3.0, 4.0))
        assert Times.of(json.loads(json.dumps(attrs.asdict(found)))) == found

    def test_child_prints_counts_and_saves_results(
        self,
        tmp_path: pathlib.Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setitem(WORKLOADS, "toy", Workload("toy", toy, gradients=True))
        monkeypatch.setattr(child.logging, "disable", lambda level: None)  # type: ignore[attr-defined]
        child.main("counts", "toy", "plain", str(tmp_path / "found"))
        found = Counts(**json.loads(capsys.readouterr().out))
        results, _ = torch.load(tmp_path / "found")
        assert found.outside > 8
        assert [len(leaves) for leaves in results] == [3, 3, 3]

    def test_child_names_libraries_that_are_not_installed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(child.logging, "disable", lambda level: None)  # type: ignore[attr-defined]
        monkeypatch.setitem(WORKLOADS, "toy", Workload("toy", toy, ("no_such_library",)))
        with pytest.raises(SystemExit, match="not installed: no_such_library"):
            child.main("counts", "toy", "stator", "nowhere")


class TestCommand:
    def test_part_of_a_name_selects_all_that_contain_it(self) -> None:
        names = [workload.name for workload in command.selected(["static cache"])]
        assert len(names) == 3

    def test_unknown_name_is_refused(self) -> None:
        with pytest.raises(SystemExit, match="no workload is named 'nothing'"):
            command.selected(["nothing"])

    def test_workload_without_its_libraries_is_left_out(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        workload = Workload("toy", toy, ("no_such_library",))
        monkeypatch.setitem(WORKLOADS, "toy", workload)
        assert [each.name for each in command.installed(["toy", "gan step"])] == ["gan step"]
        assert "toy is left out, not installed: no_such_library" in capsys.readouterr().out

    def test_there_are_enough_workloads(self) -> None:
        assert len(WORKLOADS) >= 60
        assert len(set(INDUCTOR)) >= 12
        assert set(INDUCTOR) <= set(WORKLOADS)
        assert set(REASONS) <= set(WORKLOADS)

    def test_results_in_the_file_are_not_measured_again(
        self,
        tmp_path: pathlib.Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        counted = []

        def count(workload: Workload, place: Place) -> Share:
            counted.append(workload.name)
            return attrs.evolve(share(counts(50, 50, 50), EQUAL), report="why it is so")

        monkeypatch.setattr(command, "count", count)
        arguments = ["gan step", "--part", "counts", "--resume", "--reports"]
        arguments += ["--save", str(tmp_path / "found.json")]
        command.main(arguments)
        assert "why it is so" in capsys.readouterr().out

        command.main(arguments)
        assert counted == ["gan step"]
        assert "| gan step | 100 | 50 / 2 |" in capsys.readouterr().out

    def test_page_is_written_from_the_results_alone(
        self, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = Store(tmp_path / "found.json")
        store.shares["gan step"] = share(EQUAL, EQUAL)
        store.write()
        monkeypatch.setattr(command, "PAGE", tmp_path / "page.md")
        command.main(["--page", "--save", str(store.path)])
        assert "| gan step | 100 | 2 / 2 |" in (tmp_path / "page.md").read_text()

    def test_failed_times_are_not_kept(
        self, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(command, "time", lambda *args: "torch: out of order")
        command.main(["gan step", "--part", "inductor", "--save", str(tmp_path / "found.json")])
        assert not Store.read(tmp_path / "found.json").ratios


def test_store_gives_back_what_it_was_given(tmp_path: pathlib.Path) -> None:
    store = Store(tmp_path / "found.json", {"torch": "2.13.0"})
    found_at = share(EQUAL, counts(1, 2, 3), stator=0.25)
    store.shares["toy"] = attrs.evolve(found_at, commit="1111")
    store.ratios["toy"] = Ratios(1.0, 2.0, 3.0, 4.0, 5.0, commit="1111")
    store.write()
    found = Store.read(store.path)
    assert found.shares == store.shares
    assert found.ratios == store.ratios
    assert found.versions == store.versions
