"""Random programs for the whole stack: a grammar that is data, what Hypothesis draws from it, and the check."""

from __future__ import annotations

from integration_tests.fuzzing._check import check
from integration_tests.fuzzing._program import Program, programs

__all__ = ["Program", "check", "programs"]
