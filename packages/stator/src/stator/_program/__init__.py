"""The program that is compiled: its functions, modules and frames, the calls in it, and the places
in its source. Start at `_target.py`."""
