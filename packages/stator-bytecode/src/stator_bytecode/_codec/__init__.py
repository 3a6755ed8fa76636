"""Code objects to neutral instructions and back, without loss; all that differs between
CPythons."""
