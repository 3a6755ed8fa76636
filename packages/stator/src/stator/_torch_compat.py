"""All that depends on the release of torch, and the releases that stator was tested with.

The other modules of this package use these names and compare no versions. What is listed here is on
`docs/reference/versions.md`, too.
"""

from __future__ import annotations

import warnings

import torch

RELEASE = str(torch.__version__)
"""The installed release, with the suffix of its build: `2.13.0+cpu`."""

BUILD = f"{RELEASE} {torch.version.git_version}"
"""The release and the commit that it was built of: for what is written for later processes."""

TESTED = ("2.13", "2.14", "2.15")
"""Releases whose runs of the tests are on `docs/reference/versions.md`."""


def is_tested(release: str = RELEASE) -> bool:
    return ".".join(release.split(".")[:2]) in TESTED


def warn_if_untested(release: str = RELEASE) -> None:
    """Issue one warning that lists the tested releases; nothing else depends on it."""
    if not is_tested(release):
        warnings.warn(
            f"stator was tested with torch {', '.join(TESTED)}, not with torch {release}: "
            "options={'oracle': True} compares the results of a program with plain Python's",
            stacklevel=2,
        )
