"""Tensors: what becomes a node of the graph, and what torch's own C functions give without one."""
