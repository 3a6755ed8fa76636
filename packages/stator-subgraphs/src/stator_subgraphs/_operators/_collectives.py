"""Collectives of `torch.distributed` that write to a tensor: captured as the functional ones, whose
result is copied.

Only where no gradient is at stake: plainly, autograd does not see what a collective does to a
tensor. With `async_op=True` the graph waits at once: until the program waits, it has no value to
rely on. The object to wait with stays in the graph.
"""

import inspect
from typing import Any

import torch
from stator_bytecode import after
from stator_guards import CapturedSource
from stator_variables import (
    NONE,
    Args,
    ConstantTracker,
    Emitter,
    FunctionTable,
    Kwargs,
    Space,
    StaysInGraph,
    TensorTracker,
    VariableTracker,
    call,
    flatten,
    is_a,
    is_none,
    known_value,
    wrap,
)
from torch import distributed

handlers = FunctionTable("collective")

FUNCTIONAL = {
    "all_gather": "all_gather_inplace",
    "all_gather_into_tensor": "all_gather_tensor_inplace",
    "all_reduce": "all_reduce_inplace",
    "all_to_all_single": "all_to_all_inplace",
    "reduce_scatter_tensor": "reduce_scatter_tensor_inplace",
}
"""The substitutes in `torch.distributed._functional_collectives`, by the name of the function."""


@handlers.handles_each(
    [getattr(distributed, name) for name in FUNCTIONAL] if distributed.is_available() else ()
)
def collective(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Any:
    named = _bound(t, of, args, kwargs)
    result = WorkTracker(t.machine.save()) if _gives_work(t, named) else NONE
    from torch.distributed import _functional_collectives as functional

    if "op" in named:
        if (operator := functional.REDUCE_OP_TO_STR.get(known_value(t, named["op"]))) is None:
            raise t.unsupported(
                "not-inlined", "a reduction that functional collectives do not have"
            )
        named["op"] = ConstantTracker(operator)
    name = FUNCTIONAL[of.__name__]
    substitute = getattr(functional, name)
    return after(
        call(t, wrap(t, substitute, CapturedSource(name, substitute)), [], named), lambda _: result
    )


def _gives_work(t: Space, named: dict[str, Any]) -> bool:
    """Return True if the collective gives an object to wait with; take that argument away."""
    flag = named.pop("async_op", NONE).constant()
    if flag not in (None, False, True):
        raise t.unsupported("not-inlined", "a collective with an `async_op` that is no bool")
    if not flag or "group" not in named:
        return bool(flag)
    # a process that is no part of the group gets none
    return distributed.get_rank(known_value(t, named["group"])) >= 0


class WorkTracker(VariableTracker):
    """An object to wait with for a collective that the graph has waited for.

    `begun` is what the Machine saved ahead of the collective, which runs natively if the object
    has to exist.
    """

    def __init__(self, begun: object) -> None:
        self.cls = _Work
        self.begun = begun

    def rebuild(self, e: Emitter) -> str:
        raise StaysInGraph(self.begun, e.refuse(self))


_Work: Any = getattr(distributed, "Work", object)
_WAIT = (_Work.wait.__func__,) if hasattr(_Work, "wait") else ()


@handlers.handles(*_WAIT)
def wait(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """Wait for a collective: True, as it is done."""
    if len(args) > 1 or kwargs or not is_a(args[0], WorkTracker):
        raise t.unsupported("not-inlined", "waiting for a collective from outside of the region")
    return ConstantTracker(True)


def _bound(t: Space, function: Any, args: Args, kwargs: Kwargs) -> dict[str, Any]:
    try:
        named = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        raise t.unsupported(
            "not-inlined", f"{function.__name__} with arguments that it does not take"
        ) from None
    leaves = [leaf for value in named.values() for leaf in flatten(t, value)[0]]
    _check(t, function, [leaf for leaf in leaves if is_a(leaf, TensorTracker)])
    return {key: value for key, value in named.items() if not is_none(value)}


def _check(t: Space, function: Any, tensors: list[TensorTracker]) -> None:
    examples = [vt.example for vt in tensors]
    if torch.is_grad_enabled() and any(example.requires_grad for example in examples):
        raise t.unsupported(
            "not-inlined", f"{function.__name__} of a tensor that requires gradients"
        )
    alike = len({(example.dim(), example.dtype) for example in examples}) == 1
    if not alike or any(
        example.is_complex() or not example.is_contiguous() for example in examples
    ):
        raise t.unsupported(
            "not-inlined",
            f"{function.__name__} of tensors that functional collectives see otherwise",
        )
