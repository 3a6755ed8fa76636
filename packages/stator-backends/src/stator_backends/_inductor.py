"""TorchInductor, with the modes and options of `torch.compile`."""

import difflib
import sys
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import torch
from torch.fx import GraphModule

from ._backend import Backend, BackendSpec, Compiled
from ._frozen_graph import freeze
from .errors import InvalidBackendOption

INDUCTOR = BackendSpec("inductor")


@attrs.frozen
class Inductor:
    """Inductor under fixed settings; two with equal settings are the same backend to a cache."""

    mode: str | None = None
    options: Mapping[str, Any] = attrs.Factory(dict)
    spec: BackendSpec = INDUCTOR

    def __hash__(self) -> int:
        return hash((self.mode, frozenset(self.options), self.spec))

    def __call__(self, gm: GraphModule, example_inputs: Sequence[Any]) -> Compiled:
        from torch._inductor import config
        from torch._inductor.compile_fx import compile_fx

        patches = dict(self.options)
        if torch.is_grad_enabled() or not patches.get("freezing", config.freezing):
            compiled: Any = compile_fx(gm, example_inputs, config_patches=patches)
            return compiled  # type: ignore[no-any-return]  # but for ahead-of-time files

        graph = freeze(gm, example_inputs)
        frozen: Any = compile_fx(graph.module, graph.inputs, config_patches=patches)
        return graph.around(frozen)

    @property
    def uses_steps(self) -> bool:
        """True with torch's CUDA graph trees: under `mode="reduce-overhead"`, for example."""
        config: Any = sys.modules.get("torch._inductor.config")
        by_default = config is not None and config.triton.cudagraphs
        return bool(self.options.get("triton.cudagraphs", by_default))

    @property
    def compiles_in_call(self) -> bool:
        """True where real tensors are looked at, or random ones made to measure code."""
        config: Any = sys.modules.get("torch._inductor.config")
        return any(
            self.options.get(name, getattr(config, name, False)) for name in _LOOKS_AT_TENSORS
        )

    def compile_aten(self, gm: GraphModule, inputs: Sequence[Any]) -> Compiled:
        """Compile what AOTAutograd would hand on, without AOTAutograd."""
        from torch._inductor import config
        from torch._inductor.compile_fx import compile_fx_inner
        from torch.fx.experimental.proxy_tensor import make_fx

        traced = make_fx(gm, tracing_mode="fake")(*inputs)
        with config.patch(dict(self.options)):
            boxed: Any = compile_fx_inner(traced, inputs)
        return lambda *args: boxed(list(args))

    def configured(
        self, mode: str | None, options: Mapping[str, Any] | None, dynamic: bool | None
    ) -> Backend:
        patches = {**_mode_options(mode, dynamic), **(options or {})}
        checked = dict(_checked(option, value) for option, value in patches.items())
        return attrs.evolve(self, mode=mode or self.mode, options={**self.options, **checked})


_LOOKS_AT_TENSORS = (
    "freezing",
    "max_autotune",
    "max_autotune_gemm",
    "max_autotune_pointwise",
    "benchmark_fusion",
    "coordinate_descent_tuning",
)


def _mode_options(mode: str | None, dynamic: bool | None) -> dict[str, Any]:
    if mode is None:
        return {}
    from torch._inductor import list_mode_options

    modes = list_mode_options(None, dynamic)
    if mode not in modes:
        raise InvalidBackendOption("inductor", "mode", mode, f"one of {', '.join(modes)}")
    return dict(modes[mode])


def _checked(option: str, value: object) -> tuple[str, Any]:
    """The option under the name the configuration has for it: `max-autotune` may be written for
    `max_autotune`."""
    from torch._inductor import config

    name = option.replace("-", "_")
    settings = config.get_config_copy()
    if name not in settings:
        close = difflib.get_close_matches(name, settings, n=1)
        nearest = f", such as {close[0]}" if close else ""
        expected = f"a setting of torch._inductor.config{nearest}"
        raise InvalidBackendOption("inductor", option, value, expected)
    # installed into the module at run time
    declared = config.get_type(name)  # type: ignore[attr-defined]
    # `isinstance` does not take a subscripted type; Inductor itself uses such a value unchecked.
    if typing.get_origin(declared) is None and not isinstance(value, declared):
        raise InvalidBackendOption(
            "inductor", option, value, f"a value of type {getattr(declared, '__name__', declared)}"
        )
    return name, value


inductor = Inductor()
