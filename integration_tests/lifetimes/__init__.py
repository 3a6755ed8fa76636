"""Lifetime of objects: finalizers, weak references, suspended generators."""
