"""Breaks: one instruction run natively, and continuations of whole frame stacks."""
