"""Oracle mode: each call also runs the original function, in a copy of all that it can reach.

Start at `_oracle.py`.
"""
