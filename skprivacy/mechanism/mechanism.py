"""Evaluation: a channel, and what it leaks about each secret; Mechanism: within budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._json import Place, label_key, read_document, write_document
from .._typing import FloatArray, IntArray, Labels, Scope, TableLike
from .._validation import about, message
from ..channels import OWNER, Channel, doc_of, of_channel
from ..describing import ReleaseSummary
from ..describing.numbers import limit
from ..fidelity import Fidelity, NamedChannel, closest_names, fidelity_of_symbols
from ..joint import Joint, as_joint, confidence_of_each
from ..measures import Measure, get_measure
from ..utilities import (
    BOUND_TOLERANCE,
    DEFAULT_TOL,
    UTILITY_ROUNDING,
    MutualInformation,
    Utility,
    get_utility,
)
from .content import mechanism_content, read_mechanism
from .guarantee import ChannelFigures, Guarantee, Leakage, PopulationLeakage


def of_secret(kind: type[Leakage], name: str) -> Any:
    """Return a property for a figure of the only secret."""

    def figure(self: Figures) -> Any:
        return getattr(self.only_secret(name), name)

    return property(figure, doc=doc_of(kind, name))


def of_all(name: str, doc: str) -> Any:
    """Return a property for a figure that all secrets share."""
    return property(attrgetter(f"_first.{name}"), doc=doc)


class Figures(ChannelFigures):
    """The figures of a channel, and of its secret if there is only one.

    If there are several secrets, the figures of each are in `secrets`.
    """

    secrets: Mapping[Any, Any]
    together: Leakage | None

    _kind: ClassVar[str] = "evaluation"
    _first: Any  # of the secrets

    posterior: FloatArray = of_channel("posterior")
    x_labels: Labels = of_channel("x_labels")
    objective: Utility = of_channel("objective")
    utility: float = of_channel("utility")
    normalized_utility: float = of_channel("normalized_utility")
    cell_utility: float = of_channel("cell_utility")
    least_utility: float = of_channel("least_utility")
    mutual_information: float = of_channel("mutual_information")
    independent: FloatArray = of_channel("independent")
    unseen: FloatArray = of_channel("unseen")

    p_sx: FloatArray | None = of_secret(Leakage, "p_sx")
    s_labels: Labels | None = of_secret(Leakage, "s_labels")
    sensitive_posterior: FloatArray = of_secret(Leakage, "sensitive_posterior")
    leakage: FloatArray = of_secret(Leakage, "leakage")
    max_leakage: float = of_secret(Leakage, "max_leakage")
    average_leakage: float = of_secret(Leakage, "average_leakage")
    leakage_in: Callable[[Scope], float] = of_secret(Leakage, "leakage_in")
    sensitive_information: float = of_secret(Leakage, "sensitive_information")
    attacker_accuracy: float = of_secret(Leakage, "attacker_accuracy")
    attacker_advantage: float = of_secret(Leakage, "attacker_advantage")
    max_lift: float = of_secret(Leakage, "max_lift")

    measure: Measure = of_all("measure", "The measure of leakage.")

    def __post_init__(self) -> None:
        self._set(secrets=MappingProxyType(dict(self.secrets)))
        known = [*self.secrets.values(), *([self.together] if self.together else [])]
        if not self.secrets or not all(each.y_given_x is self.y_given_x for each in known):
            raise ValueError("There must be a secret, and all must be about the same channel.")
        self._set(_first=known[0])
        if self.together is None and len(self.secrets) == 1:
            self._set(together=known[0])

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "secrets": dict(self.secrets)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**state, "secrets": MappingProxyType(state["secrets"])})

    def only_secret(self, figure: str) -> Any:
        """Return the only secret; an error if there are several. figure : for the error."""
        if len(self.secrets) == 1:
            return self._first
        names = ", ".join(map(repr, self.secrets))
        raise AttributeError(
            f"This {self._kind} is about several secrets ({names}), each with its own {figure!r}: "
            f"ask {self._kind}.secrets[{next(iter(self.secrets))!r}].{figure}."
        )

    def with_channel(self, channel: FloatArray) -> Evaluation:
        """Return the figures of another channel under the same joint.

        Examples
        --------
        The leakage of releasing X itself:

        >>> import numpy as np
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> round(mechanism.with_channel(np.eye(3)).max_leakage, 3)
        0.145
        """
        y_given_x = self.y_given_x.with_matrix(channel)
        return self._evaluated(y_given_x, lambda each: each.with_channel(y_given_x))

    def with_measure(self, measure: Measure) -> Evaluation:
        """Return the figures of the same channel by another measure.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> from skprivacy.measures import L1
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02, measure="kl")
        >>> round(mechanism.with_measure(L1()).max_leakage, 3)
        0.198
        """
        return self._evaluated(self.y_given_x, lambda each: each.with_measure(measure))

    def _evaluated(self, channel: Channel, figures: Callable[[Leakage], Leakage]) -> Evaluation:
        secrets = {name: figures(each) for name, each in self.secrets.items()}
        if self.together is None or len(secrets) == 1:
            return Evaluation(channel, secrets)
        return Evaluation(channel, secrets, figures(self.together))

    def table(self) -> pd.DataFrame:
        """Return a DataFrame with one row per output.

        Columns: the probability of the output, its leakage and largest lift (for each of several
        secrets; not for a mechanism saved without its joint), and the posterior of each symbol of
        X.

        Examples
        --------
        >>> import pandas as pd
        >>> from skprivacy import design_mechanism
        >>> counts = pd.DataFrame([[20, 10, 10], [10, 20, 30]], columns=list("abc"))
        >>> design_mechanism(counts, 0.01, solver="watchdog").table().round(3).reset_index()
           y  probability  leakage  max_lift  P(a|y)  P(b|y)  P(c|y)
        0  0          0.3    0.009     1.111   0.000     1.0   0.000
        1  1          0.7    0.002     1.071   0.429     0.0   0.571
        """
        figures = {"probability": self.p_y}
        for name, secret in self.secrets.items():
            suffix = "" if len(self.secrets) == 1 else f" {name}"
            if secret.p_sx is not None:
                figures[f"leakage{suffix}"] = secret.leakage
                figures[f"max_lift{suffix}"] = secret.output_lifts
        names = [*figures, *(f"P({label}|y)" for label in self.x_labels)]
        index = pd.Index(self.y_labels, name="y", tupleize_cols=False)
        columns = np.column_stack([*figures.values(), self.posterior])
        return pd.DataFrame(columns, columns=names, index=index)

    def _figures(self) -> Iterator[str]:
        """Yield the figures in `repr`."""
        n_x, n_y = self.channel.shape
        yield f"{n_x} symbols -> {n_y} outputs"
        if len(self.secrets) == 1:
            yield from self._first._figures()
        else:
            for name, secret in [*self.secrets.items(), ("together", self.together)]:
                if secret is not None:
                    yield f"{name}: ({', '.join(secret._figures())})"
        yield f"utility={self.utility:.6g} ({self.normalized_utility:.1%} of the largest)"
        if not isinstance(self.objective, MutualInformation):
            yield f"objective={self.objective!r}"
            yield f"I(X;Y)={self.mutual_information:.6g}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.measure!r}: {', '.join(self._figures())})"


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Figures):
    """A channel P(Y|X) under the joint of X with one or more secrets, without budgets.

    The figures of a single secret are attributes; with several, ask ``evaluation.secrets[name]``.

    Attributes
    ----------
    y_given_x : Channel
        The channel, with names of its symbols and its objective.
    secrets : dict of Leakage
        Leakage about each secret; the name of a single unnamed secret is None.
    together : Leakage or None
        Leakage about all secrets combined, if known.

    Examples
    --------
    A channel under another joint distribution than in its design:

    >>> from skprivacy import design_mechanism
    >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
    >>> evaluation = mechanism.evaluate([[0.25, 0.1, 0.05], [0.05, 0.2, 0.35]])
    >>> round(evaluation.max_leakage, 3)
    0.076
    >>> round(evaluation.attacker_accuracy, 3)
    0.643
    """

    y_given_x: Channel
    secrets: Mapping[Any, Leakage]
    together: Leakage | None = None

    @classmethod
    def of_channel(
        cls,
        channel: FloatArray,
        p_sx: TableLike,
        measure: str | Measure = "kl",
        utility: str | Utility = "mutual_information",
    ) -> Evaluation:
        """Return the figures of any channel.

        Parameters
        ----------
        channel : array-like of shape (n_x, n_y)
            ``P(Y = y | X = x)``; rows sum to 1.
        p_sx : array-like or DataFrame of shape (n_s, n_x)
            The joint distribution, as in `design_mechanism`.
        measure, utility
            As in `design_mechanism`.

        Examples
        --------
        >>> from skprivacy import Evaluation
        >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
        >>> merged = Evaluation.of_channel([[1, 0], [0, 1], [0, 1]], joint)
        >>> round(merged.max_leakage, 3), round(merged.normalized_utility, 3)
        (0.145, 0.561)
        """
        owner = "Evaluation.of_channel"
        joint, wanted = as_joint(p_sx, owner), get_utility(utility, owner)
        labels = joint.x_labels, tuple(range(np.shape(channel)[-1]))
        y_given_x = Channel(channel, joint.p_x, *labels, wanted)
        leakage = Leakage(y_given_x, joint.p_sx, joint.s_labels, get_measure(measure, owner))
        return cls(y_given_x, {None: leakage})


# Mechanism: a channel, and the budgets that it provably keeps.


class BudgetFigures(Figures):
    """Figures of a mechanism that an evaluation does not have."""

    symbol_of_output: IntArray | None = of_channel("symbol_of_output")
    population_limit: PopulationLeakage | None = of_secret(Guarantee, "population_limit")
    leakage_at_most: Callable[[], float] = of_secret(Guarantee, "leakage_at_most")
    advantage_bound: float = of_secret(Guarantee, "advantage_bound")
    posterior_ranges: Callable[[], pd.DataFrame] = of_secret(Guarantee, "posterior_ranges")
    allows_certainty: bool = of_secret(Guarantee, "allows_certainty")
    scope: Scope = of_all("scope", 'The scope of the budget: "per_output" or "average".')
    n_samples: float | None = of_all(
        "n_samples", "Number of rows behind `p_sx`; None without a confidence."
    )


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(BudgetFigures):
    """A channel P(Y|X) that keeps a privacy budget for each of one or more secrets.

    Returned by `design_mechanism`. A mechanism over budget cannot exist: leakage is computed from
    the floats of the channel itself whenever a mechanism is created or loaded. The guarantee is
    about `p_sx`, the joint distribution of the design; with a `confidence` it is also about the
    population the rows of `p_sx` were drawn from, and `population_limit` is within the budget too.
    If the joint was left out of a saved mechanism, the budget is only what its file claims.

    The figures of a single secret, such as `max_leakage`, are attributes; with several, ask
    ``mechanism.secrets[name]``. Separate budgets bound no combination of secrets: the leakage
    about all of them combined is `together`.

    Attributes
    ----------
    y_given_x : Channel
        The channel, with names of its symbols and its objective.
    secrets : dict of Guarantee
        Leakage about each secret, and its budget; the name of a single unnamed secret is None.
    solver : str
        Name of the solver.
    upper_bound : float
        No mechanism within the budgets has a larger utility.
    confidence : float or None
        How often budgets like these all hold for the population. None if they are about `p_sx`
        alone.
    together : Leakage or None
        Leakage about all secrets combined, if known.

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
    # None if no bound is known: it is then replaced by the largest utility.
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
                    "rows, and equal shares of the risk (1 - confidence)."
                )
        largest = self.y_given_x.largest_utility
        bound = largest if self.upper_bound is None else min(self.upper_bound, largest)
        # A bound below the utility by more than rounding would be wrong, not tight.
        if not bound >= self.utility - BOUND_TOLERANCE * max(1.0, largest):
            raise ValueError(message(OWNER, "upper_bound", f">= {self.utility}", bound))
        self._set(upper_bound=float(max(bound, self.utility)))

    @property
    def epsilon(self) -> Any:
        """The budget; for several secrets, a dict of budgets."""
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
        """Return the same mechanism with other names; nothing is computed again.

        Parameters
        ----------
        s_labels : dict of tuple, default=None
            Names of the groups of each secret.
        together : (ndarray, tuple), default=None
            Joint distribution of all secrets combined with X, and the names of the combined
            groups, for the attribute `together`.
        **names
            `x_labels`, `y_labels` or `symbol_of_output`, as in `Channel`.

        Examples
        --------
        X is the exclusive or of two secrets: it reveals neither of them, but both together.

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
        how = self.solver, self.upper_bound, self.confidence
        return Mechanism(channel, secrets, *how, known)

    def with_budgets(self, budgets: Mapping[Any, float], upper_bound: float) -> Mechanism:
        """Return the same channel with other budgets, which are checked.

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

        Mostly False with a `confidence`: the budget for the population is stricter than the budget
        for the rows, which `upper_bound` is about.
        """
        share = self.normalized_upper_bound - self.normalized_utility
        return share <= DEFAULT_TOL + UTILITY_ROUNDING

    @property
    def normalized_upper_bound(self) -> float:
        """Upper bound on the `normalized_utility` of any mechanism within the budget."""
        return self.y_given_x.normalized(self.upper_bound)

    def fidelity(self) -> Fidelity:
        """Return how close outputs, taken at face value, are to the true values.

        X is one column here. `PrivacyFunnelTransformer.fidelity_` has the figures of each column.
        Outputs without names are read as the symbols of X with the smallest expected loss, by the
        objective or by the share of wrong symbols.

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
            Probabilities or counts; a dict has a table for each secret, all with the same X. S may
            have other symbols than in the design. The columns of a DataFrame are matched with
            `x_labels`.

        Returns
        -------
        Evaluation
            Without budgets: under another joint the channel may leak more.

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
            problem = f" must be a dict with a table for each of {list(self.secrets)}. Got {got}."
            raise ValueError(about("Mechanism.evaluate", "p_sx", problem))
        joints = {name: self._joint_of(table) for name, table in tables.items()}
        p_x = next(iter(joints.values())).p_x
        labels, objective = (self.x_labels, self.y_labels), self.objective.elsewhere()
        channel = Channel(self.channel, p_x, *labels, objective, self.strata)
        secrets = {
            name: Leakage(channel, joint.p_sx, joint.s_labels, self.measure)
            for name, joint in joints.items()
        }
        return Evaluation(channel, secrets)

    def _joint_of(self, p_sx: TableLike) -> Joint:
        owner = "Mechanism.evaluate"
        if isinstance(p_sx, pd.DataFrame):
            # By position: a list of booleans or of tuples would not select columns.
            known = {label_key(label): label for label in self.x_labels}
            given = {label_key(label): i for i, label in enumerate(p_sx.columns.tolist())}
            missing = [label for key, label in known.items() if key not in given]
            unknown = [p_sx.columns[i] for key, i in given.items() if key not in known]
            if missing or unknown:
                raise ValueError(
                    f"The columns of the 'p_sx' parameter of {owner} must be the symbols of X. "
                    f"Missing: {missing[:5]}; unknown: {unknown[:5]}."
                )
            p_sx = p_sx.iloc[:, [given[key] for key in known]]
        joint, n_x = as_joint(p_sx, owner), len(self.x_labels)
        if len(joint.x_labels) != n_x:
            problem = f" must have {n_x} columns, one per symbol of X. Got {len(joint.x_labels)}."
            raise ValueError(about(owner, "p_sx", problem))
        return joint

    def _figures(self) -> Iterator[str]:
        yield from super()._figures()
        if len(self.secrets) == 1 and self.p_sx is not None:
            (secret,) = self.summary().secrets.values()
            yield f"most exposed group from {secret.moves()[secret.most_exposed].in_words()}"
        yield f"gap<={limit(self.gap, 2)}"
        yield f"solver={self.solver!r}"

    def summary(self) -> ReleaseSummary:
        """Return a summary of leakage, utility and budgets: figures, verdict, and sentences.

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
        """Return sentences about what is protected, revealed and kept, and what readers see.

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
            False leaves out P_SX, the symbols of S and the table of a target: none of them is
            needed to apply the channel. Leakage cannot be computed from such a file. (The channel
            was designed for P_SX, so an expert can still infer a little about it.)
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
        """Return the mechanism as part of a JSON document."""
        how = self.solver, self.upper_bound, self.confidence
        return mechanism_content(self.y_given_x, self.secrets, *how, self.together, include_joint)

    @classmethod
    def from_json(
        cls, text: str, *, measure: Measure | None = None, utility: Utility | None = None
    ) -> Mechanism:
        """Return the mechanism that `to_json` wrote, after checking all of it.

        Parameters
        ----------
        text : str
            JSON text as `to_json` writes it; otherwise, a ValueError names the place.
        measure : Measure, default=None
            Required if the mechanism was designed with a measure of your own.
        utility : Utility, default=None
            Required if the mechanism was designed with a utility of your own.

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
    """Return the mechanism at a place of a document, after checking that its parts fit."""
    read = read_mechanism(place, measure, utility)
    with place.making():
        return Mechanism(*read)


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
    """Return the leakage about one secret of a mechanism or an evaluation.

    given : one of these, or an entry of its `secrets`; secret : its name, None for the only one;
    advice : the argument that names a secret, for the error.
    """
    if isinstance(given, Leakage) and secret is None:
        return given
    if not isinstance(given, Figures):
        raise TypeError(message(owner, "mechanism", "a Mechanism or an Evaluation", given))
    names = list(given.secrets)
    if secret is None and len(names) > 1:
        raise TypeError(
            f"{owner} is about one secret, and this mechanism has several "
            f"({', '.join(map(repr, names))}): pass {advice.format(names[0])}, and so on."
        )
    name = names[0] if secret is None else secret
    if name not in names:
        raise ValueError(message(owner, "secret", f"one of {names}", secret))
    return given.secrets[name]
