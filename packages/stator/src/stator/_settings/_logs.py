"""Loggers, one for each subject of a compilation, and the ways to switch them on.

    STATOR_LOGS="graph_breaks,+guards" python train.py      # `+`: with details, `-`: errors only
    STATOR_LOGS_OUT=compile.log                             # in a file as well
    stator.set_logs(recompiles=True, file="compile.log")    # the same from Python
    logging.getLogger("stator.graph_breaks").setLevel(logging.INFO)

All are off at first. Records are made by compilations only, never by a call that has an entry. The
subjects have the names of torch's artifacts; where torch has one switched on (`TORCH_LOGS`), its
logger gets the record as well.
"""

import difflib
import logging
import os
from collections.abc import Callable, Mapping
from typing import TypedDict, Unpack

from torch._logging._internal import getArtifactLogger

from stator.errors import InvalidOption, InvalidUse

SUBJECTS = {
    "graph": "each graph as a list of its nodes",
    "graph_code": "each graph as Python code",
    "guards": "the guards of each entry; `+`: as the code that checks them",
    "recompiles": "why no entry served a call; `+`: of each entry",
    "graph_breaks": "each graph break; `+`: with the calls around it",
    "bytecode": "the generated source of each entry",
    "dynamic": "sizes and numbers that are symbols",
    "perf_hints": "what runs uncompiled, why and where",
}
"""The subjects, each with the content of its records."""
ROOT = logging.getLogger("stator")
LOGGERS = {name: logging.getLogger(f"stator.{name}") for name in SUBJECTS}
FORMAT = "%(levelname).1s %(asctime)s %(name)s] %(message)s"

# `dynamic` is no artifact of torch: its `ShapeEnv` logs that itself
_OF_TORCH = {
    name: getArtifactLogger("torch.stator", name) for name in SUBJECTS if name != "dynamic"
}
_handlers: list[logging.Handler] = []


class Levels(TypedDict, total=False):
    """The subjects as keywords: True, False, or a level of `logging`."""

    all: bool | int
    graph: bool | int
    graph_code: bool | int
    guards: bool | int
    recompiles: bool | int
    graph_breaks: bool | int
    bytecode: bool | int
    dynamic: bool | int
    perf_hints: bool | int


def set_logs(*, file: str | os.PathLike[str] | None = None, **levels: Unpack[Levels]) -> None:
    """Switch the given subjects on and all others off; records go to stderr, and into `file`.

    True is `logging.INFO`; `logging.DEBUG` adds details. As with torch, the environment variable
    STATOR_LOGS takes precedence: where it is set, a call has no effect, and a warning is logged.
    """
    if "STATOR_LOGS" in os.environ:
        ROOT.warning("set_logs has no effect: STATOR_LOGS is set")
        return
    _configure({name: _level(name, given) for name, given in levels.items()}, file)


def emit(subject: str, text: Callable[[], str], details: Callable[[], str] | None = None) -> None:
    """Log a record, whose text is made if it is logged; `details` are added under
    `logging.DEBUG`."""
    for loggers, level in ((LOGGERS, logging.INFO), (_OF_TORCH, logging.DEBUG)):
        logger = loggers.get(subject)
        if logger is None or not logger.isEnabledFor(level):
            continue
        more = details() if details is not None and logger.isEnabledFor(logging.DEBUG) else ""
        logger.log(level, "%s", f"{text()}\n{more}" if more else text())


def _level(name: str, given: object) -> int:
    if not isinstance(given, int):
        expected = "expected True, False or a level of logging"
        raise InvalidUse(f"{name}={given!r} is no level", expected)
    if isinstance(given, bool):
        return logging.INFO if given else logging.WARNING
    return given


def _configure(levels: Mapping[str, int], file: str | os.PathLike[str] | None) -> None:
    for name in levels:
        _check_name(name)
    for handler in _handlers:
        ROOT.removeHandler(handler)
        handler.close()
    _handlers.clear()

    ROOT.setLevel(levels.get("all", logging.WARNING))
    for name, logger in LOGGERS.items():
        logger.setLevel(levels.get(name, logging.NOTSET))
    if levels:
        _add(logging.StreamHandler())
    if file is not None:
        _add(logging.FileHandler(file))
    ROOT.propagate = not _handlers


def _add(handler: logging.Handler) -> None:
    handler.setFormatter(logging.Formatter(FORMAT))
    ROOT.addHandler(handler)
    _handlers.append(handler)


def log_into(file: str) -> None:
    """Let records go into a file as well, whose name is a setting of torch."""
    path = os.path.abspath(file)
    if all(getattr(handler, "baseFilename", "") != path for handler in _handlers):
        _add(logging.FileHandler(path))


def _check_name(name: str) -> None:
    known = ("all", *SUBJECTS)
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        guess = f"did you mean {close[0]!r}? " if close else ""
        described = "".join(f"\n  {each}: {text}" for each, text in SUBJECTS.items())
        raise InvalidOption(f"no logs are called {name!r}", f"{guess}there are:{described}", name)


_LEVELS = {"+": logging.DEBUG, "-": logging.ERROR}


def _from_environment() -> None:
    names = os.environ.get("STATOR_LOGS", "").replace(" ", "")
    parts = [part for part in names.split(",") if part]
    levels = {part.lstrip("+-"): _LEVELS.get(part[0], logging.INFO) for part in parts}
    _configure(levels, os.environ.get("STATOR_LOGS_OUT"))


_from_environment()
