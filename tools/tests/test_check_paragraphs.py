"""A long function without blank lines between its steps fails; a long statement does not."""

from __future__ import annotations

import pathlib

import check_paragraphs
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST, SHORT = check_paragraphs.MOST_LINES, check_paragraphs.SHORT


def repository(root: pathlib.Path, body: list[str]) -> pathlib.Path:
    """Write a package with one function that has this body."""
    source = root / "packages" / "stator-variables" / "src" / "stator_variables"
    source.mkdir(parents=True)
    lines = ["def function(a):", *[f"    {line}".rstrip() for line in body]]
    (source / "_module.py").write_text("\n".join(lines) + "\n")
    return root


def steps(count: int) -> list[str]:
    return ["a += 1"] * count


def inside(head: str, body: list[str]) -> list[str]:
    return [head, *[f"    {line}".rstrip() for line in body]]


def call(count: int) -> list[str]:
    """A statement of this many lines."""
    return ["f(", *["    1,"] * (count - 2), ")"]


@pytest.mark.parametrize(
    "body",
    [
        steps(SHORT + 1),
        ["'''A docstring.'''", *steps(SHORT + 1)],
        [*steps(3), "", *steps(MOST + 1)],
        inside("for i in a:", [*steps(MOST + 1), "", *steps(3)]),
        [*call(SHORT), "a += 1"],
        ["a += 1", *inside("if a:", steps(MOST)), "", *steps(3)],
        ["@decorated", *inside("def inner():", steps(MOST - 1)), "a += 1", "", *steps(3)],
        inside("try:", steps(2)) + inside("finally:", [*steps(MOST + 1), "", "a += 1"]),
    ],
)
def test_long_paragraph_fails(
    body: list[str], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_paragraphs.main(repository(tmp_path, body)) == 1
    assert "_module.py:1: function has a paragraph of" in capsys.readouterr().out


@pytest.mark.parametrize(
    "body",
    [
        steps(SHORT),
        ["'''A docstring.'''", "", *steps(SHORT)],
        [*steps(MOST), "", *steps(MOST)],
        [*steps(MOST), "# A reason.", *steps(MOST)],
        call(2 * SHORT),
        ["a += 1", "", *call(2 * SHORT), "", "a += 1"],
        inside("for i in a:", [*steps(MOST - 1), "", *steps(MOST)]),
        inside("if a:", steps(MOST)) + inside("else:", steps(MOST)),
    ],
)
def test_parted_steps_and_long_statements_pass(body: list[str], tmp_path: pathlib.Path) -> None:
    assert check_paragraphs.main(repository(tmp_path, body)) == 0


def test_packages_pass() -> None:
    assert check_paragraphs.main(ROOT) == 0
