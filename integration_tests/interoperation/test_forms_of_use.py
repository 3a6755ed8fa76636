"""Each form of use gives what eager code and torch.compile give, with no more graphs."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import stator
import torch
from torch.utils import _pytree as pytree

from integration_tests.interoperation import forms_in_programs, forms_of_use
from integration_tests.interoperation.forms_of_use import Compile, Form
from integration_tests.support.counting import Counting

FORMS = forms_of_use.FORMS | forms_in_programs.FORMS
IN_PLACE = forms_of_use.IN_PLACE | forms_in_programs.IN_PLACE


def not_compiled(subject: Any = None, **settings: Any) -> Any:
    return (lambda given: given) if subject is None else subject


def counted(compile: Callable[..., Any]) -> tuple[Compile, Counting]:
    counting = Counting()
    return functools.partial(compile, backend=counting), counting


def results(form: Form, compile: Compile) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return form(compile)


def assert_equal(found: Any, expected: Any) -> None:
    leaves, structure = pytree.tree_flatten(found)
    others, other = pytree.tree_flatten(expected)
    assert structure == other
    for leaf, wanted in zip(leaves, others, strict=True):
        assert type(leaf) is type(wanted)
        if isinstance(leaf, torch.Tensor):
            torch.testing.assert_close(leaf, wanted)
        else:
            assert (leaf == wanted) is True or bool((leaf == wanted).all())


def test_there_are_a_hundred_forms() -> None:
    """None of the two modules replaces a form of the other one by its own."""
    modules = forms_of_use, forms_in_programs
    assert len(FORMS) + len(IN_PLACE) == sum(len(m.FORMS) + len(m.IN_PLACE) for m in modules)
    assert len(FORMS) + len(IN_PLACE) >= 100


RAISES_UNDER_TORCH_COMPILE = {"coroutine_function", "scripted_and_traced_around"}
NATIVELY_UNDER_TORCH_COMPILE = {
    # hooks of the wrapper are not compiled
    "hooks_on_the_compiled_module",
    # a momentum of None, which has one break here
    "batch_norm_updated_by_swa",
}


@pytest.mark.parametrize("name", FORMS)
def test_form_gives_what_eager_code_gives(name: str) -> None:
    ours, counting = counted(stator.compile)
    assert_equal(results(FORMS[name], ours), results(FORMS[name], not_compiled))
    if name not in RAISES_UNDER_TORCH_COMPILE | NATIVELY_UNDER_TORCH_COMPILE:
        theirs, other = counted(torch.compile)
        torch.compiler.reset()
        results(FORMS[name], theirs)
        torch.compiler.reset()
        assert counting.count <= other.count


@pytest.mark.parametrize("name", IN_PLACE)
def test_form_in_place_gives_what_eager_code_gives(name: str) -> None:
    ours, counting = counted(stator.compile_in_place)
    assert_equal(results(IN_PLACE[name], ours), results(IN_PLACE[name], not_compiled))
    theirs, other = counted(lambda module, **settings: module.compile(**settings))
    torch.compiler.reset()
    results(IN_PLACE[name], theirs)
    torch.compiler.reset()
    # torch.compile does not compile the layers of torch alone
    assert counting.count <= other.count or not other.count
