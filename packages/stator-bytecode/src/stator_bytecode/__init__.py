"""CPython bytecode as a neutral instruction stream, an abstract interpreter over it, and continuations."""
