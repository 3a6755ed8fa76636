"""Results by interpreter, kept in a JSON file so that a run can be continued, or made for one
interpreter.

The page is written from this file, so that a run under one interpreter leaves the tables of the
others as they are.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Any

import attrs

from integration_tests.benchmarks.real_models._processes import Measured, Place, figures_of

_VERSIONS = """
import importlib.metadata, platform
print(platform.python_version(), importlib.metadata.version("torch"))
"""


@attrs.frozen
class Environment:
    """The versions that one set of results belongs to."""

    python: str
    torch: str

    @classmethod
    def of(cls, place: Place) -> Environment:
        done = subprocess.run(
            [place.python, "-c", _VERSIONS], capture_output=True, text=True, check=True
        )
        return cls(*done.stdout.split())


@attrs.define(eq=False)
class Results:
    """What was measured under one interpreter."""

    torch: str
    workloads: dict[str, Measured] = attrs.field(factory=dict)


@attrs.define(eq=False)
class Store:
    """The results of every interpreter, by its version, in the file at ``path``."""

    path: pathlib.Path
    results: dict[str, Results] = attrs.field(factory=dict)

    @classmethod
    def read(cls, path: pathlib.Path) -> Store:
        if not path.exists():
            return cls(path)
        return cls(
            path,
            {python: _results(found) for python, found in json.loads(path.read_text()).items()},
        )

    def of(self, environment: Environment) -> Results:
        """Return the results of an interpreter, empty ones if it has none with this torch."""
        found = self.results.get(environment.python)
        if found is None or found.torch != environment.torch:
            found = self.results[environment.python] = Results(environment.torch)
        return found

    def write(self) -> None:
        found = {python: attrs.asdict(results) for python, results in sorted(self.results.items())}
        self.path.write_text(json.dumps(found, indent=1) + "\n")


def _results(found: dict[str, Any]) -> Results:
    return Results(
        found["torch"], {name: _measured(each) for name, each in found["workloads"].items()}
    )


def _measured(found: dict[str, Any]) -> Measured:
    figures = {
        side: list(map(figures_of, processes)) for side, processes in found["figures"].items()
    }
    return Measured(found["name"], figures, found["errors"])
