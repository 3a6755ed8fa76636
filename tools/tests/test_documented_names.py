"""Each kind of name that a page may mention is resolved, and one that does not exist is
reported."""

from __future__ import annotations

import pytest
from documented_names import Names, unresolved

SOURCE = """
from collections import OrderedDict as Kept

LIMIT = 3

class Base:
    inherited: int = 0

    def method(self, option):
        local = option
        self.stored = local

class Derived(Base, dict):
    pass

TABLE = {"SOME_KEY": 1}
"""


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Names:
    root = tmp_path_factory.mktemp("repository")
    folder = root / "packages" / "stator-one" / "src" / "stator_one"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from stator_one._thing import Base, Derived\n")
    (folder / "_thing.py").write_text(SOURCE)
    return Names.of(root)


@pytest.mark.parametrize(
    "span",
    [
        "Base",
        "Derived.inherited",
        "Derived.stored",
        "Derived.keys",
        "stator_one.Base",
        "stator_one._thing.LIMIT",
        "_thing.py",
        "stator_one/_thing.py",
        "stator_one/",
        "method(x, option=1)",
        "base.method()",
        "SOME_KEY",
        "itertools.count",
        "deque",
        "isinstance",
        "co_flags",
        "nox -s layers",
        "word + other",
        "[x for item in y]",
    ],
)
def test_existing_name_is_resolved(span: str, names: Names) -> None:
    assert unresolved(f"a page with `{span}` in it", names) == []


@pytest.mark.parametrize(
    "span",
    [
        "Missing",
        "missing_name",
        "Base.missing",
        "Derived.local",
        "stator_one.missing",
        "stator_one._thing.Missing",
        "_missing.py",
        "stator_two/_thing.py",
        "method(x, missing=1)",
        "missing(x)",
        "base.missing()",
        "local_name",
        "MISSING_KEY",
        "itertools.missing",
        "missing = Missing()",
    ],
)
def test_missing_name_is_reported(span: str, names: Names) -> None:
    found = unresolved(f"a page with `{span}` in it", names)
    assert len(found) == 1
    assert f"`{span}`" in found[0]


def test_names_of_the_examples_of_a_page_exist(names: Names) -> None:
    page = "```python\nclass Mine:\n    pass\n```\n\nHere `Mine` is passed."
    assert unresolved(page, names) == []
    assert unresolved("Here `Mine` is passed.", names)


def test_fields_of_our_classes_in_examples_have_to_exist(names: Names) -> None:
    page = "```py\nclass Base:\n    inherited: int\n    missing: int\n```\n"
    assert unresolved(page, names) == ["Base.missing in an example"]
