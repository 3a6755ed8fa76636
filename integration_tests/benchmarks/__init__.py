"""Figures as ratios: stator beside torch.compile and plain Python. ``nox -s bench``."""
