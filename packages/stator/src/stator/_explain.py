"""`explain`: one call of a function, and what was compiled for it."""

from collections.abc import Callable
from typing import Any

from stator._report import Report
from stator._settings._options import make_options
from stator._subject import compiled, region_in


def explain(fn: object) -> Callable[..., Report]:
    """Return a function that calls `fn`, compiled for this call alone, and returns the report.

    It has the attributes that the result of `torch._dynamo.explain` has, and those of any report.
    """

    def explained(*args: Any, **kwargs: Any) -> Report:
        subject = compiled(fn, make_options("eager", isolate_recompiles=True))
        subject(*args, **kwargs)
        return Report.of(region_in(subject))

    return explained
