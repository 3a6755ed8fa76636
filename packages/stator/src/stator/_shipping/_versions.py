"""The packages of stator as they are installed, wherever and whenever that was."""

from __future__ import annotations

import functools
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from stator._disk_cache._fingerprint import PACKAGES


@functools.cache
def content_of_packages() -> str:
    """Return a digest of all modules of these packages."""
    found = sha256()
    for name in PACKAGES:
        spec = find_spec(name)
        folder = Path(str(getattr(spec, "origin", None))).parent
        for path in sorted(folder.rglob("*.py")):
            found.update(f"{name}/{path.relative_to(folder)}\n".encode())
            found.update(path.read_bytes())
    return found.hexdigest()[:32]
