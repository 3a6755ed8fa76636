"""The table of torch's state, against the functions of the installed torch."""

import re
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from stator_variables import DEFAULT_HANDLERS
from stator_variables._pure import is_pure
from stator_variables._tensors import _torch_state as state

_C: Any = torch._C

NAMES = re.compile(
    r"^_?(is|are|get|set|has|len|any|can|use|current|should|unset)_|_(enabled|available)$"
)
"""What functions that read or set something are called."""

OF_ARGUMENTS = frozenset(
    """_any_output_is_alias_to_input_or_output _any_requires_grad _can_use_cudnn_attention _can_use_flash_attention
    _can_use_mem_efficient_attention _get_all_dtypes _get_constant_bool_symnode _get_cudnn_batch_norm_reserve_space_size
    _get_nested_int _get_tensor_metadata _has_storage _is_alias_of _is_cached_tensor _is_cow_tensor
    _get_fake_constant _is_fake_tensor _is_pybind11_type _set_fake_constant
    _is_opaque_type_registered _set_conj _set_neg _set_tensor_metadata _should_allow_numbers_as_tensors
    _get_creation_meta _get_data_attr _set_creation_meta get_unwrapped is_dead_tensor_wrapper is_functionaltensor
    is_legacy_batchedtensor _has_Standard_Deleter _set_storage_access_error_msg
    _set_storage_data_ptr_access_error_msg""".split()
)
"""They concern the tensors or objects that they are given."""

OF_TOOLS = re.compile(
    r"^_jit_|profiler|_observer|kineto|_record_function|_val$|_sequence_nr|_approximate_time"
)
"""Switches of TorchScript's compiler and of profilers."""


def candidates() -> Iterator[Any]:
    """The C functions of torch that may read or set state."""
    for owner in (_C, _C._autograd, _C._functorch, _C._profiler):
        for name, value in sorted(vars(owner).items()):
            if isinstance(value, types.BuiltinFunctionType) and NAMES.search(name):
                yield value


def test_each_function_of_the_installed_torch_is_classified() -> None:
    unknown = {
        each.__name__
        for each in candidates()
        if not (each in DEFAULT_HANDLERS or is_pure(each))
        and each.__name__ not in OF_ARGUMENTS
        and not OF_TOOLS.search(each.__name__)
    }
    assert unknown == set()


def test_no_function_has_two_rows() -> None:
    parts = [{*state.SETTERS}, state.GUARDED, state.COVERED, state.CONSTANT, {*state.FIXED}]
    rows = [function for part in (*parts, {*state.REFUSED}) for function in part]
    assert len(rows) == len(set(rows))


def other_value(now: Any) -> Any:
    """A value that differs from the present one; None where there is no general way to make one."""
    if type(now) is bool:
        return not now
    if type(now) is list:
        return now[::-1]
    return OTHERS.get(now)


OTHERS = {
    "warn": "nothing",
    "auto": "native",
    "highest": "high",
    "none": "ieee",
    1: 2,
    torch.float32: torch.float64,
    torch.bfloat16: torch.float16,
    torch.float16: torch.bfloat16,
}

KEYS = {
    torch.set_autocast_enabled: ("cpu",),
    torch.set_autocast_dtype: ("cpu",),
    _C._set_fp32_precision_setter: ("mkldnn", "conv"),
}


def settings() -> Iterator[Any]:
    """A setter with its row, key, and two values. One of them not every CPU accepts."""
    for setter, row in state.SETTERS.items():
        key = KEYS.get(setter, ())
        now = row.read(*key)
        other = (not now[0], *now[1:]) if type(now) is tuple else other_value(now)
        if other is not None and setter is not _C._set_cpu_allow_fp16_reduced_precision_reduction:
            yield pytest.param(setter, row, key, now, other, id=setter.__name__)


@pytest.mark.parametrize(("setter", "row", "key", "now", "other"), [*settings()])
def test_a_setter_is_taken_back_by_what_its_query_gave(
    setter: Any, row: state.Setter, key: tuple[Any, ...], now: Any, other: Any
) -> None:
    from stator_variables._tensors._global_mode import Setting

    setting = Setting(row.read, setter, setter.__name__, key, tuple(row.named))
    try:
        setting.set(other)
        assert setting.now == other
    finally:
        setting.set(now)
    assert setting.now == now
