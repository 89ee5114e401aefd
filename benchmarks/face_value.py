"""The same budget, designed for information and for closeness: what a reader of the table sees.

For the pairs of columns of ``real_table.py``, and age: the share of rows that keep their values,
the mean distance of released values from the true ones (0: none, 1: all wrong), how far ages move
on average, and I(X;Y). Run ``python benchmarks/face_value.py PATH_TO_ADULT_CSV``.
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from real_table import PAIRS

from skprivacy import PrivacyFunnelTransformer
from skprivacy.mechanism import named_channel

UTILITIES = ("mutual_information", "distortion")

# Of the two columns of each figure.
_WIDTHS = ((8, 7), (8, 7), (7, 6), (7, 7))

# Where information is nearly all kept by the design for closeness.
CLOSE_AND_INFORMATIVE = [(["sex"], ["education"]), (["sex"], ["age"])]


def fitted(table, epsilon, sensitive, columns, utility):
    """Return a transformer."""
    transformer = PrivacyFunnelTransformer(
        epsilon, sensitive=sensitive, columns=columns, utility=utility, n_bins=12
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformer.fit(table)


def figures(transformer, loss):
    """Return what is compared."""
    mechanism, fidelity = transformer.mechanism_, transformer.fidelity_
    shift = fidelity.columns["mean_shift"].max()
    distance = mechanism.p_x @ (named_channel(mechanism).p_symbol * loss).sum(axis=1)
    return fidelity.unchanged, distance, shift, mechanism.mutual_information


def main():
    """Print one line per pair and budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path")
    options = parser.parse_args()
    table = pd.read_csv(options.path)
    print(f"{len(table):,} rows, kl per output; numbers in 12 bins")
    print("Designed for information (I) and for closeness (C)")
    for epsilon in (0.01, 0.002):
        print(
            f"\n{'':<26}{'unchanged':>15}{'distance':>15}{'years moved':>13}{'I(X;Y), nats':>14}"
        )
        head = "".join(f"{'I':>{wide}}{'C':>{narrow}}" for wide, narrow in _WIDTHS)
        print(f"{f'epsilon = {epsilon:g}':<26}{head}")
        for sensitive, columns in [*PAIRS, (["sex"], ["age"])]:
            both = [fitted(table, epsilon, sensitive, columns, utility) for utility in UTILITIES]
            objective, p_x = both[1].mechanism_.objective, both[1].mechanism_.p_x
            kept, distances, shifts, informations = zip(
                *(figures(each, objective.loss) for each in both), strict=True
            )
            name = f"{','.join(sensitive)} / {','.join(columns)}"
            years = ["" if np.isnan(shift) else f"{shift:.2f}" for shift in shifts]
            print(
                f"{name:<26}{kept[0]:>8.1%}{kept[1]:>7.1%}{distances[0]:>8.4f}{distances[1]:>7.4f}"
                f"{years[0]:>7}{years[1]:>6}{informations[0]:>7.3f}{informations[1]:>7.3f}"
            )
            assert distances[1] <= distances[0] + 1e-4 * objective.span(p_x)
            if epsilon == 0.01 and (sensitive, columns) in CLOSE_AND_INFORMATIVE:
                assert informations[1] >= 0.9 * informations[0]


if __name__ == "__main__":
    main()
