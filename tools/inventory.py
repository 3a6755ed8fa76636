"""The private names of torch that the packages use, checked against the installed torch.

``python tools/inventory.py`` prints, each with the places that use it: a name that is gone, a call
that the signature no longer takes, a signature or an attribute that differs from what was recorded
for the release before. ``--list`` prints the names, ``--record`` adds the installed release to
``tools/torch_names.json``.

A name is private if a part of it starts with one underscore. Of ``module._name`` the object itself
is looked at. Of ``value._name``, whose type the text does not tell, it is checked that the sources
of torch still have such a name.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import pathlib
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECORD = ROOT / "tools" / "torch_names.json"
TOP = "torch"
NO_SIGNATURE = "-"


@attrs.frozen
class Use:
    """A name and a place that uses it; `positional` and `keywords` are those of a call there."""

    name: str
    place: str
    positional: int = -1
    keywords: tuple[str, ...] = ()

    @property
    def is_call(self) -> bool:
        return self.positional >= 0


@attrs.frozen
class Inventory:
    """The uses of names of torch, and those of attributes of values."""

    names: tuple[Use, ...]
    attributes: tuple[Use, ...]


class MissingName(Exception):
    """The installed torch does not have this name."""


def is_private(part: str) -> bool:
    return part.startswith("_") and not part.endswith("__")


# -- what the packages use -------------------------------------------------------------------------
def inventory(root: pathlib.Path) -> Inventory:
    """Read the sources of all packages below `root`."""
    names: list[Use] = []
    attributes: list[Use] = []
    ours: set[str] = set()
    for path in sorted(root.glob("packages/*/src/**/*.py")):
        file = _File(str(path.relative_to(root)), ast.parse(path.read_text()))
        names += file.names()
        attributes += file.attributes()
        ours |= file.defined()
    return Inventory(tuple(names), tuple(use for use in attributes if use.name not in ours))


class _File:
    """One module: the names that it binds to something of torch, and what it uses of these."""

    def __init__(self, shown: str, tree: ast.Module) -> None:
        self.shown = shown
        self.tree = tree
        self.bound = dict(_imported(tree))
        self.calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
        self.inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in tree.body:  # `_C: Any = torch._C`
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
                self._bind(node, node.value)

    def _bind(self, node: ast.Assign | ast.AnnAssign, value: ast.expr) -> None:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        name = self.dotted(value)
        if isinstance(target, ast.Name) and name:
            self.bound.setdefault(target.id, name)

    def names(self) -> Iterator[Use]:
        """Yield the uses of names of torch with a private part."""
        for node in ast.walk(self.tree):
            for name in self._named(node):
                if _is_of_torch(name):
                    yield self._use(name, node)

    def _named(self, node: ast.AST) -> list[str]:
        if isinstance(node, ast.ImportFrom):
            return [f"{node.module}.{alias.name}" for alias in node.names]
        if isinstance(node, ast.Attribute) and id(node) not in self.inner:
            return [self.dotted(node) or ""]
        if isinstance(node, ast.Name) and id(node) in self.calls:
            return [self.dotted(node) or ""]
        return [self._read_by_text(node)] if isinstance(node, ast.Call) else []

    def attributes(self) -> Iterator[Use]:
        """Yield the uses of private attributes of values."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr) and not self.dotted(node):
                yield self._use(node.attr, node)

    def defined(self) -> set[str]:
        """Return the names that are bound, or are attributes of `self`, here."""
        found = {target for target in self.bound if is_private(target)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self":
                found.add(node.attr)
        return found

    def dotted(self, node: ast.expr) -> str | None:
        """Return the name of torch that an expression reads."""
        if isinstance(node, ast.Attribute):
            front = self.dotted(node.value)
            return front and f"{front}.{node.attr}"
        return self.bound.get(node.id) if isinstance(node, ast.Name) else None

    def _read_by_text(self, call: ast.Call) -> str:
        """Return the name that `getattr(owner, "name")` without a default reads."""
        if getattr(call.func, "id", "") != "getattr" or len(call.args) != 2:
            return ""
        owner, name = self.dotted(call.args[0]), call.args[1]
        if owner and isinstance(name, ast.Constant) and isinstance(name.value, str):
            return f"{owner}.{name.value}"
        return ""

    def _use(self, name: str, node: ast.AST) -> Use:
        place = f"{self.shown}:{getattr(node, 'lineno', 1)}"
        call = self.calls.get(id(node))
        if call is None or _has_splat(call):
            return Use(name, place)
        keywords = tuple(keyword.arg for keyword in call.keywords if keyword.arg)
        return Use(name, place, len(call.args), keywords)


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == TOP:
                    yield (alias.asname, alias.name) if alias.asname else (TOP, TOP)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == TOP:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _has_splat(call: ast.Call) -> bool:
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    return starred or any(keyword.arg is None for keyword in call.keywords)


def _is_of_torch(name: str) -> bool:
    top, *rest = name.split(".")
    return top == TOP and any(map(is_private, rest))


# -- what the installed torch has ------------------------------------------------------------------
def resolve(name: str) -> Any:
    """Return the object of a dotted name.

    A module goes before a function that hides it (`from torch._higher_order_ops.scan import scan`).
    """
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:length]))
            return _read(value, parts[length:])
        except (ImportError, AttributeError):
            continue
    raise MissingName(name)


