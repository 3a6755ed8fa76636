"""The operators and modules of torch's own tests."""
