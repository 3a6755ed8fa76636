"""The kit that a Machine and its Domain must pass: small programs, run plainly and through them.

Derive from `DomainConformance`, and give the two fixtures:

    class TestMyDomain(DomainConformance):
        @pytest.fixture
        def make_domain(self): return MyDomain

        @pytest.fixture
        def call(self): return my_interpreter  # call(fn, *args) returns or raises as fn(*args) does
"""

import operator
from collections.abc import Callable
from typing import Any

import pytest

from stator_bytecode._machine._domain import Domain
from stator_bytecode.conformance_program import PROGRAMS, recurses
from stator_bytecode.errors import Unsupported

__all__ = ["Call", "Conformance", "DomainConformance"]

Call = Callable[..., Any]


class Conformance:
    """The base of every kit: a subclass may xfail a test, never weaken it."""

    def test_nothing_weakened(self) -> None:
        for kit in [cls for cls in type(self).__mro__ if Conformance in cls.__bases__]:
            for name, original in vars(kit).items():
                mine = getattr(type(self), name)
                if not name.startswith("test_") or mine is original:
                    continue
                marks = {mark.name: mark for mark in getattr(mine, "pytestmark", ())}
                assert "xfail" in marks, f"{name} replaces a test of {kit.__name__}"
                assert marks["xfail"].kwargs.get("reason"), f"{name} is xfailed without a reason"


class DomainConformance(Conformance):
    """The requirements on a Domain and the Machine that runs over it."""

    deepest = 5000  # calls inside each other

    @pytest.fixture
    def make_domain(self) -> Callable[[], Domain]:
        raise NotImplementedError("give a function that makes a Domain")

    @pytest.fixture
    def call(self) -> Call:
        raise NotImplementedError(
            "give a function that runs fn(*args) through the Machine under test"
        )

    @pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
    def test_program_ends_as_natively(self, call: Call, program: Callable[[int], Any]) -> None:
        assert _ending(call, program, 4) == _ending(operator.call, program, 4)

    def test_calls_do_not_recurse_natively(self, call: Call) -> None:
        assert call(recurses, self.deepest) == self.deepest

    def test_every_operation_is_there(self, make_domain: Callable[[], Domain]) -> None:
        domain = make_domain()
        wanted = [name for name in vars(Domain) if not name.startswith("_")]
        assert [name for name in wanted if not callable(getattr(domain, name, None))] == []

    def test_a_mark_can_be_rolled_back_to_twice(self, make_domain: Callable[[], Domain]) -> None:
        domain = make_domain()
        mark = domain.mark()
        domain.rollback(mark)
        domain.rollback(mark)

    def test_what_cannot_be_captured_is_no_exception_of_the_program(
        self, make_domain: Callable[[], Domain]
    ) -> None:
        assert make_domain().as_raised(Unsupported("some-reason")) is None

    def test_truth_is_a_python_bool(self, make_domain: Callable[[], Domain]) -> None:
        domain = make_domain()
        assert domain.truth(domain.constant(3)) is True
        assert domain.truth(domain.from_bool(False)) is False
        assert domain.is_none(domain.constant(None)) is True


def _ending(call: Call, program: Callable[[int], Any], argument: int) -> Any:
    try:
        return call(program, argument)
    except Exception as error:  # the program's own, which is compared
        return type(error), str(error)
