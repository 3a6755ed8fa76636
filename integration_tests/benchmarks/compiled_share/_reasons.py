"""Reasons for workloads where stator runs more outside of compiled graphs than torch.compile, or
compiles more."""

from __future__ import annotations

REASONS: dict[str, str] = {
    "stable_baselines3 ppo, training": (
        "arguments of distributions are validated, as without a compiler; torch.compile leaves "
        "that out"
    ),
}
