"""Builtin iterators: one module for each sort, on the base in `_iterator`."""
