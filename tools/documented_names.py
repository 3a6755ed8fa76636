"""Resolve the Python names that a page of documentation mentions in code font.

``Names.of(ROOT)`` collects what the source files of the repository define; ``unresolved(text,
names)`` returns the mentioned names that neither they, nor Python, nor an installed library define.
Examples of the page itself count as definitions, so `` `x + y` `` is fine where a fenced block of
the page defines both. Nothing of ours is imported:

    `RegionRunner.enter`        a class and a member of it, or of one of its bases
    `stator_guards.conformance` a module
    `_emit/_emitter.py`         a file of that path below some folder of the repository
    `nox -s layers`             no Python, and not looked at
"""

from __future__ import annotations

import ast
import fnmatch
import functools
import importlib
import keyword
import pathlib
import re
import sys
import warnings
from collections.abc import Iterator
from typing import TypeGuard

import attrs

_FENCE = re.compile(r"^ *```[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")
_PATH = re.compile(r"(?:[\w.*-]+/)*[\w.*-]+\.(?:py|md|toml|txt)")
_OF_CPYTHON = re.compile(r"(?:\w+/)+\w+\.[ch](?::\w+)?")
_FOLDER = re.compile(r"(?:[\w-]+/)+[\w-]*")

_ROOTS = ("docs", "integration_tests", "packages", "tools")

# Libraries that may be imported to resolve a name, besides the standard library.
_LIBRARIES = frozenset({"attrs", "jinja2", "numpy", "torch", "transformers"})

# Namespaces whose members a page may mention without their module.
_FOREIGN = (
    "ast",
    "builtins",
    "collections",
    "collections.abc",
    "contextlib",
    "dis",
    "functools",
    "itertools",
    "numpy",
    "numpy.random",
    "random",
    "random.Random",
    "sys",
    "time",
    "types",
    "typing",
    "torch",
    "torch.Tensor",
    "torch.autograd.function.FunctionCtx",
    "torch.compiler",
    "torch.func",
    "torch.fx",
    "torch.fx.Node",
    "torch.nn",
    "torch.nn.Module",
)

# Attributes of functions, frames, arrays and tracebacks; fields and functions of CPython in C.
_CPYTHON = re.compile(r"__\w+__|(?:co|f|tb|gi|tp|nb|sq|mp)_\w+|_?Py[A-Z]?\w*_\w+|cache_info")
_ALIASES = {"np": "numpy"}

# Names of torch that appear with its compiler only, which is not imported for this.
_OF_COMPILERS = frozenset({"CompiledFunctionBackward", "nonstrict_trace"})


@attrs.define
class Names:
    """The names that the Python files of a repository define."""

    files: set[str] = attrs.field(factory=set)
    modules: set[str] = attrs.field(factory=set)
    members: dict[str, set[str]] = attrs.field(factory=dict)  # of classes and modules
    bases: dict[str, set[str]] = attrs.field(factory=dict)
    defined: set[str] = attrs.field(factory=set)

    @classmethod
    def of(cls, root: pathlib.Path) -> Names:
        names = cls()
        found = [
            *root.glob("*.*"),
            *(path for each in _ROOTS for path in root.glob(f"{each}/**/*")),
        ]
        for path in found:
            shown = path.relative_to(root)
            names.files.add(f"/{shown.as_posix()}")
            names.modules.update(shown.parts)
            if path.suffix == ".py":
                names._add(shown, path.read_text())
        return names

    def _add(self, path: pathlib.Path, text: str) -> None:
        parts = [part for part in path.with_suffix("").parts if part != "__init__"]
        self.modules.update(parts)

        tree = ast.parse(text)
        of_module = set(_bound(tree.body))
        self.defined |= of_module
        for name in parts[-1:]:
            self.members.setdefault(name, set()).update(of_module)

        for node in ast.walk(tree):
            self.defined.update(_defined_by(node))
            if isinstance(node, ast.ClassDef):
                members = set(_members(node))
                self.defined |= members
                self.members.setdefault(node.name, set()).update(members)
                self.bases.setdefault(node.name, set()).update(map(_last_name, node.bases))

    def has_member(self, owner: str, name: str) -> bool:
        """Return True if a class of ours, or a base of it, defines the attribute."""
        seen: set[str] = set()
        waiting = [owner]
        while waiting:
            current = waiting.pop()
            if current in seen:
                continue
            seen.add(current)
            if name in self.members.get(current, ()) or _is_foreign((current, name)):
                return True
            waiting += self.bases.get(current, ())
        return False

    def resolves(self, parts: tuple[str, ...]) -> bool:
        """Return True if a dotted name, given in parts, is defined by us, by Python or by a
        library."""
        first, *rest = parts
        if not rest:
            return self._is_known(first) or _is_foreign(parts)
        if _is_foreign(parts):
            return True

        of_ours = first.startswith(("stator", "integration_tests"))
        for owner, name in zip(parts, rest, strict=False):
            has_members = owner in self.members and (of_ours or owner[0].isupper())
            if has_members:
                if not self.has_member(owner, name) and name not in self.modules:
                    return False
            elif not self._is_known(name) and not _is_foreign((name,)):
                return False
        return True

    def _is_known(self, name: str) -> bool:
        return name in self.defined or name in self.modules or name in self.members

    def has_file(self, pattern: str) -> bool:
        """Return True if a file or folder has this path, below whatever folder."""
        return bool(fnmatch.filter(self.files, f"*/{pattern.rstrip('/')}"))


