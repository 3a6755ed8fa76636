"""Queries about the process: evaluated while tracing, and again by the guards of the entry.

Functional collectives are Python over operators of the dispatcher, so they are interpreted; their
queries about the process group, and about torch's configuration, are handled here.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed
from stator_bytecode import Result
from stator_guards import AttrSource, CallSource, CapturedSource, Is, Source
from torch.utils._config_module import ConfigModule

from stator_variables._objects import _new_values
from stator_variables._objects._wrap import equal_to
from stator_variables._space import Space
from stator_variables._tensors._global_mode import GlobalModes, Setting, put
from stator_variables._tracker import (
    MISSING,
    Args,
    FunctionTable,
    Kwargs,
    VariableTracker,
    source_of,
)

handlers = FunctionTable("question")


def _queries() -> Iterator[Callable[..., Any]]:
    yield sys.getrecursionlimit
    yield torch.distributed.is_available

    if torch.distributed.is_available():
        distributed_c10d = torch.distributed.distributed_c10d
        group: Any = torch.distributed.ProcessGroup
        meta: Any = type(distributed_c10d.group)
        yield from (
            meta.WORLD.fget,
            group.group_name.fget,
            distributed_c10d._get_group_size_by_name,
        )

        yield from (
            distributed_c10d.get_rank,
            distributed_c10d.get_world_size,
            distributed_c10d.is_initialized,
        )


@handlers.handles_each(_queries())
def query(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Any:
    if kwargs or any(vt.real is MISSING and vt.constant() is MISSING for vt in args):
        raise t.unsupported(
            "unanswered-question", f"{of.__name__}() of what is not known while tracing"
        )
    values = [vt.real if vt.constant() is MISSING else vt.constant() for vt in args]
    source = CallSource(
        of, *[_source(t, vt, value) for vt, value in zip(args, values, strict=True)]
    )

    try:
        result = of(*values)
    except ValueError as error:  # without a process group
        raise t.unsupported(
            "unanswered-question", f"{of.__name__}(), which raises {error!r}"
        ) from None
    if isinstance(result, torch.distributed.ProcessGroup):
        t.guard(source, Is(result))
    return t.wrap(result, source)


def _source(t: Space, vt: VariableTracker, value: object) -> Source:
    if vt.constant() is not MISSING:
        return CapturedSource(repr(value), value)
    source = source_of(vt) or CapturedSource("argument", value)
    t.guard(source, Is(value))
    return source


_MADE_ON_DEMAND = (
    ConfigModule,
    torch._ops._Ops,
    torch._ops._OpNamespace,
    torch._ops.OpOverloadPacket,
)


@handlers.handles(*(cls.__getattr__ for cls in _MADE_ON_DEMAND))
def made_on_demand(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Return an attribute that is looked up, or made and stored, on first use."""
    owner, name = args
    if _option(owner.real, name.constant()) in t.state(GlobalModes).starts:
        return _new_values.fresh(t, getattr(owner.real, name.value))
    try:
        found = getattr(owner.real, name.constant())
    except (AttributeError, TypeError) as error:
        raise t.unsupported(
            "unanswered-question", f"an attribute that is not there: {error}"
        ) from error
    source = owner.source
    return t.wrap(found, AttrSource(source or CapturedSource("operators", owner.real), name.value))


def _option(config: object, name: str) -> Setting:
    return Setting(getattr, setattr, "setattr", (config, name), is_node=False)


@handlers.handles(ConfigModule.__setattr__)
def set_option(t: Space, args: Args, kwargs: Kwargs) -> None:
    """Set a value of torch's configuration, which no operator reads while it runs."""
    owner, name, value = (vt.real if vt.constant() is MISSING else vt.constant() for vt in args)
    if not isinstance(value, int | float | str | None):
        raise t.unsupported("mode-value", f"setting {name} of {owner.__name__} to an object")
    option = _option(owner, name)
    if option not in t.state(GlobalModes).starts:
        source = CallSource(
            getattr, CapturedSource(owner.__name__, owner), CapturedSource(name, name)
        )
        t.guard(source, equal_to(option.now))
    put(t, option, value)
