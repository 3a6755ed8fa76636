"""Tensors saved for backward: they stay after the first backward, as in the program."""

from functools import cache

from torch._functorch import config


@cache
def keep_saved_tensors() -> None:
    """Contract: `retain_graph=True` is allowed. AOTAutograd assumes by default that backward uses
    what it saved for the last time.

    The setting is for the process, since it is read in each backward. A program that never retains
    a graph may set it back, to use less memory.
    """
    config.donated_buffer = False
