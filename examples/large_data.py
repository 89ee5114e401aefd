"""
Tables that do not fit into memory
==================================

A fit needs only how often each pair of values of S (the sensitive column) and X (the released
ones) occurs, and a release is one draw for each row. Both work block by block, so memory does not
grow with the file. This example does in Python what ``skprivacy sanitize IN OUT`` does on the
command line.
"""

# %%
# A file
# ------
# A few megabytes are enough for an example. The last column is a number with millions of possible
# values.
import secrets
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone

from skprivacy import LeakageDisplay, PrivacyFunnelTransformer, audit
from skprivacy.files import fit_file, transform_file

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
for block in range(10):
    sex = rng.integers(2, size=20_000)
    rows = pd.DataFrame(
        {
            "zip": np.char.zfill(rng.integers(20, size=sex.size).astype(str), 5),
            "sex": np.where(sex, "m", "f"),
            "education": np.take(["school", "college", "PhD"], rng.binomial(2, 0.4 + 0.2 * sex)),
            "income": rng.lognormal(10 + 0.3 * sex, 1).round(2),
        }
    )
    rows.to_csv(folder / "people.csv", mode="a", header=block == 0, index=False)
with open(folder / "people.csv") as file:
    print(*(next(file) for _ in range(5)), sep="")

# %%
# One pass to count, one to rewrite
# ---------------------------------
# Finding the quantiles of a column with very many values would mean keeping all of them, so we
# give the edges of its bins instead. Each bin is shown as approximately its median. People will
# read the released file, so ``utility="distortion"`` keeps values as close to the true ones as the
# budget allows.
funnel = PrivacyFunnelTransformer(
    0.01,
    sensitive="sex",
    columns=["education", "income"],
    utility="distortion",
    n_bins={"income": [-np.inf, 10_000, 20_000, 40_000, np.inf]},
    remainder="passthrough",
    handle_unknown="error",
)
fit_file(funnel, folder / "people.csv")
n_rows = transform_file(funnel, folder / "people.csv", folder / "released.csv.gz")
mechanism = funnel.mechanism_
print(f"{n_rows:,} rows, epsilon = {mechanism.epsilon}, leakage {mechanism.max_leakage:.4f}")
print(f"{mechanism.normalized_utility:.1%} kept, at most {mechanism.normalized_upper_bound:.1%}")

# %%
# What each released value reveals about sex, against the budget:
display = LeakageDisplay.from_estimator(funnel)

# %%
# Zip codes are copied unchanged, and sex is left out.
released = pd.read_csv(folder / "released.csv.gz", dtype={"zip": str})
print(released.head())

# %%
# Release on another machine
# --------------------------
# The fitted transformer can be saved as text: the encoder and the channel, without S and without
# rows. It releases new rows, in frames or in files.
shipped = PrivacyFunnelTransformer.from_json(funnel.to_json())
new = pd.DataFrame(
    {"zip": ["00007", "00012"], "education": ["PhD", "school"], "income": [81_000.0, 17_500.0]}
)
print(shipped.transform(new))

# %%
# The same rows, month after month
# --------------------------------
# A row that is released again with fresh noise reveals more each time. With an id and a secret key
# it gets the same value every time. Keep the key with the data, not with the releases.
key = secrets.token_bytes(32)
monthly = [shipped.transform(new, record_ids=[1, 2], secret_key=key) for _ in range(12)]
print(all(release.equals(monthly[0]) for release in monthly))

# %%
# Batches from anywhere
# ---------------------
# ``partial_fit`` counts rows that come in batches, from a database for instance. After the last
# batch the result is the same as from one ``fit`` to all rows. (Dask, Spark and lazy polars frames
# can be passed to ``fit`` and ``transform`` directly: :doc:`/beyond`.)
streamed = clone(funnel).set_params(remainder="drop")
for batch in pd.read_csv(folder / "people.csv", chunksize=50_000):
    streamed.partial_fit(batch)
print(f"{streamed.n_samples_seen_:,} rows, {streamed.mechanism_}")
print(bool((streamed.p_sx_ == funnel.p_sx_).all()))

# %%
# What an attacker can do with it
# -------------------------------
# How well can sex be guessed, before and after? We attack some of the rows.
people = pd.read_csv(folder / "people.csv").iloc[::20]
columns = ["education", "income"]
attacks = audit(released.iloc[::20][columns], people["sex"], raw=people[columns])
print(attacks[["attacked", "attacker", "accuracy", "blind", "advantage"]].round(3))
