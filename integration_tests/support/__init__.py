"""What all tests share: comparison with plain Python, counting backends, programs, the state of the
process."""
