"""Reasons for workloads where stator runs more outside of compiled graphs than torch.compile, or
compiles more."""

from __future__ import annotations

REASONS: dict[str, str] = {
    "gpytorch exact process, training": (
        "`torch.equal` decides in the forward of an `autograd.Function`, which runs natively"
    ),
    "detr with labels, training": (
        "checks of boxes (`if not (...).all(): raise`) are compiled as assertions; torch.compile "
        "breaks at each of them"
    ),
    "residual vector quantization, training": (
        "the first call initializes the code books in graphs of its own; torch.compile breaks in "
        "each layer, and runs some graphs several times"
    ),
    "yolov8 with its loss, training": (
        "both compile the first call, which makes the loss, apart from the others; the loss catches "
        "`RuntimeError` around its operators, which run in pieces between those that may raise"
    ),
    "lstm, training": (
        "torch.compile leaves recurrent layers alone; the graph has them layer by layer, in "
        "operators that AOTAutograd takes apart"
    ),
    "jagged result, training": (
        "the values of the result and its limits are results of the graph; the view is made natively"
    ),
    "stable_baselines3 ppo, training": (
        "arguments of distributions are validated, as without a compiler; torch.compile leaves "
        "that out"
    ),
}

SLOWER: dict[str, str] = {}
"""Reasons for workloads with a figure above its limit under Inductor."""