def _read(value: Any, parts: list[str]) -> Any:
    for part in parts:
        if value is None:  # a setting that is off, whose own attributes nobody can see
            return None
        value = getattr(value, part)
    return value


def signature(value: Any) -> str:
    """Return the parameters without annotations and values: `x, dim=, *, out=`."""
    if not callable(value):
        return NO_SIGNATURE
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):  # a function in C
        return NO_SIGNATURE
    return str(inspect.Signature([_plain(each) for each in parameters]))[1:-1]


def _plain(parameter: inspect.Parameter) -> inspect.Parameter:
    is_needed = parameter.default is parameter.empty
    default = parameter.empty if is_needed else _Omitted()
    return parameter.replace(annotation=parameter.empty, default=default)


class _Omitted:
    """Stands for any default value."""

    def __repr__(self) -> str:
        return ""


def fits(use: Use, value: Any) -> bool:
    """Return True if the signature takes the call."""
    if not use.is_call:
        return True
    positional = [None] * use.positional
    try:
        inspect.signature(value).bind(*positional, **dict.fromkeys(use.keywords))
    except TypeError:
        return False
    return True


def written_in_torch(names: set[str]) -> set[str]:
    """Return the names that occur in the sources and stubs of the installed torch."""
    folder = pathlib.Path(importlib.import_module(TOP).__file__ or "").parent
    found: set[str] = set()
    word = re.compile(r"\b_[A-Za-z]\w*")
    for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.pyi")]):
        found |= names.intersection(word.findall(path.read_text(errors="replace")))
    return found


# -- the comparison --------------------------------------------------------------------------------
def snapshot(found: Inventory) -> dict[str, str]:
    """Return the signatures of the names that are there; attributes of values start with a dot.

    A name that is missing, and yet written in the sources, is one of another build (CUDA).
    """
    taken, missing = {}, set()
    for name in {use.name for use in found.names}:
        try:
            taken[name] = signature(resolve(name))
        except MissingName:
            missing.add(name)

    attributes = {use.name for use in found.attributes}
    written = written_in_torch(attributes | {_last(name) for name in missing})
    taken |= {name: NO_SIGNATURE for name in missing if _last(name) in written}
    return taken | {f".{name}": "" for name in attributes & written}


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def faults(found: Inventory, now: Mapping[str, str], before: Mapping[str, str]) -> Iterator[str]:
    """Yield what is gone, does not fit or differs, each with its place."""
    for use in found.names:
        if use.name not in now:
            yield f"{use.place}: {use.name} is gone"
        elif now[use.name] != NO_SIGNATURE and not fits(use, resolve(use.name)):
            yield f"{use.place}: {use.name}({now[use.name]}) does not take this call"
        elif now[use.name] != before.get(use.name, now[use.name]):
            yield f"{use.place}: {use.name}({now[use.name]}) was ({before[use.name]})"
    for use in found.attributes:
        attribute = f".{use.name}"
        if attribute in before and attribute not in now:
            yield f"{use.place}: no source of torch has the attribute {use.name}"


def release() -> str:
    return ".".join(str(importlib.import_module(TOP).__version__).split(".")[:2])


def compared_with(records: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """Return the record of the installed release, or that of the newest recorded one."""
    if release() in records:
        return records[release()]
    newest = max(records, key=lambda each: [*map(int, each.split("."))], default=None)
    return {} if newest is None else records[newest]


def main(arguments: list[str], root: pathlib.Path = ROOT, record: pathlib.Path = RECORD) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="print the names and their places")
    parser.add_argument("--record", action="store_true", help="record the installed release")
    given = parser.parse_args(arguments)

    found = inventory(root)
    if given.list:
        uses = [*found.names, *found.attributes]
        print("\n".join(sorted(f"{use.name}  {use.place}" for use in uses)))
        return 0

    records = json.loads(record.read_text()) if record.exists() else {}
    now = snapshot(found)
    if given.record:
        records[release()] = now
        record.write_text(json.dumps(records, indent=1, sort_keys=True) + "\n")
    reported = [*faults(found, now, compared_with(records))]
    print("\n".join([*reported, f"{len(now)} names of torch {release()} are used"]))
    return 1 if reported else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
