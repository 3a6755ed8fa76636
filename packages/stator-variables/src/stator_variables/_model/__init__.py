"""CPython's algorithms over trackers: attributes, calls, operators, iteration, containers, exceptions."""
