"""The concrete domain: the Machine as a plain Python interpreter."""
