"""Reasons for workloads where stator runs more outside of compiled graphs than torch.compile, or
compiles more."""

from __future__ import annotations

REASONS: dict[str, str] = {
    "gpytorch exact process, training": (
        "`torch.equal` decides in the forward of an `autograd.Function`, which runs natively"
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
    "torchsde euler, training": (
        "the solver keeps a tree of intervals that each of its steps changes, so that the third call "
        "still compiles, whose operators are counted; torch.compile leaves the tree to Python"
    ),
    "monai unet, training": (
        "6 more of the tensors that AOTAutograd saves for backward are views, and are detached"
    ),
    "jagged result, training": (
        "the values of the result and its limits are results of the graph; the view is made natively"
    ),
    "stable_baselines3 ppo, training": (
        "arguments of distributions are validated, as without a compiler; torch.compile leaves "
        "that out"
    ),
}

SLOWER: dict[str, str] = {
    "mixtral, training": (
        "each operator of another library in a `try` has a compiled piece of its own: 7 pieces with "
        "a width of 32, where torch.compile has 2 graphs"
    ),
    "pyg gin, training": (
        "the state of the random number generator is copied before a call (5,056 bytes, the model "
        "has 9,592), as an `except` of the program may catch an index out of range"
    ),
    "gan step": "the whole step is one graph, whose results have the gradients (1,004 bytes more)",
}
"""Reasons for workloads with a figure above its limit under Inductor."""
