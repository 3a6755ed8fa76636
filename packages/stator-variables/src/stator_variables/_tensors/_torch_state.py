"""The state of torch that programs read and set, as one table: guards for the result of a query,
and the effect of a setter.

    torch._C._get_cudnn_enabled()         GUARDED    the guards of the entry call it again
    torch.is_grad_enabled()               COVERED    compared by the `GlobalState` of each entry
    torch.backends.cpu.get_cpu_capability CONSTANT   the same as long as the process lives
    torch.jit.is_tracing()                FIXED      the same in every region
    torch._C._set_cudnn_enabled(False)    SETTERS    done while tracing and in the graph
    torch._C._set_worker_pids(...)        REFUSED    runs natively, for the reason given

Functions of torch in Python (`torch.backends.cudnn.flags`) are interpreted, and end in these. A
test compares the table with the functions of the installed torch: one that a new version adds is in
none of the parts.
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import torch
from torch.fx._symbolic_trace import is_fx_symbolic_tracing, is_fx_tracing

from stator_variables import _torch_compat

_C: Any = torch._C  # its stubs lack some of these
_autograd: Any = torch._C._autograd
_functorch: Any = torch._C._functorch
_torch: Any = torch
Function = Callable[..., Any]


def _named(names: str, owner: object = _C) -> list[Function]:
    return [getattr(owner, name) for name in names.split()]


def _built_in(names: str) -> list[Function]:
    """Functions that this build of torch has."""
    return [getattr(_C, name) for name in names.split() if hasattr(_C, name)]


# -- setters ---------------------------------------------------------------------------------------
@attrs.frozen
class Setter:
    """The query `read(*key)` of a setter `set(*key, value)`.

    A setter of several values has a query that gives them as a tuple; the last ones, with their
    defaults, may be `named`.
    """

    read: Function
    keys: int = 0
    named: Mapping[str, Any] = attrs.field(factory=dict, eq=False)


def determinism() -> tuple[bool, bool]:
    return _C._get_deterministic_algorithms(), _C._get_deterministic_algorithms_warn_only()


def anomaly_detection() -> tuple[bool, bool]:
    return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()


_SET_AND_GET = """autograd_fallback_mode backcompat_broadcast_warn backcompat_keepdim_warn
blas_preferred_backend cpu_allow_fp16_reduced_precision_reduction
cublas_allow_bf16_reduced_precision_reduction cublas_allow_fp16_accumulation
cublas_allow_fp16_reduced_precision_reduction cublas_allow_tf32 cudnn_allow_tf32 cudnn_benchmark
cudnn_depthwise_kernel cudnn_deterministic cudnn_enabled deterministic_fill_uninitialized_memory
dtensor_allow_implicit_replication float32_matmul_precision graph_executor_optimize
linalg_preferred_backend math_sdp_allow_fp16_bf16_reduction miopen_immediate mkldnn_deterministic
mkldnn_enabled nnpack_enabled onednn_allow_tf32 qengine rocm_fa_preferred_backend sdp_priority_order
sm_carveout_experimental warnAlways"""
_WITH_GETTER = (*_SET_AND_GET.split(), *_torch_compat.SETTINGS)
_SET_AND_IS = (
    "fwd_grad_enabled grad_layout_enforcement_enabled multithreading_enabled view_replay_enabled"
)
_ATTENTION = "cudnn fa3 flash math mem_efficient overrideable"

ATTENTION_SETTERS: dict[Function, Setter] = {
    getattr(_C, f"_set_sdp_use_{name}"): Setter(getattr(_C, f"_get_{name}_sdp_enabled"))
    for name in (*_ATTENTION.split(), *_torch_compat.ATTENTION)
}
"""Settings that choose the operators a compiler sees; kernels read the others when they run."""

SETTERS: dict[Function, Setter] = {
    _C._set_grad_enabled: Setter(torch.is_grad_enabled),
    torch.set_autocast_enabled: Setter(torch.is_autocast_enabled, keys=1),
    torch.set_autocast_dtype: Setter(torch.get_autocast_dtype, keys=1),
    torch.set_autocast_cache_enabled: Setter(torch.is_autocast_cache_enabled),
    **ATTENTION_SETTERS,
    **{getattr(_C, f"_set_{n}"): Setter(getattr(_C, f"_get_{n}")) for n in _WITH_GETTER},
    **{getattr(_C, f"_set_{n}"): Setter(getattr(_C, f"_is_{n}")) for n in _SET_AND_IS.split()},
    _C._set_check_sparse_tensor_invariants: Setter(_C._check_sparse_tensor_invariants),
    _C._set_fp32_precision_setter: Setter(_C._get_fp32_precision_getter, keys=2),
    _C._set_deterministic_algorithms: Setter(determinism, named={"warn_only": False}),
    _C.set_anomaly_enabled: Setter(anomaly_detection, named={"check_nan": True}),
    _functorch._set_vmap_fallback_enabled: Setter(_functorch._is_vmap_fallback_enabled),
    _C._set_default_dtype: Setter(torch.get_default_dtype),
    torch.set_num_threads: Setter(torch.get_num_threads),
}

MODES = frozenset(
    {
        _C._set_grad_enabled,
        torch.set_autocast_enabled,
        torch.set_autocast_dtype,
        torch.set_autocast_cache_enabled,
        *ATTENTION_SETTERS,
    }
)
"""Setters that a compiler follows while it traces a graph."""


def sets_state_of_kernels(target: object) -> bool:
    """Return True for a setter of something that kernels read when they run: no compiler keeps it
    in its place."""
    return target in SETTERS and target not in MODES


INDEPENDENT = frozenset(
    {
        *ATTENTION_SETTERS,
        *_named(
            """_set_cudnn_benchmark _set_cudnn_depthwise_kernel _set_cudnn_deterministic
            _set_cudnn_enabled _set_mkldnn_deterministic _set_mkldnn_enabled _set_nnpack_enabled
            _set_warnAlways set_num_threads"""
        ),
    }
)
"""Setters that change nothing but what their query gives: setting what is set already does
nothing."""

# -- queries ---------------------------------------------------------------------------------------
COVERED = frozenset(
    _named(
        """are_deterministic_algorithms_enabled get_default_dtype get_num_threads
        is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled
        is_autocast_ipu_enabled is_autocast_xla_enabled
        is_deterministic_algorithms_warn_only_enabled is_grad_enabled
        is_inference_mode_enabled""",
        torch,
    )
    + _named(
        """_get_deterministic_algorithms _get_deterministic_algorithms_warn_only
        _is_any_autocast_enabled _is_torch_function_all_disabled"""
    )
)

AUTOCAST_DTYPES: dict[Function, str] = {
    torch.get_autocast_gpu_dtype: "cuda",
    torch.get_autocast_cpu_dtype: "cpu",
    _torch.get_autocast_ipu_dtype: "ipu",
    _torch.get_autocast_xla_dtype: "xla",
}
"""Deprecated spellings of `get_autocast_dtype`, which `GlobalState` compares where autocast is
on."""

CONSTANT = frozenset(
    _named(
        """_get_all_dtypes _get_blas_default_backend _get_cpu_capability _get_max_operator_version
        _has_distributed _has_tensorexpr_cpp_tests _is_autocast_available _is_ck_sdpa_available
        _is_flash_attention_available _is_xnnpack_enabled _llvm_enabled _mps_is_available"""
    )
    + _named("kineto_available", _autograd)
)

GUARDED: frozenset[Function] = frozenset(
    _named(
        """_debug_only_are_vmap_fallback_warnings_enabled _get_accelerator _get_default_device
        get_num_interop_threads is_anomaly_enabled is_anomaly_check_nan_enabled"""
    )
    + _built_in(
        """_accelerator_getAccelerator _accelerator_getDeviceIndex _accelerator_hooks_device_count
        _accelerator_hooks_get_current_device _accelerator_isAllocatorInitialized
        _cuda_cudaCachingAllocator_is_enabled _cuda_getDevice _cuda_getDeviceCount
        _cuda_isCurrentStreamCapturing _cuda_isInBadFork _cuda_record_untuned_is_enabled
        _cuda_tunableop_is_enabled _cuda_tunableop_tuning_is_enabled _mps_isInBadFork
        _xpu_getDevice _xpu_getDeviceCount _xpu_isInBadFork"""
    )
    + _built_in(_torch_compat.QUERIES)
    + _named("_profiler_enabled _saved_tensors_hooks_is_enabled", _autograd)
    + [row.read for row in SETTERS.values() if row.read not in (determinism, anomaly_detection)]
).difference(COVERED)


def is_guarded(read: Function) -> bool:
    """Return True if an entry that relies on the result of a query, also of several values, needs a
    guard for it."""
    return read in GUARDED or read is anomaly_detection


_jit: Any = torch.jit  # its functions are public, and imported there without `as`
FIXED: dict[Function, Any] = {
    **dict.fromkeys((_jit.is_tracing, _C._is_tracing, torch.compiler.is_exporting), False),
    **dict.fromkeys((is_fx_tracing, is_fx_symbolic_tracing), False),
    **dict.fromkeys((_C._get_tracing_state, _C._log_api_usage_once)),
    _C._len_torch_dispatch_stack: 0,  # under a dispatch mode a region runs natively
}

# -- what runs natively ----------------------------------------------------------------------------
_REASONS = {
    "sets state without a query, so that it could not be rolled back": """
        _set_cached_tensors_enabled _set_default_mobile_cpu_allocator _set_default_tensor_type
        _set_generator_metaclass _set_only_lift_cpu_tensors _set_override_stale_capture_stream
        _set_print_stack_traces_on_fatal_signal _set_should_use_format_with_string_table
        _set_throw_on_mutable_data_ptr _set_warn_deprecated_on_mutable_data_ptr
        _set_warn_on_accumulate_grad_stream_mismatch _set_worker_pids _set_worker_signal_handlers
        _unset_default_mobile_cpu_allocator set_flush_denormal set_num_interop_threads""",
    "is deprecated, and warns": """set_autocast_cpu_dtype set_autocast_cpu_enabled
        set_autocast_gpu_dtype set_autocast_ipu_dtype set_autocast_ipu_enabled
        set_autocast_xla_dtype set_autocast_xla_enabled""",
    "concerns modes and dispatch keys, which are other ones while tracing": """
        _get_torch_function_state _get_dispatch_mode _get_dispatch_stack_at _is_key_in_tls
        _set_dispatch_mode _unset_dispatch_mode _set_meta_in_tls_dispatch_include
        _set_skip_next_torch_function _set_torch_function_state""",
    "concerns what is under way: a backward, a script, a thread": """_current_autograd_node
        _current_graph_task_execution_order _current_graph_task_id
        _get_caught_jit_exception_class_name _get_caught_jit_exception_original_msg
        _get_graph_exec_group _get_thread_name _get_value_trace _set_graph_exec_group
        _set_thread_name _set_tracing_state _set_value_trace _get_cpp_backtrace
        _get_obj_in_tls""",
    "concerns the formats of TorchScript": """_enable_mobile_interface_call_export _get_file_format
        _get_mobile_model_contained_types _get_mobile_model_contained_types_from_buffer
        _get_model_bytecode_version _get_model_bytecode_version_from_buffer _get_model_extra_files
        _get_model_extra_files_from_buffer _get_model_ops_and_info
        _get_model_ops_and_info_from_buffer _get_module_info_from_flatbuffer _get_operation_overload
        _get_operator_version_map _get_schema _get_upgrader_ranges _get_upgraders_entry_map
        _get_upgraders_map_size _get_version_calculator_flag _is_default_mobile_cpu_allocator_set
        _get_custom_class_python_wrapper _get_DTensor_sharding_propagator_cache_stats""",
}

_OF_LEVELS = """_set_dynamic_layer_keys_included get_inplace_requires_grad_allowed
get_single_level_autograd_function_allowed set_inplace_requires_grad_allowed
set_single_level_autograd_function_allowed"""

REFUSED: dict[Function, str] = {
    **{function: reason for reason, names in _REASONS.items() for function in _named(names)},
    **dict.fromkeys(_named(_OF_LEVELS, _functorch), "concerns the levels of torch.func"),
    _functorch._set_vmap_fallback_warning_enabled: "sets state without a query",
    _autograd._get_current_graph_task_keep_graph: "concerns a backward that is under way",
}
