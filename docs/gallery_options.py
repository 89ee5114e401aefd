"""How the gallery runs the examples: with which arguments, from where, in which order."""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from PIL import Image
from tqdm import tqdm

EXAMPLES = Path(__file__).parents[1] / "examples"

# What is shown first; examples that are not listed come after these.
ORDER = [
    "pipelines",
    "whole_table",
    "choosing_epsilon",
    "several_secrets",
    "spark_table",
    "quickstart",
    "face_value",
    "enough_rows",
    "parity_in_practice",
    "large_data",
    "which_mechanism",
    "correlation_remover",
    "figure_1",
    "figure_2",
    "figure_3",
]

# Without Spark or Java, the example with Spark is shown but not run.
HAS_SPARK = find_spec("pyspark") and (shutil.which("java") or os.environ.get("JAVA_HOME"))
EXECUTED = r"\.py$" if HAS_SPARK else r"(?<!spark_table)\.py$"

# The paper's figures are means over 100 joints; here a few have to do.
FEW_JOINTS = ["--joints", "2", "--jobs", "1"]
ARGUMENTS = {"figure_1": FEW_JOINTS, "figure_2": FEW_JOINTS}

# Notebooks write nothing; the others write files, to a folder that git ignores.
WRITING = {"figure_1", "figure_2", "figure_3", "which_mechanism", "correlation_remover"}

# Figures of several panels cannot be read as a thumbnail: the first panel stands for them. The box
# is given in shares: left, top, right, bottom.
FIRST_PANELS = {
    "figure_1": (0, 0.1, 1 / 3, 1),
    "figure_2": (0, 0.05, 1 / 3, 0.5),
    "figure_3": (0, 0.1, 1 / 3, 1),
    "which_mechanism": (0, 0.07, 0.325, 1),
}


def arguments_of(gallery_conf, script_vars):
    """Return the command line of an example, without its name."""
    name = Path(script_vars["src_file"]).stem
    output = ["--output", "output"] if name in WRITING else []  # beside the examples
    return [*ARGUMENTS.get(name, []), *output]


def prepare(gallery_conf, filename):
    """Let an example import its neighbours, as a script can, and keep progress bars off pages."""
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    tqdm.__init__ = _start_silently


_start = tqdm.__init__


def _start_silently(bar, *arguments, **options):
    _start(bar, *arguments, **options | {"disable": True})


def in_order(path):
    """Return the key that sorts examples."""
    name = Path(path).stem
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def crop_thumbnails(app):
    """Draw the thumbnails of wide figures anew, from their first panels, if examples were run."""
    if not app.config.sphinx_gallery_conf["plot_gallery"]:
        return
    images = Path(app.srcdir, "auto_examples", "images")
    width, height = app.config.sphinx_gallery_conf["thumbnail_size"]
    for name, (left, top, right, bottom) in FIRST_PANELS.items():
        with Image.open(images / f"sphx_glr_{name}_001.png") as figure:
            x, y = figure.size
            panel = figure.convert("RGB").crop((left * x, top * y, right * x, bottom * y))
        panel.thumbnail((width, height), Image.Resampling.LANCZOS)
        framed = Image.new("RGB", (width, height), "white")
        framed.paste(panel, ((width - panel.width) // 2, (height - panel.height) // 2))
        framed.save(images / "thumb" / f"sphx_glr_{name}_thumb.png")
