"""The check of what a release ends: the names that its source gives to the objects of a state."""

from __future__ import annotations

from typing import Any

from stator_variables import release_check_source


class Holder:
    def method(self) -> int:
        return 1


def test_names_of_objects_and_parts_differ() -> None:
    state = Holder().method, Holder()
    written = release_check_source(state, ("a", "a_self"), (1, 0))
    assert written is not None
    source, provided = written
    assert "local_a_self_ = local_a.__self__" in source
    exec(compile(source, "<check>", "exec"), provided)
    check: Any = provided["releases_plain_values"]
    assert not check((3, Holder()))


def test_a_state_of_many_objects_is_not_checked() -> None:
    state = (tuple(Holder() for _ in range(80)),)
    assert release_check_source(state, ("held",), (0,)) is None
