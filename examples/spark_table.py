"""
A table in Spark
================

Pass the frame of Spark where you would pass one of pandas. ``fit`` counts where the rows are, and
only counts travel to the process that designs the release. ``transform`` returns a lazy frame.
This takes the extra ``spark`` and Java 17 or newer.
"""

# %%
# A table
# -------
# Here Spark runs on this machine, with two threads. The table is made up: 100,000 people, in four
# Parquet files.
import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession

from skprivacy import LeakageDisplay, PrivacyFunnelTransformer

# Of Spark, about versions of pandas that are newer than it.
warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")

os.environ["PYSPARK_PYTHON"] = sys.executable
options = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    # What runs for seconds is not worth compiling with care.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
spark = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
logging.getLogger("py4j").setLevel(logging.ERROR)

files = tempfile.TemporaryDirectory()
folder = Path(files.name)
(folder / "people").mkdir()
rng = np.random.default_rng(0)
for part in range(4):
    sex = rng.integers(2, size=25_000)
    block = pd.DataFrame(
        {
            "id": np.arange(25_000) + 25_000 * part,
            "sex": np.where(sex, "m", "f"),
            "education": np.take(["school", "college", "PhD"], rng.binomial(2, 0.4 + 0.2 * sex)),
            "hours": rng.normal(34 + 4 * sex, 6).round(),
        }
    )
    block.to_parquet(folder / "people" / f"{part}.parquet")
people = spark.read.parquet(str(folder / "people"))
people.show(3)

# %%
# Fit
# ---
# One aggregation counts the rows. The design then takes as long as it does for pandas.
funnel = PrivacyFunnelTransformer(
    0.01,
    sensitive="sex",
    columns=["education", "hours"],
    n_bins=3,
    utility="distortion",
    confidence=0.95,
).fit(people)
mechanism = funnel.mechanism_
print(f"leakage in the population: at most {mechanism.population_limit.max_leakage:.4f}")
print(f"kept: {mechanism.normalized_utility:.1%}, verdict: {funnel.summary_.verdict.level}")

# %%
# What each released value reveals about sex, against the budget:
display = LeakageDisplay.from_estimator(funnel)

# %%
# Release
# -------
# ``transform`` adds a step to the plan; the workers get the probabilities, and neither the values
# of sex nor how they relate to the other columns. **Write the release once, and read that**: Spark
# may compute a lazy frame twice and split it differently, and rows that are drawn again reveal
# more.
funnel.transform(people).write.parquet(str(folder / "released"))
released = spark.read.parquet(str(folder / "released"))
released.groupBy("education").count().orderBy("education").show()

# %%
# The same rows, month after month
# --------------------------------
# With an id and a secret key, a row gets the same values every time, wherever and in whatever
# order it is computed. Save the fitted transformer as text, and release from that; keep the key
# with the data.
saved, key = funnel.to_json(), os.urandom(32)
shipped = PrivacyFunnelTransformer.from_json(saved)
monthly = [shipped.transform(people, record_ids="id", secret_key=key) for _ in range(2)]
print("rows that differ:", monthly[0].exceptAll(monthly[1]).count())

# %%
spark.stop()
files.cleanup()

# %%
# What next
# ---------
# :doc:`/beyond` has Dask, lazy polars and batches, and says what is computed where.
