"""What may draw random numbers, by its name."""

import pytest
import torch
from stator_subgraphs._random import DRAWING

CHOICES = ("_fused_sdp_choice", "_nested_tensor_softmax_with_shape")
"""Tagged, as they are of an attention with dropout; they draw nothing themselves."""


def tagged() -> list[str]:
    found = set()
    for qualified in torch._C._dispatch_get_all_op_names():
        namespace, _, name = qualified.partition("::")
        base, _, overload = name.partition(".")
        operator = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
        if (
            namespace == "aten"
            and operator is not None
            and torch.Tag.nondeterministic_seeded in operator.tags
        ):
            found.add(base)
    return sorted(found - {*CHOICES})


@pytest.mark.parametrize("name", tagged())
def test_all_that_torch_says_draws_may_draw(name: str) -> None:
    assert any(part in name for part in DRAWING)
