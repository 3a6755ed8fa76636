"""The real device: torch's CUDA graphs and a private pool of its caching allocator."""

from collections.abc import Sequence
from typing import Any

import attrs
import torch
from torch import Tensor

from stator_backends._backend import BoxedRun

_C: Any = torch._C


@attrs.define(eq=False)
class CudaDevice:
    """One CUDA device; recordings run on a stream of their own."""

    index: int
    pool: Any = attrs.Factory(torch.cuda.graph_pool_handle)
    stream: Any = attrs.field()

    @stream.default
    def _fresh_stream(self) -> Any:
        return torch.cuda.Stream(self.index)  # type: ignore[no-untyped-call]

    def is_tensor(self, value: object) -> bool:
        return isinstance(value, Tensor)

    def address(self, tensor: Tensor) -> int:
        return tensor.untyped_storage().data_ptr()

    def buffer(self, value: Tensor) -> Tensor:
        return _like(value)

    def write(self, buffer: Tensor, value: Tensor) -> None:
        buffer.copy_(value)

    def record(self, run: BoxedRun, inputs: list[Any]) -> tuple[Any, Sequence[Any], Any]:
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize(self.index)
        with torch.cuda.graph(graph, pool=self.pool, stream=self.stream):
            outputs = run(list(inputs))
        state = _C._cuda_getCheckpointState(self.index, self.pool)
        self.release([value for value in outputs if isinstance(value, Tensor)])
        return graph, outputs, state

    def replay(self, recording: Any) -> None:
        recording.replay()

    def restore(self, state: Any, live: Sequence[Tensor], dead: Sequence[int]) -> None:
        storages = [tensor.untyped_storage()._cdata for tensor in live]
        _C._cuda_setCheckpointPoolState(self.index, state, [], storages)
        for address in dead:
            _C._cuda_cudaCachingAllocator_raw_delete(address)

    def release(self, live: Sequence[Tensor]) -> None:
        storages = {tensor.untyped_storage()._cdata for tensor in live}
        for storage in storages:
            if _C._has_Standard_Deleter(storage):
                _C._free_And_Remove_DeleterFn(storage)

    def alias(self, tensor: Tensor) -> Tensor:
        return tensor.data

    def copy(self, tensor: Tensor) -> Tensor:
        return _like(tensor).copy_(tensor)

    def is_used(self, tensor: Tensor) -> bool:
        storage = tensor.untyped_storage()
        # the tensor itself, and the storage object of this call
        return bool(_C._storage_Use_Count(storage._cdata) > 2)

    def move_out(self, tensor: Tensor) -> Tensor:
        storage: Any = tensor.untyped_storage()
        size, address = storage.nbytes(), storage.data_ptr()
        kept = storage.clone()
        storage.resize_(0)
        storage.resize_(size)
        storage.copy_(kept)
        place = _C._construct_storage_from_data_pointer(address, tensor.device, size)
        empty = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        return empty.set_(place, tensor.storage_offset(), tensor.shape, tensor.stride())


def _like(value: Tensor) -> Tensor:
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
