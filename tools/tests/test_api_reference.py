"""Pages of public names have signatures and docstrings, from wherever a name is defined."""

from __future__ import annotations

import api_reference
import pytest

FILES = {
    "__init__": '"""A package."""\nfrom stator_one._thing import LIMIT, Thing, make as build\n'
    "from stator_two import Other\n"
    '__all__ = ["LIMIT", "Other", "Thing", "build"]\n',
    "errors": '"""Its errors."""\n__all__ = ["Wrong"]\nclass Wrong(Exception):\n    """A fault."""\n',
    "_thing": '''
LIMIT: int = 3
"""The largest number."""

class Thing(Base):
    """A thing.

    With more to say."""

    size: int
    """Its size."""
    _hidden: int

    def grow(self, by: int = 1) -> None:
        """Make it larger."""

    @property
    def area(self) -> int:
        """The area."""

    def _shrink(self): ...

def make(name: str) -> Thing:
    """Return a thing."""

def hidden(): ...
''',
}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("repository")
    folder = root / "packages" / "stator-one" / "src" / "stator_one"
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / f"{name}.py").write_text(text)
    found = api_reference.pages(root)
    assert set(found) == {"api/README.md", "api/stator_one.md"}
    assert "(stator_one.md)" in found["api/README.md"]
    return found["api/stator_one.md"]


@pytest.mark.parametrize(
    "text",
    [
        "# stator_one\n",
        "\nA package.\n",
        "### LIMIT\n\n```\nLIMIT: int\n```\n\nThe largest number.\n",
        "### Other\n\n`stator_two.Other`\n",
        "```\nclass Thing(Base)\n```\n\nA thing.\n\nWith more to say.\n",
        "- `size: int`: Its size.\n",
        "- `grow(by: int=1) -> None`: Make it larger.\n",
        "- `area`: The area.\n",
        "### build\n\n```\nbuild(name: str) -> Thing\n```\n\nReturn a thing.\n",
        "## stator_one.errors\n\nIts errors.\n\n### Wrong\n",
    ],
)
def test_page_has_public_names(text: str, page: str) -> None:
    assert text in page


@pytest.mark.parametrize("text", ["hidden", "_shrink", "_thing"])
def test_page_has_no_private_names(text: str, page: str) -> None:
    assert text not in page
