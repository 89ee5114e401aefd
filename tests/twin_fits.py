"""Ways to fit a transformer, each with a budget as a number or as a dict with one key."""

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from example_tables import people, quick_scores

from skprivacy import PrivacyFunnelTransformer, TreeCells
from skprivacy.cli.values import MEASURES
from skprivacy.files import fit_file
from skprivacy.measures import AlphaLift, Lip, get_measure


def rows_of(n=400, seed=0):
    """Return rows with columns of few values, some of which tell sex."""
    rows = people(n, seed)
    trio = rows["band"].map({"a": "a", "b": "a", "c": "b", "d": "c", "e": "c"})
    proxy = rows["sex"].map({"f": "x", "m": "y"})
    nearly = proxy.mask(~rows["sex"].duplicated(), proxy.map({"x": "y", "y": "x"}))  # but for two
    return rows.assign(trio=trio, proxy=proxy, nearly=nearly, id=range(n))


def at_once(transformer, rows, more):
    return transformer.fit(rows, **more)


def in_batches(transformer, rows, more):
    for start in range(0, len(rows), 150):
        batch = slice(start, start + 150)
        of_batch = {name: given[batch] for name, given in more.items()}
        transformer.partial_fit(rows.iloc[batch], **of_batch)
    assert transformer.mechanism_ is not None  # which is designed now
    return transformer


def apart(transformer, rows, more):
    """S comes as a column of its own."""
    transformer.set_params(sensitive=None)
    return transformer.fit(rows.drop(columns="sex"), sensitive_features=rows["sex"])


def from_polars(transformer, rows, more):
    return transformer.fit(pl.from_pandas(rows).lazy())


def eager(transformer, rows, more):
    return transformer.fit(pl.from_pandas(rows))


def from_dask(transformer, rows, more):
    import dask.dataframe as dd

    return transformer.fit(dd.from_pandas(rows, npartitions=2))


def from_csv(transformer, rows, more):
    target = more["y"].name if "y" in more else None
    with TemporaryDirectory() as folder:
        rows.to_csv(Path(folder, "rows.csv"), index=False)
        return fit_file(transformer, Path(folder, "rows.csv"), target=target)


def from_parquet(transformer, rows, more):
    with TemporaryDirectory() as folder:
        rows.to_parquet(Path(folder, "rows.parquet"), index=False)
        return fit_file(transformer, Path(folder, "rows.parquet"))


@dataclass(frozen=True)
class Fit:
    """Rows, options, and a way to fit to them."""

    options: dict[str, Any] = field(default_factory=dict)
    epsilon: Any = 0.05
    rows: pd.DataFrame = field(default_factory=rows_of)
    more: dict[str, Any] = field(default_factory=dict)
    how: Any = at_once

    def by(self, side):
        """Return the transformer with the budget of one side, fitted."""
        options = {"sensitive": "sex", "columns": ["trio"], "random_state": 0} | self.options
        transformer = PrivacyFunnelTransformer(side(self.epsilon), **options)
        return self.how(transformer, self.rows, self.more)


ROWS = rows_of()
FEW = ROWS.assign(sex=["z"] * 2 + ["f", "m"] * 199)
LABEL = MappingProxyType({"y": ROWS["label"]})
WEIGHTS = MappingProxyType({"sample_weight": np.linspace(0.1, 2, len(ROWS))})
MANY = MappingProxyType({"columns": ["band", "zip", "noise"]})
SURE = MappingProxyType({"confidence": 0.95})
BUDGETS = {"l1": 0.2, "chi2": 0.1, "max_lift": 0.3, "lip": 0.3, "parity": 0.3}
SCOPES = [(m, s) for m in MEASURES for s in get_measure(m, "tests").scopes]
UTILITIES = ["guess", "distortion", "target"]


def by_measures(**options):
    for measure, scope in SCOPES:
        asked = {"measure": measure, "scope": scope} | options
        yield f"{measure} {scope}", Fit(asked, BUDGETS.get(measure, 0.05))


def by_utilities(scopes, **options):
    for utility in UTILITIES:
        for scope in scopes:
            asked = {"utility": utility, "scope": scope} | options
            yield f"{utility} {scope}", Fit(asked, more=LABEL if utility == "target" else {})


