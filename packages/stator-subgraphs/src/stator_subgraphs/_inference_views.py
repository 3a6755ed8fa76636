"""Views taken in inference mode.

There `FakeTensorMode` decomposes composite operators (`flatten`, `view_as`, `.mT`) below the layer
that makes views, so that their fakes are no views and require no gradients, unlike the real
results.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from stator_subgraphs._mutation import storage_of

DETACHING = frozenset({"detach", "data"})


def as_views(name: str, made: Any, given: Sequence[Tensor]) -> Any:
    """The result of the operator of this name, whose tensors are views of those given where they
    share memory."""
    if name in DETACHING:
        return made
    if isinstance(made, Tensor):
        return _as_view(made, given)
    return (
        type(made)([as_views(name, item, given) for item in made])
        if type(made) in (tuple, list)
        else made
    )


def _as_view(made: Tensor, given: Sequence[Tensor]) -> Tensor:
    if (
        made.is_inference()
        or made.layout is not torch.strided
        or made._is_view()
        or any(made is one for one in given)
    ):
        return made
    base = next((one for one in given if _may_be_viewed_as(one, made)), None)
    return (
        made if base is None else base.as_strided(made.size(), made.stride(), made.storage_offset())
    )


def _may_be_viewed_as(base: Tensor, made: Tensor) -> bool:
    kinds = [(one.dtype, one.is_conj(), one.is_neg()) for one in (base, made)]
    return not base.is_inference() and kinds[0] == kinds[1] and storage_of(base) == storage_of(made)
