"""A lock between processes, so that of several which lack an entry one compiles it.

It is a record lock: the system releases it when the process ends, however that happens, and a
forked child does not inherit it. A process that holds one takes no other, so no two processes wait
for each other. The file has the id of the process: none waits for one that is stopped, as by
SIGSTOP or in a debugger, and none for longer than `LONGEST`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import attrs

LONGEST = 600.0
"""The seconds after which a process compiles what another one is still compiling."""
LONGEST_FOR_STOPPED = 1.0
"""The same where the other process is stopped: a profiler stops one for a moment."""
_PAUSE = 0.02
_ONE = threading.Lock()
"""Held by the thread that has the lock of this process: such locks exclude no other thread."""


@attrs.define(eq=False)
class ProcessLock:
    """The lock of one file, which is made if there is none."""

    path: Path
    _handle: int = -1

    def acquire(self, longest: float = LONGEST) -> bool:
        """Wait for the lock; return True if this process has it now."""
        if not _ONE.acquire(blocking=False):
            return False
        is_taken = False

        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            is_taken = _take(self._handle, time.monotonic() + longest)

            if is_taken:
                os.ftruncate(self._handle, 0)
                os.write(self._handle, str(os.getpid()).encode())
        except OSError:  # a file system without locks
            pass
        finally:
            if not is_taken:
                self._close()
        return is_taken

    def release(self) -> None:
        if self._handle >= 0:
            self._close()

    def _close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)  # which releases the lock
            self._handle = -1
        _ONE.release()


def _take(handle: int, end: float) -> bool:
    if sys.platform == "win32":
        return False
    import fcntl  # which Windows does not have

    running = time.monotonic()

    while True:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            now = time.monotonic()
            if not _is_stopped(os.pread(handle, _LONGEST_ID, 0)):
                running = now
            if now > end or now - running > LONGEST_FOR_STOPPED:
                return False
            time.sleep(_PAUSE)
        else:
            return True


_LONGEST_ID = 20
"""The digits of a process id, and more."""


def _is_stopped(process: bytes) -> bool:
    """Return True for the id of a process that is seen to be stopped. Where none can be seen, as on
    another machine or without `/proc`, it is taken to run."""
    try:
        facts = Path(f"/proc/{int(process)}/stat").read_text()
    except (OSError, ValueError):
        return False
    _, _, behind_name = facts.rpartition(")")
    state, *_ = behind_name.split()
    return state in ("T", "t")
