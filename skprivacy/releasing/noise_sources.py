"""Where the noise of a call to `transform` comes from: fresh, or by ids and a secret key."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._messages import InPython, Message, Named, Owner
from .._typing import Seed
from ..tables.vectors import as_columns
from .keyed import GivenRecords, RecordSource, check_own_column, record_keys
from .noise import FreshSource, NoiseSource, fresh_key
from .release import Release


def noise_source(
    release: Release,
    random_state: Seed | np.random.RandomState,
    record_ids: Any,
    secret_key: object,
) -> NoiseSource:
    """Return where the noise of a call to `transform` comes from."""
    if record_ids is None and secret_key is None:
        return FreshSource(fresh_key(random_state))
    if record_ids is None or secret_key is None:
        given, missing = ("record_ids", "secret_key")[:: 1 if secret_key is None else -1]
        raise ValueError(
            Message(
                Owner(release.owner),
                InPython(".transform"),
                " got ",
                Named(given),
                " without ",
                Named(missing),
                ": a keyed release needs both.",
            )
        )
    keys = record_keys(release, secret_key)
    if isinstance(record_ids, str | int | np.integer):
        roles = release.roles
        positions = (*roles.read_positions, *roles.s_positions)
        special = tuple(roles.name_or_position(position) for position in positions)
        check_own_column(record_ids, special)
        return RecordSource(keys, record_ids, special)
    index = record_ids.index if isinstance(record_ids, pd.Series) else None
    return GivenRecords(keys, _as_series(record_ids), index)


def _as_series(record_ids: Any) -> pd.Series:
    """Return ids that are given for each row."""
    if isinstance(record_ids, list | tuple):  # numpy would make texts of integers
        return pd.Series(record_ids, dtype=object)
    if np.ndim(record_ids) == 0 and not hasattr(record_ids, "__len__"):
        raise TypeError(
            Message(
                Named("record_ids"),
                f" must be the name of a column, or an id for each row. Got a value of type "
                f"{type(record_ids).__name__}.",
            )
        )
    columns = list(as_columns(record_ids, "record_ids").values())
    if len(columns) != 1:
        raise ValueError(
            Message(
                Named("record_ids"),
                f" must be one column. Got {len(columns)}: join them into one id first.",
            )
        )
    return columns[0]
