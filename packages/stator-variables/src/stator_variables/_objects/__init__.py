"""Types and objects: class lookup, making of trackers, keys and hashes, dicts, sets, classes,
functions, exceptions."""
