"""The operations of an allocator and a stream that a tree of recordings needs.

Outside of a recording the pool owns nothing: results are plain addresses in it; the tree records
which are alive.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from stator_backends._backend import BoxedRun


class GraphDevice(Protocol):
    """One device with one pool. Tensors are opaque to the tree."""

    def is_tensor(self, value: object) -> bool: ...

    def address(self, tensor: Any) -> int:
        """Return the address of the memory below a tensor: equal for tensors that share it."""
        ...

    def buffer(self, value: Any) -> Any:
        """Return a tensor like `value` in lasting memory outside the pool."""
        ...

    def write(self, buffer: Any, value: Any) -> None:
        """Copy a value into a buffer."""
        ...

    def record(self, run: BoxedRun, inputs: list[Any]) -> tuple[Any, Sequence[Any], Any]:
        """Record a call that allocates in the pool, without running it.

        Returns the recording, its results and the state of the pool at its end. The pool does not
        own the results any more.
        """
        ...

    def replay(self, recording: Any) -> None: ...

    def restore(self, state: Any, live: Sequence[Any], dead: Sequence[int]) -> None:
        """Give the pool a state of before, for the next recording: it owns the results `live`, and
        the addresses `dead` are free."""
        ...

    def release(self, live: Sequence[Any]) -> None:
        """Let the pool own nothing again, after a recording or a failed one."""
        ...

    def alias(self, tensor: Any) -> Any:
        """Return another tensor over the same memory, with a version counter of its own."""
        ...

    def copy(self, tensor: Any) -> Any:
        """Return a copy in memory outside the pool."""
        ...

    def is_used(self, tensor: Any) -> bool:
        """Return True if someone else holds the memory of a tensor."""
        ...

    def move_out(self, tensor: Any) -> Any:
        """Move the memory below a tensor out of the pool, for all who hold it; return a tensor over
        the address in the pool."""
        ...
