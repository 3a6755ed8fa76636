"""The kernel and the captures of the packages, and their sizes, from the text of the sources.

A capture is a module with handlers; `stator._settings._captures` names it. The kernel is what a
package exports, modules with builders, and what these import, through no list of captures. It
reaches no module of handlers (`check_size.py` fails), but in packages that are not divided, where
the handlers of such a module count as a capture. What is neither, such as functions in Python that
only captures use, is their support.
"""

from __future__ import annotations

import ast
import functools
import pathlib
from collections.abc import Iterator, Mapping

import attrs
from package_source import Source, count, count_nodes, read_packages

LISTS = frozenset(
    {
        "stator_variables._registry",
        "stator_subgraphs._operators._all",
        "stator._settings._options",
    }
)
"""The modules that merge the tables of captures."""
_TABLES = frozenset({"handlers", "methods"})
_DIVIDED = frozenset({"stator_subgraphs", "stator_variables"})
"""The packages that have modules of captures; of others every module is of the kernel."""


@attrs.frozen
class Module:
    """One module: its import name, nodes, nodes of its handlers, and the modules it imports."""

    name: str
    package: str
    path: pathlib.Path
    nodes: int
    of_handlers: int
    has_builders: bool
    imports: frozenset[str]

    @property
    def capture(self) -> str:
        """The name of the capture that its handlers are."""
        _, _, path = self.name.partition(".")
        return ".".join(part.removeprefix("_") for part in path.split("."))


@attrs.frozen
class Division:
    """All modules, the names of those of the kernel, and those of captures."""

    modules: Mapping[str, Module]
    kernel: frozenset[str]

    @property
    def captures(self) -> dict[str, Module]:
        """The modules with handlers, by the names of the captures."""
        found = [module for module in self.modules.values() if module.of_handlers]
        return {module.capture: module for module in sorted(found, key=lambda each: each.capture)}

    @property
    def mixed(self) -> list[str]:
        """The modules of the kernel that have handlers, in the packages that are divided."""
        modules = [self.modules[name] for name in sorted(self.kernel)]
        return [m.name for m in modules if m.of_handlers and m.name.split(".")[0] in _DIVIDED]

    def nodes_of(self, module: Module) -> int:
        """Return the nodes of a capture."""
        return module.of_handlers if module.name in self.kernel else module.nodes

    def sizes(self, package: str) -> tuple[int, int, int]:
        """Return the nodes of the kernel, of the captures and of their support in a package."""
        modules = [module for module in self.modules.values() if module.package == package]
        total = sum(module.nodes for module in modules)
        captures = sum(self.nodes_of(module) for module in modules if module.of_handlers)
        rest = [each for each in modules if each.name not in self.kernel | LISTS]
        support = sum(module.nodes for module in rest if not module.of_handlers)
        return total - captures - support, captures, support


@functools.cache
def divide(root: pathlib.Path) -> Division:
    """Divide the modules of the packages under a root."""
    sources = {
        name: (package, source)
        for package, found in read_packages(root).items()
        for name, source in _named(found)
    }
    modules = {
        name: _module(name, package, source, frozenset(sources))
        for name, (package, source) in sources.items()
    }
    roots = [module.name for module in modules.values() if _is_root(module)]
    return Division(modules, frozenset(_reached(modules, roots)))


def _is_root(module: Module) -> bool:
    package, _, path = module.name.partition(".")
    is_public = not path.rpartition(".")[2].startswith("_")
    is_folder = module.path.name == "__init__.py"
    return package not in _DIVIDED or is_public or is_folder or module.has_builders


def _named(sources: list[Source]) -> Iterator[tuple[str, Source]]:
    for source in sources:
        parts = source.path.with_suffix("").parts
        inner = parts[parts.index("src") + 1 :]
        yield ".".join(inner[:-1] if inner[-1] == "__init__" else inner), source


def _module(name: str, package: str, source: Source, known: frozenset[str]) -> Module:
    nodes = list(ast.walk(source.tree))
    return Module(
        name,
        package,
        source.path,
        count(nodes),
        sum(map(count_nodes, _handlers(source.tree))),
        any(isinstance(each, ast.Assign) and _is_builders(each) for each in source.tree.body),
        frozenset(_imports(name, source, nodes, known)),
    )


def _handlers(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the functions that are registered as handlers, and statements that register others."""
    for statement in tree.body:
        if any(map(_registers, _registering_parts(statement))):
            yield statement


def _registering_parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement that may register handlers: not those inside of functions."""
    if isinstance(statement, ast.FunctionDef):
        yield from statement.decorator_list
    elif isinstance(statement, ast.Expr | ast.Assign | ast.For | ast.If):
        yield from ast.walk(statement)


def _is_builders(statement: ast.Assign) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "builders" for each in statement.targets)


def _registers(node: ast.AST) -> bool:
    """Return True for a call such as `methods.handles(list.append)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    owner = node.func.value
    if isinstance(owner, ast.Attribute):
        owner = owner.value
    is_table = isinstance(owner, ast.Name) and owner.id in _TABLES
    return is_table and node.func.attr.startswith("handles")


def _imports(
    name: str, source: Source, nodes: list[ast.AST], known: frozenset[str]
) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                is_package = source.path.name == "__init__.py"
                parts = name.split(".")
                kept = parts[: len(parts) - node.level + is_package]
                base = ".".join([*kept, *([base] if base else [])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                if full in known or base in known:
                    yield full if full in known else base


def _reached(modules: Mapping[str, Module], roots: list[str]) -> set[str]:
    reached: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in reached | LISTS:
            reached.add(name)
            waiting += modules[name].imports
    return reached
