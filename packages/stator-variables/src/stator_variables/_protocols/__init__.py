"""CPython's protocols over trackers: attributes, calls, operators, iteration, containers,
matching."""
