"""Settings of compilations and of the process: options, stances, logs, and settings of torch.

Start at `_options.py`.
"""
