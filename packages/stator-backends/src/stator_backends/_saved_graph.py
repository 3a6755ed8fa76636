"""Graphs in files: scripts of `write_repro`, and pairs of a graph and its inputs saved by torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import torch

from ._backend import Backend
from ._fault import FaultCheck
from ._fault_search import find_fault
from ._minify import Minified, minify
from ._repro import write_script
from ._script import run_file
from ._symbolic_sizes import with_sizes


@attrs.frozen(eq=False)
class SavedGraph:
    """The contents of one file. A pair has neither backend nor check."""

    gm: torch.fx.GraphModule
    inputs: Sequence[Any]
    backend: Backend | None = None
    check: FaultCheck = attrs.Factory(FaultCheck)

    @classmethod
    def load(cls, path: str | Path) -> SavedGraph:
        """Read `path`: a script (`.py`), which is run, or a pair, which is unpickled."""
        if Path(path).suffix != ".py":
            gm, inputs = torch.load(path, weights_only=False)
            return cls(gm, inputs)
        space = run_file(path)
        gm = with_sizes(space["graph_0"](), space["inputs"], space["SIZES"])
        return cls(gm, space["values"](), space["backend"](), space["CHECK"])


def minify_to(
    saved: SavedGraph, backend: Backend, check: FaultCheck, after: str, path: str | Path
) -> Minified:
    """Reduce a saved graph and write a script that shows the fault to `path`.

    The script has random inputs, unless the fault needs the values of these: they are saved beside
    it then.
    """
    reduced = minify(saved.gm, saved.inputs, backend, check, after)
    write_script(reduced.gm, reduced.inputs, path, backend, reduced.check)
    written = SavedGraph.load(path)
    fault = find_fault(written.gm, written.inputs, backend, reduced.check)
    if fault is None or fault.signature != reduced.fault.signature:
        values = Path(path).with_suffix(".pt")
        torch.save(reduced.inputs, values)
        write_script(reduced.gm, reduced.inputs, path, backend, reduced.check, values.name)
    return reduced
