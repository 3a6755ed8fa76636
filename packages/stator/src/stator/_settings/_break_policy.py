"""`error_on_graph_break`: a part of a program in which a graph break is an error, or is none again.

The manager is a plain Python object, so a trace can read what it has set at the place of a break.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

from stator_variables import Space


class BreakPolicy:
    """The setting, as an object that traces can track."""

    def __init__(self) -> None:
        self.error = False


_POLICY = BreakPolicy()


class error_on_graph_break:
    """Raise Unsupported where compiled code would break, in a `with` statement or a decorated
    function; with False, break there again. Unlike `fullgraph`, it may hold for a part."""

    def __init__(self, error_on_graph_break: bool) -> None:
        self.error = error_on_graph_break

    def __enter__(self) -> None:
        self.before, _POLICY.error = _POLICY.error, self.error

    def __exit__(self, *error: object) -> None:
        _POLICY.error = self.before

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        error = self.error

        @functools.wraps(fn)
        def with_policy(*args: object, **kwargs: object) -> Any:
            with error_on_graph_break(error):
                return fn(*args, **kwargs)

        return with_policy


def raises_on_break(t: Space) -> bool:
    """Return True if a break where a trace has come to is an error."""
    tracker = t.heap.trackers.get(id(_POLICY))
    if tracker is None:
        return _POLICY.error or _is_error_in_torch()
    return bool(t.get_attribute(tracker, "error").constant())


def _is_error_in_torch() -> bool:
    decorators = sys.modules.get("torch._dynamo.decorators")
    setting = getattr(decorators, "_get_error_on_graph_break", None)
    return setting is not None and bool(setting())


def enter_of_torch(manager: Any) -> None:
    """Enter the manager of torch, as compiled code does."""
    manager.prev_error_on_graph_break.append(_POLICY.error)
    _POLICY.error = manager.error_on_graph_break


def exit_of_torch(manager: Any, *error: object) -> None:
    """Leave the manager of torch, as compiled code does."""
    _POLICY.error = manager.prev_error_on_graph_break.pop()
