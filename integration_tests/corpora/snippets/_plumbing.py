"""Configurations, registries, hooks, outputs: the Python around the tensors."""

# mypy: ignore-errors

from __future__ import annotations

import enum
import functools
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from integration_tests.corpora.snippets._collection import Collection

plumbing = Collection("plumbing")


@dataclass(frozen=True)
class Config:
    dim: int = 4
    act: str = "gelu"
    scale: float = 0.5
    layers: tuple[str, ...] = ("norm", "act")
    extra: dict[str, float] = field(default_factory=dict)


@plumbing.add(
    lambda d: (
        Config(act=("gelu", "relu", "gelu")[d.call], extra={"shift": 1.0}),
        d.normal(d.batch, 4),
    )
)
def configured_block(config: Config, x: Tensor) -> Tensor:
    for layer in config.layers:
        match layer:
            case "norm":
                x = F.layer_norm(x, (config.dim,))
            case "act":
                x = getattr(F, config.act)(x)
            case _:
                raise NotImplementedError(layer)
    return x * config.scale + config.extra.get("shift", 0.0)


REGISTRY: dict[str, Callable[..., Tensor]] = {}


def _register(name: str) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    def decorate(fn: Callable[..., Tensor]) -> Callable[..., Tensor]:
        REGISTRY[name] = fn
        return fn

    return decorate


