"""Threads that compile and call at the same time."""
