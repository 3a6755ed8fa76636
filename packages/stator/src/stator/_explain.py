"""`explain`: one call of a function, and what would be compiled for it."""

from collections.abc import Callable
from typing import Any, Unpack

import attrs
from stator_backends import without_compiler

from stator._api import Settings
from stator._report import Report
from stator._settings._options import Options, make_options
from stator._subject import compiled, region_in


def explain(fn: object, **settings: Unpack[Settings]) -> Callable[..., Report]:
    """Return a function that calls `fn`, captured for this call alone, and returns the report.

    The settings are those of `compile`. The report shows which operators the backend would get,
    and which run as they are, why and where: graphs are divided as for that backend, or for the
    default one, and nothing is compiled. It has the attributes that the result of
    `torch._dynamo.explain` has, and those of any report.
    """
    options = _without_compiler(make_options(**settings))

    def explained(*args: Any, **kwargs: Any) -> Report:
        subject = compiled(fn, options)
        subject(*args, **kwargs)
        return Report.of(region_in(subject))

    return explained


def _without_compiler(options: Options) -> Options:
    """Return the options with a backend that compiles nothing. Nothing is shared with other
    compilations, and the report is in place of warnings."""
    return attrs.evolve(
        options,
        backend=without_compiler(options.backend),
        uncompiled=options.uncompiled or "allow",
        sharing=None,
        tiered=False,
    )
