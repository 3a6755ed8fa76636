"""Tensors, modes and modules: what becomes a node of the graph, and what torch's own C functions answer."""
