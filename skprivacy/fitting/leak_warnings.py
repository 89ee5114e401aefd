"""Warnings of `fit`: columns that leak, few rows, budgets that protect nothing."""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from .._messages import SENSITIVE, BinsOf, InPython, Message, Named, Setting, aligned, warn
from .._typing import CountArray, FloatArray, IntArray, NamedColumns, Scope
from ..encoding import Alphabet, learn_column
from ..exceptions import FiniteSampleWarning, PrivacyLeakWarning
from ..fitted import Secrets
from ..joint import as_joint, confidence_of_each, count_pairs
from ..measures import KL, Measure
from ..measures.measure import leakage_in, leakage_unchanged
from ..mechanism import FAR_ABOVE, USUAL_CONFIDENCE, Guarantee, Mechanism, name_of_secret
from ..population.limits import rough_limits
from ..utilities import UTILITY_ROUNDING

# A column with more distinct values than this share of its rows is judged by its bins only: that
# nearly every value occurs with a single S says nothing about the next row.
_MOST_DISTINCT = 0.4
_MANY_ROWS = 50

# The share of columns independent of S that get a warning, and the number of draws to judge by:
# between these, so that draws have about this many cells in all.
_CHANCE = 0.05
_DRAWS = 99, 499
_MOST_CELLS = 5_000_000

# With fewer expected changes of the group from row to row, an order says nothing.
_FEWEST_CHANGES = 10

# The same for a quick limit of what leaks in the population.
_QUICK_DRAWS, _QUICK_CELLS = (39, 199), 40_000


def warn_of_bins(names: Sequence[Hashable], alphabet: Alphabet, n_bins: Any) -> None:
    """Warn of sensitive numbers that are cut into bins by default."""
    for name, column in zip(names, alphabet.columns, strict=True):
        if column.edges is not None and not (isinstance(n_bins, dict) and name in n_bins):
            text = Message.of(
                "The sensitive column {name!r} holds numbers with many values: the bin of a "
                "number is protected, not the number within its bin. If they are codes, do not "
                "cut them: {codes}. To choose the bins, give {edges}.",
                name=name,
                codes=BinsOf(name, at_edges=False),
                edges=InPython("edges there", Named("edges")),
            )
            warn(text, PrivacyLeakWarning)


def warn_of_design(
    mechanism: Mechanism,
    secrets: Secrets,
    counts: CountArray,
    group_sizes: CountArray,
    n_rows: int,
) -> None:
    """Warn of what threatens the guarantee, or is hardly what the user wanted.

    counts : of pairs (s, x) for all columns of S, before smoothing; group_sizes : rows for each s,
    without weights; n_rows : the effective number of rows.
    """
    for name, secret in mechanism.secrets.items():
        for text in _about_secret(name, secret, secrets.groups[name].table(counts)):
            warn(text, PrivacyLeakWarning)
    if len(mechanism.secrets) > 1 and mechanism.together is not None:
        largest = max(secret.epsilon for secret in mechanism.secrets.values())
        leakage = mechanism.together.leakage_in(mechanism.scope)
        if leakage > mechanism.measure.budget(largest):  # about all jointly
            warn(_TOGETHER, PrivacyLeakWarning)
    if len(mechanism.x_labels) > 1 and mechanism.normalized_utility < UTILITY_ROUNDING:
        _warn_of_no_utility(mechanism)
    if mechanism.confidence is not None:
        return  # the design allows for chance
    sizes = [groups.table(group_sizes) for groups in secrets.groups.values()]
    if any(len(each) > 1 and each.min() < len(mechanism.x_labels) for each in sizes):
        warn(_FEW_ROWS, FiniteSampleWarning, in_workers=False)
    else:
        warn_of_chance(mechanism, secrets.tables(counts), n_rows)


def _about_secret(name: Any, secret: Guarantee, table: CountArray) -> Iterator[str]:
    secret_name = SENSITIVE if name is None else name_of_secret(name)
    n_s, n_x = table.shape
    if n_s == 1:
        template = "There is nothing to protect: these rows have a single value of {secret}."
        yield Message.of(template, secret=secret_name)
    elif n_x > 1 and ((table > 0).sum(axis=0) <= 1).all():
        yield Message.of(
            "{x} {secret} in these rows: each of their values occurs with a single value of it.",
            x=InPython("X determines", "The released columns determine"),
            secret=secret_name,
        )
    if n_s > 1 and n_x > 1 and secret.epsilon < np.inf and secret.allows_certainty:
        yield Message.of(
            "{epsilon} protects next to nothing: it is so large that a released value may reveal "
            "a group of {secret} with certainty. Use a smaller one.",
            secret=secret_name,
        )


