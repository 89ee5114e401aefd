"""What the report says about attackers: the best possible one, and models that were trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._messages import in_points
from .._typing import ColumnsLike, TableLike
from ..describing import SecretSummary, percent
from ..fitted import Fitted
from ..fitting.inputs import sensitive_columns
from ..fitting.parameters import Settings
from ..metrics import audit
from ..metrics.attack import Attacker, Splits
from ..metrics.attack_notes import attack_notes
from ..releasing.output_names import names_out
from ..tables.frames import as_table
from .sections import Section, Table

_OWNER = "PrivacyReport"

# The same guess in so many rows shows nothing, and what leaks less than that is rounding.
_NEARLY_ALL, _NO_LEAKAGE = 0.99, 1e-9

_WHY_NOTHING = (
    "This is no sign that nothing leaks: the best guess is the commonest group for nearly every "
    "released row. Go by how far probabilities move."
)


@dataclass(frozen=True, eq=False)
class Attacked:
    """Rows with their S, and their release, for models to attack as in `audit`."""

    df: TableLike
    sensitive_features: ColumnsLike | None
    released: TableLike
    attacker: Attacker | None
    cv: Splits
    confidence: float


def best_attacker(secret: SecretSummary) -> str:
    """Say how often the best possible attacker is right, and where that shows nothing."""
    said = secret.attacker()
    return f"{said} {_WHY_NOTHING}" if _hides_what_leaks(secret) else said


def _hides_what_leaks(secret: SecretSummary) -> bool:
    """Tell whether something leaks, and guesses cannot show it, being all the same."""
    given_y, p_y = secret.secret.sensitive_posterior, secret.release.mechanism.p_y
    is_same = given_y.argmax(axis=1) == np.argmax(given_y.T @ p_y)
    return float(p_y[is_same].sum()) > _NEARLY_ALL and secret.secret.max_leakage > _NO_LEAKAGE


def no_attack(protected: str) -> Section:
    """Say that nobody attacked the release; protected : S."""
    return Section(
        "Attacked",
        [
            f"No attack was tried: no model was trained to guess {protected} from the release. "
            f"How often the best possible attacker is right is known without one: see 'What "
            f"leaks'."
        ],
    )


def attack_section(
    fitted: Fitted, settings: Settings, attacked: Attacked, secret: SecretSummary
) -> Section:
    """Return how well trained models guess a secret."""
    title = f"Attacked, for {secret.name}" if secret.is_one_of_several else "Attacked"
    try:
        figures = _figures(fitted, settings, attacked, secret.key)
    except ValueError as error:  # a group of few rows, say
        return Section(title, [f"No attack was made. {error}"])
    n_rows = as_table(attacked.df, _OWNER).n_rows
    again = "a fresh release of each" if settings.random_state is None else "their release"
    text = (
        f"Here, models were trained to guess {secret.name} on parts of {n_rows:,} rows with "
        f"{again}, and tested on the rest of them: from the columns as they were, before anything "
        f"was cut into bins or pooled (raw), and as they are released. The advantage is what "
        f"exceeds a blind guess."
    )
    table = Table(f"How well {secret.name} can be guessed", _attacks(figures, attacked.confidence))
    return Section(title, [text, _not_the_best(secret), *attack_notes(figures)], [table])


def _not_the_best(secret: SecretSummary) -> str:
    """Say how trained models compare with the best possible attacker."""
    said = (
        f"They are not the best possible attacker, who is right in "
        f"{secret.secret.attacker_accuracy:.1%} of the rows (see 'What leaks'): that one knows "
        f"how the release was made, and need not learn it from rows. So models, from the released "
        f"columns alone, are right no more often, but for chance."
    )
    if not _hides_what_leaks(secret):
        return said
    return f"{said} As no guess can show here what the release leaks, these cannot either."


def _figures(fitted: Fitted, settings: Settings, attacked: Attacked, secret: Any) -> pd.DataFrame:
    """Return the audit of rows and their release, for one secret."""
    assert fitted.training is not None
    roles = fitted.roles
    table, out = (as_table(frame, _OWNER) for frame in (attacked.df, attacked.released))
    s_columns, _ = sensitive_columns(
        _OWNER, table, None, settings.sensitive, attacked.sensitive_features
    )
    raw = [table.column(position) for position in roles.read_in(table, _OWNER)]
    others = {str(roles.name(p)) for p in roles.kept_positions}
    names = map(str, names_out(roles, fitted.posterior.labels, settings.output))
    columns = {name: out.column(position) for position, name in enumerate(names)}
    released = {name: column for name, column in columns.items() if name not in others}
    beside = {name: column for name, column in columns.items() if name in others}
    # S as it is protected: numbers in their bins.
    groups, _ = fitted.training.alphabet.encode(list(s_columns.values()), list(s_columns))
    groups = fitted.training.secrets.groups[secret].codes(groups)
    return audit(
        _frame(released),
        groups,
        raw=_frame(dict(zip(map(roles.name, roles.read_positions), raw, strict=True))),
        remainder=_frame(beside) if beside else None,
        confidence=attacked.confidence,
        attacker=attacked.attacker,
        cv=attacked.cv,
    )


def _attacks(figures: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Return the figures of an audit as texts."""
    found = figures.set_index("attacked").rename_axis("columns seen")
    return pd.DataFrame(
        {
            "right": [f"{x:.1%}" for x in found["accuracy"]],
            "blind guess": [f"{x:.1%}" for x in found["blind"]],
            "advantage": [in_points(x, "+z.2f") for x in found["advantage"]],
            "trained model": found["attacker"],
            f"{percent(confidence)} interval": [
                f"{100 * low:+z.2f} to {in_points(high, '+z.2f')}"
                for low, high in zip(found["low"], found["high"], strict=True)
            ],
        }
    )


def _frame(columns: Mapping[Any, pd.Series]) -> pd.DataFrame:
    """Return columns as a frame."""
    return pd.DataFrame({str(k): column.reset_index(drop=True) for k, column in columns.items()})
