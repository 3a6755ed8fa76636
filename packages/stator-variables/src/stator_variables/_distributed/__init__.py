"""Captures of `torch.distributed.tensor`: placements, meshes, and what DTensors do beyond tensors.

`torch.distributed.tensor` takes a second to import, so its functions are keys by their names.
"""
