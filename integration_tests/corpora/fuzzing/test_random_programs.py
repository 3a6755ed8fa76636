"""Random programs give what plain Python gives: `STATOR_PROGRAMS=100000` runs more of them, each
run the same ones.

Of the programs that run by default a fifth is in the default tier, the rest in the nightly one; a
number that is given runs all of them.
"""

from __future__ import annotations

import os
import pathlib

import pytest

from integration_tests.corpora.fuzzing import changing_program, check, program

PROGRAMS = int(os.environ.get("STATOR_PROGRAMS", "2000"))
CHANGING = int(os.environ.get("STATOR_CHANGING_PROGRAMS", "150"))
FIRST = int(os.environ.get("STATOR_FIRST_PROGRAM", "0"))
SHARDS, CHANGING_SHARDS = (
    max(20, PROGRAMS // 500),
    max(5, CHANGING // 50),
)  # each well within the limit for one test
SAMPLED = [
    pytest.param(shard, marks=[pytest.mark.slow] if shard % 5 else []) for shard in range(SHARDS)
]
CHOSEN = range(SHARDS) if "STATOR_PROGRAMS" in os.environ else SAMPLED


# `finally` of a dying generator
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("shard", CHOSEN)
def test_random_programs_give_what_plain_python_gives(shard: int, tmp_path: pathlib.Path) -> None:
    for number in range(FIRST + shard, FIRST + PROGRAMS, SHARDS):
        check(program(number), tmp_path / "program.py")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("shard", range(CHANGING_SHARDS))
def test_programs_whose_world_changes_between_the_calls(shard: int, tmp_path: pathlib.Path) -> None:
    for number in range(FIRST + shard, FIRST + CHANGING, CHANGING_SHARDS):
        check(changing_program(number), tmp_path / "program.py")
