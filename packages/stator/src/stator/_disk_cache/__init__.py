"""Results of traces on disk, for processes that start later. Start at `_disk_cache.py`."""
