"""Lists, dicts, sets, deques and heaps: contents, order, keys, copies."""