@_register("swiglu")
def _swiglu(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return F.silu(a) * b


@_register("halve")
def _halve(x: Tensor, *, by: int = 2) -> Tensor:
    return x / by


@plumbing.add(lambda d: (d.normal(d.batch, 8), ["swiglu", "halve"]))
def registry_lookup(x: Tensor, names: list[str]) -> Tensor:
    for name in names:
        if name not in REGISTRY:
            raise KeyError(f"unknown op {name}; known: {sorted(REGISTRY)}")
        x = REGISTRY[name](x)
    return x


ACT2FN = {"relu": nn.ReLU, "tanh": nn.Tanh, "leaky": (nn.LeakyReLU, {"negative_slope": 0.2})}


@plumbing.add(lambda d: (d.normal(d.batch, 4), "leaky"))
def activation_by_name(x: Tensor, name: str) -> Tensor:
    content = ACT2FN[name]
    cls, kwargs = content if isinstance(content, tuple) else (content, {})
    return cls(**kwargs)(x)


class ModelOutput(OrderedDict):
    """A dict whose items are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def to_tuple(self) -> tuple[Any, ...]:
        return tuple(self[key] for key in self.keys())


@plumbing.add(lambda d: (d.normal(d.batch, 4), bool(d.call % 2)))
def model_output(x: Tensor, return_dict: bool) -> Any:
    out = ModelOutput(logits=x * 2, hidden=(x, x + 1))
    out["pooled"] = out.hidden[-1].mean(0)
    return out if return_dict else out.to_tuple()


class Outputs(NamedTuple):
    logits: Tensor
    aux: Tensor | None = None

    @property
    def has_aux(self) -> bool:
        return self.aux is not None


@plumbing.add(lambda d: (d.normal(d.batch, 4),))
def namedtuple_output(x: Tensor) -> Outputs:
    out = Outputs(logits=x.exp())
    if not out.has_aux:
        out = out._replace(aux=out.logits.sum())
    return out


@plumbing.add(lambda d: (d.normal(d.batch, 4), {"p": 2.0, "dim": -1}))
def kwargs_plumbing(x: Tensor, options: dict[str, Any]) -> Tensor:
    def inner(x: Tensor, *args: Any, scale: float = 1.0, **kwargs: Any) -> Tensor:
        kwargs.setdefault("eps", 1e-6)
        return F.normalize(x, *args, **kwargs) * scale

    return inner(x, **{**options, "scale": 3.0})


class Mode(enum.Enum):
    TRAIN = "train"
    TEST = "test"

    @property
    def noisy(self) -> bool:
        return self is Mode.TRAIN


@plumbing.add(lambda d: (d.normal(d.batch, 4), (Mode.TRAIN, Mode.TEST, Mode.TRAIN)[d.call]))
def enum_dispatch(x: Tensor, mode: Mode) -> tuple[Tensor, str]:
    return (x + torch.randn_like(x) if mode.noisy else x), mode.value


@plumbing.add(lambda d: (SimpleNamespace(scale=2.0, bias=d.normal(4)), d.normal(d.batch, 4)))
def namespace_arguments(args: SimpleNamespace, x: Tensor) -> Tensor:
    args.calls = getattr(args, "calls", 0) + 1
    return x * args.scale + args.bias


@plumbing.add(lambda d: (Config(), d.normal(d.batch, 4)))
def replaced_config(config: Config, x: Tensor) -> tuple[Tensor, dict[str, Any]]:
    smaller = replace(config, scale=config.scale / 2)
    shown = {f.name: getattr(smaller, f.name) for f in fields(smaller)}
    return x * smaller.scale, shown


@plumbing.add(
    lambda d: (
        d.module(lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))),
        d.normal(2, 4),
    )
)
def features_by_hook(model: nn.Sequential, x: Tensor) -> dict[str, Tensor]:
    features: dict[str, Tensor] = {}

    def save(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, output: Tensor) -> None:
            features[name] = output.detach()

        return hook

    handles = [layer.register_forward_hook(save(str(i))) for i, layer in enumerate(model)]
    model(x)
    for handle in handles:
        handle.remove()
    return features


def _hooked() -> nn.Module:
    model = nn.Linear(4, 4)
    model.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    model.register_forward_hook(lambda module, args, output: output + args[0])
    return model


@plumbing.add(lambda d: (d.module(_hooked), d.normal(d.batch, 4)))
def hooks_set_before(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)


@plumbing.add(
    lambda d: (d.module(lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh())), d.normal(d.batch, 4))
)
def walk_modules(model: nn.Module, x: Tensor) -> tuple[Tensor, list[str]]:
    names = [f"{n}:{type(m).__name__}" for n, m in model.named_modules() if n]
    count = sum(isinstance(m, nn.Linear) for m in model.modules())
    return model(x) * count, names


@plumbing.add(lambda d: (d.module(lambda: nn.Linear(4, 2)), d.normal(d.batch, 4)))
def state_dict_keys(model: nn.Module, x: Tensor) -> dict[str, Tensor]:
    return {f"model.{k}": v.detach().clone() + x.sum() for k, v in model.state_dict().items()}


@functools.cache
def _grid(n: int) -> tuple[float, ...]:
    return tuple(i / n for i in range(n))


@plumbing.add(lambda d: (d.normal(d.batch, 4),))
def cached_constants(x: Tensor) -> Tensor:
    return x * torch.tensor(_grid(4))


@plumbing.add(lambda d: (d.normal(d.batch, 4),))
def partials_and_reduce(x: Tensor) -> Tensor:
    steps = [
        functools.partial(torch.clamp, min=-1.0),
        functools.partial(F.dropout, p=0.0),
        torch.neg,
    ]
    return functools.reduce(lambda value, step: step(value), steps, x)


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.fc(x))

    def head(self, x: Tensor) -> Tensor:
        raise NotImplementedError


class Derived(Base):
    calls: int = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return super().forward(x) * self.calls

    def head(self, x: Tensor) -> Tensor:
        return x.relu() if self.training else x


@plumbing.add(lambda d: (d.module(Derived), d.normal(d.batch, 4)))
def inherited_forward(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)


@plumbing.add(lambda d: (d.normal(d.batch, 4), None if d.call % 2 else d.normal(4)))
def optional_argument(x: Tensor, bias: Tensor | None = None) -> Tensor:
    try:
        return x + bias
    except TypeError:
        return x


@plumbing.add(lambda d: (d.normal(d.batch, 4), {}))
def memoised_by_shape(x: Tensor, cache: dict[Any, Tensor]) -> Tensor:
    key = (x.dtype, str(x.device), x.shape[-1])
    if key not in cache:
        cache[key] = torch.arange(x.shape[-1], dtype=x.dtype)
    return x + cache[key]


@plumbing.add(lambda d: (d.normal(d.batch, 4),))
def checked_shapes(x: Tensor) -> Tensor:
    assert x.dim() == 2, f"expected 2 dimensions, got {x.dim()}"
    if not torch.is_floating_point(x) or x.shape[1] % 2:
        raise ValueError(f"bad input {tuple(x.shape)} of {x.dtype}")
    return x.unflatten(1, (2, -1)).sum(1)


@plumbing.add(lambda d: (d.module(lambda: nn.Linear(4, 4)), d.normal(d.batch, 4)))
def dtype_and_device_of_module(model: nn.Module, x: Tensor) -> Tensor:
    first = next(model.parameters())
    return model(x.to(device=first.device, dtype=first.dtype))
