"""The commands of `python -m stator`, one module each."""
