"""A profiler range, without the annotations for TorchScript that torch writes into its `__init__`."""

from __future__ import annotations

from typing import Any


def initialise_range(self: Any, name: str, args: str | None = None) -> None:
    """`torch.profiler.record_function.__init__`."""
    self.name = name
    self.args = args
    self.run_callbacks_on_exit = True
    self.record = None
    self._cupti_monitor_external_id = None
