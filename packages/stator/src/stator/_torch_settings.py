"""Settings of `torch._dynamo.config` that the program has changed: they take effect, or a warning
names them.

The module is read if the program has imported it, and never imported. Where a setting has its
default, so has stator.
"""

from __future__ import annotations

import sys
from typing import Any

from stator._deferred_warning import defer_warning

MODULE = "torch._dynamo.config"

TAKING_EFFECT = {
    "disable": "compilation is off",
    "recompile_limit": "the default of `recompile_limit`",
    "accumulated_recompile_limit": "entries that one object may have at one place over time",
    "suppress_errors": "the option `fallback`",
    "capture_scalar_outputs": "the option `capture_data`",
    "capture_dynamic_output_shape_ops": "the option `capture_data`",
    "assume_static_by_default": "False: `dynamic=True` where nothing is said",
    "automatic_dynamic_shapes": "False: `dynamic=False` where nothing is said",
    "specialize_int": "ints are constants",
    "specialize_float": "floats are constants",
    "error_on_recompile": "the stance `fail_on_recompile`, once an object has an entry",
    "fail_on_recompile_limit_hit": "a call past the limit raises",
    "log_file_name": "the log goes into this file as well",
}
"""The effect of each in stator."""

WITHOUT_EFFECT = frozenset(
    """
    verbose repro_after repro_level repro_forward_only repro_tolerance
    repro_ignore_non_fp replay_record_enabled report_guard_failures log_compilation_metrics
    verify_correctness minimum_call_count force_parameter_static_shapes
    force_nn_module_property_static_shapes guard_nn_modules optimize_ddp
    only_allow_pt2_compliant_ops rewrite_assert_with_torch_assert reorderable_logging_functions
    ignore_logging_functions side_effect_replay_policy skip_guards_on_constant_func_defaults
    skip_nnmodule_hook_guards skip_tensor_guards_with_matching_dict_tags
    nontraceable_tensor_subclasses traceable_tensor_subclasses use_numpy_random_stream
    numpy_default_float numpy_default_int numpy_default_complex trace_numpy
    allow_unspec_int_on_nn_module caching_precompile strict_precompile prepare_freezing
    compiled_autograd compiled_autograd_kwargs_override nested_graph_breaks wrap_top_frame
    dead_code_elimination debug_backend_override debug_dynamo_config_override
    debug_inductor_config_override run_gc_after_compile automatic_dynamic_local_pgo
    automatic_dynamic_remote_pgo dynamic_shapes enable_compiler_collectives
    prefer_deferred_runtime_asserts_over_guards do_not_emit_runtime_asserts
    allow_ignore_mark_dynamic
    """.split()
)
"""Names that a warning mentions where the program has changed them.

The others concern Dynamo's own machinery.
"""

_warned: set[str] = set()


def is_changed(name: str) -> bool:
    """Return True if the program has given a setting another value than its default."""
    config = sys.modules.get(MODULE)
    if config is None or name not in config._config or config._is_default(name):
        return False
    return bool(getattr(config, name) != config._config[name].default)


def setting(name: str) -> Any:
    """Return the value of a setting that the program has changed, None for one that it has not."""
    return getattr(sys.modules[MODULE], name) if is_changed(name) else None


def dynamic_by_settings() -> bool | None:
    """Return the value of `dynamic` by the settings, where none was passed."""
    if setting("assume_static_by_default") is False:
        return True
    return False if setting("automatic_dynamic_shapes") is False else None


def warn_of_settings() -> None:
    """Warn once of each changed setting that has no effect, all in one warning."""
    if MODULE not in sys.modules:
        return
    found = sorted(name for name in WITHOUT_EFFECT - _warned if is_changed(name))
    if found:
        _warned.update(found)
        names = ", ".join(f"{MODULE}.{name}" for name in found)
        defer_warning(UserWarning(f"stator does not follow these settings: {names}"))
