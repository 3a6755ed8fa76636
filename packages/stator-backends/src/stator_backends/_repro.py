"""Write a graph down as a Python file that rebuilds it and compares a backend with eager execution.

    def graph_0():
        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        sin = graph.call_function(torch.sin, (x,), {})
        graph.output((sin,))
        return torch.fx.GraphModule({}, graph)

One line for each node, so a graph can be cut down by deleting lines. Tensors become random ones of
the same metadata. Sizes that are symbols in the graph are parameters of the function that makes
them:

    SIZES = {'s0': 4}

    def inputs(s0):
        return [s0, tensor((s0, 3), (3, 1), torch.float32, 'cpu', False)]
"""

from __future__ import annotations

import hashlib
import math
import operator
import os
import pkgutil
import tempfile
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from attrs import Factory, asdict, define
from torch import SymInt, Tensor
from torch.fx import GraphModule, Node
from torch.fx.node import _get_qualified_name

from ._backend import Backend
from ._backend_source import backend_source
from ._fault import ORDINARY_CHECK, FaultCheck
from ._graph_facts import without_metadata
from ._symbolic_sizes import examples, with_sizes
from .errors import Unwritable

HEAD = '''"""One graph with inputs like the captured ones: a backend against eager runs."""

{imports}
from stator_backends import FaultCheck, configure, find_fault, lookup, with_sizes


'''

TENSOR = '''def tensor(size, stride, dtype, device, requires_grad):
    """Return a random tensor with the original's layout; integers are 0 or 1, valid as indices."""
    made = torch.empty_strided(size, stride, dtype=dtype, device=device)
    made = made.normal_() if dtype.is_floating_point or dtype.is_complex else made.random_(0, 2)
    return made.requires_grad_(requires_grad)


'''

INPUTS = """
SIZES = {sizes!r}


def inputs({names}):
    torch.manual_seed(0)
    return {values}
"""

TAIL = """

def values():
    return {values}


def backend():
    return {backend}


CHECK = FaultCheck(accuracy={accuracy!r}, seconds={seconds!r}, direct={direct!r})

if __name__ == "__main__":
    fault = find_fault(with_sizes(graph_0(), inputs, SIZES), values(), backend(), CHECK)
    print(fault or "no fault")
    raise SystemExit(fault is not None)
"""


def write_repro(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    folder: str | Path,
    backend: str | Backend = "inductor",
    check: FaultCheck = ORDINARY_CHECK,
) -> Path:
    """Write `folder/repro.py` and return its path.

    A placeholder that has an example value is written as that one, with its symbolic sizes.
    """
    return write_script(gm, example_inputs, Path(folder) / "repro.py", backend, check)


def write_script(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    path: str | Path,
    backend: str | Backend,
    check: FaultCheck,
    values: str = "",
) -> Path:
    """Write a script to `path`; its inputs are those in the file `values` beside it, if given."""
    return _written(Path(path), repro_source(gm, example_inputs, backend, check, values))


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def report_failure(gm: GraphModule, example_inputs: Sequence[Any], backend: Backend) -> str:
    """Write a script for a backend that failed; return its path, or the reason why there is none.

    One graph gives one file, in the folder `STATOR_REPRO_FOLDER`, or in that for temporary files.
    """
    try:
        text = repro_source(gm, example_inputs, backend, ORDINARY_CHECK)
    except Unwritable as reason:
        return str(reason)
    try:
        return _reported(text, "repro_{}.py")
    except OSError as error:  # the failure of the backend is what the user has to see
        return f"no script was written: {error}"


def log_of(text: str) -> str:
    """Write a long text of a backend, such as what a C++ compiler prints, beside the scripts;
    return its path, or an empty one where people can be shown all of it."""
    if text.count("\n") < LONG:
        return ""
    try:
        return _reported(text, "error_{}.txt")
    except OSError:
        return ""


