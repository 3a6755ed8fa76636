"""Entries: the guarded function that is generated from a trace, its compiled graph, and recovery.

Start at `_entry.py`.
"""
