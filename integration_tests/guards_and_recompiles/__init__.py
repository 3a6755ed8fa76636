"""Reads that are guarded, changes between calls, and the number of compilations."""
