"""One measurement in a process of its own: ``python -m ...real_models.child NAME SIDE`` prints the
figures as JSON."""

from __future__ import annotations

import json
import sys
import warnings

import attrs

from integration_tests.benchmarks.real_models._measure import measure_named
from integration_tests.benchmarks.real_models._optional import make_torchvision_importable
from integration_tests.benchmarks.real_models.workloads import WORKLOADS


def main(name: str, side: str) -> None:
    warnings.simplefilter("ignore")
    workload = WORKLOADS[name]
    if workload.missing:
        sys.exit(f"not installed: {', '.join(workload.missing)}")

    if workload.libraries:
        make_torchvision_importable()
    print(json.dumps(attrs.asdict(measure_named(workload, side))))


if __name__ == "__main__":
    main(*sys.argv[1:])
