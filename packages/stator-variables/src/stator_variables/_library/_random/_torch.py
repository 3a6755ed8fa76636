"""`torch.Generator`, the functions that seed torch's own generators, or read and set their state,
and draws from a generator that an operator is given.

Nodes of the graph draw from torch's own generators alone; compilers take no other. So what an
operator draws from a generator that it is given is drawn ahead of the graph, natively, and is an
input of the graph:

    torch.randn(n, generator=g)     drawn0 = randn(n, dtype=torch.float32, device=cpu, generator=g)
    x.normal_(generator=g)          drawn0 = filled('normal_', x.shape, ..., generator=g)
                                    x.copy_(drawn0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from stator_bytecode import Result
from stator_guards import AttrSource, CapturedSource, Custom, Is

from stator_variables._handler_keys import WITH_GENERATOR
from stator_variables._library._random import _streams
from stator_variables._runtime._support import filled
from stator_variables._space import Space
from stator_variables._tensors import _entry_values, _torch_calls
from stator_variables._tensors._surroundings import Transforms
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker
from stator_variables._trackers import NONE, ConstantTracker

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
        example = _streams.tried(t, of, [*map(_entry_values.example_of, args)], kwargs)
    step = _streams.step(t, _streams.TORCH, of, args, kwargs, changes=not reads)
    if of is torch.random.manual_seed:
        real = torch.default_generator
        return t.wrap(real, CapturedSource("default_generator", real))
    return _entry_values.result(t, step, example)


def _check_seed(t: Space, of: Any, args: Args, kwargs: Kwargs) -> None:
    """Refuse what `manual_seed` refuses: it raises natively."""
    if of.__name__.startswith("manual_seed"):
        seeds = [_entry_values.example_of(vt) for vt in (*args, *kwargs.values())]
        is_method = of is torch.Generator.manual_seed
        _streams.tried(t, torch.Generator().manual_seed if is_method else _seeded, seeds[-1:], {})


def _seeded(seed: Any) -> None:
    torch.Generator().manual_seed(int(seed))


# -- methods of a generator ------------------------------------------------------------------------
_METHODS = ("manual_seed", "seed", "initial_seed", "get_state", "set_state", "clone_state")
_GIVE_THEMSELVES = ("manual_seed", "set_state")


@handlers.handles(torch.Generator)
def make(t: Space, args: Args, kwargs: Kwargs) -> Any:
    _streams.tried(t, torch.Generator, [*map(_entry_values.example_of, args)], kwargs)
    return _entry_values.made(
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
        return _entry_values.made(step, torch.Generator)
    return _entry_values.result(t, step, _state_like(receiver) if of == "get_state" else 0)


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


def is_own(t: Space, vt: VariableTracker) -> bool:
    """Return True for one of torch's own generators, which is guarded; another is guarded to be
    none of them."""
    if vt.real is MISSING:
        return False
    if not _is_other(vt.real):
        t.guard(vt.source, Is(vt.real))
        return True
    t.guard(vt.source, Custom("{fn}({value})", _is_other, "none of torch's own generators"))
    return False


def _is_other(generator: object) -> bool:
    own = (torch.default_generator, *torch.cuda.default_generators)
    return all(generator is not each for each in own)


# -- operators that are given a generator ----------------------------------------------------------
@handlers.handles(WITH_GENERATOR)
def draw_ahead(t: Space, args: Args, kwargs: Kwargs) -> Any:
    """Draw what an operator gives ahead of the graph, or take one of torch's own generators out."""
    target, *rest = args
    vt = kwargs["generator"]
    if vt.cls is torch.Generator and not is_own(t, vt):
        return _drawn(t, target, rest, kwargs)
    kwargs["generator"] = NONE
    return MISSING


def _drawn(t: Space, target: object, args: Args, kwargs: Kwargs) -> Any:
    if t.state(Transforms).names:
        raise t.unsupported("random-stream", "a generator inside of a transform")
    if "out" in kwargs or any(state.refuses_calls_ahead() for state in t.states.made.values()):
        raise t.unsupported("random-stream", "a generator in inference mode, or under a mode")
    if isinstance(target, str) and target.endswith("_"):
        return _filled(t, target, args, kwargs)
    function = getattr(torch.Tensor, target) if isinstance(target, str) else target
    if target in (torch.rand, torch.randn):
        kwargs = {"dtype": ConstantTracker(torch.get_default_dtype()), **kwargs}
    step = _streams.step(t, _streams.owner(t, kwargs["generator"]), function, args, kwargs)
    plain = [_torch_calls.argument(t, arg) for arg in args]
    named = {
        name: _torch_calls.argument(t, arg) for name, arg in kwargs.items() if name != "generator"
    }
    return _entry_values.tensor(t, step.value, target, plain, named)


def _filled(t: Space, target: str, args: Args, kwargs: Kwargs) -> Result:
    """A tensor filled in place: another one, of the same layout, is filled ahead of the graph, and
    copied."""
    tensor, *rest = args
    example = tensor.example
    layout = [
        _torch_calls.metadata_value(t, example.size(), "size", [tensor], {}),
        _torch_calls.metadata_value(t, example.stride(), "stride", [tensor], {}),
        ConstantTracker(example.dtype),
        ConstantTracker(example.device),
    ]
    given = [ConstantTracker(target), *layout, *rest]
    step = _streams.step(t, _streams.owner(t, kwargs["generator"]), filled, given, kwargs)
    size, stride = (_torch_calls.argument(t, vt) for vt in layout[:2])
    named = {"dtype": example.dtype, "device": example.device}
    source = _entry_values.tensor(t, step.value, torch.empty_strided, [size, stride], named)
    return _torch_calls.record(t, "copy_", [tensor, source])
