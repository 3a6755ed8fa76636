"""The state of the process that a call may read or leave changed: random streams and torch's modes.

``World.now()`` writes it down, ``restore`` puts it back: two runs start in the same one and are
compared afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import torch

# What is read -> how it is put back. Read only where restoring is another entry's business.
MODES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any] | None]] = {
    "grad enabled": (torch.is_grad_enabled, torch._C._set_grad_enabled),
    "inference mode": (torch.is_inference_mode_enabled, None),
    "cpu autocast": (
        lambda: torch.is_autocast_enabled("cpu"),
        lambda on: torch.set_autocast_enabled("cpu", on),
    ),
    "cuda autocast": (
        lambda: torch.is_autocast_enabled("cuda"),
        lambda on: torch.set_autocast_enabled("cuda", on),
    ),
    "cpu autocast dtype": (
        lambda: torch.get_autocast_dtype("cpu"),
        lambda to: torch.set_autocast_dtype("cpu", to),
    ),
    "autocast cache": (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "default device": (torch.get_default_device, None),
    "deterministic": (
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
    "matmul precision": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "anomaly": (torch.is_anomaly_enabled, torch.set_anomaly_enabled),
    "function modes": (torch._C._len_torch_function_stack, None),
    "dispatch modes": (torch._C._len_torch_dispatch_stack, None),
    "torch function": (torch._C._is_torch_function_enabled, None),
    "threads": (torch.get_num_threads, None),
}


@attrs.frozen
class World:
    """Random streams and modes at one moment."""

    python_random: Any
    numpy_random: Any
    torch_random: torch.Tensor
    modes: dict[str, Any]

    @classmethod
    def now(cls) -> World:
        modes = {name: read() for name, (read, _) in MODES.items()}
        return cls(
            random.getstate(), np.random.get_state(legacy=False), torch.get_rng_state(), modes
        )

    def restore(self) -> None:
        random.setstate(self.python_random)
        np.random.set_state(self.numpy_random)
        torch.set_rng_state(self.torch_random)
        for name, (read, write) in MODES.items():
            if write is not None and read() != self.modes[name]:
                write(self.modes[name])
