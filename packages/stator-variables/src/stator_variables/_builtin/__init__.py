"""Handlers of builtin functions and of the methods of builtin types, keyed by the real callable."""
