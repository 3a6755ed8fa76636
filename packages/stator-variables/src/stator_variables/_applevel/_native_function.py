"""The call of a function that takes the place of another, and runs natively."""

from typing import Any

__app_level__ = True


def call_natively(function: Any, args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)
