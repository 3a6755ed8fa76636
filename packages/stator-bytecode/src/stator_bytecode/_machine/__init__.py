"""The abstract interpreter: frames, unwinding, generators, and the Domain that it asks about values."""
