"""Graph capture for PyTorch: the same answer as Python, breaks that cost one break, generated code you can read."""
