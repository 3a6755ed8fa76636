"""Settings of `torch._dynamo.config` that the program has changed: they take effect, or a warning
names them.

The module is read if the program has imported it, or sets one of its variables. Where a setting has
its default, so has stator. Settings are read by `compile`, and again before a call is compiled.
"""

import functools
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.compiler import config as compiler_settings
from torch.utils._config_module import _UNSET_SENTINEL

from stator._settings._deferred_warning import defer_warning

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

ALWAYS_ON = {
    "allow_rnn": "recurrent layers are captured",
    "allow_unspec_int_on_nn_module": "ints of modules that change become symbolic",
    "trace_autograd_ops": "`backward` and `torch.autograd.grad` are captured",
}
"""Settings that are off by default in torch, and what stator does whatever their value is."""

SOURCES = ("dynamic_sources", "dynamic_values", "unbacked_sources")
"""Settings of `torch.compiler.config` that name values in words of Dynamo."""

PREFIXES = ("TORCHDYNAMO_", "TORCH_DYNAMO_", "TORCH_COMPILE_")
_RENAMED = {"override_backends": "debug_backend_override", "replay_record": "replay_record_enabled"}

_warned: set[str] = set()


@functools.cache
def _of_variables() -> frozenset[str]:
    """Return the settings whose defaults are values of variables of the environment.

    Their module is imported by torch, if there are any.
    """
    found = {
        variable.removeprefix(prefix).lower()
        for variable in os.environ
        for prefix in PREFIXES
        if variable.startswith(prefix)
    }
    if found:
        torch.compiler.list_backends(())
    return frozenset(_RENAMED.get(name, name) for name in found)


def _config() -> Any:
    """Return torch's module of settings; None before it was imported, and in the middle of that,
    where a signal handler may call a compiled function."""
    config = sys.modules.get(MODULE)
    return config if hasattr(config, "_config") else None


def is_changed(name: str) -> bool:
    """Return True if the program has given a setting another value than its default."""
    by_variable = name in _of_variables()
    config = _config()
    if config is None or name not in config._config:
        return False
    if by_variable:
        return True
    return not config._is_default(name) and bool(
        getattr(config, name) != config._config[name].default
    )


@functools.cache
def without_effect() -> dict[str, Callable[[], object]]:
    """Return the public settings that stator does not follow, each with its value if the program
    has set one.

    Left out are aliases of other settings, and those that torch itself warns of.
    """
    config: Any = _config()
    by_variable = _of_variables()
    return {
        # `bool` gives a value for those that a variable of the environment has set
        name: entry.user_override.get
        if config._is_default(name) and name not in by_variable
        else bool
        for name, entry in config._config.items()
        if not (name in TAKING_EFFECT or name in ALWAYS_ON or entry.alias or entry.deprecated)
        if name[0] != "_" and name.islower()
    }


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
    found = [
        f"torch.compiler.config.{name}" for name in SOURCES if getattr(compiler_settings, name)
    ]
    if _config() is not None:
        # `is_changed` is too slow for all of them: this runs in each call of `compile`
        given = (name for name, get in without_effect().items() if get() is not _UNSET_SENTINEL)
        found += [f"{MODULE}.{name}" for name in given if is_changed(name)]
    warn_of(found)


def warn_of(names: Iterable[str]) -> None:
    """Warn of settings and functions of torch that have no effect, unless it was done before."""
    if found := sorted({*names} - _warned):
        _warned.update(found)
        defer_warning(UserWarning(f"stator does not follow these settings: {', '.join(found)}"))
