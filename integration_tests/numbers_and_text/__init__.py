"""Numbers, strings, regular expressions and paths."""
