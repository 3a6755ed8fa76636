"""Public libraries beside a torch without their compiled parts."""

from __future__ import annotations

import importlib
import importlib.util

import torch

# torchvision registers fakes for these on import. Its wheel is linked against CUDA, so beside the
# CPU build of torch the library that defines them does not load.
_OPERATORS = ("nms", "qnms")
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def make_torchvision_importable() -> None:
    """Define the operators whose absence makes ``import torchvision`` fail. No workload calls them.

    ``transformers`` and ``timm`` import it wherever it is installed.
    """
    if importlib.util.find_spec("torchvision") is None:
        return

    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        for name in _OPERATORS:
            torch.library.define(f"torchvision::{name}", _SCHEMA)
        importlib.import_module("torchvision")
