"""Code that is installed in this environment, as opposed to that of the program."""

import os
import sysconfig
from pathlib import Path

import torch

_PATHS = {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}
_PATHS |= {str(Path(torch.__file__).parents[1])}
_FOLDERS = tuple(path + os.sep for path in _PATHS)


def is_installed(filename: str) -> bool:
    """Return True for a file of the standard library, or of an installed distribution."""
    return filename.startswith(_FOLDERS)
