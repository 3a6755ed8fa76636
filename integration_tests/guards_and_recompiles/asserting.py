"""Programs with assertions. Not in a test module: there pytest would rewrite the `assert`
statements."""

from __future__ import annotations

from typing import Any

import torch

untyped: Any = torch  # whose checks have no types


def asserts(x: torch.Tensor) -> torch.Tensor:
    assert (x < 5).all(), f"too big: {x}"
    return x + 1


def asserts_a_number(x: torch.Tensor) -> torch.Tensor:
    n = int(x.sum())
    assert n < 5
    return x + n


def asserts_several(x: torch.Tensor) -> torch.Tensor:
    assert x.sum() < 5 and x.min() > 0 and not x.max() > 2.5, "several"  # noqa: PT018
    return x * 2


def raises(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 5:
        raise ValueError(f"bad {x}")
    return x * 2


def raises_deeper(x: torch.Tensor) -> torch.Tensor:
    for limit in (8, 5):
        raises(x - limit + 5)
    return x * 3


def asserts_after_a_write(x: torch.Tensor) -> torch.Tensor:
    x.view(-1).add_(1)
    assert x.sum() < 5, "after"
    x.add_(1)
    return x * 2


def asserts_in_try(x: torch.Tensor) -> Any:
    try:
        assert x.sum() < 5, "caught"
    except AssertionError as error:
        return x - 1, str(error)
    finally:
        x.add_(1)
    return x * 2


def asserts_between_effects(x: torch.Tensor) -> torch.Tensor:
    global reached
    reached = 1
    with torch.no_grad():
        assert x.sum() < 5
    reached = 2
    return x * 2


reached = 0


def checks(x: torch.Tensor) -> torch.Tensor:
    untyped._check_tensor_all(x < 5, lambda: "hm")
    untyped._assert((x < 5).all(), "hm")
    untyped._assert(x.shape[0] < 5, "hm")
    untyped._check(x.shape[0] < 5, lambda: "hm")
    return x * 2


def checks_a_number(x: torch.Tensor) -> torch.Tensor:
    n = int(x.sum())
    untyped._check(n >= 0)
    untyped._check(n < 5, lambda: f"too big {n}")
    return torch.zeros(5)[:n] + x.sum()


def asserts_a_size(x: torch.Tensor) -> torch.Tensor:
    assert x.shape[0] < 8, f"no {x.shape[0]}"
    return x * 2


def asserts_whole(x: torch.Tensor) -> torch.Tensor:
    assert x, "several"
    return x * 2
