"""Dumps: what was generated for a compiled object, as files that run in another process. Start at
`_dump.py`."""