LONG = 24
"""The lines of a text that is worth a file."""


def _reported(text: str, name: str) -> str:
    temporary = Path(tempfile.gettempdir(), f"stator_repros_{_user()}")
    folder = os.environ.get("STATOR_REPRO_FOLDER") or temporary
    number = hashlib.sha256(text.encode()).hexdigest()[:12]
    return str(_written(Path(folder, name.format(number)), text))


def _user() -> int:
    """Return the id of the user, which has no name in some containers; 0 on Windows."""
    return os.getuid() if hasattr(os, "getuid") else 0


def repro_source(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    backend: str | Backend,
    check: FaultCheck,
    values: str = "",
) -> str:
    """Return the text of a script that runs one graph through a backend and reports its fault."""
    printer = _Printer()
    printer.graph(gm)
    inputs = _inputs_text(printer, examples(gm, example_inputs))
    given = "inputs(**SIZES)"
    if values:
        given = f"torch.load(pathlib.Path(__file__).with_name({values!r}))"
        printer.modules.add("pathlib")
    imports = "\n".join(f"import {name}" for name in sorted(printer.modules))
    return (
        HEAD.format(imports=imports)
        + TENSOR
        + "\n\n".join(printer.functions)
        + inputs
        + TAIL.format(values=given, backend=_expression(backend), **asdict(check))
    )


def _inputs_text(printer: _Printer, values: Sequence[Any]) -> str:
    """Return the text of `SIZES` and `inputs`. The parameters are the symbols that are inputs."""
    # `_expr`, as a compilation may have made the symbol a constant since
    numbers = [value for value in values if isinstance(value, SymInt)]
    symbols = [value for value in numbers if value.node._expr.is_Symbol]
    printer.sizes = {value.node._expr: _number(value) for value in symbols}
    sizes = {str(symbol): number for symbol, number in printer.sizes.items()}
    text = f"[{', '.join(map(printer.value, values))}]"
    return INPUTS.format(sizes=sizes, names=", ".join(sizes), values=text)


def with_fresh_sizes(gm: GraphModule, inputs: Sequence[Any]) -> GraphModule:
    """Return a copy of a graph whose inputs have the same symbols in a new `ShapeEnv`.

    A compilation leaves guards in the old one, which may have made a symbol a constant.
    """
    space: dict[str, Any] = {"torch": torch}
    exec(TENSOR + _inputs_text(_Printer(), examples(gm, inputs)), space)
    return with_sizes(without_metadata(gm), space["inputs"], space["SIZES"])


def _expression(backend: str | Backend) -> str:
    """Return the expression for a backend; None, with the reason, for one that has no name."""
    try:
        return f"lookup({backend!r})" if isinstance(backend, str) else backend_source(backend)
    except Unwritable as reason:
        return f"None  # set it: {' '.join(str(reason).split())}"


@define(eq=False)
class _Printer:
    """Collects one function per graph, and the modules that their text names. `sizes` are the
    symbols that the text may name, with their example numbers."""

    functions: list[str] = Factory(list)
    sizes: dict[Any, int] = Factory(dict)
    modules: set[str] = Factory(lambda: {"torch"})

    def graph(self, gm: GraphModule) -> str:
        """Print a graph and those inside it; returns the expression that rebuilds it."""
        number = len(self.functions)
        self.functions.append("")  # holds the place: inner graphs come after the one that uses them
        attributes = ", ".join(f"{name!r}: {self.value(value)}" for name, value in _attributes(gm))
        lines = ["graph = torch.fx.Graph()", *map(self.node, gm.graph.nodes)]
        lines.append(f"return torch.fx.GraphModule({{{attributes}}}, graph)")
        self.functions[number] = f"def graph_{number}():\n" + "".join(
            f"    {line}\n" for line in lines
        )
        return f"graph_{number}()"

    def node(self, node: Node) -> str:
        if node.op == "output":
            return f"graph.output({self.value(node.args[0])})"
        if node.op in ("placeholder", "get_attr"):
            return f"{node.name} = graph.{node.op}({node.target!r})"
        target = repr(node.target) if isinstance(node.target, str) else self.function(node.target)
        return (
            f"{node.name} = graph.{node.op}({target}, "
            f"{self.value(node.args)}, {self.value(node.kwargs)})"
        )

    def function(self, target: Callable[..., Any]) -> str:
        name = _get_qualified_name(target)
        name = name if "." in name else f"builtins.{name}"
        if _resolved(name) is not target:
            raise Unwritable(repr(target), f"{name} does not name it")
        self.modules.add("torch" if name.startswith("torch.") else name.rpartition(".")[0])
        return name

    def value(self, value: object) -> str:
        for kinds, text in _TEXTS:
            if isinstance(value, kinds):
                return text(self, value)
        raise Unwritable(repr(value), f"no text for {type(value)}")

    def items(self, values: Iterable[Any]) -> str:
        return "".join(f"{self.value(value)}, " for value in values)


