"""A page of HTML with the reports of a program: one file, without scripts and without anything from
the network."""

from __future__ import annotations

import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stator._report_page._format import memory_text, time_text
from stator._report_page._source_rows import source_sections
from stator._report_page._view import Totals, slowest, timeline

TEMPLATE = Path(__file__).with_name("page.html.jinja")


def page(reports: Mapping[str, Mapping[str, Any]], title: str = "") -> str:
    """Return the page of reports, as `Report.data` gives them, by their names."""
    import jinja2  # by the first page: importing stator is to be quick

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["time"] = time_text
    environment.filters["memory"] = memory_text

    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(
        title=title or ", ".join(reports) or "nothing was compiled",
        reports=[*reports.items()],
        totals=Totals.of(reports),
        slowest=slowest(reports),
        timeline=timeline(reports),
        sources={name: source_sections(data) for name, data in reports.items()},
    )


def framed(text: str) -> str:
    """Return a page as a frame in another one: neither gets styles of the other."""
    style = "width: 100%; height: 40em; border: 1px solid #8884; border-radius: 6px"
    return f'<iframe style="{style}" srcdoc="{html.escape(text)}"></iframe>'
