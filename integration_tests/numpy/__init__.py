"""NumPy arrays and numbers."""
