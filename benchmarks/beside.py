"""What a release says about S together with a column that is published beside it.

Run ``python benchmarks/beside.py FILE > docs/measured/beside.txt`` with the path of adult.csv. Sex
is protected, and occupation (where it is known) is released: once at epsilon = 0.01 with a column
copied next to it, outside of the guarantee, and once with that column in ``beside``. All leakages
are exact, recomputed here from the rows and the channel; "common" pairs make up 1% of the rows.
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from scipy.special import rel_entr

from skprivacy import PrivacyFunnelTransformer
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.fitting.held_out import Symbols

# What is published beside occupation, and a budget that allows it.
COLUMNS = {"income": 0.1, "age_band": 0.1, "workclass": 0.2}

# A pair of an output and a published value that is rarer than this says little about anybody.
SHARE = 0.01


def known(path):
    """Return the rows whose occupation is known, with ages in five bands."""
    table = pd.read_csv(path)
    table = table[table["occupation"].notna() & (table["occupation"] != "?")]
    table = table.fillna({"workclass": "?"}).reset_index(drop=True)
    return table.assign(age_band=pd.qcut(table["age"], 5).astype(str))


def pairs(funnel, table, name):
    """Return every pair (y, value of a column): the value, its share, what it says about sex."""
    fitted = fitted_of(funnel)
    columns = [fitted.roles.name(position) for position in fitted.roles.read_positions]
    symbols = Symbols.of(fitted, columns).of_table({name: table[name] for name in columns})
    sex, _ = pd.factorize(table["sex"])
    beside, values = pd.factorize(table[name])
    n_y = funnel.mechanism_.channel.shape[1]
    joint = np.zeros((sex.max() + 1, len(values), n_y))
    np.add.at(joint, (sex, beside), funnel.mechanism_.channel[symbols])
    joint = joint.reshape(len(joint), -1) / len(table)
    shares, prior = joint.sum(axis=0), joint.sum(axis=1)
    seen = shares > 0
    posteriors = joint[:, seen] / shares[seen]
    found = {"value": np.repeat(values, n_y)[seen], "share": shares[seen]}
    return pd.DataFrame({**found, "leakage": rel_entr(posteriors, prior[:, None]).sum(axis=0)})


def line(what, funnel, found):
    """Return a line of the table."""
    kept, common = funnel.mechanism_.normalized_utility, found[found["share"] >= SHARE]
    worst = common["leakage"].max(), found["leakage"].max()
    return f"{what:32} {kept:6.3f} {worst[0]:8.3f} {worst[1]:8.3f}"


def main(path):
    """Print what pairs leak, with and without `beside`."""
    table = known(path)
    asked = {"sensitive": "sex", "columns": "occupation", "random_state": 0}
    print(f"{len(table):,} rows; sex protected, occupation released")
    print(f"{'worst pair (y, z), by kl:':32} {'kept':>6} {'common':>8} {'any':>8}")
    alone, shown = PrivacyFunnelTransformer(0.01, **asked).fit(table), {}
    for name in COLUMNS:
        found = pairs(alone, table, name)
        shown.setdefault("copied", found)
        print(line(f"epsilon 0.01, {name} copied", alone, found))
    for name, epsilon in COLUMNS.items():
        funnel = PrivacyFunnelTransformer(epsilon, **asked, beside=name).fit(table)
        found = pairs(funnel, table, name)
        shown.setdefault("beside", found)
        print(line(f"epsilon {epsilon:g}, {name} beside", funnel, found))
    print("every pair of occupation and income: income, share of the rows, leakage")
    for how, found in shown.items():
        for row in found.itertuples():
            print(f"{how} {row.value:6} {row.share:.5f} {row.leakage:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="adult.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main(parser.parse_args().file)
