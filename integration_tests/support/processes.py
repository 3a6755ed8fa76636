"""A group of processes on this machine, over gloo: each calls the same function.

    in_processes(body, tmp_path)            two processes
    in_processes(body, tmp_path, 4, args)   four, each calls `body(*args)`

The processes are new ones, so the function and its arguments have to be importable.
"""

from __future__ import annotations

import pathlib
import warnings
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
import torch.multiprocessing


def in_processes(
    body: Callable[..., None], folder: pathlib.Path, count: int = 2, args: tuple[Any, ...] = ()
) -> None:
    """Call a function in each process of a new group; raise what one of them raises.

    The processes meet in a file of the folder, which is one of its own for each group.
    """
    multiprocessing: Any = torch.multiprocessing  # not typed
    given = (count, f"file://{folder}/meeting", body, args)
    multiprocessing.spawn(_process, given, nprocs=count)


def _process(
    rank: int, count: int, meeting: str, body: Callable[..., None], args: tuple[Any, ...]
) -> None:
    warnings.simplefilter("ignore")  # the names that users call are deprecated ones
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=count)
    body(*args)
    dist.destroy_process_group()
