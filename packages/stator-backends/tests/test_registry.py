"""Names, entry points, settings: how a backend is found and what it is equal to."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint
from typing import Any

import pytest
import torch
from stator_backends import (
    BackendError,
    BackendNotFound,
    BackendRegistry,
    BackendSpec,
    Inductor,
    InvalidBackendOption,
    aot_eager,
    configure,
    default_registry,
    eager,
    inductor,
    list_backends,
    lookup,
    spec_of,
)


def plain(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], **settings: Any) -> Any:
    return (gm, settings)


@pytest.fixture
def third_party() -> Iterator[types.ModuleType]:
    module = types.ModuleType("third_party_backend")
    module.compile_it = plain  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


def registry_with(*points: tuple[str, str, str]) -> BackendRegistry:
    return BackendRegistry(discover=lambda: [EntryPoint(*point) for point in points])


def test_own_backends_are_listed_and_found() -> None:
    assert {"aot_eager", "aot_eager_decomp_partition", "eager", "inductor"} <= set(list_backends())
    assert lookup("eager") is eager
    assert lookup("aot_eager") is aot_eager
    assert default_registry.lookup("inductor") is inductor


def test_names_of_torch_are_listed_once_its_registry_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.compiler.list_backends()
    assert set(list_backends()) > set(default_registry.names())
    monkeypatch.delitem(sys.modules, "torch._dynamo.backends.registry")
    assert list_backends() == default_registry.names()


def test_callable_is_its_own_backend() -> None:
    assert lookup(plain) is plain
    assert spec_of(plain) == BackendSpec("plain")


def test_neither_name_nor_callable_is_refused() -> None:
    with pytest.raises(TypeError, match="a name or a callable, not 3"):
        lookup(3)  # type: ignore[arg-type]


def test_unknown_name_tells_close_names_and_all_names() -> None:
    with pytest.raises(BackendNotFound) as caught:
        lookup("inductr")
    assert caught.value.close == ("inductor",)
    assert "did you mean 'inductor'? (there are: " in str(caught.value)
    assert set(caught.value.known) <= set(list_backends())


def test_registered_backend_is_found_under_its_name() -> None:
    registry = BackendRegistry()
    assert registry.register(plain) is plain
    assert registry.lookup("plain") is plain
    assert registry.register(plain, name="other") is registry.lookup("other")


def test_spec_given_at_registration_travels_with_the_backend() -> None:
    registry = BackendRegistry()
    spec = BackendSpec("static_only", symbolic_shapes=False)
    registered = registry.register(plain, spec=spec)
    assert spec_of(registry.lookup("static_only")) is spec
    assert registered == BackendRegistry().register(plain, spec=spec)


def test_name_taken_twice_names_both() -> None:
    registry = BackendRegistry({"plain": eager})
    with pytest.raises(
        ValueError, match=r"two backends are called 'plain': .*eager.* and <function plain"
    ):
        registry.register(plain)


def test_backend_without_any_name_needs_one() -> None:
    with pytest.raises(ValueError, match="has no name of its own"):
        BackendRegistry().register(type("Nameless", (), {"__call__": plain})())


@pytest.mark.parametrize("group", ["stator_backends", "torch_dynamo_backends"])
def test_entry_point_is_imported_at_first_lookup(third_party: types.ModuleType, group: str) -> None:
    registry = registry_with(("theirs", "third_party_backend:compile_it", group))
    del sys.modules["third_party_backend"]
    assert registry.names() == ("theirs",)
    sys.modules["third_party_backend"] = third_party
    assert registry.lookup("theirs") is plain
    third_party.compile_it = eager  # type: ignore[attr-defined]
    assert registry.lookup("theirs") is plain


def test_first_entry_point_of_a_name_wins(third_party: types.ModuleType) -> None:
    third_party.second = eager  # type: ignore[attr-defined]
    points = [("same", f"third_party_backend:{name}", "g") for name in ("compile_it", "second")]
    assert registry_with(*points).lookup("same") is plain


def test_entry_point_that_cannot_be_imported_is_the_backends_failure() -> None:
    registry = registry_with(("gone", "no_such_module_anywhere:x", "stator_backends"))
    with pytest.raises(
        BackendError, match="'gone' failed while loading no_such_module_anywhere:x"
    ) as caught:
        registry.lookup("gone")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_no_settings_give_the_same_backend() -> None:
    assert configure(plain) is plain
    assert configure(inductor, mode="default", options={}) is inductor


def test_settings_reach_a_plain_function_as_keywords() -> None:
    configured = configure(plain, mode="fast", options={"a": 1})
    gm = torch.fx.GraphModule({}, torch.fx.Graph())
    result: Any = configured(gm, ())
    assert result == (gm, {"mode": "fast", "options": {"a": 1}})
    assert configured == configure(plain, mode="fast", options={"a": 1})
    assert hash(configured) == hash(configure(plain, mode="fast", options={"a": 1}))
    assert configured != configure(plain, mode="fast", options={"a": 2})
    assert spec_of(configured).name == "plain"


@pytest.mark.parametrize(("mode", "options"), [("max-autotune", None), (None, {"a": 1})])
def test_eager_takes_no_settings(mode: str | None, options: dict[str, Any] | None) -> None:
    with pytest.raises(InvalidBackendOption, match="this backend takes no options"):
        configure(eager, mode, options)


def test_inductor_has_the_modes_of_torch_compile() -> None:
    configured = configure(inductor, mode="max-autotune-no-cudagraphs")
    assert isinstance(configured, Inductor)
    assert configured.options == {"max_autotune": True, "coordinate_descent_tuning": True}
    assert configured == configure(inductor, mode="max-autotune-no-cudagraphs")
    assert hash(configured) == hash(configure(inductor, mode="max-autotune-no-cudagraphs"))
    assert configured != inductor


def test_inductor_options_may_be_written_with_hyphens() -> None:
    configured = configure(inductor, options={"epilogue-fusion": True, "triton.cudagraphs": False})
    assert isinstance(configured, Inductor)
    assert configured.options == {"epilogue_fusion": True, "triton.cudagraphs": False}


@pytest.mark.parametrize(
    ("mode", "options", "text"),
    [
        ("fastest", None, "mode='fastest', expected one of default"),
        (None, {"no_such": 1}, "no_such=1, expected a setting of torch._inductor.config"),
        (None, {"max_autotune": "yes"}, "max_autotune='yes', expected a value of type bool"),
    ],
)
def test_wrong_inductor_settings_say_what_was_expected(
    mode: str | None, options: dict[str, Any] | None, text: str
) -> None:
    with pytest.raises(InvalidBackendOption) as caught:
        configure(inductor, mode, options)
    assert text in str(caught.value)
