"""Parts of torch.func whose own Python iterates over sets, where the order makes no difference."""

from __future__ import annotations

from typing import Any


def untie_named_tensors(module: Any, given: Any) -> Any:
    """`_untie_named_tensors_map(module, given)`: what is given for one of several names of a tensor holds for all."""
    tied: Any = {}
    members = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    for name, tensor in members:
        tied.setdefault(tensor, {})[name] = None
    found = given.copy()
    for names in tied.values():
        named = [name for name in names if name in given]
        if len(names) > 1 and named:
            if len(named) > 1:
                raise NotImplementedError
            for name in names:
                found[name] = given[named[0]]
    return found
