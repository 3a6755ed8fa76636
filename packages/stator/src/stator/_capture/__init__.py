"""One capture of a target: the trace, the sizes that are symbols in it, and the records of it.

Start at `_trace.py`.
"""
