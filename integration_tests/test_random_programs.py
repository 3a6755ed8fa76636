"""Random programs give what plain Python gives: `STATOR_PROGRAMS=100000` runs more of them, each run the same ones."""

from __future__ import annotations

import os
import pathlib

import pytest

from integration_tests.fuzzing import check, program

PROGRAMS = int(os.environ.get("STATOR_PROGRAMS", "2000"))
FIRST = int(os.environ.get("STATOR_FIRST_PROGRAM", "0"))
SHARDS = 20


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # `finally` of a dying generator
@pytest.mark.parametrize("shard", range(SHARDS))
def test_random_programs_give_what_plain_python_gives(shard: int, tmp_path: pathlib.Path) -> None:
    for number in range(FIRST + shard, FIRST + PROGRAMS, SHARDS):
        check(program(number), tmp_path / "program.py")
