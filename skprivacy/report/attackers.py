"""Report: attacks on the release, and groups and values with few rows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._messages import in_points, listed
from .._typing import ColumnsLike, CountArray, IntArray, TableLike
from ..cells import CellAlphabet
from ..describing import SecretSummary
from ..describing.numbers import percent, shown
from ..encoding.columns import FEWEST_ROWS
from ..encoding.dependencies import contradictions
from ..encoding.rows import FEWEST_IN_LEAF
from ..fitted import Fitted
from ..fitting.held_out import known_codes
from ..fitting.inputs import sensitive_again
from ..fitting.parameters import Settings
from ..metrics import audit, linkage
from ..metrics.attack import Attacker, Splits, attack_notes
from ..releasing.output_names import names_out
from ..tables.frames import as_table
from .layout import Section, Table, facts, rows_text

_OWNER = "PrivacyReport"

# If the best guess is the same for more than this share of the rows, guesses show nothing; leakage
# below the second is rounding.
_NEARLY_ALL, _NO_LEAKAGE = 0.99, 1e-9

_WHY_NOTHING = (
    "This is no sign that nothing leaks: for nearly every released row, the best guess is the "
    "commonest group. Judge by how far probabilities move."
)


@dataclass(frozen=True, eq=False)
class Attacked:
    """Rows and their release, and how to attack them: parameters of `audit`.

    groups : of each row, by secret: S as it is protected, with numbers in their bins.
    """

    df: TableLike
    groups: Mapping[Any, IntArray]
    released: TableLike
    attacker: Attacker | None
    cv: Splits
    confidence: float

    def published(self, fitted: Fitted) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the columns that are published with values, before and after the release."""
        roles = fitted.roles
        table, out = (as_table(frame, _OWNER) for frame in (self.df, self.released))
        at, names = roles.match(table, _OWNER), {p: str(roles.name(p)) for p in roles.order}
        every = [str(name) for name in names_out(roles, fitted.posterior.labels, "label")]
        before = _frame({names[p]: table.column(at[p]) for p in roles.order})
        return before, _frame({n: out.column(every.index(n)) for n in names.values()})


def groups_of(
    fitted: Fitted, settings: Settings, df: TableLike, sensitive_features: ColumnsLike | None
) -> dict[Any, IntArray]:
    """Return the group of each secret in each row."""
    training = fitted.training
    assert training is not None  # checked by from_estimator
    table = as_table(df, _OWNER)
    s_columns = sensitive_again(fitted, settings, table, None, sensitive_features)
    return {name: known_codes(training, name, s_columns) for name in training.secrets.groups}


def best_attacker(secret: SecretSummary) -> str:
    """Return sentences on the best possible attacker, and on whether guesses show anything."""
    said = secret.attacker()
    is_unsaid = _hides_what_leaks(secret) and not secret.is_guess_fixed
    return f"{said} {_WHY_NOTHING}" if is_unsaid else said


def _hides_what_leaks(secret: SecretSummary) -> bool:
    """Whether something leaks that guesses cannot show, because they are nearly all the same."""
    given_y, p_y = secret.secret.sensitive_posterior, secret.release.mechanism.p_y
    is_same = given_y.argmax(axis=1) == np.argmax(given_y.T @ p_y)
    return float(p_y[is_same].sum()) > _NEARLY_ALL and secret.secret.max_leakage > _NO_LEAKAGE


def no_attack(protected: str) -> Section:
    """Return the section for a release that was not attacked; protected : the names of S."""
    text = (
        f"No attack was tried: no model was trained to guess {protected} from the release. How "
        f"often the best possible attacker is right is known without one: see 'What leaks'."
    )
    return Section("Attacked", [text])


