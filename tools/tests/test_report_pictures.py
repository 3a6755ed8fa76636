"""The pictures of a report: what a browser shows of the page, in each scheme and width."""

from __future__ import annotations

import pathlib
import struct

import pytest
import report_pictures
from report_pictures import ALL, PICTURES, Picture

PAGE = """<!doctype html><meta name="color-scheme" content="light dark"><style>
body { margin: 0; background: white } div { width: 100vw; height: 100vh }
@media (prefers-color-scheme: dark) { body { background: black } }
</style><div></div>"""


def size_of(picture: pathlib.Path) -> tuple[int, int]:
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    return int(width), int(height)


@pytest.mark.parametrize("picture", ALL, ids=lambda picture: picture.name)
def test_the_documentation_has_the_picture(picture: Picture) -> None:
    assert size_of(PICTURES / f"{picture.name}.png") == (picture.width, picture.height)


@pytest.mark.slow
def test_a_browser_takes_each_picture_and_dark_ones_differ(tmp_path: pathlib.Path) -> None:
    program = report_pictures.browser()
    if program is None:
        pytest.skip("no browser is installed (apt-get install chromium)")
    page = tmp_path / "page.html"
    page.write_text(PAGE)
    taken = [report_pictures.take(program, page, picture, tmp_path) for picture in ALL]
    for picture, made in zip(ALL, taken, strict=True):
        assert size_of(made) == (picture.width, picture.height)
    light, dark, *_ = [made.read_bytes() for made in taken]
    assert light != dark


@pytest.mark.slow
def test_the_example_has_what_the_page_describes(tmp_path: pathlib.Path) -> None:
    """Two models, at least three places of breaks, at least two causes of recompilations, and an
    uncompiled piece."""
    page = tmp_path / "report.html"
    report_pictures.write_report(page)
    text = page.read_text()
    assert "Head.forward" in text
    assert "Model.forward" in text
    assert text.count('class="panel place"') >= 3
    assert text.count('class="panel cause"') >= 2
    assert "sparse tensors" in text
