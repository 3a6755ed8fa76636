"""The content of a shipped file: entries of one object, and what the backend compiled for them.

    header.json                 settings of the compilation, versions, the name of the object
    entries/<place>/<name>      a file of the cache on disk, as it was written
    artifacts                   the files that Inductor and AOTAutograd keep, where there are any

It is a zip file behind its signature.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from stator._disk_cache._store import Refused
from stator._shipping._signed_file import SigningKey, VerifyingKey, read_signed, write_signed

SUFFIX = ".stator"
_HEADER, _ARTIFACTS, _ENTRIES = "header.json", "artifacts", "entries/"


@attrs.frozen
class ShippedFile:
    """The content of one file. The entries have the places and names that they have in the
    cache, latest first; it does the part of a `Store` that a lookup reads."""

    path: Path
    header: Mapping[str, Any]
    entries: Mapping[tuple[str, str], bytes] = attrs.field(repr=False)
    artifacts: bytes = attrs.field(default=b"", repr=False)

    def write(self, key: SigningKey | None) -> None:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(_HEADER, json.dumps(self.header, indent=1))
            for (place, name), data in self.entries.items():
                archive.writestr(f"{_ENTRIES}{place}/{name}", data)
            if self.artifacts:
                archive.writestr(_ARTIFACTS, self.artifacts)
        write_signed(self.path, stream.getvalue(), key)

    @classmethod
    def of(cls, path: Path, key: VerifyingKey | None) -> ShippedFile:
        """Raises Refused, or OSError."""
        stream = io.BytesIO(read_signed(path, key))
        entries: dict[tuple[str, str], bytes] = {}
        with zipfile.ZipFile(stream) as archive:
            names = archive.namelist()
            for each in names:
                if each.startswith(_ENTRIES):
                    place, _, name = each.removeprefix(_ENTRIES).partition("/")
                    entries[place, name] = archive.read(each)
            header = json.loads(archive.read(_HEADER))
            artifacts = archive.read(_ARTIFACTS) if _ARTIFACTS in names else b""
        return cls(path, header, entries, artifacts)

    # -- as a lookup reads it ----------------------------------------------------------------------
    def names(self, place: str, prefix: str = "") -> list[str]:
        return [name for at, name in self.entries if at == place and name.startswith(prefix)]

    def read(self, place: str, name: str) -> bytes:
        if (data := self.entries.get((place, name))) is None:
            raise Refused(f"{self.path.name} has no {name}")
        return data

    def use(self, place: str, name: str) -> None:
        """Do nothing: no entry is removed from a file."""
