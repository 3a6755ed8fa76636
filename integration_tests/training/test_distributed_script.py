"""The script of the page about several processes: four processes train, two go on from the
checkpoint, and plain PyTorch loads it."""

# mypy: disable-error-code="no-untyped-call"
# torch's functions have no types.

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest
import torch
import torch.distributed as dist

if not dist.is_available():
    pytest.skip("torch was built without distributed", allow_module_level=True)

from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

SCRIPT = pathlib.Path(__file__).parents[2] / "docs" / "how-to" / "train_gpt.py"


def run(processes: int, *options: str) -> tuple[list[float], str]:
    """Run the script; return the losses, and its last line."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command = [*launcher, f"--nproc-per-node={processes}", str(SCRIPT), "--tensor=2", *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    losses = [float(each) for each in re.findall(r"loss ([\d.]+)", done.stdout)]
    return losses, done.stdout.splitlines()[-1]


@pytest.mark.slow
def test_script_trains_and_resumes_as_plainly(tmp_path: pathlib.Path) -> None:
    state = tmp_path / "state"
    where = f"--checkpoint={state}"
    first, line = run(4, "--steps=3", "--backend=aot_eager", where)
    assert line.endswith(" 0 breaks")
    saved = tmp_path / "saved.pt"
    dcp_to_torch_save(state, saved)
    more, _ = run(2, "--steps=2", "--backend=aot_eager", "--resume", where)
    plain, _ = run(4, "--steps=5", "--plain")
    assert len(plain) == 5
    assert first + more == pytest.approx(plain, abs=1e-5)

    spec: Any = importlib.util.spec_from_file_location("train_gpt", SCRIPT)
    script: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    loaded = torch.load(saved, weights_only=False)["model"]
    missing, unexpected = script.GPT().load_state_dict(loaded)
    assert not missing
    assert not unexpected
