"""Tolerances of comparisons between a backend and eager execution."""

import attrs
import torch
from torch import Tensor


@attrs.frozen
class Tolerance:
    """Tolerances of `torch.testing.assert_close`: without one, the default for the dtype."""

    rtol: float | None = None
    atol: float | None = None

    def difference(self, actual: object, expected: object) -> str | None:
        if type(actual) is not type(expected) and not isinstance(actual, Tensor):
            return f"{actual!r} instead of {expected!r}"
        if not isinstance(expected, Tensor | int | float | bool):
            return None if actual == expected else f"{actual!r} instead of {expected!r}"
        try:
            torch.testing.assert_close(
                actual, expected, rtol=self.rtol, atol=self.atol, equal_nan=True, check_stride=True
            )
        except AssertionError as error:
            return str(error)
        return None


DEFAULT_TOLERANCE = Tolerance()
