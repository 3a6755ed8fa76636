"""`python -m stator doctor`: what matters in this environment, and what to mend."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import stator_backends
import torch

from stator import _torch_compat
from stator._command_line._command import Command

EXAMPLES = """examples:
  python -m stator doctor
  python -m stator doctor --json

The exit code is 1 if something has to be mended.
"""

_LAYERS = ("backends", "subgraphs", "variables", "guards", "bytecode")
DISTRIBUTIONS = ("stator", *(f"stator-{layer}" for layer in _LAYERS))
PYTHON = ((3, 11), (3, 15))
"""The first and the last version of CPython that is supported."""


@attrs.frozen
class Finding:
    """One line of the diagnosis; `remedy` is empty if all is well."""

    subject: str
    state: str
    remedy: str = ""

    def __str__(self) -> str:
        mark = "!" if self.remedy else " "
        text = f"{mark} {self.subject}: {self.state}"
        return f"{text}\n    try: {self.remedy}" if self.remedy else text


def findings() -> Iterator[Finding]:
    """Yield what was found, in the order in which it is shown."""
    yield from _versions()
    yield from _compilers()
    yield _cache()
    yield from _environment()


def versions() -> list[str]:
    """Return the versions of all that is involved."""
    found = [f"{name} {_version(name)}" for name in DISTRIBUTIONS]
    found += [f"torch {_torch_compat.RELEASE}", f"Python {platform.python_version()}"]
    return [*found, f"backends: {', '.join(stator_backends.list_backends())}"]


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed as a distribution)"


def _versions() -> Iterator[Finding]:
    for name in DISTRIBUTIONS:
        yield Finding(name, _version(name))

    first, last = PYTHON
    is_supported = platform.python_implementation() == "CPython"
    is_supported &= first <= sys.version_info[:2] <= last
    remedy = "" if is_supported else f"use CPython {_dotted(first)} to {_dotted(last)}"
    yield Finding(
        "Python", f"{platform.python_implementation()} {platform.python_version()}", remedy
    )

    tested = ", ".join(_torch_compat.TESTED)
    remedy = "" if _torch_compat.is_tested() else f"install a tested release of torch: {tested}"
    yield Finding("torch", _torch_compat.RELEASE, remedy)

    yield Finding("NumPy", _version("numpy"))
    yield Finding("backends", ", ".join(stator_backends.list_backends()))


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _compilers() -> Iterator[Finding]:
    wanted = [os.environ["CXX"]] if "CXX" in os.environ else ["g++", "clang++", "c++"]
    found = next((path for path in map(shutil.which, wanted) if path), None)
    if found is not None:
        yield Finding("C++ compiler", found)
    else:
        remedy = "install g++ or clang++, or set CXX; backend='aot_eager' needs none"
        yield Finding("C++ compiler", f"none ({', '.join(wanted)}): Inductor needs one", remedy)
    folder = str(Path(torch.__file__).parent)
    if " " in folder:
        remedy = "install torch into a folder without spaces; backend='aot_eager' needs none"
        yield Finding("folder of torch", f"{folder}: Inductor does not quote it", remedy)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    yield Finding("CUDA device", device)


def _cache() -> Finding:
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    folder = Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR") or default_cache_dir())
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    state = str(folder) if folder.exists() else f"{folder} (not there yet)"
    if os.access(existing, os.W_OK):
        return Finding("Inductor's cache", state)
    return Finding(
        "Inductor's cache", f"{state} cannot be written", "set TORCHINDUCTOR_CACHE_DIR to a folder"
    )


def _environment() -> Iterator[Finding]:
    for name, remedy in _SWITCHES.items():
        value = os.environ.get(name, "")
        if value not in ("", "0"):
            yield Finding(name, value, remedy)
    if sys.gettrace() is not None:
        yield Finding("sys.settrace", "set", "nothing is compiled under a tracing debugger")


_SWITCHES = {
    "TORCH_COMPILE_DISABLE": "unset it: nothing is compiled while it is set",
    "TORCHDYNAMO_DISABLE": "unset it: nothing is compiled while it is set",
}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the findings as JSON")


def _run(given: argparse.Namespace) -> int:
    found = list(findings())
    if given.json:
        print(json.dumps([attrs.asdict(each) for each in found], indent=2))
    else:
        print("\n".join(map(str, found)))
    return 1 if any(each.remedy for each in found) else 0


DOCTOR = Command(
    "doctor",
    "show versions, compilers and caches, and what to mend",
    EXAMPLES,
    _add_arguments,
    _run,
)
