"""Large collections of programs, each with the test that runs it."""