def _resolved(name: str) -> Any:
    """Return the object of that name in another process; None if there is none."""
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError):
        return None


def _attributes(gm: GraphModule) -> Iterator[tuple[str, Any]]:
    names = {str(node.target) for node in gm.graph.nodes if node.op in ("get_attr", "call_module")}
    return ((name, operator.attrgetter(name)(gm)) for name in sorted(names))


def _number(value: int | SymInt) -> int:
    """Return an int, or the example of a symbolic one; the data decides some, which have none."""
    if not isinstance(value, SymInt):
        return value

    if not value.node.has_hint():
        raise Unwritable(str(value), "its number depends on data")
    return int(value.node.hint)


def _size(printer: _Printer, value: int | SymInt) -> str:
    """Return the expression for a size: the number where the inputs bind not all of its symbols."""
    from torch.utils._sympy.printers import PythonPrinter  # brings sympy

    if isinstance(value, SymInt) and value.node._expr.free_symbols <= printer.sizes.keys():
        return str(PythonPrinter().doprint(value.node._expr))
    return str(_number(value))


def _tensor(printer: _Printer, value: Tensor) -> str:
    layout = (value.shape, value.stride())
    size, stride = ("".join(f"{_size(printer, n)}, " for n in numbers) for numbers in layout)
    return (
        f"tensor(({size}), ({stride}), {value.dtype}, {str(value.device)!r}, {value.requires_grad})"
    )


def _dict(printer: _Printer, value: dict[Any, Any]) -> str:
    return (
        "{"
        + "".join(f"{printer.value(key)}: {printer.value(item)}, " for key, item in value.items())
        + "}"
    )


def _plain(printer: _Printer, value: object) -> str:
    return repr(value)


# The first kind in this order that fits determines how a value is written.
_TEXTS: tuple[tuple[Any, Callable[[_Printer, Any], str]], ...] = (
    (GraphModule, lambda printer, value: printer.graph(value)),
    (Node, lambda printer, value: value.name),
    (Tensor, _tensor),
    (SymInt, _size),
    (
        float,
        lambda printer, value: repr(value) if math.isfinite(value) else f"float({str(value)!r})",
    ),
    (bool | int | complex | str | types.NoneType, _plain),
    (types.EllipsisType, lambda printer, value: "..."),
    (torch.dtype | torch.layout | torch.memory_format, _plain),
    (torch.device, lambda printer, value: f"torch.device({str(value)!r})"),
    (
        slice,
        lambda printer, value: f"slice({printer.items((value.start, value.stop, value.step))})",
    ),
    (tuple, lambda printer, value: f"({printer.items(value)})"),
    (list, lambda printer, value: f"[{printer.items(value)}]"),
    (dict, _dict),
    (
        (types.BuiltinFunctionType, types.FunctionType),
        lambda printer, value: printer.function(value),
    ),
)
