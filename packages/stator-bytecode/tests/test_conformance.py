"""The concrete domain passes the kit, and a domain that is wrong about one thing does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from stator_bytecode import DEFAULT, ConcreteDomain, Machine, interpret
from stator_bytecode._concrete._interpreter import interpret_in
from stator_bytecode.conformance import Call, DomainConformance
from stator_bytecode.conformance_program import PROGRAMS, handles, loops


class TestConcreteDomain(DomainConformance):
    @pytest.fixture
    def make_domain(self) -> Callable[[], ConcreteDomain]:
        return ConcreteDomain

    @pytest.fixture
    def call(self) -> Call:
        return interpret


class WrongRemainder(ConcreteDomain):
    def binary(self, operator: str, left: Any, right: Any) -> Any:
        return super().binary("//" if operator == "%" else operator, left, right)


class ForgetsCauses(ConcreteDomain):
    def exception_from(self, value: Any, cause: Any) -> BaseException:
        return super().exception_from(value, None)


@pytest.mark.parametrize(("domain", "program"), [(WrongRemainder, loops), (ForgetsCauses, handles)])
def test_known_bad_domain_fails_the_kit(
    domain: type[ConcreteDomain], program: Callable[[int], Any]
) -> None:
    def call(fn: Callable[..., Any], *args: Any) -> Any:
        return interpret_in(domain(), fn, args, {})

    with pytest.raises(AssertionError):
        DomainConformance().test_program_ends_as_natively(call, program)


def test_known_bad_machine_fails_the_kit() -> None:
    """One for which nothing is ever identical."""

    def call(fn: Callable[..., Any], *args: Any) -> Any:
        return interpret_in(ConcreteDomain(make_machine=_without_identity), fn, args, {})

    failed = 0
    for program in PROGRAMS:
        try:
            DomainConformance().test_program_ends_as_natively(call, program)
        except AssertionError:
            failed += 1
    assert failed


def _without_identity(domain: ConcreteDomain) -> Machine:
    wrong = {
        "IS_OP": lambda machine, frame, instr: frame.stack.__setitem__(slice(-2, None), [False])
    }
    return Machine(domain, DEFAULT.overridden_by(wrong))


def test_a_weakened_test_is_noticed() -> None:
    class Weak(DomainConformance):
        def test_truth_is_a_python_bool(self, make_domain: Any) -> None:
            return None

    with pytest.raises(AssertionError, match="replaces a test"):
        Weak().test_nothing_weakened()
