"""Which settings do I need: one question with three answers, then five with yes or no."""

import matplotlib.pyplot as plt
from house_style import QUIET, RELEASED, SENSITIVE, USEFUL
from matplotlib.patches import FancyBboxPatch

USES = [
    ("people read it,\nvalue by value", 'utility="distortion"'),
    ("a model predicts\none column from it", 'utility="target"'),
    ("statistics or models,\nnot known yet", 'utility="mutual_information"'),
]
QUESTIONS = [
    (
        "Should the promise hold for people\nwho are not in the table?",
        "confidence=0.95",
        "confidence=None",
    ),
    ("Are several columns private?", 'epsilon={"sex": .005, "age": .05}', "epsilon=0.02"),
    ("Must a column stay as it is?", 'beside=["region"], or remainder', "it is left out"),
    ("Will the same rows\nbe released again?", "record_ids=..., secret_key=...", "fresh noise"),
    ("Must models treat groups alike?", 'measure="parity", scope="average"', 'measure="kl"'),
]
STEP = 9.2


def box(axis, x, y, width, text, color, height=6.8, **style):
    """Draw a text in a box around a point."""
    corner = x - width / 2, y - height / 2
    shape = "round,pad=0,rounding_size=1.2"
    axis.add_patch(FancyBboxPatch(corner, width, height, shape, fc="white", ec=color, lw=1.5))
    axis.text(x, y, text, ha="center", va="center", linespacing=1.15, **style)


def arrow(axis, start, end, text="", color=QUIET, **at):
    """Draw an arrow with a word at it."""
    axis.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": color, "lw": 1.4})
    if text:
        x, y = (a + b for a, b in zip(at["at"], start, strict=True))
        axis.text(x, y, text, color=color, fontsize=9.5, ha="center", va="center")


code = {"family": "monospace", "fontsize": 9.2}
figure, axis = plt.subplots(figsize=(7.7, 7.2))
axis.set(xlim=(-0.5, 100.5), ylim=(5, 84))
axis.axis("off")
box(axis, 50, 80, 44, "What will the release be used for?", SENSITIVE, weight="bold")
for x, (use, setting) in zip((16.5, 50, 83.5), USES, strict=True):
    arrow(axis, (50 + (x - 50) * 0.5, 76.4), (x, 71.8))
    box(axis, x, 68, 31, use, USEFUL, 7.4)
    arrow(axis, (x, 64.3), (x, 61.6))
    box(axis, x, 59, 33 if x > 60 else 28, setting, RELEASED, 5, **code)
heads = {"color": QUIET, "ha": "center", "va": "center", "style": "italic"}
for x, head in ((19.5, "Then, whatever the answer was:"), (64, "set"), (92, "otherwise")):
    axis.text(x, 51.5, head, **heads)
for row, (question, yes, no) in enumerate(QUESTIONS):
    y = 45.4 - row * STEP
    box(axis, 19.5, y, 39, question, SENSITIVE)
    arrow(axis, (39, y), (45, y), "yes", at=(2.6, 1.7))
    box(axis, 64, y, 38, yes, RELEASED, 5, **code)
    axis.text(92, y, no, color=QUIET, fontsize=9, ha="center", va="center")
    if row + 1 < len(QUESTIONS):
        arrow(axis, (19.5, y - 3.4), (19.5, y - STEP + 3.4))
