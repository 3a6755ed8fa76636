"""Every workload by its name, in the order of the page."""

from __future__ import annotations

from integration_tests.benchmarks.real_models._language import LANGUAGE
from integration_tests.benchmarks.real_models._micro import BATCH_NORM, MICRO
from integration_tests.benchmarks.real_models._vision import VISION

MODELS = {workload.name: workload for workload in (BATCH_NORM, *LANGUAGE, *VISION)}
PROGRAMS = {workload.name: workload for workload in MICRO}
WORKLOADS = {**MODELS, **PROGRAMS}

QUICK = (
    "batch-norm training, loss inside",
    "gpt2",
    "gpt2, decoding with a new cache",
    "llama",
    "t5",
    "x-transformers",
    "timm resnet18 training, loss inside",
    "vit-pytorch MaxViT",
    "PyG GIN",
    "torch Transformer, dropout training",
    "two tensors",
    "50-layer MLP",
    "12 attention blocks",
    "break in straight-line code",
)
