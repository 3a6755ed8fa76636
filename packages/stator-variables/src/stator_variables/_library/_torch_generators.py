"""`torch.Generator`, and the functions that seed torch's own generators, or read and set their
state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from stator_bytecode import Result
from stator_guards import AttrSource, CapturedSource

from stator_variables._space import Space
from stator_variables._tensors import _streams
from stator_variables._tensors._generators import is_own
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker

handlers = FunctionTable("generator")


# -- torch's own generators ------------------------------------------------------------------------
_OF_CPU = "manual_seed seed set_rng_state initial_seed get_rng_state"
_OF_CUDA = f"{_OF_CPU} manual_seed_all seed_all set_rng_state_all"
_READING = ("initial_seed", "get_rng_state")


def _functions() -> Iterator[Callable[..., Any]]:
    yield from (vars(torch.random)[name] for name in _OF_CPU.split())
    yield from (vars(torch.cuda)[name] for name in _OF_CUDA.split())


@handlers.handles_each(_functions())
def of_torch(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Any:
    """A function on torch's own generators."""
    _check_seed(t, of, args, kwargs)
    reads = of.__name__ in _READING
    example = 0 if of is torch.random.seed else None
    if reads:
        example = _streams.tried(t, of, [*map(_streams.example_of, args)], kwargs)
    step = _streams.step(t, _streams.TORCH, of, args, kwargs, changes=not reads)
    if of is torch.random.manual_seed:
        real = torch.default_generator
        return t.wrap(real, CapturedSource("default_generator", real))
    return _streams.result(t, step, example)


def _check_seed(t: Space, of: Any, args: Args, kwargs: Kwargs) -> None:
    """Refuse what `manual_seed` refuses: it raises natively."""
    if of.__name__.startswith("manual_seed"):
        seeds = [_streams.example_of(vt) for vt in (*args, *kwargs.values())]
        is_method = of is torch.Generator.manual_seed
        _streams.tried(t, torch.Generator().manual_seed if is_method else _seeded, seeds[-1:], {})


def _seeded(seed: Any) -> None:
    torch.Generator().manual_seed(int(seed))


# -- methods of a generator ------------------------------------------------------------------------
_METHODS = ("manual_seed", "seed", "initial_seed", "get_state", "set_state", "clone_state")
_GIVE_THEMSELVES = ("manual_seed", "set_state")


@handlers.handles(torch.Generator)
def make(t: Space, args: Args, kwargs: Kwargs) -> Any:
    _streams.tried(t, torch.Generator, [*map(_streams.example_of, args)], kwargs)
    return _streams.made(
        _streams.step(t, _streams.NEW, torch.Generator, args, kwargs), torch.Generator
    )


@handlers.handles_each({getattr(torch.Generator, name): name for name in _METHODS})
def method(t: Space, args: Args, kwargs: Kwargs, of: str) -> Any:
    receiver = args[0]
    function = getattr(torch.Generator, of)
    if of == "manual_seed":
        _check_seed(t, function, args[1:], kwargs)
    stream = _streams.TORCH if is_own(t, receiver) else _streams.owner(t, receiver)
    changes = of in ("manual_seed", "seed", "set_state")
    step = _streams.step(t, stream, function, args, kwargs, changes=changes)
    if of in _GIVE_THEMSELVES:
        return receiver
    if of == "clone_state":
        return _streams.made(step, torch.Generator)
    return _streams.result(t, step, _state_like(receiver) if of == "get_state" else 0)


def _state_like(receiver: VariableTracker) -> torch.Tensor:
    generator = torch.Generator() if receiver.real is MISSING else receiver.real
    return generator.get_state()


@handlers.handles(torch.Generator.device)
def device(t: Space, args: Args, kwargs: Kwargs) -> Result:
    receiver = args[0]
    if receiver.real is MISSING:
        raise t.unsupported(
            "random-stream", "the device of a generator that was made in the region"
        )
    return t.wrap(receiver.real.device, AttrSource(receiver.source, "device"))
