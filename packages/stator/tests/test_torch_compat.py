"""The releases of torch that stator was tested with, and the warning about another one."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest
from stator import _torch_compat


@pytest.mark.parametrize("release", ["2.13.0+cpu", "2.14.1+cu130", "2.15.0", "2.15.1"])
def test_a_tested_release_is_no_reason_to_warn(release: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _torch_compat.warn_if_untested(release)
    assert not caught


@pytest.mark.parametrize("release", ["2.12.1", "2.16.0a0+git1234", "2.1.3", "2.150.0", "3.13.0"])
def test_another_release_gives_one_warning_that_lists_the_tested_ones(release: str) -> None:
    with pytest.warns(UserWarning, match=r"with torch 2\.13, 2\.14, 2\.15, not with") as caught:
        _torch_compat.warn_if_untested(release)
    assert len(caught) == 1
    assert release in str(caught[0].message)


@pytest.mark.slow
def test_the_import_gives_the_warning() -> None:
    program = "import torch; torch.__version__ = '9.9.9'; import stator; import stator"
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stderr.count("not with torch 9.9.9") == 1
