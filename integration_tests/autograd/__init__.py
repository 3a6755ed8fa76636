"""Gradients: hooks, functions, checkpoints, inference mode."""
