"""Numbers and conditions on number inputs as Python text, in the order in which the program
computes.

`self.step += 1` becomes `v0["step"] = v1 + 1` in the entry, with no output of the graph: that is to
be read, and compilers that give no floats take the graph. `if rate * 0.9 < 0.5` becomes the guard
`n0 * 0.9 < 0.5`, where `ShapeEnv` would reorder what floats depend on.
"""

import functools
import math
import operator
import re
from collections.abc import Callable
from typing import Any

import torch
from attrs import Factory, define
from stator_guards import CallSource, ShapeExpression, Source
from stator_variables import GraphValue
from torch.fx import Node

from stator_subgraphs._constant import is_decided_exactly
from stator_subgraphs._input import Inputs
from stator_subgraphs._symbol import expression_of

SIGNS: dict[Any, str] = {operator.add: "+", operator.sub: "-", operator.mul: "*"}
DIVISIONS: dict[Any, str] = {operator.truediv: "/", operator.floordiv: "//", operator.mod: "%"}
COMPARISONS: dict[Any, str] = {
    getattr(operator, name): sign
    for name, sign in zip("lt le gt ge eq ne".split(), "< <= > >= == !=".split(), strict=True)
}
CLASSES: dict[type, type] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
LONGEST = 8
"""Operations of one text in an entry, at most."""
_EXACT = 1 << 53
"""Up to here ints are floats."""


def text_of(traced: GraphValue, inputs: Inputs, read: Callable[[Source], str]) -> str | None:
    """Return an expression over what `read` gives for inputs, which cannot raise.

    None where the graph has to compute the number: what raises there is raised at its line.
    """
    writer = _Text(inputs)
    text = writer.of(traced.node)
    if text is None or not text.startswith("(") or text.count("(") > LONGEST:
        return None
    values = {name: read(source) for source, name in writer.names.items()}
    return re.sub(r"\bn\d+\b", lambda match: values[match.group()], text[1:-1])


def condition_of(traced: GraphValue, inputs: Inputs) -> tuple[ShapeExpression, bool] | None:
    """Return the truth of a condition on floats as a guard, and what it is now; None: `ShapeEnv`
    decides."""
    if is_decided_exactly(traced):
        return None
    writer = _Text(inputs, scope={})
    if (text := writer.of(traced.node)) is None:
        return None
    holds = bool(eval(text, dict(writer.scope or {}), writer.hints))
    sources = {name: source for source, name in writer.names.items()}
    return ShapeExpression(text if holds else f"not {text}", sources, writer.scope or {}), holds


def computed_source(traced: GraphValue, inputs: Inputs) -> Source | None:
    """Return the source of a number that is computed from inputs alone, for other functions of
    it."""
    writer = _Text(inputs, scope={})
    if (text := writer.of(traced.node)) is None:
        return None
    functions = tuple((writer.scope or {}).items())
    return CallSource(_function(text, tuple(writer.hints), functions), *writer.names)


@functools.lru_cache(256)
def _function(
    text: str, names: tuple[str, ...], functions: tuple[tuple[str, Any], ...]
) -> Callable[..., Any]:
    """A function of the inputs. The same text gives the same function."""
    made: Callable[..., Any] = eval(f"lambda {', '.join(names)}: {text}", dict(functions))
    made.__name__ = "computed"
    return made


@define
class _Text:
    """Writes one expression. Without a `scope` for functions, only what cannot raise."""

    inputs: Inputs
    scope: dict[str, Any] | None = None
    names: dict[Source, str] = Factory(dict)
    hints: dict[str, int | float] = Factory(dict)  # what they are now

    def of(self, node: Node) -> str | None:
        cls = _class_of(node)
        if cls is None:
            return None
        if (source := self._read_from(node)) is not None:
            hint = node.meta["example_value"].node.hint
            if hint is None:  # of a number that is drawn at random in each call
                return None
            name = self.names.setdefault(source, f"n{len(self.names)}")
            self.hints[name] = cls(hint)
            return name

        if node.op != "call_function" or node.kwargs:
            return None
        if node.target is operator.neg:
            return self._joined("(-{})", node, cls)
        if (sign := self._sign(node, cls)) is not None:
            return self._joined(f"({{}} {sign} {{}})", node, cls)
        return None if self.scope is None else self._call(node, cls, self.scope)

    def _sign(self, node: Node, cls: type) -> str | None:
        """Between two operands. A division cannot fail if it is by a constant."""
        if self.scope is not None:
            return (SIGNS | DIVISIONS | COMPARISONS).get(node.target)
        if node.target in DIVISIONS and _is_by_constant(node):
            is_safe = cls is float or node.target is not operator.truediv
            return DIVISIONS[node.target] if is_safe else None
        return SIGNS.get(node.target)

    def _call(self, node: Node, cls: type, scope: dict[str, Any]) -> str | None:
        name = getattr(node.target, "__name__", "")
        if not name.isidentifier() or scope.setdefault(name, node.target) is not node.target:
            return None
        return self._joined(f"{name}({', '.join('{}' for _ in node.args)})", node, cls)

    def _joined(self, form: str, node: Node, cls: type) -> str | None:
        texts = [self._operand(operand, cls) for operand in node.args]
        return None if None in texts else form.format(*texts)

    def _operand(self, operand: Any, cls: type) -> str | None:
        """The text of an operand: in an entry of one class, as a large int may not become a
        float."""
        if isinstance(operand, Node):
            is_like = self.scope is not None or _class_of(operand) is cls
            return self.of(operand) if is_like else None
        if type(operand) not in (int, float, bool) or not math.isfinite(operand):
            return None
        is_like = self.scope is not None or type(operand) is cls
        return repr(operand) if is_like or abs(operand) <= _EXACT else None

    def _read_from(self, node: Node) -> Source | None:
        """Return its source: that of an int or a size, or a float that the graph takes as a
        tensor."""
        if isinstance(example := node.meta["example_value"], torch.SymInt):
            return self.inputs.source_of(expression_of(example), computed=False)
        if node.op != "call_method" or node.target != "item":
            return None
        found = self.inputs.described.get(node.all_input_nodes[0])
        return found.source if found is not None and found.kind == "float" else None


def _class_of(node: Node) -> type | None:
    return CLASSES.get(type(node.meta.get("example_value")))


def _is_by_constant(node: Node) -> bool:
    divisor = node.args[1]
    return isinstance(divisor, int | float) and divisor != 0
