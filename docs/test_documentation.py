"""The documentation is true: links lead somewhere, examples run, generated pages are those the code
would give now."""

from __future__ import annotations

import json
import pathlib
import re
import shlex
import tomllib
from collections.abc import Iterator

import documented_names
import pytest
from reference import API_PAGES, PAGES, REASONS, reasons

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def documents() -> list[pathlib.Path]:
    """Every page of ours; what git ignores lies in folders that start with a dot."""
    found = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("integration_tests/**/*.md"),
    ]
    return sorted([*found, *ROOT.glob("packages/*/*.md")])


def named(path: pathlib.Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: pathlib.Path, language: str) -> Iterator[str]:
    yield from (body for found, body in FENCE.findall(path.read_text()) if found == language)


def anchors(path: pathlib.Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", documents(), ids=named)
def test_links_lead_somewhere(path: pathlib.Path) -> None:
    broken = []
    for link in LINK.findall(FENCE.sub("", path.read_text())):
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        found = (path.parent / target).resolve() if target else path
        if not found.exists() or (anchor and anchor not in anchors(found)):
            broken.append(link)
    assert not broken


@pytest.fixture(scope="module")
def names() -> documented_names.Names:
    return documented_names.Names.of(ROOT)


# Lists of CPython's own tests, of changes, and of torch's names, which have a test of their own:
# what these name need not exist here, or no longer.
OTHER_NAMES = (
    "captures.md",
    "cpython_tests.md",
    "cpython_tests_compiled.md",
    "CHANGELOG.md",
    "torch-compile.md",
)


@pytest.mark.parametrize(
    "path", [path for path in documents() if path.name not in OTHER_NAMES], ids=named
)
def test_names_in_code_font_exist(path: pathlib.Path, names: documented_names.Names) -> None:
    assert documented_names.unresolved(path.read_text(), names) == []


READMES = [
    path
    for path in documents()
    if path.parent.parent == ROOT / "packages" and path.name == "README.md"
]


@pytest.mark.parametrize("path", READMES, ids=named)
def test_readme_of_a_package_says_how_to_install_it_and_has_an_example(path: pathlib.Path) -> None:
    """``nox -s pages`` installs and runs them."""
    assert len(list(blocks(path, "shell"))) == 1
    assert list(blocks(path, "python"))
    assert len(path.read_text().splitlines()) <= 70


@pytest.mark.parametrize("path", [ROOT / "README.md", *READMES], ids=named)
def test_installation_works_in_any_shell(path: pathlib.Path) -> None:
    """A pattern of folders is the same in all shells; braces are not, and `sh` is Bash on some
    machines."""
    (command,) = blocks(path, "shell")
    words = shlex.split(command)
    folders = [word for word in words if word.startswith(".")]
    assert words[:2] == ["pip", "install"]
    assert folders
    assert not set(command) & set("{}[]<>")
    # without NumPy, the first thing that a program prints is a warning of torch
    assert any(word.startswith("torch") for word in words) == ("numpy" in words)
    for folder in folders:
        found = list(ROOT.glob(folder))
        assert found
        assert all((each / "pyproject.toml").exists() for each in found)


@pytest.mark.parametrize("path", READMES, ids=named)
def test_package_carries_the_license(path: pathlib.Path) -> None:
    license_text = (ROOT / "LICENSE").read_text()
    assert (path.parent / "LICENSE").read_text() == license_text
    project = tomllib.loads((path.parent / "pyproject.toml").read_text())["project"]
    assert project["license-files"] == ["LICENSE"]


@pytest.mark.parametrize("path", READMES, ids=named)
def test_package_has_the_version_of_its_distribution_and_says_what_it_is(
    path: pathlib.Path,
) -> None:
    project = tomllib.loads((path.parent / "pyproject.toml").read_text())["project"]
    (init,) = path.parent.glob("src/*/__init__.py")
    assert f'\n__version__ = "{project["version"]}"\n' in init.read_text()
    assert {"authors", "keywords", "classifiers", "description", "readme"} <= {*project}
    assert "Typing :: Typed" in project["classifiers"]
    assert (init.parent / "py.typed").exists()


def test_ci_runs_the_test_command_of_the_readme() -> None:
    (commands,) = blocks(ROOT / "README.md", "sh")
    lines = [line.partition("#")[0].strip() for line in commands.splitlines()]
    assert len(lines) == 2
    ran = [
        line
        for line in (ROOT / ".ci" / "run").read_text().splitlines()
        if "python3" in line and line[0] != "#"
    ]
    assert ran == [f"exec {lines[1]} </dev/null"]


@pytest.mark.parametrize("page", PAGES)
def test_generated_page_is_up_to_date(page: str) -> None:
    """``python tools/reference.py`` rewrites them."""
    assert (ROOT / "docs" / "reference" / page).read_text() == PAGES[page]()


def test_pages_of_reasons_ship_with_the_package() -> None:
    """``python tools/reference.py`` rewrites them."""
    assert REASONS.read_text() == reasons()
    assert all(parts["what"] and parts["remedy"] for parts in json.loads(reasons()).values())


def test_pages_of_public_names_are_up_to_date() -> None:
    """``python tools/reference.py`` rewrites them; a page of a package that is gone is an error."""
    folder = ROOT / "docs" / "reference" / "api"
    found = {f"api/{path.name}": path.read_text() for path in folder.iterdir()}
    assert found == API_PAGES


def test_navigation_of_the_site_has_every_page_once() -> None:
    """``nox -s site`` would fail as well, but does not run on every change."""
    patterns = re.findall(
        r"^ *(?:- file|- glob|root): (\S+)$",
        (ROOT / "docs" / "_toc.yml").read_text(),
        re.MULTILINE,
    )
    assert len(patterns) == len(set(patterns))
    reached = {path for pattern in patterns for path in ROOT.glob(f"{pattern}.md")}
    pages = {path for path in documents() if path.name != "CHANGELOG.md"}
    assert reached == pages


def test_figures_of_the_readme_are_those_of_the_pages_it_links() -> None:
    rows = re.findall(r"^\| \*\*.*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert rows
    for row in rows:
        _, _, claim = row.rpartition(" | ")
        pages = [ROOT / link.partition("#")[0] for link in LINK.findall(claim)]
        shown = {figure for page in pages for figure in figures(page.read_text())}
        assert figures(LINK.sub("", claim)) <= shown


def figures(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:[.,]\d+)*", text))


def test_reference_lists_every_page() -> None:
    index = (ROOT / "docs" / "reference" / "README.md").read_text()
    pages = {path.name for path in (ROOT / "docs" / "reference").glob("*.md")} - {"README.md"}
    assert pages == set(re.findall(r"\]\(([\w.-]+\.md)\)", index))


def test_decisions_are_numbered_and_complete() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert [page.name[:4] for page in pages] == [f"{i + 1:04}" for i in range(len(pages))]
    for page in pages:
        parts = re.findall(r"^#* ?\**(Context|Decision|Cost)\b", page.read_text(), re.MULTILINE)
        assert parts == ["Context", "Decision", "Cost"], page.name
