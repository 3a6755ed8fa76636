"""Free symbols of values, and the places in a tensor where they can be read."""

import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import sympy  # type: ignore[import-untyped]
import torch
from stator_guards import SizeSource, Source
from torch.fx.experimental.recording import FakeTensorMeta
from torch.fx.experimental.symbolic_shapes import SYMPY_INTERP, ShapeEnv
from torch.utils._sympy.printers import PythonPrinter

Symbol: TypeAlias = sympy.Symbol
SymbolicTypes = (torch.SymInt, torch.SymFloat, torch.SymBool)


def expression_of(value: object) -> sympy.Expr | None:
    """The expression of a symbolic number that really has symbols. The ragged size of a jagged
    tensor has none: it represents the offsets, and is read from a tensor of the graph wherever it
    is needed."""
    if not isinstance(value, SymbolicTypes) or value.node.is_nested_int():
        return None
    expression = value.node.expr
    return expression if getattr(expression, "free_symbols", None) else None


def is_symbol(expression: Any) -> bool:
    """A symbol as such, and not something computed from symbols."""
    return expression is not None and bool(expression.is_Symbol)


def sizes_of(tensor: torch.Tensor | FakeTensorMeta) -> Iterator[tuple[Any, Any, int]]:
    """(value, kind, dimension) of each size, stride and the offset. Sizes first: they are what
    people recognise."""
    yield from ((size, "size", i) for i, size in enumerate(tensor.size()))
    if isinstance(tensor, FakeTensorMeta) or tensor.layout is torch.strided:
        yield from ((stride, "stride", i) for i, stride in enumerate(tensor.stride()))
        yield tensor.storage_offset(), "storage_offset", 0


def symbols_of(value: object) -> list[Symbol]:
    """Every free symbol of a value, in order of appearance, each once."""
    if isinstance(value, torch.Tensor):
        if not value._has_symbolic_sizes_strides:
            return []
        found = (symbol for part, _, _ in sizes_of(value) for symbol in symbols_of(part))
        return list(dict.fromkeys(found))
    expression = expression_of(value)
    return [] if expression is None else sorted(expression.free_symbols, key=str)


def symbols_of_any(example: object) -> list[Symbol]:
    """The same of a result that may be nested."""
    if isinstance(example, tuple | list):
        return [symbol for item in example for symbol in symbols_of_any(item)]
    return symbols_of(example)


def readable_symbols(tensor: torch.Tensor, source: Source) -> dict[Symbol, Source]:
    """The symbols that are a size, stride or offset of this tensor as such, with the source that
    reads them."""
    found: dict[Symbol, Source] = {}
    for part, kind, dim in sizes_of(tensor):
        expression = expression_of(part)
        if is_symbol(expression):
            found.setdefault(expression, SizeSource(source, kind, dim))
    return found


@functools.lru_cache(256)
def formula(expression: sympy.Expr, symbols: tuple[Symbol, ...]) -> Callable[..., Any]:
    """A Python function of the values of the symbols. The same expression gives the same
    function."""
    names = {symbol: sympy.Symbol(f"n{i}", integer=True) for i, symbol in enumerate(symbols)}
    text = PythonPrinter().doprint(expression.xreplace(names))
    made: Callable[..., Any] = eval(
        f"lambda {', '.join(map(str, names.values()))}: {text}", dict(SYMPY_INTERP)
    )
    made.__name__ = "computed"
    return made


def number_for(env: ShapeEnv, symbol: Symbol) -> object:
    """The symbol as a number, with the hint that the `ShapeEnv` has for it."""
    hint: Any = env.backed_var_to_val.get(symbol)
    return env.create_symintnode(symbol, hint=None if hint is None else int(hint))
