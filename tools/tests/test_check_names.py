"""Each violation of the rules for names is planted and found, and what the rules allow is not."""

from __future__ import annotations

import pathlib

import check_names
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def repository(root: pathlib.Path, **files: str) -> pathlib.Path:
    """Write a package of these files, and one that defines `Known`."""
    (root / "pyproject.toml").write_text('[tool.stator.names]\nnouns = ["binding"]\n')
    for package, contents in {"one": files, "two": {"_known": "class Known: ..."}}.items():
        folder = root / "packages" / f"stator-{package}" / "src" / f"stator_{package}"
        folder.mkdir(parents=True)
        for name, source in contents.items():
            (folder / f"{name}.py").write_text(source + "\n")
    return root


@pytest.mark.parametrize(
    "source",
    [
        "class Known: ...",
        "Known = int | str",
        "Known: TypeAlias = dict[str, int]",
    ],
)
def test_type_that_another_package_defines_is_found(
    source: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_names.main(repository(tmp_path, _thing=source)) == 1
    printed = capsys.readouterr().out
    assert "_thing.py:1: Known" in printed
    assert "_known.py:1: Known" in printed


@pytest.mark.parametrize(
    "source",
    [
        "class Other: ...",
        "from stator_two import Known",
        "class Outer:\n    class Known: ...",
        "K = TypeVar('K')",
        "known = 1",
    ],
)
def test_type_with_one_home_is_not_found(source: str, tmp_path: pathlib.Path) -> None:
    assert check_names.main(repository(tmp_path, _thing=source, _other="K = TypeVar('K')")) == 0


@pytest.mark.parametrize("name", ["_utils", "_saying", "_marked", "_held", "helpers"])
def test_file_that_is_not_named_by_a_noun_is_found(
    name: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_names.main(repository(tmp_path, **{name: ""})) == 1
    assert f"{name}.py" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["_binding", "_name_binding", "_marked_function", "__init__"])
def test_file_that_is_named_by_a_noun_is_not_found(name: str, tmp_path: pathlib.Path) -> None:
    assert check_names.main(repository(tmp_path, **{name: ""})) == 0


WHERE = {
    "module": '"""{}"""',
    "function": 'def fn():\n    """{}"""',
    "method": 'class Thing:\n    def fn(self):\n        """{}"""',
    "class": 'class Thing:\n    """{}"""',
    "constant": 'LIMIT = 1\n"""{}"""',
    "field": 'class Thing:\n    limit: int\n    """{}"""',
}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("opening", ["What", "Whether", "Those", "That", "It", "Of", "Where"])
def test_docstring_with_a_bad_opening_is_found(
    opening: str, where: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = WHERE[where].format(f"{opening} is here.")
    assert check_names.main(repository(tmp_path, _thing=source)) == 1
    assert f": {opening} ..." in capsys.readouterr().out


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("opening", ["Return what is here.", "The guards of one entry.", "`it`."])
def test_docstring_with_a_verb_or_noun_is_not_found(
    opening: str, where: str, tmp_path: pathlib.Path
) -> None:
    source = WHERE[where].format(opening)
    assert check_names.main(repository(tmp_path, _thing=source)) == 0


def test_text_that_is_no_docstring_is_not_found(tmp_path: pathlib.Path) -> None:
    source = 'if x:\n    "What is here."\nprint("What is here.")'
    assert check_names.main(repository(tmp_path, _thing=source)) == 0


def test_packages_have_no_more_violations_than_are_recorded() -> None:
    assert check_names.main(ROOT) == 0
