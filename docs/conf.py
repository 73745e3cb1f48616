"""The site: these documents, and the API's reference from the docstrings. ``make docs`` builds it into out/site."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import buddysim  # noqa: E402

project = "buddysim"
author = copyright = "the buddysim developers"
release = version = buddysim.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "site"
exclude_patterns = ["examples/**"]
html_theme = "alabaster"
html_theme_options = {"page_width": "64em", "sidebar_width": "14em"}

autosummary_generate = True
autodoc_typehints = "description"
autodoc_default_options = {"members": True, "undoc-members": False, "show-inheritance": False}
napoleon_google_docstring = False
napoleon_use_ivar = True
myst_heading_anchors = 4
# Links to what lies outside of docs/ (the README, the sources) are resolved in a clone; test_commands.py checks them.
suppress_warnings = ["myst.xref_missing", "toc.not_included"]

linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_anchors = False
