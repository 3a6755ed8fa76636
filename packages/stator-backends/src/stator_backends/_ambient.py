"""The modes of torch that change what a graph means: read at the entry of a trace, put back around its lowering.

AOTAutograd looks at the modes that are on when it compiles. A trace that ends inside `no_grad` would otherwise compile
a graph whose outputs silently need no gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import attrs
import torch


@attrs.frozen
class Autocast:
    """Autocast of one device type."""

    device: str
    enabled: bool
    dtype: torch.dtype

    @classmethod
    def of(cls, device: str) -> Autocast:
        return cls(device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))

    def install(self) -> None:
        torch.set_autocast_enabled(self.device, self.enabled)
        torch.set_autocast_dtype(self.device, self.dtype)


@attrs.frozen
class AmbientState:
    """Grad mode and autocast as they were at one moment."""

    grad: bool
    inference: bool
    autocast: tuple[Autocast, ...]
    autocast_cache: bool

    @classmethod
    def capture(cls) -> AmbientState:
        return cls(
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            tuple(Autocast.of(device) for device in _device_types()),
            torch.is_autocast_cache_enabled(),
        )

    def install(self) -> None:
        """Set everything but inference mode, which can only be entered and left in a block."""
        torch.set_grad_enabled(self.grad)
        for autocast in self.autocast:
            autocast.install()
        torch.set_autocast_cache_enabled(self.autocast_cache)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """These modes inside the block, the present ones after it.

        Inference mode is taken for `no_grad`: the tensors that a compiler makes for itself must not be inference
        tensors, which could not be used in a later call made outside that mode.
        """
        present = AmbientState.capture()
        with torch.inference_mode(False):
            try:
                attrs.evolve(self, grad=self.grad and not self.inference).install()
                yield
            finally:
                present.install()


def _device_types() -> tuple[str, ...]:
    accelerator = torch.accelerator.current_accelerator()
    return ("cpu",) if accelerator is None else ("cpu", accelerator.type)
