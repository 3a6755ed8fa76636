"""Code of torch that computes with numbers which it reads from tensors: the count of the steps of
an optimizer, the momentum of batch normalization.

    step = _get_value(step_t)      step = step_t.item()      a symbol of the graph
    1 - beta1**step                1 - beta1**step

Elsewhere `item()` may decide what the program does next, and is a break.
"""

from typing import Any

from stator_variables._handler_keys import READ_OF_NUMBER
from stator_variables._space import Space
from stator_variables._tracker import Args, FunctionTable, Kwargs

handlers = FunctionTable("read of a number")
_MODULES = ("torch.optim.", "torch.nn.modules.batchnorm")


@handlers.handles(READ_OF_NUMBER)
def is_computed_with(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """Return True if the code that reads the number only computes with it."""
    name = "" if t.frame is None else str(t.frame.globals.real.get("__name__"))
    return name.startswith(_MODULES)