def attack_section(
    fitted: Fitted, settings: Settings, attacked: Attacked, secret: SecretSummary
) -> Section:
    """Return the section on how well trained models guess a secret."""
    title = f"Attacked, for {secret.name}" if secret.is_one_of_several else "Attacked"
    try:
        figures = _figures(fitted, settings, attacked, secret.key)
    except ValueError as error:  # a group of few rows, say
        return Section(title, [f"No attack was made. {error}"])
    n_rows = as_table(attacked.df, _OWNER).n_rows
    again = "a fresh release of each" if settings.random_state is None else "their release"
    text = (
        f"Models were trained to guess {secret.name} on parts of {n_rows:,} rows with {again}, "
        f"and tested on the other rows: from the columns before binning and pooling (raw), and "
        f"from the released ones. The advantage is how much more often they are right "
        f"than a blind guess."
    )
    table = Table(f"How well {secret.name} can be guessed", _attacks(figures, attacked.confidence))
    compared = (
        f"The best possible attacker is right in {secret.secret.attacker_accuracy:.1%} of the "
        f"rows (see 'What leaks'): it knows how the release was made, and need not learn that "
        f"from rows. From the released columns alone, models are right no more often, except by "
        f"chance."
    )
    if _hides_what_leaks(secret):
        compared += " No guess can show here what the release leaks, and so these cannot either."
    return Section(title, [text, compared, *attack_notes(figures)], [table])


def _figures(fitted: Fitted, settings: Settings, attacked: Attacked, secret: Any) -> pd.DataFrame:
    """Return the audit of a release for one secret."""
    assert fitted.training is not None
    roles = fitted.roles
    table, out = (as_table(frame, _OWNER) for frame in (attacked.df, attacked.released))
    raw = [table.column(position) for position in roles.read_in(table, _OWNER)]
    others = {str(roles.name(p)) for p in roles.kept_positions}
    names = map(str, names_out(roles, fitted.posterior.labels, settings.output))
    columns = {name: out.column(position) for position, name in enumerate(names)}
    released = {name: column for name, column in columns.items() if name not in others}
    beside = {name: column for name, column in columns.items() if name in others}
    # S as it is protected: numbers in their bins.
    groups = attacked.groups[secret]
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
    return pd.DataFrame({str(k): column.reset_index(drop=True) for k, column in columns.items()})


# Whether people can be found, before and after the release. No budget bounds this.


_WHAT_IS_FOUND = (
    "No budget bounds these figures: the guarantee is about {protected}. They compare {n_rows:,} "
    "rows as they are with {a_release} of them, in the published columns. Somebody whose row is "
    "like no other can be singled out by whoever knows these values. A released row that is "
    "verbatim in the table need not be about the person whose row that is: {why}."
)
_REPLACED, _MADE_UP = "values are replaced at random", "rows are made up"
_WHAT_LINKAGE_IS = (
    "In the linkage test, somebody knows all columns of a person but one, looks for rows that "
    "agree, and reads the last column from them. The figure is how much more often this is right "
    "for people in the table than for others, who had nothing to do with it{how}. An interval "
    "that holds 0 shows no link between a person and a row."
)
_HALVES = ": one half of the rows stands for the table, the other for these others"

# With fewer rows, chance decides a search for people.
_FEWEST_LINKED = 200


def reidentification_section(
    fitted: Fitted, settings: Settings, attacked: Attacked, protected: str
) -> list[Section]:
    """Return the section on people who could be found, if values are released.

    protected : the names of S.
    """
    if settings.output != "label" or not fitted.roles.order:
        return []
    before, after = attacked.published(fitted)
    is_made_up = _is_made_up(fitted, settings)
    again = "a fresh release" if settings.random_state is None else "the release"
    said = [
        _WHAT_IS_FOUND.format(
            protected=protected,
            n_rows=len(before),
            a_release=again,
            why=_MADE_UP if is_made_up else _REPLACED,
        )
    ]
    figures = singled_out(before, after)
    has_person = fitted.roles.person_position is not None
    if len(before.columns) > 1 and len(before) >= _FEWEST_LINKED and not has_person:
        figures |= _linkages(fitted, is_made_up, before, after, attacked.confidence)
        said.append(_WHAT_LINKAGE_IS.format(how=_HALVES))
    cells = pd.DataFrame.from_dict(figures, orient="index", columns=["before", "after"])
    names = listed(before.columns)
    caption = (
        f"People who could be found, by {names if len(before.columns) < 5 else 'all columns'}"
    )
    tables = [Table(caption, cells.rename_axis("figure"))]
    if is_made_up:
        said.append(_WHAT_MADE_UP_ROWS_ARE.format(fewest=FEWEST_IN_LEAF, rare=FEWEST_ROWS))
        tables += _dependencies(fitted, before, after, said)
    return [Section("Re-identification, before and after", said, tables)]


