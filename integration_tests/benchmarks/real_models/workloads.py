"""Every workload by its name, in the order of the page."""

from __future__ import annotations

from integration_tests.benchmarks.real_models._language import LANGUAGE
from integration_tests.benchmarks.real_models._micro import BATCH_NORM, MICRO
from integration_tests.benchmarks.real_models._vision import VISION

MODELS = {workload.name: workload for workload in (BATCH_NORM, *LANGUAGE, *VISION)}
PROGRAMS = {workload.name: workload for workload in MICRO}
WORKLOADS = {**MODELS, **PROGRAMS}

QUICK = (
    "batch-norm training, loss",
    "gpt2",
    "gpt2, decoding",
    "llama",
    "t5",
    "x-transformers",
    "timm resnet18 training, loss",
    "vit-pytorch MaxViT",
    "PyG GIN",
    "torch Transformer training, dropout",
    "two tensors",
    "50-layer MLP",
    "12 attention blocks",
    "break in straight-line code",
)
