"""Exceptions and warnings: raised, caught, kept, and raised by operators while a graph runs."""