def unresolved(text: str, names: Names) -> list[str]:
    """Return the code spans of a page that mention a name which nothing defines.

    Classes of ours that a fenced block spells out must have the fields that it gives them.
    """
    local = set(_names_of_examples(text))
    found = [f"{name} in an example" for name in _unknown_fields(text, names)]
    for written in _SPAN.findall(_FENCE.sub("", text)):
        span = " ".join(written.split())
        missing = list(_missing(span, local, names))
        if missing:
            found.append(f"`{span}`: {', '.join(missing)}")
    return found


def _missing(span: str, local: set[str], names: Names) -> Iterator[str]:
    if _PATH.fullmatch(span):
        if not names.has_file(span):
            yield span
    elif not (_OF_CPYTHON.fullmatch(span) or (_FOLDER.fullmatch(span) and names.has_file(span))):
        for parts in _mentioned(span):
            if parts[0] not in local and not names.resolves(parts):
                yield ".".join(parts)


def _unknown_fields(text: str, names: Names) -> Iterator[str]:
    for language, block in _BLOCK.findall(text):
        tree = _parsed(block) if language in ("py", "python") else None
        for node in tree.body if tree else ():
            if isinstance(node, ast.ClassDef) and node.name in names.members:
                fields = set(_bound(node.body))
                yield from (
                    f"{node.name}.{field}"
                    for field in sorted(fields)
                    if not names.has_member(node.name, field)
                )


def _parsed(code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of literals that are called, and the like
            return ast.parse(code)
    except SyntaxError:
        return None


def _names_of_examples(text: str) -> Iterator[str]:
    for block in _FENCE.findall(text):
        yield from re.findall(r"[A-Za-z_]\w*", block)


def _mentioned(span: str) -> Iterator[tuple[str, ...]]:
    """Yield the dotted names in a span that is Python code."""
    tree = _parsed(span.removesuffix(":"))
    if tree is None:
        return

    fronts: set[int] = set()  # of chains that were yielded
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    bound = {node.id for node in ast.walk(tree) if _is_stored(node)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg:
            yield (node.arg,)
        if not isinstance(node, ast.Attribute | ast.Name) or id(node) in fronts:
            continue

        if isinstance(node, ast.Attribute):
            fronts.update(map(id, _fronts(node)))
        parts = _dotted(node)
        is_whole = span.isidentifier() or id(node) in called
        if parts and parts[0] not in bound and not _is_example(parts, is_whole):
            yield parts


def _is_example(parts: tuple[str, ...], is_whole: bool) -> bool:
    """Return True for names like `x`, and for plain words inside of an expression."""
    (name, *rest) = parts
    return not rest and (len(name) <= 2 or (not is_whole and name.isalpha() and name.islower()))


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _fronts(node: ast.Attribute) -> Iterator[ast.expr]:
    """Yield what stands before each dot of a chain."""
    front = node.value
    while isinstance(front, ast.Attribute):
        yield front
        front = front.value
    yield front


def _dotted(node: ast.expr) -> tuple[str, ...]:
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        front = _dotted(node.value)
        return (*front, node.attr) if front else ()
    return ()


def _bound(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the names that the body of a module or class binds, under a condition as well."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from _bound(node.body)


def _defined_by(node: ast.AST) -> Iterator[str]:
    """Yield the functions, parameters, keywords, attributes and identifiers in texts of one node.

    Local variables are left out: no page can refer to them.
    """
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.keyword):
        yield node.arg or ""
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr
    elif isinstance(node, ast.Constant):
        text = str(node.value)
        words = text.split() if text.isupper() else [text]  # a list of opcodes is one text
        yield from filter(str.isidentifier, words)


def _members(node: ast.ClassDef) -> Iterator[str]:
    """Yield the names in the body of a class, and the attributes that its methods set."""
    yield from _bound(node.body)
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            yield each.attr


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@functools.cache
def _is_foreign(parts: tuple[str, ...]) -> bool:
    """Return True if Python or an installed library defines the name."""
    first, *rest = parts
    first = _ALIASES.get(first, first)
    if not rest and (keyword.iskeyword(first) or _CPYTHON.fullmatch(first)):
        return True
    if first in _OF_COMPILERS:
        return True
    if any(_has(each, parts) for each in _FOREIGN):
        return True
    importable = first in sys.stdlib_module_names or first in _LIBRARIES
    return importable and _import((first, *rest))


def _has(namespace: str, parts: tuple[str, ...]) -> bool:
    return _import((*namespace.split("."), *parts))


@functools.cache
def _import(parts: tuple[str, ...]) -> bool:
    """Return True if a module exists, with the attributes that follow its name."""
    name = parts[0]
    try:
        value: object = importlib.import_module(name)
        for part in parts[1:]:
            name = f"{name}.{part}"
            known = hasattr(value, part)
            value = getattr(value, part) if known else importlib.import_module(name)
    except ImportError:
        return False
    return True
