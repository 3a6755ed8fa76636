"""A higher-order operator from outside: ``region(function, *args, label=...)`` calls ``function``
and notes the label.

Traced, it is one node with one body: ``region(body, *inputs, label=...)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stator_bytecode import HandlerTable
from stator_variables import Space, wrapped

__all__ = ["ENTERED", "operators", "region"]

ENTERED: list[str] = []

operators: HandlerTable[Any, Any] = HandlerTable("higher-order operator")


def region(function: Callable[..., Any], *args: Any, label: str = "region") -> Any:
    """What ``function`` gives; the label is noted each time."""
    ENTERED.append(label)
    return function(*args)


@operators.handles(region)
def trace_region(t: Space, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Any result, any effect: the body runs exactly once where the program calls it."""
    label = kwargs["label"].constant() if "label" in kwargs else "region"
    return wrapped(t, region, "region_body", args[0], args[1:], {}, label=label)
