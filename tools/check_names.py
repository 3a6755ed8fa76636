"""Check the names in the packages: types have one home, files are named by nouns, docstrings begin
as they should.

``python tools/check_names.py [ROOT]`` prints what it finds and fails when a package has more of it
than ``tools/ratchets.toml`` allows; see ``ratchet.py``, also for ``--update``. The names that the
documentation mentions are looked up by ``documented_names.py``.

- A class or type alias of a module is defined once in the repository: a reader who finds ``Layout``
  has found it.
- A file is named by a noun. A participle says what happens, not what is there (``_saying``,
  ``_marked``), unless it is an established term (``nouns`` in ``[tool.stator.names]`` of the root
  ``pyproject.toml``).
- A docstring begins with a verb ("Return") or with the noun the thing is ("The guards of one
  entry"), never with a question word, a pronoun or a preposition.
"""

from __future__ import annotations

import ast
import pathlib
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

import ratchet
from package_source import Source, read_packages

_OPENINGS = frozenset(
    (
        *("How", "What", "When", "Where", "Whether", "Which", "Who", "Whose"),
        *("It", "Its", "That", "There", "These", "They", "This", "Those"),
        *("As", "At", "By", "For", "From", "In", "Of", "On", "To", "With", "Without"),
        *("And", "Because", "But", "Here", "If", "Is", "Not", "So", "Then", "While"),
    )
)
_VAGUE = frozenset({"again", "common", "helpers", "held", "kind", "left", "made", "misc", "part"})
_VAGUE |= {"places", "stuff", "things", "tools", "util", "utils", "helper", "kinds", "parts"}
_PARTICIPLE = re.compile(r"\w*[aeiouy]\w*(?:ed|ing)")  # no "string"
_TYPE_NAME = re.compile(r"_?[A-Z]\w*[a-z]\w*")

Packages = Mapping[str, list[Source]]


def repeated_types(packages: Packages) -> dict[str, list[str]]:
    """Return, by package, the definitions of types whose name another module defines as well."""
    homes: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for package, sources in packages.items():
        for source in sources:
            for name, line in _types(source.tree):
                homes[name].append((package, f"{source.path}:{line}: {name}"))

    found: dict[str, list[str]] = {package: [] for package in packages}
    for name in sorted(homes):
        if len(homes[name]) > 1:
            for package, place in homes[name]:
                found[package].append(place)
    return found


def _types(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the classes and aliases that a module defines, with their lines."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and _TYPE_NAME.fullmatch(target.id):
                yield target.id, node.lineno


def misnamed_files(packages: Packages, nouns: Collection[str]) -> dict[str, list[str]]:
    """Return, by package, the files whose name is vague or ends in a participle."""
    found = {}
    for package, sources in packages.items():
        paths = [source.path for source in sources]
        found[package] = [str(path) for path in paths if _is_misnamed(path.stem, nouns)]
    return found


def _is_misnamed(stem: str, nouns: Collection[str]) -> bool:
    if stem.startswith("__"):
        return False
    last = stem.rsplit("_", maxsplit=1)[-1]
    is_participle = _PARTICIPLE.fullmatch(last) is not None and last not in nouns
    return is_participle or stem.strip("_") in _VAGUE


def bad_openings(packages: Packages) -> dict[str, list[str]]:
    """Return, by package, the docstrings that begin with a word of the list."""
    return {
        package: [opening for source in sources for opening in _bad_openings(source)]
        for package, sources in packages.items()
    }


def _bad_openings(source: Source) -> Iterator[str]:
    for text in _docstrings(source.tree):
        first = re.match(r"\W*(\w+)", str(text.value))
        if first is not None and first[1] in _OPENINGS:
            yield f"{source.path}:{text.lineno}: {first[1]} ..."


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the docstrings of module, classes, functions and attributes."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue

        documents = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for each in body:
            if documents and isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                yield each.value
            documents = isinstance(each, ast.Assign | ast.AnnAssign)


def measures(root: pathlib.Path) -> list[ratchet.Measure]:
    """Measure the three rules for each package."""
    settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["stator"]
    nouns = settings.get("names", {}).get("nouns", ())
    packages = read_packages(root)
    rules = {
        "repeated type names": repeated_types(packages),
        "files not named by a noun": misnamed_files(packages, nouns),
        "docstring openings": bad_openings(packages),
    }
    return [
        ratchet.Measure(rule, package, len(places), places=tuple(places))
        for rule, found in rules.items()
        for package, places in found.items()
    ]


def main(root: pathlib.Path, update: bool = False) -> int:
    """Check the names under ``root`` and return the exit status."""
    return ratchet.run(root, measures(root), update)


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument != "--update"]
    sys.exit(main(pathlib.Path(given[0] if given else "."), "--update" in sys.argv))
