"""Calls that hide which parameters get their arguments fail, and so do mixed assignments."""

from __future__ import annotations

import pathlib

import check_calls
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def repository(root: pathlib.Path, body: str) -> pathlib.Path:
    """Write a package with one function that has this body."""
    source = root / "packages" / "stator-variables" / "src" / "stator_variables"
    source.mkdir(parents=True)
    lines = ["def function(self, given, *rest):", *[f"    {line}" for line in body.split("; ")]]
    (source / "_module.py").write_text("\n".join(lines) + "\n")
    return root


@pytest.mark.parametrize(
    "body",
    [
        "f(*(1, 2), c=3)",
        "f(*[1, 2])",
        "f(*((1,) if given else ()))",
        "pair = 1, 2; f(0, *pair)",
        "pair = [1, 2]; f(*pair)",
        "pair = (1, 2); pair = (3, 4); f(*pair)",
        "f(0, *(given or rest))",
        "f(*(given if self else rest))",
        "f(**{'a': 1})",
        "before, self.x = self.x, 1",
        "self.x, after = 1, 2",
        "before, given[0], other = given[0], 1, 2",
    ],
)
def test_hidden_argument_fails(
    body: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_calls.main(repository(tmp_path, body)) == 1
    line = 1 + len(body.split("; "))
    assert f"_module.py:{line}: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "body",
    [
        "f(*given)",
        "f(*rest[1:], *[given] * 2)",
        "f(*rest, **given)",
        "given = (1, 2); f(*given)",
        "pair = [1]; pair = list(rest); f(*pair)",
        "items = [0, *rest]; f(*items)",
        "more = () if self else (given,); f(*more)",
        "options = {'a': 1}; f(**options)",
        "first, second = 1, 2",
        "self.x, self.y = 1, 2",
        "self.x, (self.y, self.z) = 1, given",
        "pair = 1, 2; f(pair)",
    ],
)
def test_splat_of_what_others_made_is_allowed(body: str, tmp_path: pathlib.Path) -> None:
    assert check_calls.main(repository(tmp_path, body)) == 0


def test_constant_of_a_module_may_be_passed_on(tmp_path: pathlib.Path) -> None:
    root = repository(tmp_path, "pass")
    module = next(root.rglob("_module.py"))
    module.write_text("PAIR = (1, 2)\nf(*PAIR)\n")
    assert check_calls.main(root) == 0


def test_packages_pass() -> None:
    assert check_calls.main(ROOT) == 0
