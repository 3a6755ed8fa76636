"""Keys of handlers that are not found by a real function.

Functions that are made anew with equal code have their code as the key. Such a handler, and those
of MARKED_BY_TORCH and BY_NAME, get the function as their first argument.
"""

REQUESTED_BREAK = "a call of graph_break()"
"""Calls that request a break: the handler leaves some of them out."""
GENERATED_FORWARD = "the code of a graph module"
"""The code that fx has generated for a graph."""
MARKED_BY_TORCH = "a function that nonstrict_trace or leaf_function marks"
BY_NAME = "a function that is found by its name"
"""Functions whose module need not be imported."""
ARRAY_OPERATOR = "an operator with an array of NumPy"
"""The handler gets the real operator as its first argument."""
WITH_GENERATOR = "an operator that is given a generator"
"""The handler gets the operator as its first argument. MISSING: the generator is one of torch's
own, and the handler has taken it out of the keywords."""
READ_OF_NUMBER = "a number that is read from a tensor, and computed with"
"""The handler returns True in code that only computes with it: the number is a symbol of the
graph."""
BRANCH_ON_DATA = "a branch on data, of which one side raises"
"""The handler gets a tensor or a symbolic number. It returns the truth that the graph checks, or
None."""
ORIGINAL = "__stator_original__"
"""The key, in the globals of a wrapper, of the function that it was made for. `functools.wraps`
copies attributes, and no globals."""
