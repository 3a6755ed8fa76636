"""Run nox on a machine that has nothing but Python and pip: ``python3 tools/bootstrap.py [arguments
of nox]``.

Makes ``.venv`` once, installs nox into it, and hands the arguments over. With nox at hand, call
``nox`` yourself.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

import interpreters

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOX = "nox>=2025.2.9"
HOME = ROOT / ".venv"


def main(arguments: list[str]) -> int:
    python = HOME / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not _has_nox(python):
        _create(python)
    return subprocess.run([python, "-m", "nox", *arguments], cwd=ROOT, check=False).returncode


def _has_nox(python: pathlib.Path) -> bool:
    """A first run that was interrupted leaves an environment without nox."""
    asked = [str(python), "-c", "import nox"]
    return (
        python.exists() and subprocess.run(asked, capture_output=True, check=False).returncode == 0
    )


def _create(python: pathlib.Path) -> None:
    base = next(filter(None, map(interpreters.find, interpreters.SUPPORTED)), None)
    if base is None:
        sys.exit(
            f"stator needs CPython {', '.join(interpreters.SUPPORTED)}; "
            "none was found on this machine."
        )
    subprocess.run([base, "-m", "venv", "--clear", HOME], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", NOX], check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
