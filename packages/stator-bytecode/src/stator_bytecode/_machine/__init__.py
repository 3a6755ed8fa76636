"""The abstract interpreter: frames, unwinding, generators, and the Domain of its values."""