def singled_out(before: pd.DataFrame, after: pd.DataFrame) -> dict[str, list[str]]:
    """Return shares of unique rows, and of rows that are in the table, before and after."""
    rows = _row_codes(before, after)
    parts = rows[: len(before)], rows[len(before) :]
    counts = [np.bincount(part, minlength=rows.max() + 1) for part in parts]
    unique = [np.mean(count[part] == 1) for count, part in zip(counts, parts, strict=True)]
    figures = {
        "rows like no other": [f"{x:.1%}" for x in unique],
        "rows verbatim in the table": [
            "100.0%",
            f"{np.mean(counts[0][parts[1]] > 0):.1%}",
        ],
    }
    if (alone := counts[0] == 1).any():
        found = ["100.0%", f"{np.mean(counts[1][alone] > 0):.1%}"]
        figures["rows like no other, found verbatim"] = found
    return figures


def _row_codes(before: pd.DataFrame, after: pd.DataFrame) -> IntArray:
    """Return a code for each row of two tables; equal rows have the same."""
    both = pd.concat([before.astype(object), after.astype(object)], ignore_index=True)
    codes = [pd.factorize(both[name], use_na_sentinel=False)[0] for name in both]
    found: IntArray = np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1]
    return found.reshape(-1)


def _linkages(
    fitted: Fitted,
    is_made_up: bool,
    before: pd.DataFrame,
    after: pd.DataFrame,
    confidence: float,
) -> dict[str, list[str]]:
    """Return how much better people of one half of the rows are guessed than of the other.

    Made-up rows are made up anew, by a model of the first half.
    """
    halves = np.array_split(np.random.default_rng(0).permutation(len(before)), 2)
    members, others = (before.iloc[half] for half in halves)
    released = after.iloc[halves[0]]
    if is_made_up:
        alphabet: Any = fitted.alphabet.x_alphabet
        names = [str(fitted.roles.name(p)) for p in fitted.roles.x_positions]
        made = alphabet.made_up_anew([members[name] for name in names], names, seed=0)
        released, members, others = made, members[names], others[names]
        if len(names) < 2:
            return {}
    texts = []
    for rows in (members, released):
        found = linkage(rows, members, others, confidence=confidence).iloc[-1]
        points = [f"{100 * found[name]:+z.1f}" for name in ("difference", "low", "high")]
        texts.append("{} ({} to {})".format(*points))
    return {f"linkage, in points ({percent(confidence)} interval)": texts}


# Rows that are made up from cells, and what they contradict.


_WHAT_MADE_UP_ROWS_ARE = (
    "Released rows are made up, and copied from nobody. A cell is drawn from the released symbol, "
    "and the columns of a row are drawn together from what people in similar rows have: at least "
    "{fewest} of them, or {rare} where a value has to go with that of another column. Values that "
    "fewer than {rare} people have are not shown. The budget covers all of it, because it depends "
    "on the released symbol alone."
)


def _is_made_up(fitted: Fitted, settings: Settings) -> bool:
    """Whether columns of released rows are drawn together."""
    alphabet = fitted.alphabet.x_alphabet
    is_joint = settings.output == "label" and settings.made_up != "column_by_column"
    return is_joint and isinstance(alphabet, CellAlphabet) and alphabet.row_model is not None


