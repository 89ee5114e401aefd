"""A made-up table of 6,000 employees: ``python docs/staff.py > staff.csv`` writes it."""

import sys

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
n = 6000
union = rng.random(n) < 0.5
strain = rng.normal(size=n) + 0.9 * union
staff = pd.DataFrame(
    {
        "id": 1000 + np.arange(n),
        "department": rng.choice(["care", "kitchen", "office"], n, p=[0.5, 0.2, 0.3]),
        "hours": np.clip(36 - 3 * strain - 3 * rng.normal(size=n), 8, 48).round().astype(int),
        "overtime": rng.poisson(np.exp(1 + 0.4 * strain)),
        "satisfaction": np.array(["low", "medium", "high"])[
            np.digitize(rng.normal(size=n) - strain, [-1, 0.4])
        ],
        "union": np.where(union, "yes", "no"),
    }
)
staff.to_csv(sys.stdout, index=False, lineterminator="\n")
