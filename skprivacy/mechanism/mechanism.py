"""Mechanism: a channel, and the budgets that it provably keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._json import Place, label_key, read_document, write_document
from .._messages import Message, Parameter
from .._typing import FloatArray, IntArray, Labels, Scope, TableLike
from .._validation import message
from ..channels import OWNER, Channel, of_channel
from ..describing import ReleaseSummary
from ..describing.numbers import limit
from ..fidelity import Fidelity, NamedChannel, closest_names, fidelity_of_symbols
from ..joint import as_joint, confidence_of_each
from ..measures import Measure
from ..utilities import BOUND_TOLERANCE, DEFAULT_TOL, UTILITY_ROUNDING, Utility
from .content import mechanism_content, read_mechanism
from .evaluation import Evaluation, Figures, of_all, of_secret
from .guarantee import Guarantee, Leakage, PopulationLeakage


class BudgetFigures(Figures):
    """The figures that a mechanism has besides those of an evaluation."""

    symbol_of_output: IntArray | None = of_channel("symbol_of_output")
    population_limit: PopulationLeakage | None = of_secret(Guarantee, "population_limit")
    leakage_at_most: Callable[[], float] = of_secret(Guarantee, "leakage_at_most")
    advantage_bound: float = of_secret(Guarantee, "advantage_bound")
    posterior_ranges: Callable[[], pd.DataFrame] = of_secret(Guarantee, "posterior_ranges")
    allows_certainty: bool = of_secret(Guarantee, "allows_certainty")
    scope: Scope = of_all(
        "scope", """Which leakage is within the budget: "per_output" or "average"."""
    )
    n_samples: float | None = of_all(
        "n_samples", "How many rows `p_sx` was counted from; None where there is no confidence."
    )


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(BudgetFigures):
    """A channel P(Y|X) that keeps a privacy budget for each of one or more secrets.

    Made by `design_mechanism`. A mechanism that breaks a budget cannot exist: leakage is computed
    from the floats of the channel itself whenever one is made, including when it is loaded. The
    guarantee is about `p_sx`, the joint distribution it was designed for; with a `confidence` it
    is also about the population that the rows of `p_sx` were drawn from, and `population_limit`
    is within the budget too. If the joint was left out of a saved mechanism, the budget is only
    what its file claims.

    Figures of a secret, such as `max_leakage`, are attributes where there is one. Of several,
    ``mechanism.secrets[name]`` has those of each: separate budgets bound no combination of
    secrets, and `together` tells what is known about all of them jointly.

    Attributes
    ----------
    y_given_x : Channel
        The channel, with names of its symbols and what it was designed for.
    secrets : dict of Guarantee
        What leaks about each secret, and the budget that it keeps; an only one without a name is
        called None.
    solver : str
        The name of the solver that was used.
    upper_bound : float
        No mechanism within the budgets has a larger utility.
    confidence : float or None
        How often budgets like these all hold for the population. None where they are about `p_sx`
        alone.
    together : Leakage or None
        What leaks about all secrets as one, where that is known.

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

    Two secrets:

    >>> sex, race = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], [[0.1, 0.2, 0.1], [0.2, 0.1, 0.3]]
    >>> budgets = {"sex": 0.002, "race": 0.02}
    >>> mechanism = design_mechanism({"sex": sex, "race": race}, budgets)
    >>> {name: round(secret.max_leakage, 6) for name, secret in mechanism.secrets.items()}
    {'sex': 0.002, 'race': 0.02}
    """

    y_given_x: Channel
    secrets: Mapping[Any, Guarantee]
    solver: str
    # None means that no bound is known: it is then replaced by the largest utility.
    upper_bound: float = None  # type: ignore[assignment]
    confidence: float | None = None
    together: Leakage | None = None

    _kind: ClassVar[str] = "mechanism"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.solver, str):
            raise TypeError(message(OWNER, "solver", "a str", self.solver))
        of_each, first = None, self._first
        if self.confidence is not None:
            of_each = confidence_of_each(self.confidence, len(self.secrets))
        for each in self.secrets.values():
            is_alike = each.scope == first.scope and each.n_samples == first.n_samples
            is_alike &= each.measure.to_dict() == first.measure.to_dict()
            is_alike &= (each.p_sx is None) == (first.p_sx is None)
            if not (isinstance(each, Guarantee) and is_alike and each.confidence == of_each):
                raise ValueError(
                    "All secrets of a mechanism must have the same measure, scope and number of "
                    "rows, and equal shares of the risk that its confidence leaves."
                )
        largest = self.y_given_x.largest_utility
        bound = largest if self.upper_bound is None else min(self.upper_bound, largest)
        # A bound below the utility by more than rounding would be wrong, not tight.
        if not bound >= self.utility - BOUND_TOLERANCE * max(1.0, largest):
            raise ValueError(message(OWNER, "upper_bound", f">= {self.utility}", bound))
        self._set(upper_bound=float(max(bound, self.utility)))

    @property
    def epsilon(self) -> Any:
        """The budget, a float; of several secrets, a dict with that of each."""
        budgets = {name: secret.epsilon for name, secret in self.secrets.items()}
        return budgets if len(budgets) > 1 else next(iter(budgets.values()))

    def excess(self, channel: FloatArray) -> float:
        """Return by how much another channel would exceed a budget; at most 0 if it does not.

        Examples
        --------
        >>> import numpy as np
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> mechanism.excess(mechanism.channel) <= 0 < mechanism.excess(np.eye(3))
        True
        """
        y_given_x = self.y_given_x.with_matrix(channel)
        return max(secret.excess(y_given_x) for secret in self.secrets.values())

    def renamed(
        self,
        *,
        s_labels: Mapping[Any, Labels] | None = None,
        together: tuple[FloatArray, Labels] | None = None,
        **names: Any,
    ) -> Mechanism:
        """Return the same mechanism with other names, which costs nothing.

        Parameters
        ----------
        s_labels : dict of tuple, default=None
            Names of the groups of each secret.
        together : (ndarray, tuple), default=None
            The joint distribution of all secrets as one with X, and the names of its groups:
            `together` tells then what leaks about them.
        **names
            `x_labels`, `y_labels` or `symbol_of_output`, as in `Channel`.

        Examples
        --------
        X is the exclusive or of two secrets: alone, neither is told, but together they are.

        >>> from skprivacy import design_mechanism
        >>> alone = [[0.25, 0.25], [0.25, 0.25]]
        >>> mechanism = design_mechanism({"one": alone, "other": alone}, {"one": 0, "other": 0})
        >>> joint = [[0.25, 0], [0, 0.25], [0, 0.25], [0.25, 0]]
        >>> both = mechanism.renamed(together=(joint, ("00", "01", "10", "11")))
        >>> [round(s.max_leakage, 3) for s in (*both.secrets.values(), both.together)]
        [0.0, 0.0, 0.693]
        """
        channel, labels = self.y_given_x.renamed(**names), s_labels or {}
        if unknown := [name for name in labels if name not in self.secrets]:
            raise ValueError(message(OWNER, "s_labels", f"about {list(self.secrets)}", unknown))
        secrets = {n: each.renamed(channel, labels.get(n)) for n, each in self.secrets.items()}
        known = self.together
        if together is not None and len(secrets) > 1:
            known = Leakage(channel, *together, self.measure)
        elif known is not None:
            known = known._copy(y_given_x=channel) if len(secrets) > 1 else None
        bound, sure = self.upper_bound, self.confidence
        return Mechanism(channel, secrets, self.solver, bound, sure, known)

    def with_budgets(self, budgets: Mapping[Any, float], upper_bound: float) -> Mechanism:
        """Return the same channel under other budgets, which it is checked to keep.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> tables = {"sex": [[0.3, 0.1], [0.2, 0.4]], "race": [[0.1, 0.4], [0.4, 0.1]]}
        >>> mechanism = design_mechanism(tables, {"sex": 0.002, "race": 0.02})
        >>> mechanism.with_budgets({"sex": 0.01, "race": 0.02}, mechanism.upper_bound).epsilon
        {'sex': 0.01, 'race': 0.02}
        """
        secrets = {
            name: Guarantee.of(secret, budgets[name], secret.scope)
            for name, secret in self.secrets.items()
        }
        known = self.together if len(secrets) > 1 else None
        bound, sure = max(upper_bound, self.utility), self.confidence
        return Mechanism(self.y_given_x, secrets, self.solver, bound, sure, known)

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
        return self.y_given_x.normalized(self.upper_bound)

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

    def evaluate(self, p_sx: TableLike | Mapping[Any, TableLike]) -> Evaluation:
        """Return all figures of the channel under another joint distribution.

        Parameters
        ----------
        p_sx : array-like or DataFrame of shape (n_s, n_x), or dict of them
            Probabilities or counts; a dict has a table for each secret, all about the same X. S
            may have symbols other than those of the design. The columns of a DataFrame are matched
            with `x_labels`.

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
        tables = p_sx if isinstance(p_sx, Mapping) else {next(iter(self.secrets)): p_sx}
        if tables.keys() != self.secrets.keys():
            got = f"tables for {list(p_sx)}" if isinstance(p_sx, Mapping) else "one table"
            about = f" must be a dict with a table for each of {list(self.secrets)}. Got {got}."
            raise ValueError(Message(Parameter("p_sx", "Mechanism.evaluate"), about))
        joints = {name: self._joint_of(table) for name, table in tables.items()}
        p_x = next(iter(joints.values())).p_x
        labels, objective = (self.x_labels, self.y_labels), self.objective.elsewhere()
        channel = Channel(self.channel, p_x, *labels, objective, self.strata)
        secrets = {
            name: Leakage(channel, joint.p_sx, joint.s_labels, self.measure)
            for name, joint in joints.items()
        }
        return Evaluation(channel, secrets)

    def _joint_of(self, p_sx: TableLike) -> Any:
        owner = "Mechanism.evaluate"
        if isinstance(p_sx, pd.DataFrame):
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
            p_sx = p_sx.iloc[:, [theirs[key] for key in ours]]
        joint = as_joint(p_sx, owner)
        if len(joint.x_labels) != len(self.x_labels):
            raise ValueError(
                Message(
                    Parameter("p_sx", owner),
                    f" must have {len(self.x_labels)} columns, one per symbol of X. Got "
                    f"{len(joint.x_labels)}.",
                )
            )
        return joint

    def _figures(self) -> Iterator[str]:
        yield from super()._figures()
        if len(self.secrets) == 1 and self.p_sx is not None:
            (about,) = self.summary().secrets.values()
            yield f"most exposed group from {about.moves()[about.most_exposed].in_words()}"
        yield f"gap<={limit(self.gap, 2)}"
        yield f"solver={self.solver!r}"

    def summary(self) -> ReleaseSummary:
        """Return what is leaked, kept and allowed: the figures, the verdict, and sentences.

        `PrivacyFunnelTransformer.summary_` knows the names of the columns, too.

        Returns
        -------
        ReleaseSummary

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02).summary().verdict.level
        'moderate'
        """
        return ReleaseSummary(self)

    def sentences(self) -> list[str]:
        """Return what is protected, revealed and kept, and what a reader sees, in words.

        No group of S is named: for that, see `posterior_ranges`.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> mechanism.sentences()[2]
        'It keeps 63.4% of the information in X; no mechanism within the budget keeps more.'
        """
        return self.summary().sentences()

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

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
        return write_document("mechanism", self.content(include_joint), indent)

    def content(self, include_joint: bool) -> dict[str, Any]:
        """Return what a document says about the mechanism."""
        others = {name: getattr(self, name) for name in ("solver", "upper_bound", "confidence")}
        parts = self.y_given_x, self.secrets, self.together
        return mechanism_content(*parts, others, include_joint)

    @classmethod
    def from_json(
        cls, text: str, *, measure: Measure | None = None, utility: Utility | None = None
    ) -> Mechanism:
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
        return make_mechanism(read_document(text, "mechanism"), measure, utility)


