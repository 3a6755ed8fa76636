"""Figures as ratios: stator beside torch.compile and plain Python, in one interleaved run. ``nox -s bench``."""
