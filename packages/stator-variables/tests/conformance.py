"""What the tracker of a class of objects must do: derive from `TrackerConformance`, override its
fixtures, run pytest.

    class TestDeques(TrackerConformance):
        @pytest.fixture
        def make(self):
            return lambda: deque([1, 2])

        @pytest.fixture
        def change(self):
            return lambda thing: thing.append(3)

        @pytest.fixture
        def read(self):
            return lambda thing: [*thing]

        @pytest.fixture
        def compile(self, compiler):
            return compiler            # gives functions that list their `breaks`

The functions `make`, `change` and `read` are interpreted like the user's. `read` gives something
plain that shows all of an object, and `change` changes what it gives.
"""

import gc
from collections.abc import Callable
from typing import Any

import pytest
from stator_bytecode.conformance import Conformance

__all__ = ["Conformance", "TrackerConformance"]

Make = Callable[[], Any]
Change = Callable[[Any], object]
Compile = Callable[[Callable[..., Any]], Any]

run_natively = gc.isenabled
"""A C function without a handler: a call of it is a break."""


class TrackerConformance(Conformance):
    """Existing objects are read, changed and shared, new ones are made, with breaks at every
    point."""

    @pytest.fixture
    def make(self) -> Make:
        raise NotImplementedError("give a function that makes an object, an equal one each time")

    @pytest.fixture
    def change(self) -> Change:
        raise NotImplementedError("give a function that changes such an object in place")

    @pytest.fixture
    def read(self) -> Change:
        raise NotImplementedError("give a function that shows such an object as something plain")

    @pytest.fixture
    def compile(self) -> Compile:
        raise NotImplementedError("give what compiles a function of Python, with breaks")

    # -- existing objects --------------------------------------------------------------------------
    def test_existing_object_is_read(self, make: Make, read: Change, compile: Compile) -> None:
        compiled = compile(lambda thing: read(thing))
        assert compiled(make()) == compiled(make()) == read(make())
        assert not compiled.breaks

    def test_other_content_gives_another_answer(
        self, make: Make, change: Change, read: Change, compile: Compile
    ) -> None:
        compiled, other = compile(lambda thing: read(thing)), make()
        change(other)
        assert (compiled(make()), compiled(other)) == (read(make()), read(other))
        assert read(make()) != read(other)

    def test_existing_object_is_handed_on(self, make: Make, compile: Compile) -> None:
        thing = make()
        first, (second,) = compile(lambda thing: (thing, [thing]))(thing)
        assert first is second is thing

    def test_change_of_existing_object_is_replayed(
        self, make: Make, change: Change, read: Change, compile: Compile
    ) -> None:
        compiled, plain = compile(lambda thing: change(thing) and None), make()
        change(plain)
        for _ in range(2):
            thing = make()
            compiled(thing)
            assert read(thing) == read(plain)
        assert not compiled.breaks

    def test_changes_around_a_break_are_made_once(
        self, make: Make, change: Change, read: Change, compile: Compile
    ) -> None:
        def fn(thing: Any) -> Any:
            change(thing)
            run_natively()
            change(thing)
            return read(thing)

        thing, plain = make(), make()
        assert compile(fn)(thing) == fn(plain)
        assert read(thing) == read(plain)

    def test_change_in_a_call_that_breaks_is_made_once(
        self, make: Make, change: Change, read: Change, compile: Compile
    ) -> None:
        """The call runs natively, so the change that was traced is undone."""

        def fn(thing: Any) -> Any:
            sorted([0], key=lambda item: (change(thing), run_natively(), item)[2])
            return read(thing)

        thing, plain = make(), make()
        assert compile(fn)(thing) == fn(plain)
        assert read(thing) == read(plain)

    def test_two_arguments_may_be_one_object(
        self, make: Make, change: Change, read: Change, compile: Compile
    ) -> None:
        def fn(left: Any, right: Any) -> Any:
            change(left)
            return read(right)

        compiled, thing, other = compile(fn), make(), make()
        fn(other, other)
        assert compiled(thing, thing) == read(other)
        assert compiled(make(), make()) == read(make())

    # -- new objects -------------------------------------------------------------------------------
    def test_new_object_is_made_once_for_each_call(
        self, make: Make, change: Change, read: Change, compile: Compile
    ) -> None:
        def fn() -> Any:
            thing = make()
            change(thing)
            return thing, thing

        compiled, (plain, _) = compile(fn), fn()
        found = [compiled(), compiled()]
        assert all(first is second and read(first) == read(plain) for first, second in found)
        assert type(found[0][0]) is type(plain)
        assert found[0][0] is not found[1][0]
        assert not compiled.breaks

    def test_new_object_lives_on_behind_a_break(
        self, make: Make, change: Change, read: Change, compile: Compile
    ) -> None:
        def fn() -> Any:
            thing = make()
            run_natively()
            change(thing)
            return read(thing)

        compiled = compile(fn)
        assert compiled() == compiled() == fn()

    def test_change_of_new_object_in_a_call_that_breaks_is_made_once(
        self, make: Make, change: Change, read: Change, compile: Compile
    ) -> None:
        def fn() -> Any:
            thing = make()
            sorted([0], key=lambda item: (change(thing), run_natively(), item)[2])
            return read(thing)

        assert compile(fn)() == fn()