def make_mechanism(place: Place, measure: Measure | None, utility: Utility | None) -> Mechanism:
    """Return the mechanism at some place of a document; it checks that its parts fit together."""
    read = read_mechanism(place, measure, utility)
    with place.making():
        return Mechanism(**read)


def named_channel(mechanism: Mechanism) -> NamedChannel:
    """Return the channel with the symbol of X that each output is read as."""
    channel, p_x, names = mechanism.channel, mechanism.p_x, mechanism.symbol_of_output
    if names is None:
        known = mechanism.objective.as_loss(len(p_x))
        loss = 1.0 - np.eye(len(p_x)) if known is None else known[0]
        names = closest_names(p_x[:, None] * channel, loss)
    return NamedChannel(channel, p_x, names, mechanism.x_labels)


def one_secret(
    given: object, owner: str, secret: Any = None, advice: str = "secret={!r}"
) -> Leakage:
    """Return what leaks about one secret of a mechanism or an evaluation.

    given : one of these, or the entry of one secret in its `secrets`; secret : its name, None for
    the only one; advice : what the user can pass for a name.
    """
    if isinstance(given, Leakage) and secret is None:
        return given
    if not isinstance(given, Figures):
        requirement = "a Mechanism or an Evaluation"
        raise TypeError(message(owner, "mechanism", requirement, given))
    names = list(given.secrets)
    if secret is None and len(names) > 1:
        raise TypeError(
            f"{owner} is about one secret, and this mechanism keeps several "
            f"({', '.join(map(repr, names))}): pass {advice.format(names[0])}, and so on."
        )
    name = names[0] if secret is None else secret
    if name not in names:
        raise ValueError(message(owner, "secret", f"one of {names}", secret))
    return given.secrets[name]
