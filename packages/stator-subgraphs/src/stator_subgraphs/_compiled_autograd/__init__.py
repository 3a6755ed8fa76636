"""Capture of what the autograd engine would run: one graph for each structure of a backward.

`BackwardCapture` is the object that C++ calls; a `CapturedBackward` is what it gives. `partitioned`
divides one into segments for a compiler.
"""

from stator_subgraphs._compiled_autograd._backward import CapturedBackward
from stator_subgraphs._compiled_autograd._capture import BackwardCapture
from stator_subgraphs._compiled_autograd._first_gradient import take_first_gradients
from stator_subgraphs._compiled_autograd._operator import accumulate_grad, runs_user_code
from stator_subgraphs._compiled_autograd._partition import partitioned, without_accumulation
from stator_subgraphs._compiled_autograd._user_code import (
    as_function,
    followed_accumulations,
    may_be_followed,
    unpacks,
)

__all__ = [
    "BackwardCapture",
    "CapturedBackward",
    "accumulate_grad",
    "as_function",
    "followed_accumulations",
    "may_be_followed",
    "partitioned",
    "runs_user_code",
    "take_first_gradients",
    "unpacks",
    "without_accumulation",
]
