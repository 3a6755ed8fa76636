"""One measurement in a process of its own: ``python -m ...compiled_share.child KIND NAME SIDE
FILE`` prints its figures as JSON and writes results of calls to the file."""

from __future__ import annotations

import json
import logging
import sys
import warnings

import attrs
import torch

from integration_tests.benchmarks.compiled_share._inductor import measure_times
from integration_tests.benchmarks.compiled_share._measure import measure
from integration_tests.benchmarks.compiled_share.workloads import WORKLOADS
from integration_tests.benchmarks.real_models._optional import make_torchvision_importable


def main(kind: str, name: str, side: str, results: str) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    workload = WORKLOADS[name]
    if workload.missing:
        sys.exit(f"not installed: {', '.join(workload.missing)}")

    if workload.libraries:
        make_torchvision_importable()
    if kind == "times":
        print(json.dumps(attrs.asdict(measure_times(workload, side))))
        return

    measured = measure(workload, side)
    torch.save((measured.results, measured.report), results)
    print(json.dumps(attrs.asdict(measured.counts)))


if __name__ == "__main__":
    main(*sys.argv[1:])
