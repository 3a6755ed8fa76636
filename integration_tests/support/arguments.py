"""The arguments of one call."""

from __future__ import annotations

from typing import Any

import attrs


@attrs.frozen
class Call:
    """The arguments of one call of a model or function."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = attrs.field(factory=dict)
