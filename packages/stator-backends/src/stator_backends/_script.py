"""Running a file of Python as a module of its own, which leaves no bytecode beside it.

`runpy.run_path` does it, too, but its modules have no loader. CPython 3.15 warns of that wherever a
traceback passes through such a file.
"""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any


def run_file(path: str | Path) -> dict[str, Any]:
    """Run a file and return its names; it is among `sys.modules` as long as it runs."""
    name, place = Path(path).stem, str(path)
    spec = spec_from_file_location(name, place, loader=SourceFileLoader(name, place))
    assert spec is not None  # as there is a loader

    module = module_from_spec(spec)
    code = compile(Path(path).read_bytes(), place, "exec")
    hidden = sys.modules.get(name)
    sys.modules[name] = module
    try:
        exec(code, vars(module))
    finally:
        _put_back(name, hidden)
    return vars(module)


def _put_back(name: str, hidden: Any) -> None:
    if hidden is None:
        sys.modules.pop(name, None)
    else:
        sys.modules[name] = hidden
