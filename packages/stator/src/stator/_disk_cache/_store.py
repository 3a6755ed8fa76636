"""The files of the cache: authenticated, written whole or not at all, bounded in size.

    folder/key                   32 random bytes that only the user can read
    folder/<place>/<name>.entry  MAGIC, the code of authentication, the data
    folder/locks/<digits>        an empty file, locked by the process that compiles such an entry

A file is authenticated, with the place and name that it has, before one byte of it is parsed. It is
written beside its name and renamed, so that a process which is killed leaves nothing that another
one reads. Nothing relies on the locks: two that write the same entry write the same data.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import attrs

from stator._disk_cache._process_lock import ProcessLock
from stator.errors import StatorError

MAGIC = b"stator entry 1\n"
_TAG = sha256().digest_size
_KEY_SIZE = 32
_LOCK_DIGITS = 2
"""The digits of a name that decide on its lock: there are no more files than these distinguish."""
_WRITING, _NEW_KEY = ".writing-", ".key-"
ABANDONED = 3600.0
"""The seconds after which nobody writes a file any more that is not renamed."""
DEFAULT_SIZE = 1 << 30
"""The bytes that the entries of a folder may take, unless `STATOR_CACHE_SIZE` is set."""


class Refused(StatorError):
    """A file, or the folder as a whole, that is not read. The message has the reason."""


@attrs.frozen
class Store:
    """A folder of entries."""

    folder: Path
    key: bytes = attrs.field(repr=False)
    limit: int = DEFAULT_SIZE

    @classmethod
    def of(cls, folder: Path) -> Store:
        """Open a folder, which is made if there is none. Raises Refused, or OSError."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        limit = os.environ.get("STATOR_CACHE_SIZE") or str(DEFAULT_SIZE)
        if not limit.isdecimal():
            raise Refused(f"STATOR_CACHE_SIZE is {limit!r}, which is no number of bytes")
        return cls(folder, _key_in(folder), int(limit))

    def names(self, place: str, prefix: str = "") -> list[str]:
        """Return the names of the entries of a place that begin with `prefix`, latest first."""
        folder = self.folder / place
        found = [path for path in _entries(folder) if path.name.startswith(prefix)]
        return [path.stem for path in sorted(found, key=_used, reverse=True)]

    def read(self, place: str, name: str) -> bytes:
        """Return the data of an entry. Raises Refused where it was not written by this user, or was
        changed since."""
        path = self._path(place, name)
        return self._verified(place, name, path.read_bytes())

    def content(self, place: str, name: str) -> bytes:
        """Return an entry as it is in its file, which is not looked at."""
        return self._path(place, name).read_bytes()

    def adopt(self, place: str, name: str, content: bytes) -> None:
        """Write an entry that `content` gave. Raises Refused where it was not of this place and
        name, or another key."""
        self.write(place, name, self._verified(place, name, content))

    def _verified(self, place: str, name: str, content: bytes) -> bytes:
        start = len(MAGIC) + _TAG
        if len(content) < start or not content.startswith(MAGIC):
            raise Refused(f"{name}.entry is damaged: it is no entry of this version")
        data = content[start:]
        if not hmac.compare_digest(content[len(MAGIC) : start], self._tag(place, name, data)):
            raise Refused(f"{name}.entry was changed, or written under another key: it is not read")
        return data

    def use(self, place: str, name: str) -> None:
        """Note that an entry was used now."""
        try:
            os.utime(self._path(place, name))
        except OSError:  # another process has removed it
            return

    def lock(self, name: str) -> ProcessLock:
        """Return the lock for an entry that is to be made, which entries may share."""
        return ProcessLock(self.folder / "locks" / name[:_LOCK_DIGITS])

    def remove(self, place: str, name: str) -> None:
        self._path(place, name).unlink(missing_ok=True)

    def write(self, place: str, name: str, data: bytes) -> None:
        """Write an entry, and remove the ones that were not used for the longest time if the folder
        has become too large."""
        folder = self.folder / place
        folder.mkdir(mode=0o700, exist_ok=True)
        content = MAGIC + self._tag(place, name, data) + data
        write_whole(self._path(place, name), content)
        self._shrink()

    def _path(self, place: str, name: str) -> Path:
        return self.folder / place / f"{name}.entry"

    def _tag(self, place: str, name: str, data: bytes) -> bytes:
        text = f"{place}/{name}\n".encode()
        return hmac.digest(self.key, MAGIC + text + data, "sha256")

    def _shrink(self) -> None:
        sizes: dict[Path, int] = {}
        _sweep(self.folder)
        for folder in self.folder.iterdir():
            if folder.is_dir():
                _sweep(folder)
                sizes.update((path, _size(path)) for path in _entries(folder))

        excess = sum(sizes.values()) - self.limit
        for path in sorted(sizes, key=_used):
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= sizes[path]


def _sweep(folder: Path) -> None:
    """Remove the files that processes were writing when they were killed."""
    latest = time.time() - ABANDONED
    for pattern in (f"{_WRITING}*", f"{_NEW_KEY}*"):
        for path in folder.glob(pattern):
            if _used(path) < latest:
                path.unlink(missing_ok=True)


def _entries(folder: Path) -> Iterator[Path]:
    return folder.glob("*.entry")


def _used(path: Path) -> float:
    """Return the time of the last use of a file; 0 for one that another process has removed."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, readable by the user alone."""
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=_WRITING)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def _key_in(folder: Path) -> bytes:
    """Return the key of a folder. It is made by the first process: others find it whole, as it gets
    its name when it is complete."""
    path = folder / "key"
    if not path.exists():
        handle, beside = tempfile.mkstemp(dir=folder, prefix=_NEW_KEY)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(_KEY_SIZE))
        try:
            os.link(beside, path)
        except FileExistsError:  # another process was faster
            pass
        finally:
            Path(beside).unlink()

    with path.open("rb") as file:
        facts, key = os.fstat(file.fileno()), file.read()
    if hasattr(os, "getuid") and facts.st_uid != os.getuid():
        raise Refused(f"the key in {str(folder)!r} belongs to another user")
    if stat.S_IMODE(facts.st_mode) & 0o077:
        raise Refused(f"the key in {str(folder)!r} can be read by others: remove that folder")
    if len(key) != _KEY_SIZE:
        raise Refused(f"the key in {str(folder)!r} is damaged: remove that folder")
    return key


def folder() -> Path:
    """Return the folder of the cache: `STATOR_CACHE_DIR`, else beside those of other programs."""
    if chosen := os.environ.get("STATOR_CACHE_DIR"):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "stator"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stator"
