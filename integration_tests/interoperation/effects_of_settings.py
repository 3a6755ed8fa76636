"""Checks of single settings of `torch._dynamo.config`: each raises where the setting is ignored."""

from __future__ import annotations

import contextlib
import functools
import logging
import pathlib
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
import torch._dynamo.config as settings_module
import torch.compiler.config as compiler_settings
from stator._settings import _torch_settings

from integration_tests.support.counting import Counting

X = torch.linspace(-1.0, 2.0, 6)
config: Any = settings_module


def plus(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


def scaled(x: torch.Tensor, k: Any) -> torch.Tensor:
    y: torch.Tensor = x * k
    return y


def data_dependent(x: torch.Tensor) -> torch.Tensor:
    return x[: int(x.argmax().item())].sum() + x[x > 0].sum()


def by_name(x: torch.Tensor, name: str) -> torch.Tensor:
    return x * len(name)


SIZES = [(torch.ones(size),) for size in (3, 4, 5, 6)]
NAMES = [(X, "a"), (X, "bb"), (X, "ccc")]


def graphs(fn: Any, *calls: Any) -> int:
    """Return how many graphs are compiled for calls, whose results are compared."""
    counting = Counting()
    compiled = stator.compile(fn, backend=counting)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args in calls:
            assert torch.equal(compiled(*args), fn(*args))
    return counting.count


def compiles(before: int, after: int, fn: Any, calls: list[Any], **settings: Any) -> None:
    """A setting changes how many graphs are compiled for calls."""
    assert graphs(fn, *calls) == before
    with config.patch(**settings):
        assert graphs(fn, *calls) == after


def disables() -> None:
    with config.patch(disable=True):
        assert stator.compile(plus) is plus


def raises(error: type[Exception], fn: Any, calls: list[Any], **settings: Any) -> None:
    with config.patch(**settings), pytest.raises(error):
        graphs(fn, *calls)


def suppresses() -> None:
    def failing(graph: Any, inputs: Any) -> Any:
        raise ValueError("of the backend")

    with pytest.raises(stator.BackendFailed):
        stator.compile(plus, backend=failing)(X)
    with config.patch(suppress_errors=True):
        assert torch.equal(stator.compile(plus, backend=failing)(X), plus(X))


def logs() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "dynamo.log")
        logging.getLogger("stator.graph_code").setLevel(logging.INFO)
        try:
            with config.patch(log_file_name=str(file)):
                stator.compile(plus, backend="eager")(X)
        finally:
            stator.set_logs()
        assert "x.sin()" in file.read_text()


INTS, FLOATS = ([(X, k + shift) for k in range(2, 6)] for shift in (0, 0.5))
STATIC: dict[str, Any] = {"automatic_dynamic_shapes": False}
EFFECTS: dict[str, Callable[[], None]] = {
    "disable": disables,
    "recompile_limit": lambda: compiles(3, 2, by_name, NAMES, recompile_limit=2),
    "accumulated_recompile_limit": lambda: compiles(
        3, 2, by_name, NAMES, accumulated_recompile_limit=2
    ),
    "suppress_errors": suppresses,
    "capture_scalar_outputs": lambda: compiles(
        3, 1, data_dependent, [(X,)], capture_scalar_outputs=True
    ),
    "capture_dynamic_output_shape_ops": lambda: compiles(
        3, 1, data_dependent, [(X,)], capture_dynamic_output_shape_ops=True
    ),
    "assume_static_by_default": lambda: compiles(2, 1, plus, SIZES, assume_static_by_default=False),
    "automatic_dynamic_shapes": lambda: compiles(2, 4, plus, SIZES, **STATIC),
    "specialize_int": lambda: compiles(2, 4, scaled, INTS, specialize_int=True),
    "specialize_float": lambda: compiles(2, 4, scaled, FLOATS, specialize_float=True),
    "error_on_recompile": lambda: raises(stator.InvalidUse, plus, SIZES, error_on_recompile=True),
    "fail_on_recompile_limit_hit": lambda: raises(
        stator.Unsupported, by_name, NAMES, recompile_limit=1, fail_on_recompile_limit_hit=True
    ),
    "log_file_name": logs,
}

OTHER_VALUES: dict[type, Any] = {str: "another", list: ["another"], set: {int}, dict: {"a": 1}}


def other_value(value: Any) -> Any:
    """Return a value that a setting does not have by default."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return OTHER_VALUES.get(type(value), "another")


@contextlib.contextmanager
def changed(name: str, module: Any = config) -> Iterator[None]:
    with module.patch({name: other_value(getattr(module, name))}):
        yield


def named_in_a_warning(name: str, module: Any = config) -> None:
    _torch_settings._warned.clear()
    with changed(name, module), pytest.warns(UserWarning, match=rf"settings: \S*\.{name}$"):
        assert torch.equal(stator.compile(plus, backend="eager")(X), plus(X))


def always_on(name: str, module: Any = config) -> None:
    """Nobody is warned who sets what stator does anyway."""
    _torch_settings._warned.clear()
    with changed(name, module), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(stator.compile(plus, backend="eager")(X), plus(X))


def deprecated(name: str) -> None:
    config._config[name]._deprecation_warned = False
    with pytest.warns(FutureWarning, match=name), changed(name):
        assert torch.equal(stator.compile(plus, backend="eager")(X), plus(X))


def alias_of(name: str, alias: str) -> None:
    """An alias has the value of the setting, whose own check is another row."""
    setting = functools.partial(getattr, config)
    with changed(name):
        assert setting(name) == setting(alias.rpartition(".")[2])


def alias_in_compiler(name: str) -> None:
    """The setting has the value that is set by its name in `torch.compiler.config`."""
    before = getattr(config, name)
    with changed(name, compiler_settings):
        assert getattr(config, name) != before
    assert getattr(config, name) == before
