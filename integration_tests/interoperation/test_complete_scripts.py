"""Complete scripts with only the compile call replaced: equal results, and no more graphs than
torch.compile."""

from __future__ import annotations

import functools
import random
import warnings
from typing import Any

import numpy as np
import pytest
import stator
import torch
from torch.utils import _pytree as pytree

from integration_tests.interoperation.complete_scripts import SCRIPTS, Compile
from integration_tests.support.counting import Counting


def not_compiled(subject: Any = None, **settings: Any) -> Any:
    return (lambda given: given) if subject is None else subject


def counted(compile: Any) -> tuple[Compile, Counting]:
    """Return `compile` with a backend that counts, whatever the script names."""
    counting = Counting()

    @functools.wraps(compile)
    def with_backend(*args: Any, **settings: Any) -> Any:
        return compile(*args, **{**settings, "backend": counting})

    return with_backend, counting


def results(name: str, compile: Compile) -> list[Any]:
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytree.tree_leaves(SCRIPTS[name].run(compile))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_script_gives_what_eager_code_gives(name: str) -> None:
    expected = results(name, not_compiled)
    ours, counting = counted(stator.compile)
    torch.testing.assert_close(results(name, ours), expected, rtol=1e-4, atol=1e-5)

    torch.compiler.reset()
    theirs, other = counted(torch.compile)
    results(name, theirs)
    torch.compiler.reset()
    assert 0 < counting.count <= other.count
