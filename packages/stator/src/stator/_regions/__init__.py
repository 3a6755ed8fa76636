"""Regions: what a compiled object keeps from call to call, and the function that its user calls.
Start at `_region.py`."""
