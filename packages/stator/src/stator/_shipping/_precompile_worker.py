"""The process that compiles for `precompile`: calls of one function, in turn."""

from __future__ import annotations

import json
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import attrs
import torch

from stator._api import compile
from stator._disk_cache._fingerprint import of_state
from stator._shipping._example import Example
from stator._subject import region_in
from stator.errors import InvalidUse, StatorError

_CONTEXTS: Mapping[str, Callable[[], AbstractContextManager[Any]]] = {
    "inference": torch.no_grad,
    "training": torch.enable_grad,
}


@attrs.frozen(eq=False)
class PrecompileJob:
    """Calls that are made in one process. `state` is that of the process that requires them."""

    fn: Callable[..., Any]
    calls: Sequence[Example]
    mode: str
    settings: Mapping[str, Any]
    state: str


def run_job(job: PrecompileJob) -> dict[str, Any]:
    """Make the calls; return each entry with its notes, and whether the cache has it."""
    if of_state() != job.state:
        problem = "this process has settings that another one does not get"
        raise InvalidUse(problem, "pass processes=0")
    compiled = _compiled(job.fn, job.settings)
    region = region_in(compiled)
    known = len(region.compiled)
    for call in job.calls:
        with _CONTEXTS[job.mode]():
            result = compiled(*call.args, **call.kwargs)
            if job.mode == "training":
                _backward(result)
    made = region.compiled[known:]
    return {"entries": [(each.name, each.notes, _is_kept(each)) for each in made]}


def _is_kept(trace: Any) -> bool:
    return trace.file is not None or not trace.notes


def _compiled(fn: Any, settings: Mapping[str, Any]) -> Any:
    """Return what is called: compiled with a cache, or as it was compiled by its module."""
    try:
        region = region_in(fn)
    except InvalidUse:
        options = {**(settings.get("options") or {}), "cache": True}
        with_cache = dict(settings, options=options)
        return compile(fn, **with_cache)
    if settings or not region.options.cache:
        problem = f"{region.root.target.name} is compiled already"
        hint = "compile it with options={'cache': True}, and pass no settings"
        raise InvalidUse(problem, hint)
    return fn


def _backward(result: Any) -> None:
    """Run the backward pass of all results that have one."""
    found = [each for each in _tensors(result) if each.requires_grad]
    if found:
        torch.autograd.backward(found, [torch.ones_like(each) for each in found])


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from _tensors([*value.values()])
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)


def main(path: str) -> None:
    """Run the job that comes through the standard input, and write its result to a file."""
    folders, settings, job = pickle.load(sys.stdin.buffer)
    sys.path[:] = folders
    for name, value in settings.items():
        getattr(torch, name)(value)
    warnings.simplefilter("ignore")  # of the calls: those to come show them
    try:
        result = run_job(pickle.loads(job))
    except StatorError as error:
        result = {"error": f"{error}".partition("\n")[0]}
    Path(path).write_text(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])
