"""What the report says about attackers: the best possible one, and models that were trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._messages import in_points
from .._typing import ColumnsLike, TableLike
from ..describing import percent
from ..fitted import Fitted
from ..fitting.inputs import sensitive_columns
from ..fitting.parameters import Settings
from ..mechanism import Mechanism, name_of_secret
from ..metrics import audit
from ..metrics.attack import Attacker, Splits
from ..metrics.attack_notes import attack_notes
from ..releasing.output_names import names_out
from ..tables.frames import as_table
from .columns import listed
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


def best_attacker(mechanism: Mechanism, protected: str) -> str:
    """Say how often the best possible attacker is right, beside a blind guess; protected : S."""
    advantage = mechanism.attacker_advantage
    said = (
        f"The best possible attacker knows how the release was made, and how {protected} goes "
        f"with the true values in these rows. From one released value, such an attacker is right "
        f"about {protected} in {mechanism.attacker_accuracy:.1%} of the rows; a blind guess is "
        f"right in {mechanism.attacker_accuracy - advantage:.1%}. That is "
        f"{in_points(advantage, '.2f')} more; the budget alone allows "
        f"{_allowed(mechanism)}."
    )
    return f"{said} {_WHY_NOTHING}" if _hides_what_leaks(mechanism) else said


def _allowed(mechanism: Mechanism) -> str:
    """Say how much more often than blindly the budget allows anybody to be right."""
    ranges = mechanism.posterior_ranges()
    low, high = ranges["allowed_low"].to_numpy(), ranges["allowed_high"].to_numpy()
    commonest = int(np.argmax(ranges["prior"]))
    if (np.delete(high, commonest) < low[commonest]).all():  # NaN fails
        return "none, because no value makes another group the likeliest"
    return f"at most {in_points(mechanism.advantage_bound, '.2f')}"


def _hides_what_leaks(mechanism: Mechanism) -> bool:
    """Tell whether something leaks, and guesses cannot show it, being all the same."""
    commonest = np.argmax(mechanism.sensitive_posterior.T @ mechanism.p_y)
    is_same = mechanism.sensitive_posterior.argmax(axis=1) == commonest
    same = float(mechanism.p_y[is_same].sum())
    return same > _NEARLY_ALL and mechanism.max_leakage > _NO_LEAKAGE


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


def attack_section(fitted: Fitted, settings: Settings, attacked: Attacked, secret: Any) -> Section:
    """Return how well trained models guess a secret; the only one is called None."""
    assert fitted.training is not None  # or there would be no report
    s_name = listed(tuple(map(str, fitted.training.names)))
    s_name = s_name if secret is None else name_of_secret(secret)
    title = "Attacked" if secret is None else f"Attacked, for {s_name}"
    try:
        figures = _figures(fitted, settings, attacked, secret)
    except ValueError as error:  # a group of few rows, say
        return Section(title, [f"No attack was made. {error}"])
    mechanism = fitted.mechanism
    mechanism = mechanism if isinstance(mechanism, Mechanism) else mechanism.secrets[secret]
    n_rows = as_table(attacked.df, _OWNER).n_rows
    again = "a fresh release of each" if settings.random_state is None else "their release"
    text = (
        f"Here, models were trained to guess {s_name} on parts of {n_rows:,} rows with {again}, "
        f"and tested on the rest of them: from the columns as they were, before anything was cut "
        f"into bins or pooled (raw), and as they are released. The advantage is what exceeds a "
        f"blind guess."
    )
    shown_as = Table(f"How well {s_name} can be guessed", _attacks(figures, attacked.confidence))
    return Section(title, [text, _not_the_best(mechanism), *attack_notes(figures)], [shown_as])


def _not_the_best(mechanism: Mechanism) -> str:
    """Say how trained models compare with the best possible attacker."""
    said = (
        f"They are not the best possible attacker, who is right in "
        f"{mechanism.attacker_accuracy:.1%} of the rows (see 'What leaks'): that one knows "
        f"how the release was made, and need not learn it from rows. So models, from the released "
        f"columns alone, are right no more often, but for chance."
    )
    if not _hides_what_leaks(mechanism):
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
