"""State of one trace that has owners of its own: graph, undo journal, memory of inputs, calls of
the entry, policy."""
