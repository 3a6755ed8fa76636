"""Settings of `torch._dynamo.config`: each takes effect, or is named in a warning."""

from __future__ import annotations

import logging
import pathlib
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import stator
import torch
import torch._dynamo.config as settings_module
from stator import _torch_settings

from integration_tests.support.counting import Counting

X = torch.linspace(-1.0, 2.0, 6)
config: Any = settings_module


@pytest.fixture(autouse=True)
def unchanged_settings() -> Iterator[None]:
    _torch_settings._warned.clear()
    named = _torch_settings.TAKING_EFFECT.keys() | _torch_settings.WITHOUT_EFFECT
    before = {name: getattr(config, name) for name in named}
    yield
    for name, value in before.items():
        setattr(config, name, value)


def plus(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


def scaled(x: torch.Tensor, k: Any) -> torch.Tensor:
    y: torch.Tensor = x * k
    return y


def graphs(fn: Any, *calls: Any) -> int:
    """Return how many graphs are compiled for calls, whose results are compared."""
    counting = Counting()
    compiled = stator.compile(fn, backend=counting)
    for args in calls:
        assert torch.equal(compiled(*args), fn(*args))
    return counting.count


SIZES = [(torch.ones(size),) for size in (3, 4, 5, 6)]


def test_automatic_dynamic_shapes() -> None:
    assert graphs(plus, *SIZES) == 2
    config.automatic_dynamic_shapes = False
    assert graphs(plus, *SIZES) == 4


def test_assume_static_by_default() -> None:
    config.assume_static_by_default = False
    assert graphs(plus, *SIZES) == 1


@pytest.mark.parametrize("numbers", [(2, 3, 4, 5), (0.5, 1.5, 2.5, 3.5)])
def test_numbers_that_are_specialized(numbers: tuple[Any, ...]) -> None:
    calls = [(X, number) for number in numbers]
    assert graphs(scaled, *calls) == 2
    config.specialize_int = config.specialize_float = True
    assert graphs(scaled, *calls) == 4


@pytest.mark.parametrize("name", ["recompile_limit", "cache_size_limit"])
def test_limit_of_recompilations(name: str) -> None:
    setattr(config, name, 2)
    compiled = stator.compile(lambda x, name: x * len(name), backend="eager")
    compiled(X, "a")
    compiled(X, "bb")
    with pytest.warns(UserWarning, match="was compiled 2 times"):
        compiled(X, "ccc")


def test_limit_of_recompilations_that_raises() -> None:
    config.recompile_limit, config.fail_on_recompile_limit_hit = 1, True
    compiled = stator.compile(lambda x, name: x * len(name), backend="eager")
    compiled(X, "a")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(stator.Unsupported, match="another version"):
            compiled(X, "bb")


def test_error_on_recompile() -> None:
    compiled = stator.compile(plus, backend="eager")
    config.error_on_recompile = True
    assert torch.equal(compiled(X), plus(X))
    with pytest.raises(stator.InvalidUse, match="must not be compiled again"):
        compiled(X.double())


def test_suppressed_errors() -> None:
    def failing(graph: Any, inputs: Any) -> Any:
        raise ValueError("of the backend")

    with pytest.raises(stator.BackendFailed):
        stator.compile(plus, backend=failing)(X)
    config.suppress_errors = True
    assert torch.equal(stator.compile(plus, backend=failing)(X), plus(X))


@pytest.mark.parametrize("name", ["capture_scalar_outputs", "capture_dynamic_output_shape_ops"])
def test_captured_data(name: str) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x[: int(x.argmax().item())].sum() + x[x > 0].sum()

    assert graphs(fn, (X,)) > 1
    setattr(config, name, True)
    assert graphs(fn, (X,)) == 1


def test_disabled_compilation() -> None:
    config.disable = True
    assert stator.compile(plus) is plus


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
OTHER_VALUES: dict[type, Any] = {str: "another", list: ["another"], set: {int}, dict: {"a": 1}}


def other_value(value: Any) -> Any:
    """Return a value that a setting does not have by default."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return OTHER_VALUES.get(type(value), "another")


@pytest.mark.parametrize("name", sorted(_torch_settings.WITHOUT_EFFECT))
def test_setting_without_effect_is_named_in_a_warning(name: str) -> None:
    setattr(config, name, other_value(getattr(config, name)))
    compiled = stator.compile(plus, backend="eager")
    with pytest.warns(UserWarning, match=rf"does not follow these settings: \S*\.{name}$"):
        assert torch.equal(compiled(X), plus(X))


@pytest.mark.parametrize("name", NAMED_BY_USERS)
def test_setting_takes_effect_or_is_named(name: str) -> None:
    name = {"cache_size_limit": "recompile_limit"}.get(name, name)
    assert (name in _torch_settings.TAKING_EFFECT) != (name in _torch_settings.WITHOUT_EFFECT)


def test_every_setting_that_is_named_exists() -> None:
    """Renamed ones would be ignored silently."""
    known = config.get_config_copy().keys()
    assert known >= _torch_settings.TAKING_EFFECT.keys() | _torch_settings.WITHOUT_EFFECT


def test_file_for_the_log(tmp_path: pathlib.Path) -> None:
    config.log_file_name = str(tmp_path / "dynamo.log")
    logger = logging.getLogger("stator.graph_code")
    logger.setLevel(logging.INFO)
    try:
        stator.compile(plus, backend="eager")(X)
    finally:
        stator.set_logs()
    assert "x.sin()" in (tmp_path / "dynamo.log").read_text()
