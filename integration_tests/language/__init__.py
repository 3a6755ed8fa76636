"""Statements, names, functions and builtins of the language itself."""