SCENARIOS = {
    **dict(by_measures()),
    **dict(by_utilities(("per_output", "average"))),
    "several columns": Fit({"columns": ["trio", "label"]}),
    "numbers": Fit({"columns": ["noise"], "n_bins": 4}),
    "tree cells": Fit({**MANY, "alphabet": TreeCells(max_cells=6)}),
    "score cells": Fit(
        {**MANY, "alphabet": quick_scores(5), "utility": "target"}, more=dict(LABEL)
    ),
    "beside": Fit({"beside": "label"}, epsilon=0.3),
    "beside on average": Fit({"beside": "label", "scope": "average"}, epsilon=0.2),
    "weights": Fit(more=WEIGHTS),
    "smoothing": Fit({"smoothing": 1.0}),
    "max_outputs": Fit({"max_outputs": 2}),
    "another solver": Fit({"solver": "algorithm1"}),
    "symbols": Fit({"output": "symbol"}),
    "posteriors": Fit({"output": "posterior"}),
    "remainder": Fit({"remainder": ["zip", "noise"]}),
    "allows certainty": Fit({"columns": ["nearly"]}, epsilon=0.757),
    "no noise": Fit(epsilon=5.0),
    "no noise on average": Fit({"scope": "average"}, epsilon=5.0),
    "infinite": Fit(epsilon=np.inf),
    "zero": Fit(epsilon=0.0),
    "a single group": Fit(rows=ROWS.assign(sex="f")),
    "X determines S": Fit({"columns": ["proxy"]}),
    "a group of few rows": Fit(rows=FEW),
    "S apart": Fit(how=apart),
    "batches": Fit(how=in_batches),
    "polars": Fit(how=from_polars),
    "Dask": Fit(how=from_dask),
    "CSV": Fit(how=from_csv),
    "Parquet": Fit(how=from_parquet),
    "eager polars": Fit(how=eager),
    "missing values": Fit(rows=ROWS.assign(trio=ROWS["trio"].mask(ROWS["noise"] > 0.8))),
    "pools": Fit({"columns": ["zip"], "min_frequency": 0.1}),
    "another alpha": Fit({"measure": AlphaLift(alpha=4)}),
    "another lower bound": Fit({"measure": Lip(lower=0.1)}, 0.3),
    "weights in batches": Fit(more=WEIGHTS, how=in_batches),
    "target in batches": Fit({"utility": "target"}, more=LABEL, how=in_batches),
    "target in CSV": Fit({"utility": "target"}, more=LABEL, how=from_csv),
    "beside in batches": Fit({"beside": "label"}, 0.3, how=in_batches),
    "beside in Dask": Fit({"beside": "label"}, 0.3, how=from_dask),
    "beside in CSV": Fit({"beside": "label"}, 0.3, how=from_csv),
    "beside, with weights": Fit({"beside": "label"}, 0.3, more=WEIGHTS),
    "beside, closeness": Fit({"beside": "label", "utility": "distortion"}, 0.3),
    "beside, cells": Fit({**MANY, "beside": "label", "alphabet": TreeCells(max_cells=6)}, 0.3),
    "cells in batches": Fit({**MANY, "alphabet": TreeCells(max_cells=6)}, how=in_batches),
    "cells in polars": Fit({**MANY, "alphabet": TreeCells(max_cells=6)}, how=from_polars),
    "cells in CSV": Fit({**MANY, "alphabet": TreeCells(max_cells=6)}, how=from_csv),
}
CONFIDENT = {
    **dict(by_measures(**SURE)),
    **dict(by_utilities(("per_output",), **SURE)),
    "distortion average": Fit({"utility": "distortion", "scope": "average", **SURE}),
    "tree cells": Fit({**MANY, **SURE, "alphabet": TreeCells(max_cells=3)}),
    "beside": Fit({"beside": "label", **SURE}, epsilon=0.5),
    "weights": Fit(dict(SURE), more=WEIGHTS),
    "max_outputs": Fit({"max_outputs": 2, **SURE}),
    "another solver": Fit({"solver": "algorithm1", **SURE}),
    "60 rows": Fit({"columns": ["band"], **SURE}, 0.0005, ROWS[:60]),
    "infinite": Fit(dict(SURE), epsilon=np.inf),
    "zero": Fit(dict(SURE), epsilon=0.0),
    "a single group": Fit(dict(SURE), rows=ROWS.assign(sex="f")),
    "X determines S": Fit({"columns": ["proxy"], **SURE}),
    "a group of few rows": Fit(dict(SURE), rows=FEW),
    "batches": Fit(dict(SURE), how=in_batches),
    "Dask": Fit(dict(SURE), how=from_dask),
    "CSV": Fit({"beside": "label", **SURE}, 0.5, how=from_csv),
}
SCENARIOS |= {f"confidence: {name}": fit for name, fit in CONFIDENT.items()}
ERRORS = {
    "negative": Fit(epsilon=-1),
    "not a number": Fit(epsilon=np.nan),
    "None": Fit(epsilon=None),
    "confidence": Fit({"confidence": 1.5}),
    "scope": Fit({"scope": "worst"}),
    "scope of the measure": Fit({"measure": "lip", "scope": "average"}),
    "measure": Fit({"measure": "l3"}),
    "utility": Fit({"utility": "joy"}),
    "no target": Fit({"utility": "target"}),
    "solver": Fit({"solver": "best"}),
    "solver of the utility": Fit({"solver": "one_per_label"}),
    "solver of the measure": Fit({"solver": "chi2_design"}),
    "max_outputs": Fit({"max_outputs": 0}),
    "columns": Fit({"columns": ["age"]}),
    "S released": Fit({"columns": ["sex"]}),
    "smoothing": Fit({"smoothing": -1}),
    "rows": Fit(rows=ROWS[:0]),
    "beside says too much": Fit({"beside": "label"}, 0.01),
    "beside may say too much": Fit({"beside": "label", **SURE}, 0.2),
    "beside is S": Fit({"beside": "sex"}),
}


# What is shown of fits that differ by a measure or a utility alone is much the same, and those
# with a confidence take long: with some measures, or with all.
VARIED = {*dict(by_measures()), *dict(by_utilities(("per_output", "average")))}
VARIED -= {"kl per_output", "kl average", "distortion per_output", "target per_output"}
QUICK = {"l1 per_output", "parity per_output"}
SHOWN = [name for name in SCENARIOS if name.removeprefix("confidence: ") not in VARIED]
SLOW = {f"confidence: {name}" for name in {*VARIED, "weights", "another solver"} - QUICK}
