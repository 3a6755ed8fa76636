"""Files with all that was compiled for one object, and compilation ahead of calls. Start at
`_save.py` and `_precompile.py`."""
