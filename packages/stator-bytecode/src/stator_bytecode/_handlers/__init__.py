"""Handlers of the opcodes, by family."""
