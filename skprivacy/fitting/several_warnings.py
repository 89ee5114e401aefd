"""Where a release that keeps the budgets of several secrets would still mislead its user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .._messages import RELEASED, InPython, Message, Named, Setting
from .._typing import CountArray
from .._warnings import warn
from ..exceptions import FiniteSampleWarning, PrivacyLeakWarning
from ..mechanism import FAR_ABOVE, USUAL_CONFIDENCE, SeveralSecretsMechanism, name_of_secret
from ..secret_columns import Secrets
from ..utilities import UTILITY_ROUNDING
from .leak_warnings import quick_limit


def warn_of_several(
    mechanism: SeveralSecretsMechanism,
    secrets: Secrets,
    counts: CountArray,
    group_sizes: CountArray,
) -> None:
    """Warn of what a user of the release should know and might not.

    counts : of pairs (s, x) for all columns of S, before smoothing; group_sizes : rows for each s.
    """
    for name, groups in secrets.groups.items():
        is_sure = mechanism.confidence is not None
        sizes, table = groups.table(group_sizes), groups.table(counts)
        for text in _about_secret(name_of_secret(name), sizes, table, is_sure):
            warn(text, PrivacyLeakWarning)
    for text in (*_about_noise(mechanism), *_about_together(mechanism)):
        warn(text, PrivacyLeakWarning)


def _about_secret(name: str, sizes: CountArray, table: CountArray, is_sure: bool) -> Iterator[str]:
    n_x = table.shape[1]
    if len(sizes) == 1:
        yield f"{name} has a single value: there is nothing to protect about it."
        return
    if n_x > 1 and ((table > 0).sum(axis=0) <= 1).all():
        yield Message(
            InPython("X determines", "The released columns determine"),
            f" {name} in the data: every symbol of ",
            RELEASED,
            " occurs with one value of it.",
        )
    if not is_sure and (n_small := np.count_nonzero(small := sizes < n_x)):
        have = "has" if n_small == 1 else "have"
        yield Message(
            f"{n_small} of the {len(sizes)} groups of {name} {have} fewer rows than ",
            InPython("X has", "the released columns have"),
            f" symbols ({n_x}), {sizes[small].sum():g} rows in all: their distribution is poorly "
            f"estimated, and the true leakage may exceed epsilon. Pool symbols of ",
            RELEASED,
            " or set ",
            Named("smoothing"),
            ".",
        )


def _about_noise(mechanism: SeveralSecretsMechanism) -> Iterator[str]:
    if len(mechanism.x_labels) == 1:
        return
    if mechanism.normalized_utility > 1 - UTILITY_ROUNDING:
        yield Message(
            "No noise is added to ",
            RELEASED,
            ": ",
            Setting("epsilon", mechanism.epsilon),
            " is large enough for all secrets to release its symbols unchanged.",
        )
    elif mechanism.normalized_utility < UTILITY_ROUNDING:
        yield Message(
            "The output is constant or says nothing about ",
            RELEASED,
            ": ",
            Setting("epsilon", mechanism.epsilon),
            " allows no more.",
        )


def _about_together(mechanism: SeveralSecretsMechanism) -> Iterator[str]:
    if (together := mechanism.together) is None:
        return
    leakage, largest = together.leakage_in(mechanism.scope), max(mechanism.epsilon.values())
    if leakage <= mechanism.measure.budget(largest):
        return
    yield Message(
        f"About all sensitive columns together, the output reveals {leakage:.4g}, more than the "
        f"largest of the budgets in ",
        Named("epsilon"),
        f" ({largest:g}): separate budgets bound what is revealed about each secret, and no "
        f"combination of them. A budget for ",
        InPython("their tuple", "all of them joined by a plus"),
        " bounds that too.",
    )


def warn_of_chance_in_several(
    mechanism: SeveralSecretsMechanism, tables: Mapping[Any, CountArray], n_rows: int
) -> None:
    """Warn if budgets may be far exceeded in the population that the rows are from.

    tables : of each secret, before smoothing; n_rows : how many equally weighted rows say as much.
    """
    if mechanism.confidence is not None:
        return
    of_each = 1 - (1 - USUAL_CONFIDENCE) / len(tables)
    limits = {
        name: quick_limit(secret, tables[name], n_rows, of_each)
        for name, secret in mechanism.secrets.items()
        if secret.epsilon < np.inf
    }
    far = {n: x for n, x in limits.items() if x > FAR_ABOVE * mechanism.epsilon[n]}
    if not far:
        return
    shown = ", ".join(f"{limit:.2g} about {name_of_secret(name)}" for name, limit in far.items())
    warn(
        Message(
            Setting("epsilon", mechanism.epsilon),
            f" holds for these {n_rows:,} rows. In the population that they are from, the leakage "
            f"may be up to {shown} (with {USUAL_CONFIDENCE:.0%} confidence for all secrets). ",
            Setting("confidence", USUAL_CONFIDENCE),
            " keeps the budgets there too; the more rows there are, and the fewer values of ",
            RELEASED,
            ", the less that costs.",
        ),
        FiniteSampleWarning,
    )
