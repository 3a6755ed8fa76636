"""Settings of `torch._dynamo.config`: each takes effect, or is named in a warning."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import stator
from stator import _torch_settings

from integration_tests.interoperation.effects_of_settings import X, by_name, config, plus


@pytest.fixture(autouse=True)
def unchanged_settings() -> Iterator[None]:
    _torch_settings._warned.clear()
    named = _torch_settings.TAKING_EFFECT.keys() | _torch_settings.without_effect().keys()
    before = {name: getattr(config, name) for name in named}
    yield
    for name, value in before.items():
        setattr(config, name, value)


@pytest.mark.parametrize("alias", ["cache_size_limit", "accumulated_cache_size_limit"])
def test_limit_by_its_older_name(alias: str) -> None:
    setattr(config, alias, 2)
    compiled = stator.compile(by_name, backend="eager")
    compiled(X, "a")
    compiled(X, "bb")
    with pytest.warns(UserWarning, match="was compiled 2 times"):
        compiled(X, "ccc")


def test_settings_without_effect_are_named_once() -> None:
    config.verbose, config.repro_after = True, "aot"
    compiled = stator.compile(plus, backend="eager")
    with pytest.warns(UserWarning, match=r"config\.repro_after, torch\._dynamo\.config\.verbose"):
        compiled(X)
    stator.compile(plus, backend="eager")(X)


NAMED_BY_USERS = (
    *("recompile_limit", "accumulated_recompile_limit", "cache_size_limit", "suppress_errors"),
    *("capture_scalar_outputs", "capture_dynamic_output_shape_ops", "assume_static_by_default"),
    *("automatic_dynamic_shapes", "specialize_int", "specialize_float", "error_on_recompile"),
    *("verbose", "log_file_name", "repro_after", "repro_level"),
)


@pytest.mark.parametrize("name", NAMED_BY_USERS)
def test_setting_takes_effect_or_is_named(name: str) -> None:
    name = {"cache_size_limit": "recompile_limit"}.get(name, name)
    assert (name in _torch_settings.TAKING_EFFECT) != (name in _torch_settings.without_effect())


def test_every_setting_that_takes_effect_exists() -> None:
    """Renamed ones would be ignored silently."""
    assert config.get_config_copy().keys() >= _torch_settings.TAKING_EFFECT.keys()


def test_setting_of_a_variable_is_named() -> None:
    program = "import torch, torch._dynamo, stator; stator.compile(torch.sin, backend='eager')(torch.ones(2))"
    environment = {**os.environ, "TORCH_DYNAMO_RUN_GC_AFTER_COMPILE": "0"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "run_gc_after_compile" in done.stderr
