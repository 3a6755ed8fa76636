"""Results in a JSON file, so that an interrupted run can be continued."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import attrs

from integration_tests.benchmarks.compiled_share._measure import Counts
from integration_tests.benchmarks.compiled_share._processes import Ratios, Share


@attrs.define(eq=False)
class Store:
    """Counts and ratios by workload, in the file at ``path``, and the versions measured."""

    path: pathlib.Path
    versions: dict[str, str] = attrs.field(factory=dict)
    shares: dict[str, Share] = attrs.field(factory=dict)
    ratios: dict[str, Ratios] = attrs.field(factory=dict)

    @classmethod
    def read(cls, path: pathlib.Path) -> Store:
        if not path.exists():
            return cls(path)

        found = json.loads(path.read_text())
        shares = {name: _share(each) for name, each in found["shares"].items()}
        ratios = {name: Ratios(**each) for name, each in found["ratios"].items()}
        return cls(path, found["versions"], shares, ratios)

    def write(self) -> None:
        found = {
            "versions": self.versions,
            "shares": {name: _record(share) for name, share in self.shares.items()},
            "ratios": {name: attrs.asdict(each) for name, each in self.ratios.items()},
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(found, indent=1) + "\n")


def _record(share: Share) -> dict[str, Any]:
    """Return what is kept: a report is of one run."""
    found = attrs.asdict(share)
    del found["report"]
    return found


def _share(found: dict[str, Any]) -> Share:
    counts = {side: Counts(**each) for side, each in found["counts"].items()}
    commit = found.get("commit", "")
    return Share(counts, found["differences"], found["errors"], commit=commit)
