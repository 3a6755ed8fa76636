"""Builtins that CPython writes in C but could be Python: run by the Machine like the user's own
code."""
