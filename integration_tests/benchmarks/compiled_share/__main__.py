"""Measure workloads, print their rows, and write the page."""

from __future__ import annotations

import sys

from integration_tests.benchmarks.compiled_share.command import main

if __name__ == "__main__":
    main(sys.argv[1:])
