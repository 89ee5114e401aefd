"""Sphinx configuration."""

import skprivacy

project = "skprivacy"
author = "the skprivacy developers"
release = skprivacy.__version__
extensions = ["sphinx.ext.autodoc", "numpydoc"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
