"""Write a graph down as a Python file that rebuilds it and compares a backend with eager execution.

    def graph_0():
        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        sin = graph.call_function(torch.sin, (x,), {})
        graph.output((sin,))
        return torch.fx.GraphModule({}, graph)

One line for each node, so a graph can be cut down by deleting lines. Tensors become random ones of
the same metadata.
"""

import math
import operator
import pkgutil
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import torch
from torch import Tensor
from torch.fx.node import _get_qualified_name

from .errors import Unwritable

HEAD = '''"""One graph with random inputs like the captured ones: a backend against eager runs."""

{imports}
from stator_backends import compare, lookup


def tensor(size, stride, dtype, device, requires_grad):
    """Return a random tensor with the original's layout; integers are 0 or 1, valid as indices."""
    made = torch.empty_strided(size, stride, dtype=dtype, device=device)
    made = made.normal_() if dtype.is_floating_point or dtype.is_complex else made.random_(0, 2)
    return made.requires_grad_(requires_grad)


'''

TAIL = """
def inputs():
    torch.manual_seed(0)
    return [{inputs}]


if __name__ == "__main__":
    report = compare(graph_0(), inputs(), lookup({backend!r}))
    print(report)
    raise SystemExit(not report.ok)
"""


def write_repro(
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    folder: str | Path,
    backend: str = "inductor",
) -> Path:
    """Write `folder/repro.py` and return its path. Symbolic sizes are written as their example
    numbers."""
    path = Path(folder) / "repro.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(repro_source(gm, example_inputs, backend))
    return path


def repro_source(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], backend: str) -> str:
    printer = _Printer()
    printer.graph(gm)
    inputs = ", ".join(printer.value(value) for value in example_inputs)
    imports = "\n".join(f"import {name}" for name in sorted(printer.modules))
    return (
        HEAD.format(imports=imports)
        + "\n\n".join(printer.functions)
        + TAIL.format(inputs=inputs, backend=backend)
    )


@attrs.define(eq=False)
class _Printer:
    """Collects one function per graph, and the modules that their text names."""

    functions: list[str] = attrs.field(factory=list)
    modules: set[str] = attrs.field(factory=lambda: {"torch"})

    def graph(self, gm: torch.fx.GraphModule) -> str:
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

    def node(self, node: torch.fx.Node) -> str:
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


def _attributes(gm: torch.fx.GraphModule) -> Iterator[tuple[str, Any]]:
    names = {str(node.target) for node in gm.graph.nodes if node.op in ("get_attr", "call_module")}
    return ((name, operator.attrgetter(name)(gm)) for name in sorted(names))


def _tensor(printer: _Printer, value: Tensor) -> str:
    size, stride = (tuple(map(int, numbers)) for numbers in (value.shape, value.stride()))
    return f"tensor({size}, {stride}, {value.dtype}, {str(value.device)!r}, {value.requires_grad})"


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
    (torch.fx.GraphModule, lambda printer, value: printer.graph(value)),
    (torch.fx.Node, lambda printer, value: value.name),
    (Tensor, _tensor),
    (torch.SymInt, lambda printer, value: str(int(value.node.hint))),
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
