"""Tensors and their subclasses, views and memory, random streams, distributed tensors."""
