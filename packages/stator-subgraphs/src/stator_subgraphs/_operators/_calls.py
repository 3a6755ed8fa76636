"""Operators that are a few lines of Python around functions, and those that take no function.

The lines are interpreted in place of the operator, so what a function returns and changes is kept
as in any other call. An operator without functions is one node, like every function of torch.
"""

from typing import Any

import torch
from stator_variables import Args, FunctionTable, Kwargs, Space, app_level, record
from torch._export.wrappers import _export_tracepoint
from torch._functorch.autograd_function import custom_function_call
from torch._higher_order_ops import (
    aoti_call_delegate,
    auto_functionalized,
    auto_functionalized_v2,
    call_torchbind,
    dynamo_bypassing_wrapper,
    executorch_call_delegate,
    flat_apply,
    flex_attention_backward,
    inductor_compiled_code,
    invoke_leaf_function,
    local_map_hop,
    out_dtype,
    with_effects,
    wrap_with_autocast,
    wrap_with_set_grad_enabled,
)
from torch._higher_order_ops import print as print_operator
from torch._higher_order_ops.inline_asm_elementwise import inline_asm_elementwise
from torch._higher_order_ops.register_hook import register_hook_op
from torch._higher_order_ops.triton_kernel_wrap import (
    triton_kernel_wrapper_functional,
    triton_kernel_wrapper_mutation,
)

from stator_subgraphs._operators import _applevel

handlers = FunctionTable("higher-order operator")


@handlers.handles_each(
    {
        custom_function_call: _applevel.apply_function,
        dynamo_bypassing_wrapper: _applevel.call_wrapped,
        flat_apply: _applevel.apply_flat,
        register_hook_op: _applevel.hook_with_inputs,
        wrap_with_autocast: _applevel.call_with_autocast,
        wrap_with_set_grad_enabled: _applevel.call_with_grad_mode,
    }
)
def as_python(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Any:
    """Interpret what the operator does, each function once as in plain Python."""
    return app_level(t, of, args, kwargs)


_OF_RANDOM_STATE = (
    torch.ops.higher_order.run_and_save_rng_state,
    torch.ops.higher_order.run_with_rng_state,
    torch.ops.higher_order.graphsafe_run_with_rng_state,
    torch.ops.higher_order.run_dtensor_rng_op,
)


@handlers.handles_each(
    (
        _export_tracepoint,
        auto_functionalized,
        auto_functionalized_v2,
        inline_asm_elementwise,
        out_dtype,
        print_operator,
        with_effects,
        *_OF_RANDOM_STATE,
    )
)
def as_node(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Any:
    return record(t, of, args, kwargs)


_REJECTED = {
    aoti_call_delegate: "a module that AOTInductor has compiled",
    call_torchbind: "a method of a torchbind object, whose state is not followed",
    executorch_call_delegate: "a module that ExecuTorch has lowered",
    flex_attention_backward: "the backward of flex_attention, which autograd calls",
    inductor_compiled_code: "code that Inductor has compiled",
    invoke_leaf_function: "the call of a leaf function that a compiler has taken apart",
    local_map_hop: "a graph of local_map with its device mesh",
    triton_kernel_wrapper_functional: "a Triton kernel as compilers call it",
    triton_kernel_wrapper_mutation: "a Triton kernel as compilers call it",
}


@handlers.handles_each(_REJECTED)
def reject(t: Space, args: Args, kwargs: Kwargs, of: str) -> Any:
    """Break at an operator that compilers make, and programs do not call."""
    raise t.unsupported("higher-order-operator", of)
