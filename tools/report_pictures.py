"""Make the pictures of a report in the documentation, with headless Chromium.

``python tools/report_pictures.py`` writes ``docs/reference/pictures/report-*.png``.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tempfile

import attrs

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "reference" / "pictures"
PROGRAM = ROOT / "tools" / "report_example.py"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@attrs.frozen
class Picture:
    """One picture: its size in pixels, and whether the browser prefers dark colours."""

    name: str
    width: int
    height: int
    dark: bool = False

    @property
    def options(self) -> list[str]:
        dark = ["--blink-settings=preferredColorScheme=0"] if self.dark else []
        return [f"--window-size={self.width},{self.height}", *dark]


ALL = (
    Picture("report-light", 1100, 1250),
    Picture("report-dark", 1100, 1250, dark=True),
    Picture("report-phone", 500, 1250),
    Picture("report-function", 1100, 2700),
)


def browser() -> str | None:
    """Return the path of a browser, if there is one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def write_report(path: pathlib.Path) -> None:
    """Run the example and write its report; no C++ is compiled, which would take all the time."""
    report = [sys.executable, "-m", "stator", "report", "--backend", "aot_eager"]
    command = [*report, "--html", str(path), PROGRAM.name]
    subprocess.run(command, check=True, cwd=PROGRAM.parent, capture_output=True)


def take(program: str, page: pathlib.Path, picture: Picture, folder: pathlib.Path) -> pathlib.Path:
    """Return the picture of a page."""
    made = folder / f"{picture.name}.png"
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command = [program, *quiet, *picture.options, f"--screenshot={made}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return made


def main() -> int:
    """Write all pictures."""
    program = browser()
    if program is None:
        print(f"none of {', '.join(BROWSERS)} is installed", file=sys.stderr)
        return 1
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "report.html"
        write_report(page)
        for picture in ALL:
            take(program, page, picture, PICTURES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
