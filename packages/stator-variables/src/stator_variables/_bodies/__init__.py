"""Bodies of higher-order operators, and the pytrees of their arguments and results."""
