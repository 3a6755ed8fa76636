"""Random programs give what plain Python gives: `STATOR_PROGRAMS=100000` runs more of them, each run the same ones."""

from __future__ import annotations

import os
import pathlib

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase

from integration_tests.fuzzing import Program, check, programs

PROGRAMS = int(os.environ.get("STATOR_PROGRAMS", "420"))
FIRST = int(os.environ.get("STATOR_FIRST_SEED", "0"))
SHARDS = 14

SETTINGS = hypothesis.settings(
    max_examples=max(1, PROGRAMS // SHARDS),
    database=None,
    deadline=None,
    print_blob=False,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # a program that was made smaller may never end
)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # `finally` of a dying generator
@pytest.mark.parametrize("shard", range(SHARDS))
def test_random_programs_give_what_plain_python_gives(shard: int, tmp_path: pathlib.Path) -> None:
    @hypothesis.seed(FIRST + shard)
    @SETTINGS
    @hypothesis.given(programs())
    def same(program: Program) -> None:
        check(program, tmp_path / "program.py")

    same()
