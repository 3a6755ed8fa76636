"""Settings of the site, which Sphinx makes of the pages as they are: ``nox -s site``.

The source folder is the repository, so that the links between ``docs`` and the READMEs stay in the
site. ``_toc.yml`` has the navigation. Every warning is an error: a link that leads nowhere, or a
page that the navigation does not reach.
"""

from __future__ import annotations

import pathlib
import re
import shutil
from typing import Any

project = "stator"
author = "the authors of stator"
copyright = author
html_title = "stator"

extensions = [
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_external_toc",
    "sphinxcontrib.mermaid",
]
root_doc = "README"
external_toc_path = "docs/_toc.yml"
include_patterns = [
    "*.md",
    "docs/**/*.md",
    "packages/*/README.md",
    "integration_tests/README.md",
    "integration_tests/plugin/README.md",
]
exclude_patterns = ["**/.*", "**/__pycache__", "build"]

myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
# the pages of public names have one name under another, at the same level in each page
suppress_warnings = ["myst.header"]

html_theme = "pydata_sphinx_theme"
html_use_index = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"README": []}

# A link that shows the name of a page's file shows the title of the page on the site.
FILE_NAME_AS_TEXT = re.compile(r"\[[\w./-]+\.md\]\((?=[^)]+\.md\))")
FENCE_WITH_PATH = re.compile(r"^( *)```(py|diff) (\S+)\n", re.MULTILINE)


def prepare(app: Any, page: str, source: list[str]) -> None:
    """Put the path of a file, which how-tos write behind the language, above its text; give links
    the titles of pages."""
    captioned = FENCE_WITH_PATH.sub(r"\1```{code-block} \2\n\1:caption: \3\n\n", source[0])
    source[0] = FILE_NAME_AS_TEXT.sub("[](", captioned)


def name_first_page(app: Any, error: Exception | None) -> None:
    """Serve the README as the first page under the name that web servers look for."""
    if error is None:
        folder = pathlib.Path(app.outdir)
        shutil.copy(folder / "README.html", folder / "index.html")


def setup(app: Any) -> None:
    """Connect the changes above to Sphinx."""
    app.connect("source-read", prepare)
    app.connect("build-finished", name_first_page)
