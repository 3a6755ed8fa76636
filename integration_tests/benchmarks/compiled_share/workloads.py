"""Every workload by its name, in the order of the page, and those that are timed under Inductor."""

from __future__ import annotations

from integration_tests.benchmarks.compiled_share._pictures import PICTURES
from integration_tests.benchmarks.compiled_share._science import SCIENCE
from integration_tests.benchmarks.compiled_share._situations import SITUATIONS
from integration_tests.benchmarks.compiled_share._text import TEXT

WORKLOADS = {workload.name: workload for workload in (*TEXT, *PICTURES, *SCIENCE, *SITUATIONS)}

INDUCTOR = (
    "gpt2 with labels, training",
    "llama with labels, training",
    "mixtral, training",
    "llama, decoding with a static cache",
    "vit with labels, training",
    "wav2vec2 with ctc, training",
    "timm resnet18, training",
    "torchvision resnet18, training",
    "diffusers unet, training",
    "x-transformers, training",
    "pyg gin, training",
    "conformer, training",
    "weight_norm, training",
    "adamw step",
    "whole step with adamw",
    "gan step",
)
