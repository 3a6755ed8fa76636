"""What a first call imports, imported before the tests."""

from __future__ import annotations

import gc

import stator
import torch
from torch.fx.experimental.symbolic_shapes import uninteresting_files


def warm_up() -> None:
    """Compile once. What there is then is no matter of the collector any more, nor of those of
    forked processes: it stays to the end, and going through it would take a tenth of the time of
    all tests."""
    stator.compile(lambda x: [x + 1], backend="eager")(torch.ones(1))
    uninteresting_files()  # torch imports half of itself for the names of its files
    gc.collect()
    gc.freeze()
