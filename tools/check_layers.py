"""Check what import-linter cannot see: packages, dependencies, privacy, torch and ``__all__``
agree.

Each rule is a function from the packages on disk to the faults it finds; ``RULES`` is the table of
contents. What the rules need to know about this repository stands in the root ``pyproject.toml``
(``[tool.importlinter]`` and ``[tool.stator.layers]``). ``python tools/check_layers.py [ROOT]``
prints the faults and fails when there are any.
"""

from __future__ import annotations

import fnmatch
import functools
import pathlib
import sys
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import attrs
from packaging.requirements import Requirement
from source_facts import Reference, public_names, references, spelled_all

DISTRIBUTION_OF = {
    "attr": "attrs",
    "functorch": "torch",
}  # import names that differ from what pip installs
RELEASES_OF_TORCH = ("torch.__version__.", "torch.version.", "torch.torch_version.")


@attrs.frozen
class Module:
    """One Python file of a package, with everything it refers to."""

    path: pathlib.Path
    shipped: bool  # under src/, not a test
    found: tuple[Reference, ...]


@attrs.frozen
class Package:
    """One distribution on disk: import name, what its manifest declares, its files."""

    name: str
    declared: frozenset[str]  # the dependencies themselves, import names
    extras: frozenset[str]  # those of extras and dependency groups
    modules: tuple[Module, ...]

    def imported(self) -> dict[str, str]:
        """Every other top-level name that shipped code imports -> a place where it does."""
        found = [
            (ref.top, f"{m.path}:{ref.line}")
            for m in self.modules
            if m.shipped
            for ref in m.found
            if ref.is_import
        ]
        return {top: where for top, where in reversed(found) if top != self.name}


@attrs.frozen
class Repository:
    root: pathlib.Path
    settings: dict[str, Any]
    packages: tuple[Package, ...]

    @property
    def names(self) -> set[str]:
        return {package.name for package in self.packages}


def read(root: pathlib.Path) -> Repository:
    settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]
    manifests = sorted(root.glob("packages/*/pyproject.toml"))
    return Repository(root, settings, tuple(_read_package(root, path) for path in manifests))


def _read_package(root: pathlib.Path, manifest: pathlib.Path) -> Package:
    tables = tomllib.loads(manifest.read_text())
    project = tables["project"]
    extras = [
        *project.get("optional-dependencies", {}).values(),
        *tables.get("dependency-groups", {}).values(),
    ]
    return Package(
        name=project["name"].replace("-", "_"),
        declared=frozenset(map(_import_name, project["dependencies"])),
        extras=frozenset(_import_name(wanted) for group in extras for wanted in group),
        modules=tuple(_read_module(root, path) for path in sorted(manifest.parent.rglob("*.py"))),
    )


def _import_name(requirement: str) -> str:
    return Requirement(requirement).name.replace("-", "_")


def _read_module(root: pathlib.Path, path: pathlib.Path) -> Module:
    shown = path.relative_to(root)
    return Module(shown, "src" in shown.parts, _references(path.read_text(), str(shown)))


@functools.cache  # the tests of this file look at one tree again and again
def _references(source: str, shown: str) -> tuple[Reference, ...]:
    return tuple(references(source, shown))


def disk_matches_contracts(repo: Repository) -> Iterator[str]:
    for name in sorted(repo.names ^ set(repo.settings["importlinter"]["root_packages"])):
        yield f"pyproject.toml: {name} is on disk or in root_packages, not in both"


def imported_equals_declared(repo: Repository) -> Iterator[str]:
    for package in repo.packages:
        used = {DISTRIBUTION_OF.get(top, top): where for top, where in package.imported().items()}
        outside = {top: where for top, where in used.items() if not _is_stdlib(top)}
        for top, where in sorted(outside.items()):
            allowed = package.declared if top in repo.names else package.declared | package.extras
            if top not in allowed:
                yield f"{where}: imports {top}, which {package.name} does not declare"
        for name in sorted(package.declared - outside.keys()):
            yield f"packages/{package.name}: declares {name} but never imports it"


def _is_stdlib(top: str) -> bool:
    """Accelerators such as ``_suggestions`` exist in some versions only; no distribution installs
    such a name."""
    return top in sys.stdlib_module_names or top.startswith("_")


def nothing_private_is_borrowed(repo: Repository) -> Iterator[str]:
    for package in repo.packages:
        for module in package.modules:
            for ref in module.found:
                top, *rest = ref.name.split(".")
                borrowed = top in repo.names - {package.name} and any(
                    _is_private(part) for part in rest
                )
                if borrowed:
                    yield f"{module.path}:{ref.line}: {ref.name} is private to {top}"


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def torch_stays_above(repo: Repository) -> Iterator[str]:
    """``torch_only_in`` names the files of a package that may know torch; a package it does not
    list may anywhere."""
    for name, patterns in repo.settings["stator"]["layers"]["torch_only_in"].items():
        package = next((package for package in repo.packages if package.name == name), None)
        for module in package.modules if package else ():
            if not module.shipped or any(
                fnmatch.fnmatch(module.path.name, pattern) for pattern in patterns
            ):
                continue
            lines = [ref.line for ref in module.found if ref.top == "torch"]
            if lines:
                yield f"{module.path}:{min(lines)}: refers to torch in a torch-free part of {name}"


def dynamo_is_never_imported(repo: Repository) -> Iterator[str]:
    for package in repo.packages:
        for module in package.modules:
            for ref in module.found:
                if f"{ref.name}.".startswith("torch._dynamo."):
                    yield f"{module.path}:{ref.line}: imports torch._dynamo"


def releases_of_torch_in_one_module(repo: Repository) -> Iterator[str]:
    """What depends on the release of torch stands in `_torch_compat.py` of each package."""
    for package in repo.packages:
        for module in package.modules:
            if not module.shipped or module.path.name == "_torch_compat.py":
                continue
            for ref in module.found:
                if f"{ref.name}.".startswith(RELEASES_OF_TORCH):
                    yield f"{module.path}:{ref.line}: reads the release of torch"


def all_is_the_public_names(repo: Repository) -> Iterator[str]:
    for package in repo.packages:
        for module in package.modules:
            if module.shipped and _is_public(module.path):
                yield from _differences(repo.root / module.path, module.path)


def _is_public(path: pathlib.Path) -> bool:
    inside = path.parts[path.parts.index("src") + 1 :]
    return not any(
        part.startswith("_") and part not in {"__init__.py", "__main__.py"} for part in inside
    )


def _differences(path: pathlib.Path, shown: pathlib.Path) -> Iterator[str]:
    source = path.read_text()
    package = path.name == "__init__.py"
    spelled, defined = spelled_all(source), public_names(source, every_import=package)
    if spelled is None:
        if defined:
            yield f"{shown}: has public names but no literal __all__"
        return
    bound = defined if package else public_names(source, every_import=True)
    for name in sorted((spelled - bound) | (defined - spelled)):
        yield f"{shown}: {name} is in __all__ or a public name, not both"


RULES: tuple[Callable[[Repository], Iterator[str]], ...] = (
    disk_matches_contracts,
    imported_equals_declared,
    nothing_private_is_borrowed,
    torch_stays_above,
    dynamo_is_never_imported,
    releases_of_torch_in_one_module,
    all_is_the_public_names,
)


def faults(root: pathlib.Path) -> list[str]:
    repo = read(root)
    return [fault for rule in RULES for fault in rule(repo)]


if __name__ == "__main__":
    sys.exit(
        "\n".join(faults(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve())) or 0
    )
