"""Find installed CPythons of a wanted minor version, wherever this machine keeps them.

A name on ``PATH`` proves nothing (a version manager's shim may refuse to run), so every candidate
is started and its version is read. Candidates, in order: this interpreter, those that the variable
``STATOR_PYTHONS`` names (separated as in ``PATH``), ``pythonX.Y`` anywhere on ``PATH``, then what
an installed ``pyenv`` or ``uv`` lists. Standard library only:
``bootstrap.py`` runs this before anything is installed.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator

SUPPORTED = ("3.11", "3.12", "3.13")
WITH_NEWER_TORCH = ("3.14", "3.15")
"""Supported versions that need a newer torch than the one that CI installs."""
NAMED = "STATOR_PYTHONS"
CURRENT = f"{sys.version_info.major}.{sys.version_info.minor}"


def find(version: str) -> str | None:
    """The path of a working interpreter of ``version`` ("3.12"), or None."""
    return next((path for path in _candidates(version) if _is_version(path, version)), None)


def find_with_torch(version: str, release: str) -> str | None:
    """The path of an interpreter of ``version`` in whose environment a torch of ``release``
    ("2.15") is installed, or None."""
    for path in _candidates(version):
        if _is_version(path, version) and _has_torch(path, release):
            return path
    return None


def _candidates(version: str) -> Iterator[str]:
    yield sys.executable
    yield from filter(None, os.environ.get(NAMED, "").split(os.pathsep))
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found = shutil.which(f"python{version}", path=folder)
        if found:
            yield found
    root = _answer("pyenv", "root")
    if root:
        yield from map(
            str,
            sorted(
                pathlib.Path(root).glob(f"versions/{version}*/bin/python{version}"), reverse=True
            ),
        )
    yield _answer("uv", "python", "find", "--no-python-downloads", version)


def _answer(*command: str) -> str:
    """What a version manager prints; nothing when there is no such manager."""
    if shutil.which(command[0]) is None:
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _is_version(path: str, version: str) -> bool:
    ask = "import sys; print('%s %d.%d' % (sys.implementation.name, *sys.version_info[:2]))"
    return _printed(path, ask) == f"cpython {version}"


def _has_torch(path: str, release: str) -> bool:
    ask = "from importlib.metadata import version; print(version('torch'))"
    return _printed(path, ask).startswith(f"{release}.")


def _printed(path: str, program: str) -> str:
    """What a program prints under this interpreter; nothing when it cannot be started."""
    command = [path, "-c", program]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
