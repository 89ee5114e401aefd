"""ReleaseSummary: the figures of a release, its verdict, and sentences about them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any, Self

import numpy as np
import pandas as pd

from .._messages import Setting, in_points, listed
from .._typing import FloatArray, IntArray, Labels, Scope
from ..fidelity import Fidelity
from ..measures import Measure
from ..measures.measure import posterior_ranges
from ..utilities import UTILITY_ROUNDING
from .face_value import at_face_value, fidelity_facts
from .numbers import (
    NO_MOVE,
    Range,
    at_most,
    figure,
    limit,
    name_of_secret,
    percent,
    rounded_up,
    shown,
)
from .verdict import (
    CAUTION,
    DEFAULT_SCALE,
    FAIL,
    PASS,
    STATUS,
    Learned,
    Scale,
    Verdict,
    learned_beside,
    verdict_of,
    worst,
)

# Maximum number of rows and columns in the HTML table: the most frequent symbols.
_MOST_SYMBOLS = 12

_STYLE = (
    "<style>"
    ".skprivacy-mechanism {font-size: .9em; line-height: 1.45; max-width: 60em}"
    ".skprivacy-mechanism p {margin: .2em 0}"
    ".skprivacy-mechanism div {overflow-x: auto}"
    ".skprivacy-mechanism table {border-collapse: collapse; margin-top: .6em; font-size: .9em}"
    ".skprivacy-mechanism caption {text-align: left; padding-bottom: .3em}"
    ".skprivacy-mechanism th {font-weight: normal; text-align: left; padding: .15em .5em}"
    ".skprivacy-mechanism tbody th {white-space: nowrap}"
    ".skprivacy-mechanism td {text-align: right; padding: .15em .5em; min-width: 3em}"
    "</style>"
)


def as_html(
    sentences: Sequence[str],
    channel: FloatArray,
    shares: tuple[FloatArray, FloatArray],
    labels: tuple[Labels, Labels],
) -> str:
    """Return an HTML fragment; shares, labels : of X and of Y."""
    rows, columns = (
        sorted(np.argsort(-share, kind="stable")[:_MOST_SYMBOLS].tolist()) for share in shares
    )
    left_out = sum(channel.shape) - len(rows) - len(columns)
    caption = "The channel: how often a value of X (rows) is released as each value (columns)"
    caption += ", for the most frequent ones" if left_out else ""
    texts = [[escape(shown(label)[1:-1]) for label in names] for names in labels]
    head = "".join(f'<th scope="col">{texts[1][y]}</th>' for y in columns)
    body = ""
    for x in rows:
        body += f'<tr><th scope="row">{texts[0][x]}</th>'
        for share in channel[x, columns]:  # the background shows it on light and dark pages
            text = f"{share:.0%}" if share >= 0.005 else ""
            body += f'<td style="background: rgba(66, 133, 200, {0.75 * share:.2f})">{text}</td>'
        body += "</tr>"
    paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    return (
        f'{_STYLE}<div class="skprivacy-mechanism">{paragraphs}<div><table>'
        f"<caption>{caption}</caption><thead><tr><td></td>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div></div>"
    )


# Below the first confidence, a limit counts as none; below the second, no protection is strong.
_LEAST_CONFIDENCE, _STRONG_CONFIDENCE = 0.5, 0.9

# A group that can become this many times as likely is mentioned, however rare it is.
_MUCH_LIKELIER = 1.5

_NOT_COVERED = "This does not cover people who already know a column"

_TREATMENTS = {
    "randomised": "replaced by a randomised release",
    "made coarser": "made coarser, without noise",
    "unchanged": "released unchanged, without noise",
}

# More columns than this are counted rather than listed.
_FEW_COLUMNS = 4


@dataclass(frozen=True, eq=False, repr=False)
class SecretSummary:
    """The leakage about one secret, in figures and words; made by `ReleaseSummary`.

    Attributes
    ----------
    release : ReleaseSummary
        The summary of the whole release.
    key : hashable
        The name of the secret among the budgets; None if epsilon is a single number.
    name : str
        Its name in sentences.
    secret : Guarantee
        Its leakage and its budget.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
    >>> secret = mechanism.summary().secrets[None]
    >>> secret.epsilon, round(secret.leakage, 6), secret.verdict.level
    (0.02, 0.02, 'moderate')
    """

    release: ReleaseSummary
    key: Any
    name: str
    secret: Any  # a Guarantee, whose module imports this one

    @property
    def epsilon(self) -> float:
        """The budget."""
        return self.secret.epsilon

    @property
    def is_one_of_several(self) -> bool:
        """Whether there are other secrets."""
        return len(self.release.secrets) > 1

    @property
    def is_known(self) -> bool:
        """Whether the joint distribution is known; otherwise, a file merely claims the budget."""
        return self.secret.p_sx is not None

    @property
    def n_groups(self) -> int:
        """The number of groups; 0 if unknown."""
        return len(self.secret.s_labels or ())

    @property
    def leakage(self) -> float:
        """The leakage in the rows, in the scope of the budget; NaN if unknown."""
        return float(self.secret.leakage_in(self.release.scope)) if self.is_known else math.nan

    @property
    def limits(self) -> Any:
        """Limits for the population, from the design or `with_limits`; None if there are none."""
        if not self.is_known:
            return None
        return self.secret.population_limit or self.release.limits.get(self.key)

    @property
    def limit(self) -> float | None:
        """Upper limit of the leakage in the population, in the scope of the budget, or None."""
        return None if self.limits is None else self.limits.leakage_in(self.release.scope)

    @property
    def is_within(self) -> bool:
        """Whether the limit for the population, if there is one, is within the budget."""
        return self.limit is None or self.limit <= self.release.measure.budget(self.epsilon)

    @property
    def in_rows(self) -> Any:
        """The leakage in the rows; with smoothing, differs from that under the design's joint."""
        return self.release.before_smoothing.get(self.key, self.secret)

    @property
    def guaranteed(self) -> float:
        """The leakage that the design guarantees not to exceed.

        With a confidence, the limit for the population; otherwise epsilon, or the leakage in the
        rows if smoothing made that larger.
        """
        if not self.release.is_sure or self.limit is None:
            return float(self.in_rows.epsilon)
        return min(self.limit, self.epsilon)

    @cached_property
    def ranges(self) -> pd.DataFrame:
        """How far a released value moves the probability of each group, one row per group.

        As `posterior_ranges` of a mechanism, with `guaranteed` in place of the budget. In the
        population, a group without rows may merely be rare: it counts as one row.
        """
        ranges: pd.DataFrame = self.in_rows.posterior_ranges()
        if self.release.is_sure and self.release.n_samples:
            ranges["prior"] = ranges["prior"].clip(lower=1 / self.release.n_samples)
        if self.release.scope == "per_output":
            allowed = posterior_ranges(
                self.release.measure, ranges["prior"].to_numpy(), self.guaranteed
            )
            ranges["allowed_low"], ranges["allowed_high"] = allowed.T
        return ranges

    def moves(self, kind: str = "") -> list[Range]:
        """Return the range of each group; kind : "allowed" or "reached".

        By default the allowed one or, if the budget is on average, the one reached.
        """
        kind = kind or ("allowed" if self.release.scope == "per_output" else "reached")
        columns = self.ranges[["prior", f"{kind}_low", f"{kind}_high"]].to_numpy()
        return [Range(*map(float, row)) for row in columns]

    @property
    def most_exposed(self) -> int:
        """Position of the group that moves the furthest; of equal ones, the rarest."""
        found = self.moves()
        return max(range(len(found)), key=lambda i: (round(found[i].width, 9), found[i].growth))

    @cached_property
    def verdict(self) -> Verdict:
        """How well this secret is protected."""
        ranges = [] if self._why_unknown() else self.moves()
        is_sure = (self.release.confidence or 0) >= _STRONG_CONFIDENCE
        return verdict_of(ranges, self.release.scope, is_sure, self.release.scale)

    @cached_property
    def learned(self) -> dict[str, Learned | None]:
        """What is told to somebody who already knows the true value of a column.

        For each released column and each beside. **No budget bounds it.** For a binned or pooled
        column, the bin or the pool is known, and the value itself may reveal more. None if it is
        unknown: cells have no values.
        """
        if (p_sx := self.in_rows.p_sx) is None:
            return {}
        about = p_sx, self.release.mechanism.channel, self.release.measure
        names = (*self.release.released, *self.release.beside)
        return {
            name: None if codes is None else learned_beside(*about, codes, self.release.far)
            for name, codes in zip(names, self.release.codes, strict=False)
        }

    @property
    def known_columns(self) -> dict[str, float | None]:
        """The leakage to somebody who already knows the true value of a column: of `learned`."""
        return {name: None if x is None else x.leakage for name, x in self.learned.items()}

    def protection(self) -> str:
        """Return a sentence on how well it is protected, and for which rows."""
        if why := self._why_unknown():
            return why
        found = self.verdict
        if found.level == "none":
            return f"No protection of {self.name}: {self._what_may_happen()}."
        how = found.level.capitalize()
        if self.release.scope == "per_output":
            return f"{how} protection of {self.name}{self.release.for_whom()}: {found.in_words()}."
        return (
            f"{how} protection of {self.name}: a budget on average bounds no single released "
            f"value. {self.release.where()}, {found.in_words()}."
        )

    def _what_may_happen(self) -> str:
        """Return why there is no protection, without a full stop."""
        if self.release.scope == "average":
            return self.verdict.in_words()
        reached = max(found.width for found in self.moves("reached"))
        return (
            f"the budget allows a released value to {' and '.join(self.verdict.reasons)}. In "
            f"these rows, no probability moves by more than {rounded_up(100 * reached, 1)} points"
        )

    def _why_unknown(self) -> str:
        """Return why there is no verdict; empty if there is one."""
        if not self.is_known:
            return (
                f"How well {self.name} is protected is not known here: look at the summary where "
                f"the mechanism was fitted."
            )
        if (self.ranges["prior"] > 0).sum() < 2:
            return f"The rows have a single group of {self.name}: nothing is known about others."
        if self.release.scope == "average" or self.release.measure.is_monotone:
            return ""
        return (
            f"How well {self.name} is protected is not known: if merging groups never raises your "
            f"measure, set its is_monotone."
        )

    def revealed(self) -> str:
        """Return a sentence with the budget and the leakage, in the rows and the population."""
        is_worst = self.release.scope == "per_output"
        who = "each released value reveals" if is_worst else "released values reveal"
        how = "" if is_worst else " on average"
        said = f"{who} at most epsilon = {limit(self.epsilon, 6)} about {self.name}{how}"
        measure, sure = self.release.measure.name, self.release.confidence
        if sure is None:
            known = f"reached: {figure(self.leakage)}" if self.is_known else "as its file claims"
            if (unsmoothed := self.release.before_smoothing.get(self.key)) is not None:
                reached = figure(unsmoothed.leakage_in(self.release.scope))
                known += f"; in the rows, before smoothing: {reached}"
            return f"{self.release.where()}, {said} ({measure}; {known})."
        known = "as its file claims"
        if self.limit is not None:
            known = f"limit: {limit(self.limit)}; in these rows: {figure(self.leakage)}"
        return (
            f"In the population the rows were drawn from, {said}, with {percent(sure)} "
            f"confidence, from {self.release.n_samples:,.0f} rows ({measure}; {known})."
        )

    def in_population(self) -> str:
        """Return a sentence on the population, if the budget was enforced for the rows only."""
        if self.release.is_sure or self.limits is None or self.limit is None:
            return ""
        said = (
            f"In the population the rows were drawn from, up to {limit(self.limit)} may leak "
            f"about {self.name} ({percent(self.limits.confidence)} confidence)"
        )
        if self.limits.confidence < _LEAST_CONFIDENCE:
            return f"{said}."
        kept = "within" if self.is_within else "above"
        return f"{said}, {kept} the budget of {limit(self.epsilon, 6)}."

    def exposure(self, show_groups: bool = False) -> str:
        """Return a sentence on how far a released value can move the probability of a group.

        show_groups : whether to name groups.
        """
        if not self.is_known:
            return ""
        found, widest = self.moves(), self.most_exposed
        labels = [shown(label) for label in self.secret.s_labels or ()]
        if found[widest].width < NO_MOVE:
            return "No released value moves the probability of any group."
        group = labels[widest] if show_groups else "the most exposed group"
        text = (
            f"A released value can move the probability of {group} from {found[widest].in_words()}"
        )
        if self.release.scope == "average":
            return f"{text} in these rows; a budget on average bounds no single value."
        rarest = max(range(len(found)), key=lambda i: found[i].growth)
        if rarest != widest and found[rarest].growth >= _MUCH_LIKELIER:
            rare, group = found[rarest], labels[rarest] if show_groups else "another group"
            text += f", and that of {group} from {rare.prior:.1%} to {rare.ends()[1]}"
        return f"{text}, at most, if groups have the same shares as here."

    def guess(self, show_groups: bool = False) -> str:
        """Return what whoever sees a released row can do to a guess, as one sentence.

        show_groups : whether to name the group that moves the furthest.
        """
        if why := self._why_unknown():
            return why
        found, who = self.moves()[self.most_exposed], "Whoever sees a released row"
        about = f"a guess about {self.name}"
        if show_groups:
            label = shown((self.secret.s_labels or ())[self.most_exposed])[1:-1]
            about = f"the guess that {self.name} is {label}"
        if found.width < NO_MOVE:
            return f"{who} cannot move {about} at all."
        if self.release.scope == "average":
            return f"{who} may move {about} by any amount: a budget on average bounds no row."
        return f"{who} can move {about} from {found.in_words()}, at most."

    @property
    def is_guess_fixed(self) -> bool:
        """Whether the budget lets no released value make another group the most probable."""
        low, high = (self.ranges[f"allowed_{end}"].to_numpy() for end in ("low", "high"))
        commonest = int(np.argmax(self.ranges["prior"]))
        return bool((np.delete(high, commonest) < low[commonest]).all())  # NaN fails

    def attacker(self) -> str:
        """Return sentences comparing the best possible attacker with a blind guess."""
        right, more = self.in_rows.attacker_accuracy, self.in_rows.attacker_advantage
        more_often = (
            f"This release reaches {in_points(more, '.2f')} more than a blind guess; its budget "
            f"allows at most {rounded_up(100 * self.in_rows.advantage_bound, 2)} points."
        )
        if self.is_guess_fixed:
            more_often = (
                "The budget allows no more: whatever is released, the most frequent group stays "
                "the most probable. Its probability moves all the same: judge by how far."
            )
        return (
            f"The best possible attacker knows how the release was made, and how {self.name} "
            f"relates to the true values in these rows. From one released value, this attacker "
            f"guesses {self.name} correctly in {right:.1%} of the rows; a blind guess is right in "
            f"{right - more:.1%}. {more_often}"
        )

    @property
    def known_best(self) -> tuple[str, float]:
        """The column whose knowledge reveals most, and the leakage given it."""
        known = {name: x for name, x in self.known_columns.items() if x is not None}
        return max(known.items(), key=lambda each: round(each[1], 9), default=("", 0.0))

    @property
    def exceeded_by_knowing(self) -> list[str]:
        """The columns whose knowledge lets somebody learn more than the budget allows."""
        budget = self.release.measure.budget(self.epsilon)
        return [name for name, leakage in self.known_columns.items() if (leakage or 0.0) > budget]

    def known_in_words(self) -> str:
        """Return the leakage to somebody who knows a column in words, without a full stop."""
        name, _ = self.known_best
        found, kind = self.learned.get(name) or Learned(), self.release.coarse.get(name)
        what = f"the {kind} of {name}" if kind else f"the true {name}"
        more = "; the exact value may reveal more" if kind else ""
        return f"whoever knows {what} {found.in_words(self.name, self.release.far)}{more}"

    def to_dict(self, show_groups: bool = False) -> dict[str, Any]:
        """Return the figures for machines; show_groups : whether to name groups."""
        facts: dict[str, Any] = {
            "secret": list(self.key) if isinstance(self.key, tuple) else self.key,
            "epsilon": self.epsilon,
            "verdict": self.verdict.level,
            "points": self.verdict.points,
            "factor": self.verdict.factor,
            "guaranteed": self.guaranteed,
            "max_leakage": None,
            "average_leakage": None,
            "population_limit": self.limit,
            "attacker_accuracy": None,
            "blind_guess": None,
            "known_columns": self.known_columns,
            "groups": [],
        }
        if self.is_known:
            right, more = self.in_rows.attacker_accuracy, self.in_rows.attacker_advantage
            groups: list[Any] = self.ranges.to_dict("records")
            if show_groups:
                names = [{"group": shown(label)[1:-1]} for label in self.secret.s_labels or ()]
                groups = [name | each for name, each in zip(names, groups, strict=True)]
            facts |= {
                "max_leakage": self.secret.max_leakage,
                "average_leakage": self.secret.average_leakage,
                "attacker_accuracy": right,
                "blind_guess": right - more,
                "groups": groups,
            }
        return facts


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseSummary:
    """What a release leaks and keeps: all figures that are printed about it, and sentences.

    Made by `PrivacyFunnelTransformer.summary_` and `Mechanism.summary`. Sentences name no group of
    S unless that is asked for. Limits are rounded outwards in sentences, and exact as attributes.

    Attributes
    ----------
    secrets : dict of SecretSummary
        What leaks about each secret, by its name among the budgets: `leakage` in the rows, `limit`
        for the population, `guaranteed`, `ranges` of the probability of each group, `verdict`, and
        `known_columns`, which no budget bounds. The key is None if epsilon is a single number.
    verdict : Verdict
        How well the worst protected secret is protected: "strong", "moderate", "weak", "unknown"
        or "none".
    status : str
        "PASS" for a strong or moderate verdict, "CAUTION" for a weak one, "NO VERDICT" for an
        unknown one, "FAIL" for none, or if a copied column leaks more than the budget. At best
        "CAUTION" if a copied column could not be judged, if a limit for the population is above
        the budget, or if all secrets together leak more than the sum of their budgets.
    kept : float
        The share of the utility that is kept, `Mechanism.normalized_utility`: what designs
        maximise and bounds are proven for, 0 for a constant and 1 for X itself. Do not confuse it
        with `fidelity.unchanged`, the share of rows released unchanged, or `fidelity.raw_utility`.
    kept_at_most : float
        No mechanism within the budget keeps more.
    together : float or None
        The leakage about all secrets as one, which separate budgets do not bound; None if unknown.
    fidelity : Fidelity
        How close released values are to the true ones.
    released, beside, protected : tuple of str
        The columns that are replaced, published beside the release, and protected.
    left_out : tuple of str
        The columns of a target that is not released.
    has_values : bool
        Whether values of the columns are released, not symbols or probabilities.
    scale : Scale
        What each level of the verdict allows; `on_scale` replaces it.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> mechanism = design_mechanism([[200, 100, 90], [90, 200, 310]], 0.02, confidence=0.95)
    >>> summary = mechanism.summary()
    >>> summary.verdict.level, summary.status
    ('moderate', 'PASS')
    >>> print(summary.secrets[None].protection())
    Moderate protection of S, in the population too (95% confidence): no released value moves ...
    >>> summary.kept == mechanism.normalized_utility
    True
    """

    mechanism: Any
    known_fidelity: Fidelity | None = None
    released: tuple[str, ...] = ("X",)
    beside: tuple[str, ...] = ()
    protected: tuple[str, ...] = ("S",)
    codes: Sequence[IntArray | None] = ()
    coarse: Mapping[str, str] = field(default_factory=dict)
    of_rows: bool = False
    before_smoothing: Mapping[Any, Any] = field(default_factory=dict)
    leaking: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[Any, Any] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    has_values: bool = True
    n_rows: float | None = None
    scale: Scale = DEFAULT_SCALE

    @property
    def measure(self) -> Measure:
        """The measure of leakage."""
        return self.mechanism.measure

    @property
    def scope(self) -> Scope:
        """Whether budgets hold for every released value, or on average."""
        return self.mechanism.scope

    @property
    def confidence(self) -> float | None:
        """Confidence that all budgets hold for the population; None: for the rows only."""
        return self.mechanism.confidence

    @property
    def n_samples(self) -> float | None:
        """The number of rows, by their effective sample size; None if unknown."""
        return self.n_rows if self.mechanism.n_samples is None else self.mechanism.n_samples

    def with_limits(self, limits: Mapping[Any, Any]) -> Self:
        """Return the summary with limits for the population added."""
        return replace(self, limits=limits)

    def on_scale(self, scale: Scale) -> Self:
        """Return the summary with its verdict on another scale."""
        return replace(self, scale=scale)

    def by_default(self) -> str:
        """Return what the default scale says, if another one decides; else an empty text."""
        if self.scale.is_default:
            return ""
        usual = self.on_scale(DEFAULT_SCALE)
        return (
            f"The verdict is on the scale of {self.scale.name} (SHA-256 {self.scale.sha256}): "
            f"{self.scale.in_words()} On the default scale, the verdict is {usual.verdict.level} "
            f"({usual.status})."
        )

    @cached_property
    def secrets(self) -> dict[Any, SecretSummary]:
        """What leaks about each secret."""
        return {
            key: SecretSummary(
                self, key, name_of_secret(self.protected if key is None else key), secret
            )
            for key, secret in self.mechanism.secrets.items()
        }

    @property
    def is_sure(self) -> bool:
        """Whether budgets hold for the population, with a confidence of at least one half."""
        return self.confidence is not None and self.confidence >= _LEAST_CONFIDENCE

    @property
    def kept(self) -> float:
        """The share of the utility that is kept."""
        return float(self.mechanism.normalized_utility)

    @property
    def kept_at_most(self) -> float:
        """The largest share that any mechanism within the budget could keep."""
        return min(1.0, self.mechanism.normalized_upper_bound)

    @cached_property
    def fidelity(self) -> Fidelity:
        """How close released values are to the true ones."""
        return self.known_fidelity or self.mechanism.fidelity()

    @property
    def together(self) -> float | None:
        """The leakage about all secrets as one, in the scope of the budgets."""
        figures = self.mechanism.together
        if figures is None or figures.p_sx is None:
            return None
        return float(figures.leakage_in(self.scope))

    @property
    def is_bounded_apart_only(self) -> bool:
        """Whether all secrets together leak more than the sum of their budgets."""
        budgets = sum(secret.epsilon for secret in self.secrets.values())
        return len(self.secrets) > 1 and (self.together or 0.0) > self.measure.budget(budgets)

    @cached_property
    def treatment(self) -> str:
        """How X is released: "randomised", "made coarser" or "unchanged".

        Cells are always randomised: values are drawn anew even if the cell is kept.
        """
        channel = self.mechanism.channel
        if self.fidelity.of_cells or not np.isin(channel, [0.0, 1.0]).all():
            return "randomised"
        return "unchanged" if channel.sum(axis=0).max() == 1 else "made coarser"

    @property
    def far(self) -> float:
        """The move of a probability beyond which protection is weak."""
        return self.scale.allows["moderate"][0]

    @property
    def _worst(self) -> SecretSummary:
        secrets = list(self.secrets.values())
        return secrets[worst([secret.verdict for secret in secrets])]

    @property
    def verdict(self) -> Verdict:
        """How well the worst protected secret is protected."""
        return self._worst.verdict

    @property
    def exceeding(self) -> list[str]:
        """Copied columns that alone leak more than the budget."""
        return [name for name, leakage in self.leaking.items() if not math.isnan(leakage)]

    @property
    def unjudged(self) -> list[str]:
        """Copied columns whose leakage cannot be judged."""
        return [name for name, leakage in self.leaking.items() if math.isnan(leakage)]

    @property
    def status(self) -> str:
        """The verdict in a word: "PASS", "CAUTION", "NO VERDICT" or "FAIL"."""
        status = FAIL if self.exceeding else STATUS[self.verdict.level]
        is_within = all(secret.is_within for secret in self.secrets.values())
        is_doubtful = self.unjudged or not is_within or self.is_bounded_apart_only
        return CAUTION if status == PASS and is_doubtful else status

    def lead(self) -> str:
        """Return the most important sentences: status, verdict and objections."""
        said = [self._worst.protection(), self.not_covered()]
        said += [s.in_population() for s in self.secrets.values() if not s.is_within]
        said += [self.together_sentence()]
        if self.exceeding:
            said.insert(0, f"Copied columns leak too much: {', '.join(self.exceeding)}.")
        if self.unjudged:
            names = ", ".join(self.unjudged)
            said.append(f"The leakage of copied columns could not be judged: {names}.")
        return " ".join([f"{self.status}:", *filter(None, said)])

    def where(self) -> str:
        """Return the scope of figures about the rows, as the start of a sentence."""
        return "In these rows" if self.of_rows else "Under the joint distribution of the design"

    def for_whom(self) -> str:
        """Return the scope of a verdict, as part of a sentence."""
        if self.is_sure:
            assert self.confidence is not None
            return f", in the population too ({percent(self.confidence)} confidence)"
        return ", in these rows only" if self.of_rows else ", for this joint distribution only"

    def x_name(self, is_one: bool = False) -> str:
        """Return the released columns, or their number; is_one : "the table" for many."""
        if len(self.released) <= _FEW_COLUMNS:
            return listed(self.released)
        return "the table" if is_one else f"{len(self.released)} columns"

    def treatment_sentence(self) -> str:
        """Return a sentence on how columns are released."""
        verb, start = ("is", "Column ") if len(self.released) == 1 else ("are", "Columns ")
        start = start if self.of_rows and len(self.released) <= _FEW_COLUMNS else ""
        said = f"{start}{self.x_name()} {verb} {_TREATMENTS[self.treatment]}"
        if self.beside:
            said += f", with {listed(self.beside)} beside it, under the same budget"
        return f"{said}."

    def kept_sentence(self) -> str:
        """Return a sentence with the share of the utility that is kept, and its upper bound."""
        kept, most = f"{self.kept:.1%}", at_most(self.kept_at_most)
        text = f"It keeps {kept} of {self.mechanism.objective.in_words(self.x_name(True))}"
        if 0 < (by_cells := self.mechanism.cell_utility) < 1 - UTILITY_ROUNDING:
            text += f" (cells can keep at most {at_most(by_cells)})"
        if kept == "100.0%":
            return f"{text}."
        if self.mechanism.is_certified:
            return f"{text}; no mechanism within the budget keeps more."
        if most == "100.0%":
            return f"{text}: not proven optimal."
        bound = f"no mechanism within the budget keeps more than {most}"
        if self.confidence is not None:
            return f"{text}; even for these rows alone, {bound}."
        return f"{text}, not proven optimal: {bound}."

    def together_sentence(self) -> str:
        """Return a sentence on the leakage about all secrets as one; empty for a single secret."""
        if len(self.secrets) == 1:
            return ""
        if self.together is None:
            return "What is revealed about all secrets together is not known here."
        said = f"released values reveal {figure(self.together)} on average"
        if self.scope == "per_output":
            said = f"each released value reveals at most {limit(self.together)}"
        # A secret with as many groups as all of them together is all of them.
        n_groups = len(self.mechanism.together.s_labels or ())
        is_bounded = max(secret.n_groups for secret in self.secrets.values()) >= n_groups
        caveat = "" if is_bounded else "; separate budgets do not bound this"
        return f"About all secrets together, {said} ({self.measure.name}){caveat}."

    def not_covered(self) -> str:
        """Return a sentence on people who know a column, if they may learn more than the budget.

        It qualifies the verdict, which is about people who know no part of the row.
        """
        secrets = self.secrets.values()
        if more := [s for s in secrets if s.exceeded_by_knowing]:
            worst = max(more, key=lambda s: s.known_best[1] / s.epsilon if s.epsilon else math.inf)
            return (
                f"{_NOT_COVERED}, which no budget bounds: in these rows, {worst.known_in_words()}."
            )
        if any(None in s.known_columns.values() for s in secrets):
            return f"{_NOT_COVERED}: what they can learn from cells is not known."
        return ""

    def partial_knowledge(self) -> str:
        """Return sentences on people who know a column, if they learn no more than the budget."""
        known = [s for s in self.secrets.values() if s.known_columns]
        if not known or self.not_covered():
            return ""
        learned = "; ".join(s.known_in_words() for s in known if s.known_best[1] > 0)
        return (
            f"No budget bounds what somebody who already knows a released column can learn. In "
            f"these rows, {learned or 'that is nothing'}."
        )

    def made_up_sentence(self) -> str:
        """Return what may be read from made-up rows, and what not; empty for other rows."""
        if not (self.fidelity.is_joint and self.has_values):
            return ""
        return (
            "Distributions of columns, relations of two columns and models can be read from "
            "made-up rows; nothing about one person can. What they reveal follows from the "
            "channel: each row is unique, so it cannot be estimated from them."
        )

    def target_sentence(self, option: str = str(Setting("release_target", True))) -> str:
        """Return a sentence on a target that is not released, and how to release it."""
        if not self.left_out:
            return ""
        return (
            f"The target ({listed(self.left_out)}) is left out, so no model can be trained on the "
            f"released rows alone: {option} draws it with each row, under the same budget."
        )

    def sentences(self, show_groups: bool = False) -> list[str]:
        """Return what is protected, revealed and kept, and how true released values are, in words.

        Parameters
        ----------
        show_groups : bool, default=False
            Whether to name groups of S.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> verdict, leak, kept, face_value = mechanism.summary().sentences()
        >>> kept
        'It keeps 63.4% of the information in X; no mechanism within the budget keeps more.'
        """
        each = [
            f"{secret.revealed()} {secret.exposure(show_groups)}".rstrip()
            for secret in self.secrets.values()
        ]
        notice = "" if self.treatment == "randomised" else self.treatment_sentence()
        said = [self._worst.protection(), self.by_default(), self.not_covered()]
        said += [*each, self.together_sentence()]
        said += [notice, self.kept_sentence(), self.made_up_sentence(), self.target_sentence()]
        said += [at_face_value(self.fidelity) if self.has_values else ""]
        return [*filter(None, said)]

    def to_dict(self, show_groups: bool = False) -> dict[str, Any]:
        """Return all figures, ready for JSON: None for unknown and infinite ones.

        Parameters
        ----------
        show_groups : bool, default=False
            Whether to name groups of S.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> facts = mechanism.summary().to_dict()
        >>> facts["verdict"], facts["secrets"][0]["epsilon"], round(facts["kept"], 3)
        ('moderate', 0.02, 0.634)
        """
        n_x, n_y = self.mechanism.channel.shape
        facts = {
            "status": self.status,
            "verdict": self.verdict.level,
            "released": list(self.released),
            "beside": list(self.beside),
            "protected": list(self.protected),
            "measure": self.measure.name,
            "scope": self.scope,
            "confidence": self.confidence,
            "n_samples": self.n_samples,
            "secrets": [secret.to_dict(show_groups) for secret in self.secrets.values()],
            "together": self.together,
            "leaking": self.leaking,
            "kept": self.kept,
            "kept_at_most": self.kept_at_most,
            "objective": self.mechanism.objective.name,
            "treatment": self.treatment,
            "alphabet": "cells" if self.fidelity.of_cells else "values",
            "symbols": n_x,
            "outputs": n_y,
            "solver": self.mechanism.solver,
            "fidelity": fidelity_facts(self.fidelity),
        }
        if not self.scale.is_default:
            usual = self.on_scale(DEFAULT_SCALE)
            facts["scale"] = {"name": self.scale.name, "sha256": self.scale.sha256}
            facts["on_default_scale"] = {"status": usual.status, "verdict": usual.verdict.level}
        return plain(facts)

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def __repr__(self) -> str:
        each = [f"{s.name} {figure(s.leakage)} of {s.epsilon:g}" for s in self.secrets.values()]
        more = [s for s in self.secrets.values() if s.exceeded_by_knowing]
        known = [f", up to {limit(s.known_best[1])} given {s.known_best[0]}" for s in more]
        return (
            f"ReleaseSummary({self.verdict.level}: leaks about {', '.join(each)}"
            f"{''.join(known)}; keeps {self.kept:.1%}; {self.fidelity.unchanged:.1%} of rows "
            f"unchanged)"
        )

    def _repr_html_(self) -> str:
        design = self.mechanism
        shares, labels = (design.p_x, design.p_y), (design.x_labels, design.y_labels)
        return as_html(self.sentences(), design.channel, shares, labels)


def plain(value: Any) -> Any:
    """Return a value, ready for JSON: None for NaN and infinity."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
