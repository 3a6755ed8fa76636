"""Run every snippet under ``fullgraph=True`` and write the page about it."""

from __future__ import annotations

from integration_tests.corpora.snippets import COLLECTIONS, PAGE, SNIPPETS, page, reason_to_break

if __name__ == "__main__":
    found = {name: reason_to_break(snippet) for name, snippet in SNIPPETS.items()}
    PAGE.write_text(page(COLLECTIONS, {name: reason for name, reason in found.items() if reason}))
