"""Reconstruction: from trackers back to Python source."""
