"""The page of a report: whole, valid, without anything from elsewhere; what it shows, and in which
order."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import stator
import torch
from stator._report_page._format import memory_text, time_text
from stator._report_page._page import framed, page
from stator._report_page._source_rows import source_sections
from stator._report_page._view import Totals, slowest, timeline

X = torch.arange(3.0)
VOID = {"meta", "link", "br", "img", "hr", "input"}


def clipped(x: torch.Tensor, limit: float = 2.0) -> torch.Tensor:
    y = x + 1
    if y.sum() > 0:
        y = y * limit
    return y.sin()


def report_of(*calls: tuple[Any, ...]) -> Any:
    compiled = stator.compile(clipped, backend="eager", options={"measure": True})
    for call in calls:
        compiled(*call)
    return stator.report_of(compiled)


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    found = report_of((X,), (X,), (X, 3.0), (X.double(),)).data()
    assert json.loads(json.dumps(found)) == found
    return found  # type: ignore[no-any-return]


class Structure(HTMLParser):
    """Checks that tags are closed in order, and collects links, anchors and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.anchors: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if anchor := named.get("id"):
            self.anchors.append(anchor)
        if (link := named.get("href")) is not None:
            self.links.append(link)
        self.outside += [str(value) for key, value in attrs if key == "src"]
        if tag in ("script", "link", "img"):
            self.outside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def structure_of(text: str) -> Structure:
    found = Structure()
    found.feed(text)
    assert not found.open
    return found


def test_a_page_is_well_formed_and_needs_nothing_else(data: dict[str, Any]) -> None:
    text = page({"clipped": data, "another one": data})
    found = structure_of(text)
    assert not found.outside
    assert "url(" not in text
    assert "http" not in text
    assert len(found.anchors) == len({*found.anchors})
    assert {link.removeprefix("#") for link in found.links} <= {*found.anchors}


def test_a_page_of_nothing_is_well_formed() -> None:
    assert "nothing was compiled" in page({})
    structure_of(page({}))


def test_text_of_the_program_is_no_markup(data: dict[str, Any]) -> None:
    text = page({"<b>name</b> & more": data})
    structure_of(text)
    assert "<b>name</b>" not in text
    assert "if y.sum() &gt; 0:" in text


def test_breaks_are_merged_by_place_with_the_remedy_beside_them(data: dict[str, Any]) -> None:
    (place,) = data["breaks"]
    first = clipped.__code__.co_firstlineno
    assert (place["reason"], place["where"]["line"]) == ("data-dependent-branch", first + 2)
    assert place["count"] == len(place["entries"]) > 1
    assert place["crossings"] == 4
    assert place["where"]["text"].strip() == "if y.sum() > 0:"
    text = page({"clipped": data})
    assert text.count('class="panel place"') == 1
    assert text.index("a branch on the value") < text.index(place["try"])


def test_causes_of_recompilation_are_merged_and_say_what_changed(data: dict[str, Any]) -> None:
    causes = {each["expression"]: each for each in data["recompilations"]}
    assert {"x", "limit"} <= {*causes}
    (change,) = causes["limit"]["changes"]
    assert (change["was"], change["now"]) == ("2.0", "3.0")


def test_lines_are_marked_by_what_happens_there(data: dict[str, Any]) -> None:
    (section,) = source_sections(data)
    kinds = {row.text.strip(): row.marks.kind for row in section.rows}
    assert kinds["if y.sum() > 0:"] == "break"
    assert kinds["y = x + 1"] == "again"  # of float64, later
    assert kinds["return y.sin()"] in ("graph", "again")
    assert kinds["def clipped(x: torch.Tensor, limit: float = 2.0) -> torch.Tensor:"] == ""


def test_of_long_functions_the_marked_lines_are_shown() -> None:
    lines = [f"line {i}" for i in range(1, 101)]
    function = {"file": "f.py", "function": "f", "first": 1, "lines": lines}
    mark = {"file": "f.py", "line": 50, "operators": {"add": 1}}
    data = {
        "entries": [{"number": 0, "lines": [mark], "uncompiled": []}],
        "breaks": [],
        "recompilations": [],
        "functions": [function],
    }
    (section,) = source_sections(data)
    assert [row.number for row in section.rows] == [1, None, *range(47, 54), None]
    assert [row.text for row in section.rows if row.number is None] == ["… 45 lines", "… 47 lines"]


def test_the_slowest_thing_is_first(data: dict[str, Any]) -> None:
    found = slowest({"clipped": data})
    assert [each.seconds for each in found] == sorted((e.seconds for e in found), reverse=True)
    assert found[0].percent == 100
    text = page({"clipped": data})
    assert text.index(found[0].what) < text.index("Where graphs end")


def test_the_longest_part_of_a_compilation_is_named_first(data: dict[str, Any]) -> None:
    entry = {**data["entries"][0], "trace_seconds": 0.25, "backend_seconds": 0.5, "calls": 0}
    changed = {**data, "entries": [{**entry, "compile_seconds": 2.0}]}
    (part,) = slowest({"clipped": changed})
    parts = part.detail.replace("\N{NO-BREAK SPACE}", " ")
    assert parts == "guards and code 1.25 s, backend 500 ms, tracing 250 ms"


def test_the_timeline_has_each_compilation_in_its_order(data: dict[str, Any]) -> None:
    spans = timeline({"clipped": data})
    assert len(spans) == len(data["entries"])
    assert [span.start for span in spans] == sorted(span.start for span in spans)
    assert spans[0].start == 0
    assert all(span.start + span.trace + span.backend + span.rest < 101 for span in spans)


def test_totals_are_sums(data: dict[str, Any]) -> None:
    one, two = Totals.of({"a": data}), Totals.of({"a": data, "b": data})
    assert (two.graphs, two.breaks, two.places) == (2 * one.graphs, 2 * one.breaks, 2 * one.places)
    assert one.run_seconds is not None


def test_memory_of_a_graph_is_that_of_inputs_and_of_its_own_tensors() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return ((x + 1) * 2).view(-1).sum()

    compiled = stator.compile(fn, backend="eager")
    compiled(torch.ones(4, 8))
    (entry,) = compiled.report.data()["entries"]
    assert entry["memory"] == {"inputs": 128, "outputs": 4, "peak": 256}


def test_a_report_is_saved_and_shown_in_notebooks(tmp_path: Path) -> None:
    compiled = stator.compile(clipped, backend="eager")
    compiled(X)
    path = tmp_path / "report.html"
    compiled.report.save(path)
    text = path.read_text(encoding="utf-8")
    assert "<title>stator report: clipped</title>" in text
    shown = compiled.report._repr_html_()
    assert shown.startswith("<iframe")
    structure_of(shown.replace("src", "data-src"))
    assert 'srcdoc="&lt;a title=&quot;x&quot;&gt;"' in framed('<a title="x">')


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0.0, "0 s"), (3e-6, "3.00 µs"), (0.0213, "21.3 ms"), (12.34, "12.3 s")],
)
def test_times_have_three_digits(seconds: float | None, text: str) -> None:
    assert time_text(seconds) == text.replace(" ", "\N{NO-BREAK SPACE}")


@pytest.mark.parametrize(("count", "text"), [(12, "12 B"), (2048, "2.0 KiB"), (3 << 20, "3.0 MiB")])
def test_memory_has_a_unit(count: int, text: str) -> None:
    assert memory_text(count) == text.replace(" ", "\N{NO-BREAK SPACE}")
