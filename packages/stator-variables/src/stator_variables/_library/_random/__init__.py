"""Captures of streams of random numbers: those of Python, NumPy and torch.

What all have in common is in `_streams`: the order of the native calls on one stream, and the
states that are saved. How an entry makes native calls is in `stator_variables._trace._entry_calls`.
"""
