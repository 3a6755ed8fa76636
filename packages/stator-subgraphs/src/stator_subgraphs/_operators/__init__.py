"""Higher-order operators, a file for each: handlers of the callables that users call."""
