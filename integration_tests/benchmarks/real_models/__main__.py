"""Measure workloads and print their table, row by row."""

from __future__ import annotations

import sys

from integration_tests.benchmarks.real_models.command import main

if __name__ == "__main__":
    main(sys.argv[1:])
