"""What a Python file refers to, read from its text alone: imports of every kind, and the names it
makes public.

An import can hide: in a function, under ``TYPE_CHECKING``, as ``importlib.import_module("x")``, as
an attribute of a package that loads its parts lazily (``torch._dynamo`` is one), or in a piece of
generated source. All are found.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import attrs

IMPORTERS = {
    "import_module",
    "__import__",
    "find_spec",
    "resolve_name",
    "importorskip",
    "run_module",
    "find_loader",
}
IMPORT_IN_TEXT = re.compile(
    r"^\s*(?:import|from)\s+(torch\._dynamo\b[\w.]*)|^\s*from\s+torch\s+import\s+_dynamo", re.M
)


@attrs.frozen
class Reference:
    """A dotted name that a file refers to, and where; a mere attribute of something imported is not
    an import."""

    name: str
    line: int
    is_import: bool

    @property
    def top(self) -> str:
        return self.name.partition(".")[0]


def references(source: str, filename: str) -> Iterator[Reference]:
    tree = ast.parse(source, filename)
    modules = dict(_modules_bound(tree))
    docstrings = {id(text) for text in _docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Reference(alias.name, node.lineno, True) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (
                Reference(f"{node.module}.{alias.name}", node.lineno, True) for alias in node.names
            )
        elif isinstance(node, ast.Call) and _last_name(node.func) in IMPORTERS:
            yield from (Reference(text, node.lineno, True) for text in _texts(node))
        elif isinstance(node, ast.Attribute):
            name = _dotted(node, modules)
            if name:
                yield Reference(name, node.lineno, False)
        elif (
            isinstance(node, ast.Constant)
            and id(node) not in docstrings
            and _imports_dynamo(node.value)
        ):
            yield Reference("torch._dynamo", node.lineno, True)


def _modules_bound(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Local names that hold a module: name -> dotted name of the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (
                    (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
                )


def _imports_dynamo(value: object) -> bool:
    return isinstance(value, str) and IMPORT_IN_TEXT.search(value) is not None


def _docstrings(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            yield body[0].value


def _last_name(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _texts(call: ast.Call) -> Iterator[str]:
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    yield from (
        v.value
        for v in values
        if isinstance(v, ast.Constant) and isinstance(v.value, str) and v.value
    )


def _dotted(node: ast.expr, modules: dict[str, str]) -> str | None:
    """``torch._dynamo.config`` as text when its first name holds a module."""
    if isinstance(node, ast.Attribute):
        front = _dotted(node.value, modules)
        return front and f"{front}.{node.attr}"
    return modules.get(node.id) if isinstance(node, ast.Name) else None


def spelled_all(source: str) -> set[str] | None:
    """Return the literal ``__all__`` with the additions of ``+=``, also under a condition.

    None when there is none.
    """
    found: set[str] | None = None
    body = ast.parse(source).body
    conditional = [inner for node in body if isinstance(node, ast.If) for inner in node.body]
    for node in [*body, *conditional]:
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(_last_name(target) == "__all__" for target in targets):
                found = {*(found or ()), *ast.literal_eval(node.value)}
    return found


def public_names(source: str, *, every_import: bool) -> set[str]:
    """Names without underscore that the module binds; what it imports counts in an ``__init__``
    only.

    An ``__init__`` with a module ``__getattr__`` loads names late; their imports stand under
    ``TYPE_CHECKING``.
    """
    body = ast.parse(source).body
    lazy = any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in body)
    found = {name for node in body for name in _bound(node, every_import, lazy)}
    return {name for name in found if not name.startswith("_")}


def _bound(node: ast.stmt, imports: bool, lazy: bool) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (t.id for target in targets for t in ast.walk(target) if isinstance(t, ast.Name))
    elif isinstance(node, ast.Import | ast.ImportFrom) and imports:
        if getattr(node, "module", "") not in ("__future__", "typing"):
            yield from ((alias.asname or alias.name).split(".")[0] for alias in node.names)
    elif isinstance(node, ast.Try) or (
        isinstance(node, ast.If) and (lazy or "TYPE_CHECKING" not in ast.dump(node.test))
    ):
        yield from (name for part in node.body for name in _bound(part, imports, lazy))