def _dependencies(
    fitted: Fitted, before: pd.DataFrame, after: pd.DataFrame, said: list[str]
) -> list[Table]:
    """Return what follows from another column, and add the number of contradictions."""
    columns = fitted.alphabet.x_alphabet.columns
    names = [str(fitted.roles.name(p)) for p in fitted.roles.x_positions]
    positions = [
        [column.positions(rows[n], n) for column, n in zip(columns, names, strict=False)]
        for rows in (before, after)
    ]
    found, n_wrong = contradictions(columns[: len(names)], *positions)
    said.append(f"{n_wrong:,} of {len(after):,} released rows contradict a dependency of columns.")
    if not found:
        return []
    texts = {
        f"{names[b]} follows from {names[a]}": f"{n:,} of {len(after):,} rows contradict it"
        for a, b, n in found
    }
    return [facts("Exact dependencies of the table", texts)]


# Rare values are counted and not named: each may be that of one person.


def small_numbers(fitted: Fitted, protected: str, pooled: float) -> Section:
    """Return the section on groups, symbols and values with few rows.

    protected : the names of S; pooled : the share of rows whose values are pooled.
    """
    assert fitted.training is not None  # or there would be no report
    smallest = _smallest(fitted, fitted.training.counts, protected)
    found = _rare_values(fitted)
    people = "rows" if fitted.roles.person_position is None else "people"
    if found.empty:
        text = (
            f"No value of a column is pooled, and none is rare: each has at least {FEWEST_ROWS} "
            f"{people}. Combinations of values may have fewer, as the table shows."
        )
        return Section("Appendix: small numbers", [text], [smallest])
    said = [
        f"A value is rare if fewer than {FEWEST_ROWS} {people} have it. Rare values are counted "
        f"here, not listed. In a pool or a cell, a commoner value is shown instead of them."
    ]
    if n := int(found["rare and shown"].sum()):
        said.append(
            f"Rare values that are not in a pool can appear in the release: {n:,} here. To avoid "
            f"that, pool values with fewer than {FEWEST_ROWS} {people}."
        )
    if pooled:
        said.append(f"{pooled:.1%} of the rows have values that are pooled.")
    table = Table("Pooled and rare values, column by column", found.map("{:,}".format))
    return Section("Appendix: small numbers", said, [smallest, table])


def _smallest(fitted: Fitted, counts: CountArray, protected: str) -> Table:
    """Return the smallest numbers of rows: of a group, a symbol, and a pair of both."""
    assert fitted.training is not None
    by_group, by_symbol = counts.sum(axis=1), counts.sum(axis=0)
    rarest = fitted.training.alphabet.labels[int(np.argmin(by_group))]
    symbol = "cell" if fitted.alphabet.of_cells else "symbol"
    few = np.count_nonzero((by_symbol > 0) & (by_symbol < FEWEST_ROWS))
    rare = f"; {few:,} of {len(by_symbol):,} have fewer than {FEWEST_ROWS}" if few else ""
    empty = np.count_nonzero(counts == 0)
    none = f"; {empty:,} of {counts.size:,} pairs have none" if empty else ""
    texts = {
        f"group of {protected}": f"{rows_text(by_group.min())} ({shown(rarest)})",
        symbol: f"{rows_text(by_symbol[by_symbol > 0].min())}{rare}",
        f"pair of group and {symbol}": f"{rows_text(counts[counts > 0].min())}{none}",
    }
    return facts("The smallest", texts)


def _rare_values(fitted: Fitted) -> pd.DataFrame:
    """Return the numbers of pooled and rare values, for columns that have any."""
    alphabet, figures = fitted.alphabet.x_alphabet, []
    for column, named in zip(alphabet.columns, alphabet.shown, strict=True):
        alone = {named.values[code] for code in named.single[named.single >= 0]}
        rare, is_there = column.is_rare & (column.weights > 0), column.weights > 0
        is_shown = [value in alone for value in itertools.compress(column.values, rare)]
        sizes = np.bincount(column.symbols[column.symbols >= 0], minlength=column.n_symbols)
        n_pooled = int(sizes[sizes > 1].sum())
        figures.append([sum(is_shown), int(rare.sum()), n_pooled, int(is_there.sum())])
    names = pd.Index([str(name) for name in fitted.x_names], name="column")
    found = pd.DataFrame(figures, names, ["rare and shown", "rare", "pooled", "values or bins"])
    return found[found[["pooled", "rare"]].any(axis=1)]
