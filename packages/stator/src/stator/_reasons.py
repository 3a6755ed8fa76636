"""The meaning of the reasons of graph breaks, and what to try: the pages of
`docs/reference/unsupported`, as they ship with the package."""

from __future__ import annotations

import difflib
import functools
import json
from collections.abc import Mapping
from importlib import resources

import attrs


@attrs.frozen
class ReasonPage:
    """One reason: what was met, why it cannot be captured (may be empty), what to try; in
    Markdown."""

    slug: str
    what: str
    why: str
    remedy: str

    def __str__(self) -> str:
        why = f"Why: {self.why}\n\n" if self.why else ""
        return f"{self.slug}\n\n{self.what}\n\n{why}Try: {self.remedy}"


@functools.cache
def reason_pages() -> Mapping[str, ReasonPage]:
    """Return all pages, by the slug of the reason."""
    text = resources.files("stator").joinpath("reasons.json").read_text(encoding="utf-8")
    return {slug: ReasonPage(slug, **parts) for slug, parts in json.loads(text).items()}


def hint_for(slug: str) -> str:
    """Return what to try for a reason, worded as the hints of errors are; empty without a page."""
    page = reason_pages().get(slug)
    if page is None:
        return ""
    text = " ".join(page.remedy.split()).replace("`", "").rstrip(".")
    return text[0].lower() + text[1:]


def similar_slugs(slug: str) -> list[str]:
    """Return the slugs that a wrong one may stand for."""
    close = difflib.get_close_matches(slug, reason_pages())
    return close or [each for each in reason_pages() if slug in each]
