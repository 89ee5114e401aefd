"""The frozen answer: a channel, what it reveals about S, and the budget that it provably keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
import pandas as pd

from .._json import label_key, write_document
from .._json_reader import Place, read_document
from .._messages import Message, Parameter
from .._typing import FloatArray, IntArray, Scope, TableLike
from .._validation import check_real, message
from ..describing import (
    Sure,
    as_html,
    at_face_value,
    exposure,
    leak,
    leak_in_population,
    most_exposed,
    ranges_of,
    what_is_kept,
)
from ..fidelity import Fidelity, NamedChannel, closest_names, fidelity_of_symbols
from ..joint import as_joint
from ..measures import Measure, check_scope
from ..measures.ranges import may_reach, posterior_ranges
from ..utilities import BOUND_TOLERANCE, DEFAULT_TOL, UTILITY_ROUNDING, Utility
from .checks import (
    check_distributions,
    check_groups,
    check_names,
    checked_confidence,
    checked_symbols,
)
from .content import fields_content, read_fields
from .evaluation import Evaluation
from .population import PopulationLeakage, population_limits

# A probability that is as good as 1, and the largest one from which it would be a surprise.
_CERTAIN, _LIKELY = 0.99, 0.5


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(Evaluation):
    """A channel P(Y|X) that keeps a privacy budget under a joint distribution P_SX.

    Made by `design_mechanism`. A mechanism with a joint that breaks its budget cannot exist:
    leakage is computed from the floats of the channel itself whenever the object is made,
    including when it is loaded. The guarantee is about `p_sx`, the joint distribution it was
    designed for; with a `confidence` it is also about the population that the rows of `p_sx` were
    drawn from, and `population_limit` is within the budget too. If the joint was left out of a
    saved mechanism, the budget is only what its file claims.

    Attributes
    ----------
    epsilon : float
        The budget.
    scope : str
        "per_output" or "average": which leakage is within the budget.
    solver : str
        The name of the solver that was used.
    upper_bound : float
        No mechanism with a leakage of at most `epsilon` has a larger utility.
    symbol_of_output : ndarray of shape (n_y,) or None
        The symbol of X that each output is released as, by its position in `x_labels`. None where
        outputs have no names: those of `design_mechanism`.
    confidence : float or None
        How often a budget like this one holds for the population. None where it is about `p_sx`
        alone.
    n_samples : float or None
        How many rows `p_sx` was counted from; None where there is no confidence.

    Examples
    --------
    >>> from skprivacy import Mechanism, design_mechanism
    >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
    >>> mechanism.channel.sum(axis=1).round(12).tolist()
    [1.0, 1.0, 1.0]
    >>> bool(mechanism.max_leakage <= 0.02 * (1 + 1e-9))
    True
    >>> Mechanism.from_json(mechanism.to_json()).utility == mechanism.utility
    True
    """

    epsilon: float = field(kw_only=True)
    scope: Scope = field(kw_only=True)
    solver: str = field(kw_only=True)
    # None means that no bound is known: it is then replaced by the largest utility.
    upper_bound: float = field(kw_only=True, default=None)  # type: ignore[assignment]
    symbol_of_output: IntArray | None = field(kw_only=True, default=None)
    confidence: float | None = field(kw_only=True, default=None)
    n_samples: float | None = field(kw_only=True, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("Mechanism", "epsilon", self.epsilon, low=0)
        check_scope("Mechanism", self.scope, self.measure)
        check_distributions(self)
        check_names(self, self.solver)
        check_groups(self)
        sure = checked_confidence(self.confidence, self.n_samples)
        object.__setattr__(self, "confidence", sure[0])
        object.__setattr__(self, "n_samples", sure[1])
        symbols = checked_symbols(self.symbol_of_output, *self.channel.shape)
        object.__setattr__(self, "symbol_of_output", symbols)
        self._check_budget()
        largest = self._largest_utility
        bound = largest if self.upper_bound is None else min(self.upper_bound, largest)
        # A bound below the utility by more than rounding would be wrong, not tight.
        if not bound >= self.utility - BOUND_TOLERANCE * max(1.0, largest):
            raise ValueError(message("Mechanism", "upper_bound", f">= {self.utility}", bound))
        object.__setattr__(self, "upper_bound", float(max(bound, self.utility)))

    def _check_budget(self) -> None:
        unseen, expected = (each[self.p_x == 0] for each in (self.channel, self.independent))
        if self.confidence is not None and not np.allclose(unseen, expected, rtol=0, atol=1e-9):
            raise ValueError(
                "With a confidence, the output of symbols of X without rows must be drawn from "
                "P(Y): nothing is known about what they reveal."
            )
        if self.p_sx is None:
            return
        leakage, allowed = self.leakage_in(self.scope), self.measure.budget(self.epsilon)
        broken = f"its leakage is {leakage}" if not leakage <= allowed else ""
        if not broken and not (limit := self.leakage_at_most(self)) <= allowed:
            broken = (
                f"in the population it may be {limit}, with a confidence of {self.confidence} "
                f"from {self.n_samples:g} rows"
            )
        if broken:
            raise ValueError(
                f"The channel breaks its budget: epsilon={self.epsilon} for {self.measure!r}, "
                f"{self.scope}, but {broken}."
            )

    def leakage_at_most(self, figures: Evaluation) -> float:
        """Return what the budget bounds, for the figures of a channel under the same joint.

        That is the leakage in its scope; with a confidence, the limit for the population.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[200, 100, 90], [90, 200, 310]], 0.1, confidence=0.95)
        >>> mechanism.max_leakage < mechanism.leakage_at_most(mechanism) <= 0.1
        True
        """
        if self.confidence is None:
            return figures.leakage_in(self.scope)
        limits = self.population_limit if figures is self else self._limits(figures)
        assert limits is not None  # there is a confidence
        return limits.leakage_in(self.scope)

    def excess(self, channel: FloatArray) -> float:
        """Return by how much another channel would exceed the budget; at most 0 if it does not.

        Examples
        --------
        >>> import numpy as np
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> mechanism.excess(mechanism.channel) <= 0 < mechanism.excess(np.eye(3))
        True
        """
        allowed = self.measure.budget(self.epsilon)
        if allowed == np.inf:
            return -np.inf
        return self.leakage_at_most(self.with_channel(channel)) - allowed

    def changed(self, **fields: Any) -> Self:
        """Return the mechanism with some fields changed, which is checked like any other.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> mechanism.changed(x_labels=("low", "middle", "high")).x_labels
        ('low', 'middle', 'high')
        """
        return replace(self, **fields)

    def _limits(self, figures: Evaluation) -> PopulationLeakage:
        assert self.confidence is not None
        assert self.n_samples is not None
        return population_limits(figures, self.n_samples * self._joint, self.confidence)

    @cached_property
    def population_limit(self) -> PopulationLeakage | None:
        """Upper limits of what is leaked in the population; None without a `confidence`.

        `max_leakage` of it is about the worst output, `average_leakage` about all on average,
        `per_output` about each of them.
        """
        return None if self.confidence is None else self._limits(self)

    @property
    def gap(self) -> float:
        """The most utility that a better mechanism could add."""
        return self.upper_bound - self.utility

    @property
    def is_certified(self) -> bool:
        """Whether it is proven optimal: the gap is at most 1e-5 of the largest utility.

        A mechanism with a `confidence` keeps a stricter budget than the one that `upper_bound` is
        about, and is mostly not.
        """
        share = self.normalized_upper_bound - self.normalized_utility
        return share <= DEFAULT_TOL + UTILITY_ROUNDING

    @property
    def normalized_upper_bound(self) -> float:
        """The `normalized_utility` that no mechanism within the budget exceeds."""
        return self._normalized(self.upper_bound)

    @property
    def advantage_bound(self) -> float:
        """How much more often than blindly S can be guessed from Y, at most, given the budget."""
        prior = self._joint.sum(axis=1)
        return min(self.measure.advantage(self.epsilon, prior), 1 - float(prior.max()))

    def posterior_ranges(self) -> pd.DataFrame:
        """Return how far a released value moves the probability of each group of S.

        Returns
        -------
        DataFrame
            One row per group. `prior` is its share; `reached_low` and `reached_high` are the
            smallest and the largest P(s|y); `allowed_low` and `allowed_high` are what the budget
            alone allows, whatever the channel. A budget on average allows single outputs anything:
            these are then NaN.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> mechanism.posterior_ranges().round(2).reset_index()
           s  prior  reached_low  reached_high  allowed_low  allowed_high
        0  0    0.4          0.3           0.5          0.3           0.5
        1  1    0.6          0.5           0.7          0.5           0.7
        """
        prior, posteriors = self._joint.sum(axis=1), self.sensitive_posterior[self.p_y > 0]
        allowed = np.full((len(prior), 2), np.nan)
        if self.scope == "per_output":
            allowed = posterior_ranges(self.measure, prior, self.epsilon)
        figures = {
            "prior": prior,
            "reached_low": posteriors.min(axis=0),
            "reached_high": posteriors.max(axis=0),
            "allowed_low": allowed[:, 0],
            "allowed_high": allowed[:, 1],
        }
        labels = pd.Index(self.s_labels or (), name="s", tupleize_cols=False)
        return pd.DataFrame(figures, index=labels)

    @property
    def allows_certainty(self) -> bool:
        """Whether the budget lets one value tell a group with near certainty.

        A group that is the likeliest anyway does not count. False for a budget on average, which
        bounds no single value, and for a measure of your own of which that is not known.
        """
        prior = self._joint.sum(axis=1)
        is_allowed = may_reach(self.measure, prior, self.epsilon, _CERTAIN)
        return self.scope == "per_output" and bool(is_allowed[prior <= _LIKELY].any())

    def fidelity(self) -> Fidelity:
        """Return how close values are to the true ones if outputs are taken at face value.

        X is taken as one column. `PrivacyFunnelTransformer.fidelity_` tells the columns apart.
        Outputs without names are read as symbols of X so that the expected loss of the objective
        is smallest, or as often rightly as possible.

        Returns
        -------
        Fidelity

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> mechanism.fidelity()
        Fidelity(78.7% of rows unchanged in 1 column)
        >>> mechanism.fidelity().swaps.round(2)
          value released_as  share  rows
        0     2           0   0.45  0.18
        1     0           2   0.11  0.03
        """
        return fidelity_of_symbols(named_channel(self))

    def evaluate(self, p_sx: TableLike) -> Evaluation:
        """Return all figures of the channel under another joint distribution.

        Parameters
        ----------
        p_sx : array-like or DataFrame of shape (n_s, n_x)
            Probabilities or counts. S may have symbols other than those of the design. The columns
            of a DataFrame are matched with `x_labels`.

        Returns
        -------
        Evaluation
            It has no budget: under another joint the channel may leak more.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> drifted = mechanism.evaluate([[0.3, 0.1, 0.0], [0.0, 0.2, 0.4]])
        >>> bool(drifted.max_leakage > mechanism.max_leakage)
        True
        """
        owner = "Mechanism.evaluate"
        if isinstance(p_sx, pd.DataFrame):
            p_sx = self._match_columns(p_sx, owner)
        joint = as_joint(p_sx, owner)
        if len(joint.x_labels) != len(self.x_labels):
            raise ValueError(
                Message(
                    Parameter("p_sx", owner),
                    f" must have {len(self.x_labels)} columns, one per symbol of X. Got "
                    f"{len(joint.x_labels)}.",
                )
            )
        return Evaluation(
            self.channel,
            joint.p_sx,
            joint.s_labels,
            self.x_labels,
            self.y_labels,
            self.measure,
            self.objective.elsewhere(),
            groups=self.groups,
        )

    def _match_columns(self, p_sx: pd.DataFrame, owner: str) -> pd.DataFrame:
        # By position: a list of booleans or of tuples would not select columns.
        ours = {label_key(label): label for label in self.x_labels}
        theirs = {label_key(label): i for i, label in enumerate(p_sx.columns.tolist())}
        missing = [label for key, label in ours.items() if key not in theirs]
        unknown = [p_sx.columns[i] for key, i in theirs.items() if key not in ours]
        if missing or unknown:
            raise ValueError(
                f"The columns of the 'p_sx' parameter of {owner} must be the symbols of X. "
                f"Missing: {missing[:5]}; unknown: {unknown[:5]}."
            )
        return p_sx.iloc[:, [theirs[key] for key in ours]]

    def _figures(self) -> Iterator[str]:
        claimed = "claimed " if self.p_sx is None else ""
        yield f"{claimed}epsilon={self.epsilon:.6g} {self.scope}"
        yield from super()._figures()
        if self.p_sx is not None:
            found = ranges_of(self.posterior_ranges())
            yield f"most exposed group from {found[most_exposed(found)].in_words()}"
        yield from self._figures_of_population()
        yield f"gap<={self.gap:.2g}"
        yield f"solver={self.solver!r}"

    def _figures_of_population(self) -> Iterator[str]:
        if self.confidence is None:
            return
        sure = f"confidence={self.confidence:g} from {self.n_samples:g} rows"
        if self.p_sx is not None:
            sure = f"population_limit={self.leakage_at_most(self):.6g} with {sure}"
        yield sure

    def sentences(
        self, fidelity: Fidelity | None = None, *, x_name: str = "X", s_name: str = "S"
    ) -> list[str]:
        """Return what is revealed, what is kept and what a reader sees, in words.

        No group of S is named: for that, see `posterior_ranges`.

        Parameters
        ----------
        fidelity : Fidelity, default=None
            That of a transformer; None for that of this mechanism.
        x_name, s_name : str, default="X" and "S"
            What to call the columns.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> _, kept, face_value = mechanism.sentences()
        >>> kept
        'It keeps 63.4% of the information in X; no mechanism within the budget keeps more.'
        >>> face_value[:63]
        'Taken at face value, 78.7% of the rows keep their values; 45% o'
        """
        revealed = self._revealed(s_name)
        if self.p_sx is not None:
            revealed = f"{revealed} {exposure(self.posterior_ranges())}"
        kept, bound = self.normalized_utility, self.normalized_upper_bound
        is_sure = self.confidence is not None
        return [
            revealed,
            what_is_kept(self.objective, kept, bound, x_name, is_sure, self.cell_utility),
            at_face_value(self.fidelity() if fidelity is None else fidelity),
        ]

    def _revealed(self, s_name: str) -> str:
        reached = None if self.p_sx is None else self.leakage_in(self.scope)
        budget = self.epsilon, reached, self.scope, self.measure.name, s_name
        if self.confidence is None or self.n_samples is None:
            return leak(*budget)
        limit = None if self.p_sx is None else self.leakage_at_most(self)
        return leak_in_population(*budget, Sure(self.confidence, self.n_samples, limit))

    def _repr_html_(self) -> str:
        shares, labels = (self.p_x, self.p_y), (self.x_labels, self.y_labels)
        return as_html(self.sentences(), self.channel, shares, labels)

    def to_json(self, *, include_joint: bool = True, indent: int | None = None) -> str:
        """Return the mechanism as JSON text, exact to the last bit.

        Parameters
        ----------
        include_joint : bool, default=True
            False leaves out P_SX, the symbols of S and the table of a target: whoever applies
            the channel needs none of them. Leakage cannot be computed from such a file. (The
            channel itself was designed for P_SX, and an expert can still infer a little about it
            from the channel.)
        indent : int, default=None
            As in `json.dumps`.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> "p_sx" in mechanism.to_json(), "p_sx" in mechanism.to_json(include_joint=False)
        (True, False)
        """
        return write_document("mechanism", mechanism_content(self, include_joint), indent)

    @classmethod
    def from_json(
        cls, text: str, *, measure: Measure | None = None, utility: Utility | None = None
    ) -> Self:
        """Return the mechanism that `to_json` wrote, after checking all of it.

        Parameters
        ----------
        text : str
            The JSON text. If it is not what `to_json` writes, a ValueError names the place.
        measure : Measure, default=None
            Needed for a mechanism designed with a measure of your own.
        utility : Utility, default=None
            Needed for a mechanism designed for a utility of your own.

        Examples
        --------
        >>> from skprivacy import Mechanism, design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> shipped = Mechanism.from_json(mechanism.to_json(include_joint=False))
        >>> shipped.p_sx is None and bool((shipped.channel == mechanism.channel).all())
        True
        """
        return make_mechanism(read_document(text, "mechanism"), cls, measure, utility)


def named_channel(mechanism: Mechanism) -> NamedChannel:
    """Return the channel with the symbol of X that each output is read as."""
    channel, p_x, names = mechanism.channel, mechanism.p_x, mechanism.symbol_of_output
    if names is None:
        known = mechanism.objective.as_loss(len(p_x))
        loss = 1.0 - np.eye(len(p_x)) if known is None else known[0]
        names = closest_names(p_x[:, None] * channel, loss)
    return NamedChannel(channel, p_x, names, mechanism.x_labels)


def mechanism_content(mechanism: Mechanism, include_joint: bool) -> dict[str, Any]:
    """Return what a document says about a mechanism."""
    made = {each.name: getattr(mechanism, each.name) for each in fields(mechanism)}
    return fields_content(made, include_joint)


M = TypeVar("M", bound=Mechanism)


def make_mechanism(
    place: Place, make: type[M], measure: Measure | None, utility: Utility | None = None
) -> M:
    """Return the mechanism at some place; it checks itself that its fields fit together."""
    if "secrets" in place.members():
        raise ValueError(
            f"This {place.kind} keeps several secrets: read it with "
            f"SeveralSecretsMechanism.from_json."
        )
    read = read_fields(place, measure, utility)
    with place.making():
        return make(**read)
