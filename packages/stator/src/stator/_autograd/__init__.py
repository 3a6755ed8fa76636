"""Compiled autograd: backward passes that are captured while the engine is replaced. Start at
`_compiled_autograd.py`."""
