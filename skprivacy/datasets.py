"""Joint distributions to try things on."""

import pandas as pd
from sklearn.datasets import load_diabetes

from ._validation import check_choice, check_integer


def load_diabetes_joint(column: str = "bp", n_bands: int = 5) -> pd.DataFrame:
    """Return counts of sex (rows) by bands of a measurement (columns).

    From the 442 patients of scikit-learn's diabetes data.

    Parameters
    ----------
    column : str, default="bp"
        The measurement: "age", "bmi", "bp" (mean arterial pressure), "s1", ..., "s6".
    n_bands : int, default=5
        How many bands of about equal size to cut it into.

    Returns
    -------
    DataFrame
        Counts, a valid `p_sx` for `design_mechanism`.

    Examples
    --------
    >>> from skprivacy.datasets import load_diabetes_joint
    >>> load_diabetes_joint("bp", n_bands=3).reset_index()
    bp_band    sex  62 to 87  87 to 101  101 to 133
    0        sex 1       109         73          53
    1        sex 2        44         81          82
    """
    patients = load_diabetes(as_frame=True, scaled=False).data
    check_choice("load_diabetes_joint", "column", column, set(patients) - {"sex"})
    check_integer("load_diabetes_joint", "n_bands", n_bands, low=1)
    bands = pd.qcut(patients[column], n_bands, duplicates="drop").rename(f"{column}_band")
    smallest = patients[column].min()
    edges = [(max(band.left, smallest), band.right) for band in bands.cat.categories]
    names = [f"{left:g} to {right:g}" for left, right in edges]
    # The data set codes sex as 1 and 2 and does not say which is which.
    sex = "sex " + patients["sex"].astype(int).astype(str)
    return pd.crosstab(sex, bands.cat.rename_categories(names))
