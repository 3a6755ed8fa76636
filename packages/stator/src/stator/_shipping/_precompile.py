"""`precompile`: entries of calls that are to come, made in other processes before the first one.

    examples ──► groups that share entries ──► a process for each ──► the cache on disk

Later processes find the entries there. Nothing of this process is changed, unless what is compiled
can be reached from it alone.
"""

from __future__ import annotations

import json
import os
import pickle
import pickletools
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from stator._disk_cache._fingerprint import of_arguments, of_state
from stator._shipping._example import Example
from stator._shipping._precompile_worker import PrecompileJob, run_job
from stator.errors import InvalidUse

MODES = ("inference", "training")
WORKER = "stator._shipping._precompile_worker"


def precompile(
    fn: Callable[..., Any],
    examples: Sequence[Any],
    *,
    mode: str = "inference",
    processes: int | None = None,
    **settings: Any,
) -> list[str]:
    """Compile `fn` for calls like the examples, and fill the cache on disk with the entries.

    An example is a tuple of arguments, a mapping of keywords or one argument; an `ExampleTensor` in
    it stands for a tensor, whose sizes may be ranges. The calls are made: under `torch.no_grad()`,
    or with gradients and a backward pass if `mode` is "training".
    `settings` are the keywords of `compile`, or none for a function that was compiled with
    `options={"cache": True}`.

    At most `processes` work at a time, by default one for each core; 0: this process does. So it
    does by default where no other one can import `fn`. Examples that may share entries are compiled
    by one process in turn.

    Returns a line for each entry. Raises InvalidUse where a call fails, or where no file can hold
    an entry, with the reason.
    """
    if mode not in MODES:
        raise InvalidUse(f"there is no mode {mode!r}", f"pass one of {', '.join(MODES)}")
    calls = [call for each in examples for call in Example.of(each).calls()]
    groups = _groups(calls, settings.get("dynamic") is not False)
    jobs = [PrecompileJob(fn, group, mode, settings, of_state()) for group in groups]

    found = None if processes == 0 else _pickled(jobs, is_required=processes is not None)
    if found is None:
        return [line for job in jobs for line in _checked(run_job(job))]
    count = min(processes or os.cpu_count() or 1, len(jobs)) or 1
    with ThreadPoolExecutor(count) as threads:
        return [line for result in threads.map(_in_process, found) for line in _checked(result)]


def _groups(calls: Sequence[Example], is_loose: bool) -> list[list[Example]]:
    """Return calls that may share entries together, in their order."""
    found: dict[str, list[Example]] = {}
    for call in calls:
        state = [call.args, {**call.kwargs}]
        found.setdefault(of_arguments(state, is_loose=is_loose), []).append(call)
    return [*found.values()]


def _pickled(jobs: Sequence[PrecompileJob], *, is_required: bool) -> list[bytes] | None:
    """Return what processes get, None where they could not import it. Raises InvalidUse."""
    try:
        found = [pickle.dumps(job) for job in jobs]
        problem = "it is of __main__" if any(map(_is_of_main, found)) else ""
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        problem = str(error)
    if problem and is_required:
        hint = "put it into a module that can be imported, or pass processes=0"
        raise InvalidUse(f"no other process can have what is to be compiled: {problem}", hint)
    return None if problem else found


def _is_of_main(data: bytes) -> bool:
    return any(argument == "__main__" for _, argument, _ in pickletools.genops(data))


def _in_process(job: bytes) -> Mapping[str, Any]:
    with tempfile.TemporaryDirectory(prefix="stator-precompile-") as folder:
        result = Path(folder) / "result"
        given = pickle.dumps(([*sys.path], _process_settings(), job))
        done = subprocess.run(
            [sys.executable, "-m", WORKER, str(result)],
            input=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        if result.exists():
            found: Mapping[str, Any] = json.loads(result.read_text())
            return found
    text = done.stderr.decode(errors="replace").strip()
    return {"error": text.rpartition("\n")[2] or f"the process ended with {done.returncode}"}


def _process_settings() -> dict[str, Any]:
    """Return the settings of the process that entries rely on."""
    return {
        "set_num_threads": torch.get_num_threads(),
        "set_default_dtype": torch.get_default_dtype(),
        "set_deterministic_debug_mode": torch.get_deterministic_debug_mode(),
        "set_float32_matmul_precision": torch.get_float32_matmul_precision(),
    }


def _checked(result: Mapping[str, Any]) -> list[str]:
    """Return the lines of a result. Raises InvalidUse for calls that failed, and entries that are
    not in the cache."""
    if "error" in result:
        raise InvalidUse(f"cannot precompile: {result['error']}", "see that the call works eagerly")
    for name, notes, is_kept in result["entries"]:
        if not is_kept:
            problem = f"an entry of {name} is not in the cache: {'; '.join(notes)}"
            raise InvalidUse(problem, "change that, or leave the calls out that need it")
    return [f"{name}: {notes[-1]}" for name, notes, _ in result["entries"] if notes]