_TOGETHER = Message.of(
    "More is revealed about all sensitive columns together than the largest budget in {epsilon} "
    "allows: separate budgets bound no combination of secrets. A budget for {all} does.{where}",
    all=InPython("their tuple", "all of them joined by a plus"),
    where=InPython(" See summary_.together."),
)

_FEW_ROWS = Message.of(
    "{epsilon} holds for these rows only, and they are few for this budget and so many "
    "released values: in the population they were drawn from, much more may leak. {setting} keeps "
    "the budget there too.{where}",
    setting=Setting("confidence", USUAL_CONFIDENCE),
    where=InPython(" metrics.population_leakage estimates how much may leak."),
)


def _warn_of_no_utility(mechanism: Mechanism) -> None:
    """Warn that the output says nothing; for few rows and a confidence, the design warns."""
    if mechanism.confidence is None:
        why = Message.of("{epsilon} allows no more. Use a larger one.")
    elif min(secret.epsilon for secret in mechanism.secrets.values()) == 0:
        why = Message.of(
            "no number of rows can show that nothing leaks in the population. Use a larger "
            "{epsilon}, or {confidence=None}."
        )
    else:
        return
    warn(Message.of("The output says nothing about {X}: {why}", why=why))


def warn_of_chance(mechanism: Mechanism, tables: Mapping[Any, CountArray], n_rows: int) -> None:
    """Warn if a budget may be far exceeded in the population the rows were drawn from.

    tables : of each secret, before smoothing; n_rows : the effective number of rows.
    """
    if mechanism.confidence is not None:
        return
    confidence = confidence_of_each(USUAL_CONFIDENCE, len(tables))
    for name, secret in mechanism.secrets.items():
        if secret.epsilon == np.inf:
            continue
        counts = tables[name]
        n_draws = int(np.clip(_QUICK_CELLS // counts.size, *_QUICK_DRAWS))
        rows: FloatArray = counts * (n_rows / counts.sum())
        limits = rough_limits(rows, secret.channel, secret.measure, confidence, n_draws)
        if limits.in_scope(secret.scope) > FAR_ABOVE * secret.epsilon:
            warn(_FEW_ROWS, FiniteSampleWarning, in_workers=False)
            return


@dataclass(frozen=True)
class Budget:
    """A budget that columns are judged by."""

    epsilon: float
    measure: Measure
    scope: Scope

    def leakage(self, counts: CountArray) -> float:
        """Return the leakage of a column that is released unchanged; counts : of (s, value)."""
        joint = as_joint(counts, "PrivacyFunnelTransformer")
        return leakage_unchanged(self.scope, self.measure, joint.p_sx)

    def in_scope(self, values: FloatArray, shares: FloatArray) -> float:
        """Return the leakage of a column; values : of each value; shares : of its rows."""
        return leakage_in(self.scope, self.measure, values, shares)


@dataclass(frozen=True)
class Judgement:
    """Leakage of columns that are passed through.

    leaking : the leakage of columns that alone exceed the budget, and not by chance; unclear :
    columns that cannot be judged; secrets : of several secrets, the one that each column reveals
    most about.
    """

    leaking: dict[Any, float]
    unclear: list[Any]
    secrets: Mapping[Any, str] = field(default_factory=dict)

    @classmethod
    def restored(cls, leakage: Mapping[Any, float], names: Container[Any]) -> Judgement:
        """Return the judgement of some columns by `Fitted.leaking`, where NaN is unclear."""
        known = {name: x for name, x in leakage.items() if name in names}
        leaking = {name: x for name, x in known.items() if not np.isnan(x)}
        return cls(leaking, [name for name in known if name not in leaking])

    def by_column(self) -> dict[Any, float]:
        """Return the leakage of columns that exceed the budget, NaN for unclear ones."""
        return self.leaking | dict.fromkeys(self.unclear, np.nan)

    def table(self) -> str:
        """Return a line for each column that leaks, after a line break."""
        rows = [["column", "leaks", "about"]]
        rows += [[str(n), f"{x:.4g}", self.secrets.get(n, "")] for n, x in self.leaking.items()]
        return "\n".join(["", *aligned(rows if self.secrets else [row[:2] for row in rows])])


def judged(
    budget: Budget,
    columns: NamedColumns,
    s_codes: IntArray,
    weights: FloatArray | None,
    *,
    written: Mapping[Any, Sequence[pd.Series]] | None = None,
    in_order: bool = False,
) -> Judgement:
    """Judge columns one by one.

    written : other columns that can be read from some, such as how a text file writes numbers;
    in_order : whether to judge by the order of values only.
    """
    leaking, unclear = {}, []
    for name, column in columns.items():
        try:
            codes = list(_codings(name, _ranks(column) if in_order else column, in_order))
        except (TypeError, ValueError):  # names, lists, mixed types: not ours to encode
            codes = []
        if codes and written:
            codes += [code for more in written.get(name, ()) for code in _codings(name, more)]
        found = [_excess(budget, s_codes, coded, weights) for coded in codes]
        if not found:
            unclear.append(name)
        elif max(found) > 0:
            leaking[name] = max(found)
    return Judgement(leaking, unclear)


def leaking_columns(
    budgets: Mapping[Any, Budget],
    columns: NamedColumns,
    s_codes: Mapping[Any, IntArray],
    weights: FloatArray | None,
    **options: Any,
) -> Judgement:
    """Judge columns by each secret, and keep the secret whose budget is exceeded most.

    options : of `judged`.
    """
    found = {
        name: judged(budget, columns, s_codes[name], weights, **options)
        for name, budget in budgets.items()
    }
    if len(found) == 1:
        return next(iter(found.values()))
    leaking, about = {}, {}
    for column in columns:
        by = {name: each.leaking[column] for name, each in found.items() if column in each.leaking}
        if by:
            worst = max(by, key=lambda name: by[name] / max(budgets[name].epsilon, 1e-12))
            leaking[column], about[column] = by[worst], name_of_secret(worst)
    return Judgement(leaking, next(iter(found.values())).unclear, about)


def _excess(
    budget: Budget, s_codes: IntArray, codes: IntArray, weights: FloatArray | None
) -> float:
    """Return the leakage of a column if it exceeds both the budget and chance; else 0.

    Chance is judged by rows without their weights: a few heavy rows prove nothing.
    """
    counts = count_pairs(s_codes, codes, None)
    leakage = budget.leakage(counts)
    if weights is not None:
        leakage = max(leakage, budget.leakage(count_pairs(s_codes, codes, weights)))
    is_more = leakage > budget.measure.budget(budget.epsilon)
    return leakage if is_more and is_beyond_chance(budget, counts) else 0.0


def _advice_beside(found: Judgement, few: Container[Any], with_least: bool = False) -> Message:
    """Return advice for columns with few values; with_least : name the smallest budget."""
    leaking = {name: leakage for name, leakage in found.leaking.items() if name in few}
    if not leaking:
        return Message("")
    least = ""
    if with_least:  # rounded up to two digits
        largest = max(leaking.values())
        step = 10.0 ** (math.floor(math.log10(largest)) - 1)
        rounded = f"{step * math.ceil(largest / step):.6g}"
        least = f" It must be {rounded} or more, and more with a confidence."
    return Message.of(
        " With few values ({names}), columns can also be named in {beside}: the budget then holds "
        "for them and the release together.{least}",
        names=", ".join(map(str, leaking)),
        least=least,
    )


def warn_of_passed_through(
    found: Judgement,
    epsilon: float | Mapping[Any, float],
    allow_leaking: bool,
    few: Container[Any] = (),
) -> None:
    """Warn of columns that are passed through and should not be, or refuse them.

    epsilon : the budget, or those of several secrets; few : columns that have few values.
    """
    if found.leaking and not allow_leaking:
        text = Message.of(
            "Columns that would be passed through reveal more about {S} on their own than "
            "{budget} allows: {shown}. Release them through the mechanism too, or drop them; "
            "{allow_leaking=True} copies them anyway.{advice}",
            budget=Setting("epsilon", epsilon),
            shown=", ".join(f"{name} ({leakage:.4g})" for name, leakage in found.leaking.items()),
            advice=_advice_beside(found, few, with_least=True),
        )
        raise ValueError(text)
    if found.leaking:
        text = Message.of(
            "Columns that are passed through reveal more about {S} on their own than {epsilon} "
            "allows: {names}. If they are sensitive, list them in {sensitive}; otherwise release "
            "them through the mechanism too, or drop them.{advice}{table}",
            names=", ".join(map(str, found.leaking)),
            advice=_advice_beside(found, few),
            table=InPython(" See summary_.leaking for how much they reveal.", found.table()),
        )
        warn(text, PrivacyLeakWarning)
    if found.unclear:
        advice = Message.of("Drop them; {allow_leaking=True} copies them anyway.")
        text = Message.of(
            "What the columns {unclear} reveal about {S} cannot be judged: nearly every row has a "
            "different value, or types are mixed. {advice}",
            unclear=", ".join(map(str, found.unclear)),
            advice="They are copied: drop them if in doubt." if allow_leaking else advice,
        )
        if not allow_leaking:
            raise ValueError(text)
        warn(text, PrivacyLeakWarning)


def warn_of_index(found: Judgement) -> None:
    """Warn of an index that is released with the rows."""
    if found.unclear:
        warn_of_unjudged([f"{name} (the index)" for name in found.unclear])
    if found.leaking:
        text = Message.of(
            "The index of X is released with its rows, and the order of its values alone reveals "
            "more about S than {epsilon} allows ({names}): drop it first, "
            "X.reset_index(drop=True), and shuffle rows that are sorted by S.",
            names=", ".join(map(str, found.leaking)),
        )
        warn(text, PrivacyLeakWarning)


def is_nearly_sorted(codes: IntArray) -> bool:
    """Whether equal codes stand together far more than in a random order."""
    shares = np.bincount(codes) / len(codes)
    expected = (len(codes) - 1) * (1 - (shares**2).sum())
    if expected < _FEWEST_CHANGES:
        return False
    n_changes = np.count_nonzero(codes[1:] != codes[:-1])
    is_sorted = n_changes < np.count_nonzero(shares)
    return bool(is_sorted or n_changes < expected / 2 - 3 * np.sqrt(expected))


def warn_of_order() -> None:
    """Warn of rows that are sorted by S."""
    text = (
        "The rows of X are sorted by S, or nearly, and are released in this order, which reveals "
        "S: shuffle them first, X.sample(frac=1)."
    )
    warn(text, PrivacyLeakWarning)


def warn_of_unjudged(names: Sequence[Hashable]) -> None:
    """Warn of columns that are passed through without having been judged."""
    if names:
        warn(
            f"What the columns {', '.join(map(str, names))} reveal about S is not measured, and "
            f"they are passed through: fit some rows in memory to have them judged, or drop them "
            f"if in doubt.",
            PrivacyLeakWarning,
        )


def _ranks(column: pd.Series) -> pd.Series:
    """Return the ranks of values; missing ones stay missing."""
    try:
        codes, _ = pd.factorize(column, sort=True)
    except TypeError:  # without an order
        codes, _ = pd.factorize(column.map(repr), sort=True)
    return pd.Series(codes).where(codes >= 0)


def _codings(name: Hashable, column: pd.Series, in_order: bool = False) -> Iterator[IntArray]:
    """Yield the codes of a column by value and by bin.

    Neither if nearly every row has a different value and there are no bins.
    """
    if not in_order:
        n_rows = len(column)
        alphabet, codes = learn_column(column, None, name, n_bins=None)
        # In few rows, values that are not all different may say something.
        most = n_rows - 1 if n_rows < _MANY_ROWS else _MOST_DISTINCT * n_rows
        if alphabet.n_symbols <= most:
            yield codes
    alphabet, codes = learn_column(column, None, name)
    if in_order or alphabet.edges is not None:
        yield codes


def is_beyond_chance(budget: Budget, counts: CountArray) -> bool:
    """Whether a column leaks more than one independent of S would, in 95% of cases.

    Two figures are compared with those of columns with the same frequencies that are independent
    of S: the leakage, and the mutual information, which is not drowned out by many values that
    occur once. Each may exceed chance in half of the remaining cases.
    """
    counts = counts[:, counts.sum(axis=0) > 0]
    sizes, prior = counts.sum(axis=0), counts.sum(axis=1) / counts.sum()
    shares = sizes / sizes.sum()

    def figures(posteriors: FloatArray) -> tuple[float, float]:
        information = shares @ KL().value(posteriors, prior)
        return budget.in_scope(budget.measure.value(posteriors, prior), shares), float(information)

    observed = figures((counts / counts.sum(axis=0)).T)
    n_draws = int(np.clip(_MOST_CELLS // counts.size, *_DRAWS))
    rng = np.random.default_rng(0)  # the same rows are always judged alike
    drawn = [figures(rng.multinomial(sizes, prior) / sizes[:, None]) for _ in range(n_draws)]
    n_above = (np.array(drawn) >= observed).sum(axis=0)
    return bool(((n_above + 1) / (n_draws + 1) <= _CHANCE / 2).any())
