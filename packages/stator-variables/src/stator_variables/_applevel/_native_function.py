"""The call of a function that takes the place of another, and runs natively."""

from typing import Any


def call_natively(function: Any, args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)
