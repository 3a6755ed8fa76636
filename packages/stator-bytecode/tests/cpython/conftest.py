"""Makes this folder's modules importable by name, for its tests and for the report."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
