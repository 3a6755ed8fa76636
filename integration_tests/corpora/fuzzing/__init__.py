"""Random programs for the whole stack: a grammar that is data, a writer that fills it at random,
and the check."""

from __future__ import annotations

from integration_tests.corpora.fuzzing._check import check
from integration_tests.corpora.fuzzing._program import Program, changing_program, program

__all__ = ["Program", "changing_program", "check", "program"]
