"""ReleaseSummary: every figure that is printed anywhere, the verdict, and sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from operator import attrgetter
from typing import Any, Self

import numpy as np
import pandas as pd

from .._messages import in_points
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
from .verdict import CAUTION, FAIL, PASS, STATUS, Verdict, learned_beside, verdict_of, worst

# The rows and columns of the table, at most: the most frequent ones.
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
    """Return a part of a page; shares, labels : P(X) and P(Y), and their symbols."""
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
        for share in channel[x, columns]:  # as strong as its colour, on light and dark pages
            text = f"{share:.0%}" if share >= 0.005 else ""
            body += f'<td style="background: rgba(66, 133, 200, {0.75 * share:.2f})">{text}</td>'
        body += "</tr>"
    paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    return (
        f'{_STYLE}<div class="skprivacy-mechanism">{paragraphs}<div><table>'
        f"<caption>{caption}</caption><thead><tr><td></td>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div></div>"
    )


# ReleaseSummary: every figure that is printed about a release, and the sentences about it.


# A limit with less confidence than this is no limit, and no protection is strong by one with less
# than the other.
_HARDLY_SURE, _SURE = 0.5, 0.9

# A group that can become this many times as likely is mentioned, however rare it is.
_MUCH_LIKELIER = 1.5

_NOT_COVERED = "This does not cover people who already know a column"
_NOT_BOUNDED = "No budget bounds what people learn who already know a released column."

_TREATMENTS = {
    "randomised": "replaced by a randomised release",
    "made coarser": "made coarser, without noise",
    "unchanged": "released unchanged, without noise",
}

# More columns than these are counted rather than listed.
_FEW_COLUMNS = 4


def _of(path: str, doc: str) -> Any:
    """Return a property that is looked up in what a summary is about."""
    return property(attrgetter(path), doc=doc)


class _OfSecret:
    """What a summary of a secret has from the secret itself."""

    epsilon: float = _of("secret.epsilon", "The budget.")


@dataclass(frozen=True, eq=False, repr=False)
class SecretSummary(_OfSecret):
    """What a release tells about one secret; made by `ReleaseSummary`.

    Attributes
    ----------
    release : ReleaseSummary
        The summary of the whole.
    key : hashable
        The name of the secret among the budgets; None for the only one of a number.
    name : str
        What it is called in sentences.
    secret : Guarantee
        What leaks about it, and its budget.

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
    secret: Any  # mechanisms stand below on the map, and are not imported

    @property
    def is_one_of_several(self) -> bool:
        """Whether there are other secrets, from which its name tells it apart."""
        return len(self.release.secrets) > 1

    @property
    def is_known(self) -> bool:
        """Whether the joint distribution is known; without it, a budget is what a file claims."""
        return self.secret.p_sx is not None

    @property
    def n_groups(self) -> int:
        """How many groups there are; 0 where that is not known."""
        return len(self.secret.s_labels or ())

    @property
    def leakage(self) -> float:
        """What leaks in the rows, in the scope of the budget; NaN where it is not known."""
        return float(self.secret.leakage_in(self.release.scope)) if self.is_known else math.nan

    @property
    def limits(self) -> Any:
        """Limits for the population, of a design with a confidence or found later; or None."""
        if not self.is_known:
            return None
        return self.secret.population_limit or self.release.limits.get(self.key)

    @property
    def limit(self) -> float | None:
        """What leaks in the population at most, in the scope of the budget; None if not known."""
        return None if self.limits is None else self.limits.leakage_in(self.release.scope)

    @property
    def is_within(self) -> bool:
        """Whether nothing shows that the budget is exceeded in the population."""
        return self.limit is None or self.limit <= self.release.measure.budget(self.epsilon)

    @property
    def in_rows(self) -> Any:
        """What leaks in the rows: where counts were smoothed, they are not those of the design."""
        return self.release.before_smoothing.get(self.key, self.secret)

    @property
    def guaranteed(self) -> float:
        """The most that leaks, by what the design guarantees.

        The limit for the population where it was made with a confidence, else epsilon: never only
        what leaks in the rows, and not less than that where counts were smoothed.
        """
        if not self.release.is_sure or self.limit is None:
            return float(self.in_rows.epsilon)
        return min(self.limit, self.epsilon)

    @cached_property
    def ranges(self) -> pd.DataFrame:
        """How far a released value moves the probability of each group: a row for each.

        As `posterior_ranges` of a mechanism, but that what is allowed is what `guaranteed` allows.
        In the population, a group without rows may merely be rare: it counts as one row.
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

        By default those that decide: what is allowed or, on average, what is reached.
        """
        kind = kind or ("allowed" if self.release.scope == "per_output" else "reached")
        columns = self.ranges[["prior", f"{kind}_low", f"{kind}_high"]].to_numpy()
        return [Range(*map(float, row)) for row in columns]

    @property
    def most_exposed(self) -> int:
        """The group that moves the furthest; of two that move as far, the rarer one."""
        found = self.moves()
        return max(range(len(found)), key=lambda i: (round(found[i].width, 9), found[i].growth))

    @cached_property
    def verdict(self) -> Verdict:
        """How well this secret is protected."""
        ranges = [] if self._why_unknown() else self.moves()
        is_sure = self.release.confidence is not None and self.release.confidence >= _SURE
        return verdict_of(ranges, self.release.scope, is_sure)

    @cached_property
    def known_columns(self) -> dict[str, float | None]:
        """What somebody who knows the true value of a column learns from Y, at most.

        For each released column, and each beside: the largest leakage of P(S|z,y) against P(S|z).
        **No budget bounds it.** Of a column that was cut or pooled, z is the bin or the pool, and
        the value itself may add more. None where it is not known: cells have no values.
        """
        if (p_sx := self.in_rows.p_sx) is None:
            return {}
        about = p_sx, self.release.mechanism.channel, self.release.measure
        names = (*self.release.released, *self.release.beside)
        return {
            name: None if codes is None else learned_beside(*about, codes)
            for name, codes in zip(names, self.release.codes, strict=False)
        }

    def protection(self) -> str:
        """Say how well it is protected, and for whom that holds."""
        if why := self._why_unknown():
            return why
        found = self.verdict
        if found.level == "none":
            return f"No protection of {self.name}: {found.in_words()}."
        how = found.level.capitalize()
        if self.release.scope == "per_output":
            return f"{how} protection of {self.name}{self.release.for_whom()}: {found.in_words()}."
        return (
            f"{how} protection of {self.name}: a budget on average bounds no single released "
            f"value. {self.release.where()}, {found.in_words()}."
        )

    def _why_unknown(self) -> str:
        """Say why there is no verdict; empty where there is one."""
        if not self.is_known:
            return f"How well {self.name} is protected is not known here: see where it was fitted."
        if (self.ranges["prior"] > 0).sum() < 2:
            return f"The rows show a single group of {self.name}: nothing is known about others."
        if self.release.scope == "average" or self.release.measure.is_monotone:
            return ""
        return (
            f"How well {self.name} is protected is not known: set is_monotone for a measure of "
            f"your own that fusing groups never raises."
        )

    def revealed(self) -> str:
        """Say what is revealed at most, in the rows and in the population."""
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
        """Say what is known about the population, of a release that was made for rows only."""
        if self.release.is_sure or self.limits is None or self.limit is None:
            return ""
        said = (
            f"In the population the rows were drawn from, it may reveal up to "
            f"{limit(self.limit)} about {self.name} ({percent(self.limits.confidence)} confidence)"
        )
        if self.limits.confidence < _HARDLY_SURE:
            return f"{said}."
        kept = "within" if self.is_within else "above"
        return f"{said}, {kept} the budget of {limit(self.epsilon, 6)}."

    def exposure(self, show_groups: bool = False) -> str:
        """Say how far a released value can move the probability of a group.

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
            f"Whoever sees a released value can move the probability of {group} from "
            f"{found[widest].in_words()}"
        )
        if self.release.scope == "average":
            return f"{text} with these values; the budget, being an average, bounds no single one."
        rarest = max(range(len(found)), key=lambda i: found[i].growth)
        if rarest != widest and found[rarest].growth >= _MUCH_LIKELIER:
            rare = found[rarest]
            named = f"{labels[rarest]} from {rare.prior:.1%}"
            group = named if show_groups else f"a group of {rare.prior:.1%}"
            text += f", and that of {group} to {rare.ends()[1]}"
        return f"{text}, at most, if groups have the same shares as here."

    def attacker(self) -> str:
        """Say how often the best possible attacker is right, beside a blind guess."""
        right, more = self.in_rows.attacker_accuracy, self.in_rows.attacker_advantage
        low, high = (self.ranges[f"allowed_{end}"].to_numpy() for end in ("low", "high"))
        commonest = int(np.argmax(self.ranges["prior"]))
        allowed = f"at most {rounded_up(100 * self.in_rows.advantage_bound, 2)} points"
        if (np.delete(high, commonest) < low[commonest]).all():  # NaN fails
            allowed = "none, because no value makes another group the likeliest"
        return (
            f"The best possible attacker knows how the release was made, and how {self.name} "
            f"relates to the true values in these rows. From one released value, this attacker is "
            f"right about {self.name} in {right:.1%} of the rows; a blind guess is right in "
            f"{right - more:.1%}. That is {in_points(more, '.2f')} more; the budget alone allows "
            f"{allowed}."
        )

    @property
    def known_best(self) -> tuple[str, float]:
        """The column that tells most to whoever already knows it, and how much that is."""
        known = {name: x for name, x in self.known_columns.items() if x is not None}
        return max(known.items(), key=lambda each: round(each[1], 9), default=("", 0.0))

    @property
    def is_exceeded_by_knowing(self) -> bool:
        """Whether somebody who knows a column can learn more than the budget."""
        return self.known_best[1] > self.release.measure.budget(self.epsilon)

    def known_in_words(self) -> str:
        """Return what somebody who knows a column can learn, without a full stop."""
        name, leakage = self.known_best
        times = ""
        if 0 < self.epsilon < math.inf:
            times = f" ({rounded_up(leakage / self.epsilon, 1)} times the budget)"
        kind = self.release.coarse.get(name)
        what = f"the {kind} of {name}" if kind else f"the true {name}"
        more = "; the exact value may tell more" if kind else ""
        return (
            f"whoever knows {what} can learn up to {limit(leakage)} about {self.name}"
            f"{times} from a release{more}"
        )

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


class _OfMechanism:
    """What a summary of a release has from its mechanism."""

    measure: Measure = _of("mechanism.measure", "How leakage is measured.")
    scope: Scope = _of(
        "mechanism.scope",
        "Whether budgets are about every released value, or about all on average.",
    )
    confidence: float | None = _of(
        "mechanism.confidence",
        "How often all budgets hold for the population; None if they are about the rows only.",
    )
    n_samples: float | None = _of(
        "mechanism.n_samples",
        "The number of rows that limits are computed from; None without a confidence.",
    )


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseSummary(_OfMechanism):
    """What a release leaks, keeps and allows: every figure that is printed about it, and words.

    Made by `PrivacyFunnelTransformer.summary_` and `Mechanism.summary`. Sentences name no group of
    S unless that is asked for. Limits are rounded outwards in sentences, and exact as attributes.

    Attributes
    ----------
    secrets : dict of SecretSummary
        What leaks about each secret, by its name among the budgets: `leakage` in the rows, `limit`
        for the population, `guaranteed`, `ranges` of the probability of each group, `verdict`, and
        `known_columns`, which no budget bounds. The only secret of a number is called None.
    verdict : Verdict
        How well the worst protected secret is protected: "strong", "moderate", "weak", "unknown"
        or "none".
    status : str
        "PASS" for a strong or moderate verdict, "CAUTION" for a weak one, "NO VERDICT" for an
        unknown one, "FAIL" for none. A copied column that leaks more than the budget is a "FAIL"
        too. It is at best a "CAUTION" if a copied column could not be judged, if a limit for the
        population is above the budget, or if secrets leak more together than their budgets.
    kept : float
        The share of the utility that is kept: `Mechanism.normalized_utility`. It is what designs
        maximise and what bounds are proven for, 0 for a constant and 1 for X itself. It is the
        only figure that is called kept; others are `fidelity.unchanged`, the share of rows whose
        values come out unchanged, and `fidelity.raw_utility`.
    kept_at_most : float
        No mechanism within the budget keeps more.
    together : float or None
        What leaks about all secrets as one, which separate budgets do not bound; None where it is
        not known.
    fidelity : Fidelity
        How close released values are to the true ones.
    released, beside, protected : tuple of str
        The columns that are replaced, published beside the release, and protected.

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

    def with_limits(self, limits: Mapping[Any, Any]) -> Self:
        """Return the summary with limits for the population, of a release made for rows only."""
        return replace(self, limits=limits)

    @cached_property
    def secrets(self) -> dict[Any, SecretSummary]:
        """What leaks about each secret."""
        only = " and ".join(self.protected)
        return {
            key: SecretSummary(self, key, only if key is None else name_of_secret(key), secret)
            for key, secret in self.mechanism.secrets.items()
        }

    @property
    def is_sure(self) -> bool:
        """Whether budgets hold for the population, with a confidence that deserves the name."""
        return self.confidence is not None and self.confidence >= _HARDLY_SURE

    @property
    def kept(self) -> float:
        """The share of the utility that is kept."""
        return float(self.mechanism.normalized_utility)

    @property
    def kept_at_most(self) -> float:
        """The share that no mechanism within the budget exceeds."""
        return min(1.0, self.mechanism.normalized_upper_bound)

    @cached_property
    def fidelity(self) -> Fidelity:
        """How close released values are to the true ones."""
        return self.known_fidelity or self.mechanism.fidelity()

    @property
    def together(self) -> float | None:
        """What leaks about all secrets as one, in the scope of the budgets."""
        figures = self.mechanism.together
        if figures is None or figures.p_sx is None:
            return None
        return float(figures.leakage_in(self.scope))

    @property
    def is_bounded_apart_only(self) -> bool:
        """Whether all secrets as one leak more than their budgets together."""
        budgets = sum(secret.epsilon for secret in self.secrets.values())
        return len(self.secrets) > 1 and (self.together or 0.0) > self.measure.budget(budgets)

    @cached_property
    def treatment(self) -> str:
        """What became of X: "randomised", "made coarser" or "unchanged", the latter without noise.

        Values of a cell are drawn anew, even where cells are kept.
        """
        channel = self.mechanism.channel
        if self.fidelity.of_cells or not np.isin(channel, [0.0, 1.0]).all():
            return "randomised"
        return "unchanged" if channel.sum(axis=0).max() == 1 else "made coarser"

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
        """The columns that are copied and alone leak more than the budget."""
        return [name for name, leakage in self.leaking.items() if not math.isnan(leakage)]

    @property
    def unjudged(self) -> list[str]:
        """The columns that are copied although what they leak cannot be judged."""
        return [name for name, leakage in self.leaking.items() if math.isnan(leakage)]

    @property
    def status(self) -> str:
        """What to think of it, in a word: "PASS", "CAUTION", "NO VERDICT" or "FAIL"."""
        status = FAIL if self.exceeding else STATUS[self.verdict.level]
        is_within = all(secret.is_within for secret in self.secrets.values())
        is_doubtful = self.unjudged or not is_within or self.is_bounded_apart_only
        return CAUTION if status == PASS and is_doubtful else status

    def lead(self) -> str:
        """Return the line that matters most: status, verdict, and what speaks against it."""
        said = [self._worst.protection(), self.not_covered()]
        said += [s.in_population() for s in self.secrets.values() if not s.is_within]
        said += [self.together_sentence()]
        if self.exceeding:
            said.insert(0, f"Columns that are copied leak too much: {', '.join(self.exceeding)}.")
        if self.unjudged:
            names = ", ".join(self.unjudged)
            said.append(f"What copied columns reveal could not be judged: {names}.")
        return " ".join([f"{self.status}:", *filter(None, said)])

    def where(self) -> str:
        """Say what figures are about, at the start of a sentence."""
        return "In these rows" if self.of_rows else "Under the joint distribution of the design"

    def for_whom(self) -> str:
        """Say for whom a verdict holds, within a sentence."""
        if self.is_sure:
            assert self.confidence is not None
            return f", in the population too ({percent(self.confidence)} confidence)"
        return ", in these rows only" if self.of_rows else ", for this joint distribution only"

    def x_name(self, is_one: bool = False) -> str:
        """Return the released columns, or how many there are; is_one : as one thing."""
        if len(self.released) <= _FEW_COLUMNS:
            return " and ".join(self.released)
        return "the table" if is_one else f"{len(self.released)} columns"

    def treatment_sentence(self) -> str:
        """Say what became of the released columns."""
        verb = "is" if len(self.released) == 1 else "are"
        said = f"{self.x_name()} {verb} {_TREATMENTS[self.treatment]}"
        if self.beside:
            said += f", with {' and '.join(self.beside)} beside it, under the same budget"
        return f"{said}."

    def kept_sentence(self) -> str:
        """Say which share of the utility is kept, and that no mechanism keeps more."""
        kept, most = f"{self.kept:.1%}", at_most(self.kept_at_most)
        text = f"It keeps {kept} of {self.mechanism.objective.in_words(self.x_name(True))}"
        if 0 < (by_cells := self.mechanism.cell_utility) < 1 - UTILITY_ROUNDING:
            text += f", of which the cells can show {at_most(by_cells)} at most"
        if kept == "100.0%":
            return f"{text}."
        if self.mechanism.is_certified:
            return f"{text}; no mechanism within the budget keeps more."
        if most == "100.0%":
            return f"{text}: not proven optimal."
        if self.confidence is not None:
            bound = f"no mechanism within the budget, for the rows alone, keeps more than {most}"
            return f"{text}; {bound}."
        return (
            f"{text}. No mechanism within the budget keeps more than {most}: not proven optimal."
        )

    def together_sentence(self) -> str:
        """Say what is revealed about all secrets as one; empty where there is only one."""
        if len(self.secrets) == 1:
            return ""
        if self.together is None:
            return "What is revealed about all secrets together is not known here."
        is_worst = self.scope == "per_output"
        who = "each released value reveals at most" if is_worst else "they reveal"
        how = "" if is_worst else " on average"
        # A secret with as many groups as all of them together is all of them.
        n_groups = len(self.mechanism.together.s_labels or ())
        is_bounded = max(secret.n_groups for secret in self.secrets.values()) >= n_groups
        told = "" if is_bounded else "; separate budgets do not bound this"
        leakage = limit(self.together) if is_worst else figure(self.together)
        leakage += f"{how} ({self.measure.name})"
        return f"About all secrets together {who} {leakage}{told}."

    def not_covered(self) -> str:
        """Say what people who know a column learn beyond the budget; empty where nothing is known.

        It stands beside every verdict, which is about people who know no part of a row.
        """
        secrets = self.secrets.values()
        if more := [s for s in secrets if s.is_exceeded_by_knowing]:
            worst = max(more, key=lambda s: s.known_best[1] / s.epsilon if s.epsilon else math.inf)
            return f"{_NOT_COVERED}: in these rows, {worst.known_in_words()}."
        if any(None in s.known_columns.values() for s in secrets):
            return f"{_NOT_COVERED}: what they can learn from cells is not known."
        return ""

    def partial_knowledge(self) -> str:
        """Say what people who know a column learn within the budget; empty where it is more."""
        known = [s for s in self.secrets.values() if s.known_columns]
        if not known or self.not_covered():
            return ""
        told = [s.known_in_words() for s in known if s.known_best[1] > 0]
        return f"{_NOT_BOUNDED} In these rows, {'; '.join(told) or 'that is nothing'}."

    def sentences(self, show_groups: bool = False) -> list[str]:
        """Return what is protected, revealed and kept, and what a reader sees, in words.

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
        said = [self._worst.protection(), self.not_covered(), *each, self.together_sentence()]
        said += [notice, self.kept_sentence(), at_face_value(self.fidelity)]
        return [*filter(None, said)]

    def to_dict(self, show_groups: bool = False) -> dict[str, Any]:
        """Return every figure as what JSON can hold: None for what is not known or infinite.

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
        return plain(facts)

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def __repr__(self) -> str:
        each = [f"{s.name} {figure(s.leakage)} of {s.epsilon:g}" for s in self.secrets.values()]
        more = [s for s in self.secrets.values() if s.is_exceeded_by_knowing]
        known = [f", up to {limit(s.known_best[1])} given {s.known_best[0]}" for s in more]
        return (
            f"ReleaseSummary({self.verdict.level}: leaks about {', '.join(each)}"
            f"{''.join(known)}; keeps {self.kept:.1%}; {self.fidelity.unchanged:.1%} of rows "
            f"unchanged)"
        )

    def _repr_html_(self) -> str:
        made = self.mechanism
        labels = made.x_labels, made.y_labels
        return as_html(self.sentences(), made.channel, (made.p_x, made.p_y), labels)


def plain(value: Any) -> Any:
    """Return a value as what JSON can hold: None for NaN and infinity."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
