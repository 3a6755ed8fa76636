"""Reasons for workloads where stator runs more outside of compiled graphs than torch.compile, or
compiles more."""

from __future__ import annotations

_PIECES_OF_TRY = (
    "operators of another library in a `try` divide the graph; autograd adds gradients and makes "
    "zeros between the pieces"
)
REASONS: dict[str, str] = {
    "mixtral, training": _PIECES_OF_TRY,
    "jagged result, training": (
        "the values of the result and its limits are results of the graph; the view is made natively"
    ),
    "stable_baselines3 ppo, training": (
        "arguments of distributions are validated, as without a compiler; torch.compile leaves "
        "that out"
    ),
}
