"""Sphinx configuration. The build runs the examples and the pictures, and needs no network."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "pictures")]  # gallery_options, house_style
os.environ.setdefault("OMP_NUM_THREADS", "1")  # small models wait for each other's threads

from gallery_options import EXECUTED  # noqa: E402
from house_style import STYLE  # noqa: E402

import skprivacy  # noqa: E402

project = "skprivacy"
author = "the skprivacy developers"
project_copyright = author
release = skprivacy.__version__
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",
]
exclude_patterns = ["_build", "auto_examples/index.rst"]  # gallery.rst has parts

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say more, and signatures stay short
autosummary_generate = False
numpydoc_show_class_members = False

# Pictures of the guide: scripts in pictures/, run here, one style for all.
plot_formats = [("svg", 96)]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_include_source = False
plot_rcparams = STYLE
plot_apply_rcparams = True

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": EXECUTED,
    "ignore_pattern": r"paper_figures\.py$",
    "within_subsection_order": "FileNameSortKey",
    "minigallery_sort_order": "gallery_options.in_order",
    "reset_argv": "gallery_options.arguments_of",
    "reset_modules": ("matplotlib", "gallery_options.prepare"),
    "reset_modules_order": "before",
    "doc_module": ("skprivacy",),
    "reference_url": {"skprivacy": None},
    "backreferences_dir": "auto_examples/backreferences",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 3600,
    "plot_gallery": "True",  # a text, as ``-D plot_gallery=0`` gives one
    "thumbnail_size": (400, 280),
    "matplotlib_animations": False,
    "capture_repr": ("_repr_html_", "__repr__"),
}

html_theme = "pydata_sphinx_theme"
html_title = f"skprivacy {release}"
html_static_path = ["_static"]
html_css_files = ["skprivacy.css"]
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "installation": []}
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}


def setup(app):
    """Crop thumbnails once the gallery is there; take pictures of the page."""
    from gallery_options import crop_thumbnails
    from ui_pictures import take_for_pages

    app.connect("builder-inited", crop_thumbnails, priority=900)
    app.connect("builder-inited", take_for_pages)
