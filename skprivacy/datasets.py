"""Example data sets."""

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from ._validation import check_choice, check_integer


def load_diabetes_joint(column: str = "bp", n_bands: int = 5) -> pd.DataFrame:
    """Return counts of sex (rows) by bands of a measurement (columns).

    The data are the 442 patients of scikit-learn's diabetes data set.

    Parameters
    ----------
    column : str, default="bp"
        The measurement: "age", "bmi", "bp" (mean arterial pressure), "s1", ..., "s6".
    n_bands : int, default=5
        Number of bands, of about equal size.

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
    patients = _patients()
    # To mypy, column names need not be strings.
    check_choice("load_diabetes_joint", "column", column, set(patients) - {"sex"})  # type: ignore[arg-type]
    check_integer("load_diabetes_joint", "n_bands", n_bands, low=1)
    bands = _bands(patients[column], n_bands).rename(f"{column}_band")
    return pd.crosstab(patients["sex"], bands)


def load_diabetes_patients() -> pd.DataFrame:
    """Return sex, blood pressure and body mass index of each patient.

    The data are the 442 patients of scikit-learn's diabetes data set.

    Returns
    -------
    DataFrame
        The columns sex (text), blood_pressure and bmi (numbers).

    Examples
    --------
    >>> from skprivacy.datasets import load_diabetes_patients
    >>> load_diabetes_patients().head(2)
         sex  blood_pressure   bmi
    0  sex 2           101.0  32.1
    1  sex 1            87.0  21.6
    """
    return _patients()[["sex", "bp", "bmi"]].rename(columns={"bp": "blood_pressure"})


def load_diabetes_bands(n_bands: int = 4) -> pd.DataFrame:
    """Return sex and bands of blood pressure and body mass index of each patient.

    The patients are those of `load_diabetes_patients`.

    Parameters
    ----------
    n_bands : int, default=4
        Number of bands for each measurement, of about equal size.

    Returns
    -------
    DataFrame
        The columns sex, blood_pressure and bmi, all categories.

    Examples
    --------
    >>> from skprivacy.datasets import load_diabetes_bands
    >>> load_diabetes_bands().head(2)
         sex blood_pressure             bmi
    0  sex 2      93 to 105  29.275 to 42.2
    1  sex 1       84 to 93      18 to 23.2
    """
    check_integer("load_diabetes_bands", "n_bands", n_bands, low=1)
    patients = load_diabetes_patients()
    return patients.assign(
        sex=patients["sex"].astype("category"),
        blood_pressure=_bands(patients["blood_pressure"], n_bands),
        bmi=_bands(patients["bmi"], n_bands),
    )


def _patients() -> pd.DataFrame:
    patients = load_diabetes(as_frame=True, scaled=False).data
    # The data set codes sex as 1 and 2 and does not say which is which.
    return patients.assign(sex="sex " + patients["sex"].astype(int).astype(str))


def _bands(column: pd.Series, n_bands: int) -> pd.Series:
    """Return a column cut at quantiles, each band named by its ends."""
    # Rounded, because some versions of pandas compute a quantile slightly off the value it equals.
    edges = np.unique(np.quantile(column, np.linspace(0, 1, n_bands + 1)).round(9)).tolist()
    bands = pd.cut(column, edges, include_lowest=True)
    ends = [(max(band.left, column.min()), band.right) for band in bands.cat.categories]
    return bands.cat.rename_categories([f"{left:g} to {right:g}" for left, right in ends])
