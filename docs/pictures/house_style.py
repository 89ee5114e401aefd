"""One style for all pictures: sizes, colours, and what each colour stands for."""

STYLE = {
    "figure.dpi": 96,
    "savefig.dpi": 96,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.w_pad": 0.12,
    "figure.constrained_layout.h_pad": 0.1,
    "font.size": 10.5,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.grid": False,
    "legend.frameon": False,
    "svg.hashsalt": "skprivacy",
}

USEFUL = "#2b6cb0"  # X, and what is kept of it
SENSITIVE = "#c2410c"  # S, and what leaks of it
RELEASED = "#15803d"  # Y
BUDGET = "#b91c1c"
QUIET = "#6b7280"
GROUPS = ["#c2410c", "#7c3aed"]  # the values of S


def percent(axis):
    """Show an axis in percent."""
    axis.set_major_formatter("{x:.0%}")


def blood_pressure():
    """Return counts of sex (rows) by five bands of blood pressure, of 442 patients."""
    from skprivacy.datasets import load_diabetes_joint

    counts = load_diabetes_joint("bp", n_bands=5)
    return counts.set_axis(["lowest", "low", "middle", "high", "highest"], axis=1)
