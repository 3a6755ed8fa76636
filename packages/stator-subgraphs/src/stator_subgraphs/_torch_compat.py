"""All that depends on the release of torch: each item with its reason, and what others have.

The other modules of this package use these names and compare no versions. What is listed here is
on `docs/reference/versions.md`, too.
"""

from __future__ import annotations

from typing import Any

from torch.autograd.function import Function


def _apply_of_function() -> Any:
    """Return what `Function.apply` is bound from.

    2.13: a classmethod in Python. 2.14: a class method descriptor of the C class.
    """
    apply = vars(Function)["apply"]
    return apply.__func__ if isinstance(apply, classmethod) else apply


FUNCTION_APPLY = _apply_of_function()
