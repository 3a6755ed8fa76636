"""Settings of `torch._dynamo.config`: each takes effect, or is named in a warning."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import stator
import torch
from stator._settings import _torch_settings

from integration_tests.interoperation.effects_of_settings import (
    FLOATS,
    INTS,
    NAMES,
    SIZES,
    X,
    by_name,
    config,
    data_dependent,
    plus,
    scaled,
)
from integration_tests.support.counting import Counting


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


AFTER_COMPILE: list[tuple[Any, list[Any], int, int, dict[str, Any]]] = [
    (by_name, NAMES, 2, 2, {"recompile_limit": 2}),
    (by_name, NAMES, 2, 2, {"accumulated_recompile_limit": 2}),
    (data_dependent, [(X,)], 1, 3, {"capture_scalar_outputs": True}),
    (plus, SIZES, 1, 2, {"assume_static_by_default": False}),
    (plus, SIZES, 4, 4, {"automatic_dynamic_shapes": False}),
    (scaled, INTS, 4, 4, {"specialize_int": True}),
    (scaled, FLOATS, 4, 4, {"specialize_float": True}),
    (plus, [(X,)], 0, 1, {"disable": True}),
]


@pytest.mark.parametrize(("fn", "calls", "first", "later", "settings"), AFTER_COMPILE)
def test_setting_is_read_when_a_call_is_compiled(
    fn: Any, calls: list[Any], first: int, later: int, settings: dict[str, Any]
) -> None:
    """A decorator runs at import, before the program sets anything. What is compiled stays."""
    for early, expected in ((0, first), (1, later)):
        counting = Counting()
        compiled = stator.compile(fn, backend=counting)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for args in calls[:early]:
                compiled(*args)
            with config.patch(**settings):
                for args in calls:
                    assert torch.equal(compiled(*args), fn(*args))
        assert counting.count == expected
        assert compiled.report.graph_count >= expected


def test_setting_after_compile_raises_on_recompiles() -> None:
    compiled = stator.compile(by_name, backend="eager")
    with config.patch(recompile_limit=1, fail_on_recompile_limit_hit=True):
        compiled(*NAMES[0])
        with pytest.raises(stator.Unsupported):
            compiled(*NAMES[1])


def test_setting_replaces_no_argument() -> None:
    counting = Counting()
    compiled = stator.compile(plus, backend=counting, dynamic=False, recompile_limit=3)
    with config.patch(recompile_limit=1, assume_static_by_default=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args in SIZES:
            compiled(*args)
    assert counting.count == 3


def test_setting_that_has_no_effect_is_named_after_compile() -> None:
    compiled = stator.compile(plus, backend="eager")
    config.verbose = True
    with pytest.warns(UserWarning, match="verbose"):
        compiled(X)


def test_objects_share_what_is_compiled_under_equal_settings() -> None:
    counting = Counting()
    before = [stator.compile(plus, backend=counting) for _ in range(2)]
    with config.patch(automatic_dynamic_shapes=False):
        within = [stator.compile(plus, backend=counting) for _ in range(2)]
        for compiled in before + within:
            compiled(X)
        assert counting.count == 1
    stator.compile(plus, backend=counting)(X)
    assert counting.count == 2


def run(program: str, **variables: str) -> str:
    """Run a program in a process of its own, which must succeed, and return what it writes."""
    environment = {**os.environ, **variables}
    head = "import torch, stator\n"
    command = [sys.executable, "-c", head + program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


COMPILES = "stator.compile(torch.sin, backend='eager')(torch.ones(2))"
WITHOUT_EFFECT = {
    "TORCH_DYNAMO_RUN_GC_AFTER_COMPILE": "_dynamo.config.run_gc_after_compile",
    "TORCHDYNAMO_VERBOSE": "_dynamo.config.verbose",
    "TORCH_COMPILE_OVERRIDE_BACKENDS": "_dynamo.config.debug_backend_override",
    "TORCH_COMPILE_DYNAMIC_SOURCES": "compiler.config.dynamic_sources",
    "TORCH_COMPILE_DYNAMIC_VALUES": "compiler.config.dynamic_values",
    "TORCH_COMPILE_UNBACKED_SOURCES": "compiler.config.unbacked_sources",
}


@pytest.mark.parametrize("variable", WITHOUT_EFFECT)
def test_setting_of_a_variable_is_named(variable: str) -> None:
    assert f"torch.{WITHOUT_EFFECT[variable]}" in run(COMPILES, **{variable: "1"})


def test_variables_take_effect() -> None:
    failing = """
def failing(graph, inputs):
    raise ValueError("of the backend")
print(stator.compile(torch.sin, backend=failing)(torch.zeros(1)))
"""
    assert "tensor([0.])" in run(failing, TORCHDYNAMO_SUPPRESS_ERRORS="1")
    item = """
compiled = stator.compile(lambda x: x * x.sum().item(), backend="eager")
compiled(torch.ones(2))
print(compiled.report.graph_count)
"""
    assert [run(item, TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS=value) for value in "01"] == ["2\n", "1\n"]


def test_isolated_compilation_follows_settings() -> None:
    compiled = stator.compile(lambda x: x + 2, backend="eager", isolate_recompiles=True)
    assert torch.equal(compiled(torch.zeros(3)), torch.full((3,), 2.0))
    with config.patch(assume_static_by_default=False):
        for size in (5, 6, 7):
            assert torch.equal(compiled(torch.zeros(size)), torch.full((size,), 2.0))
    assert compiled.report.graph_count == 2
