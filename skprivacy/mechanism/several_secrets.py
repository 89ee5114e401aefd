"""One channel that keeps a budget for each of several secrets."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from .._json import write_document
from .._json_reader import Place, read_document
from .._typing import FloatArray, IntArray, Labels, Scope
from ..describing import as_html, at_face_value, leak_together, what_is_kept
from ..fidelity import Fidelity, fidelity_of_symbols
from ..measures import Measure
from ..utilities import Utility
from .evaluation import Evaluation
from .mechanism import Mechanism, make_mechanism, mechanism_content, named_channel
from .several_json import SeveralParts, read_several, several_content

# What the mechanisms of all secrets share: the channel, X, and what is kept of it.
_SHARED = {
    "channel", "p_x", "p_y", "posterior", "x_labels", "y_labels", "groups", "independent",
    "unseen", "symbol_of_output", "measure", "scope", "objective", "solver", "n_samples",
    "utility", "upper_bound", "gap", "is_certified", "normalized_utility",
    "normalized_upper_bound", "cell_utility", "mutual_information",
    "least_utility",
}  # fmt: skip

# Fields of a mechanism that have no default are no attributes of its class.
_OF_ONE = {"p_sx", "s_labels", *vars(Mechanism), *vars(Evaluation)}


class SeveralSecretsMechanism:
    """A channel P(Y|X) that keeps a budget for each of several secrets.

    Made by `design_mechanism` for several tables. For each secret there is a `Mechanism` with the
    same channel, its own table and its own budget, which it cannot break. Figures about "the"
    secret, such as `max_leakage`, are asked of one of them. Separate budgets bound no combination
    of secrets: `together` tells what is known about all of them jointly.

    Parameters
    ----------
    secrets : mapping of Mechanism
        By the name of the secret.
    together : Evaluation, default=None
        The figures of the channel for all secrets as one; None where they are not known.
    confidence : float, default=None
        How often all budgets hold for the population at once.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> sex, race = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], [[0.1, 0.2, 0.1], [0.2, 0.1, 0.3]]
    >>> budgets = {"sex": 0.002, "race": 0.02}
    >>> mechanism = design_mechanism({"sex": sex, "race": race}, budgets)
    >>> {name: round(secret.max_leakage, 6) for name, secret in mechanism.secrets.items()}
    {'sex': 0.002, 'race': 0.02}
    """

    if TYPE_CHECKING:
        channel: FloatArray
        p_x: FloatArray
        p_y: FloatArray
        posterior: FloatArray
        independent: FloatArray
        unseen: FloatArray
        x_labels: Labels
        y_labels: Labels
        groups: IntArray | None
        symbol_of_output: IntArray | None
        measure: Measure
        scope: Scope
        objective: Utility
        solver: str
        n_samples: float | None
        utility: float
        upper_bound: float
        gap: float
        is_certified: bool
        normalized_utility: float
        normalized_upper_bound: float
        cell_utility: float
        mutual_information: float

    def __init__(
        self,
        secrets: Mapping[Any, Mechanism],
        together: Evaluation | None = None,
        confidence: float | None = None,
    ) -> None:
        first, *others = secrets.values()
        if not all(np.array_equal(first.channel, other.channel) for other in others):
            raise ValueError("The mechanisms of all secrets must have the same channel.")
        self.secrets: Mapping[Any, Mechanism] = MappingProxyType(dict(secrets))
        self.together = together
        self.confidence = confidence

    @property
    def _first(self) -> Mechanism:
        return next(iter(self.secrets.values()))

    @property
    def epsilon(self) -> dict[Any, float]:
        """The budget of each secret."""
        return {name: secret.epsilon for name, secret in self.secrets.items()}

    def __getattr__(self, name: str) -> Any:
        if name in _SHARED:
            return getattr(self._first, name)
        if name.startswith("__") or name not in _OF_ONE:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        names = ", ".join(map(repr, self.secrets))
        raise AttributeError(
            f"This mechanism keeps several secrets ({names}), each with its own {name!r}: ask "
            f"mechanism.secrets[{next(iter(self.secrets))!r}].{name}."
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "secrets": dict(self.secrets)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, secrets=MappingProxyType(state["secrets"]))

    def excess(self, channel: FloatArray) -> float:
        """Return by how much another channel would exceed a budget, at most 0 if it exceeds none.

        Examples
        --------
        >>> import numpy as np
        >>> from skprivacy import design_mechanism
        >>> tables = {"sex": [[0.3, 0.1], [0.2, 0.4]], "race": [[0.1, 0.4], [0.4, 0.1]]}
        >>> mechanism = design_mechanism(tables, {"sex": 0.002, "race": 0.02})
        >>> mechanism.excess(mechanism.channel) <= 0 < mechanism.excess(np.eye(2))
        True
        """
        return max(secret.excess(channel) for secret in self.secrets.values())

    def changed(self, **fields: Any) -> SeveralSecretsMechanism:
        """Return the mechanism with some fields of all its secrets changed.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> tables = {"sex": [[0.3, 0.1], [0.2, 0.4]], "race": [[0.1, 0.4], [0.4, 0.1]]}
        >>> mechanism = design_mechanism(tables, {"sex": 0.002, "race": 0.02})
        >>> mechanism.changed(x_labels=("low", "high")).x_labels
        ('low', 'high')
        """
        secrets = {name: secret.changed(**fields) for name, secret in self.secrets.items()}
        made = SeveralSecretsMechanism(secrets, None, self.confidence)
        if self.together is None or self.together.p_sx is None:
            return made
        return made.with_together(self.together.p_sx, self.together.s_labels or ())

    def with_budgets(
        self, budgets: Mapping[Any, float], upper_bound: float
    ) -> SeveralSecretsMechanism:
        """Return the same channel under other budgets, which it is checked to keep.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> tables = {"sex": [[0.3, 0.1], [0.2, 0.4]], "race": [[0.1, 0.4], [0.4, 0.1]]}
        >>> mechanism = design_mechanism(tables, {"sex": 0.002, "race": 0.02})
        >>> mechanism.with_budgets({"sex": 0.01, "race": 0.02}, mechanism.upper_bound).epsilon
        {'sex': 0.01, 'race': 0.02}
        """
        bound = max(upper_bound, self.utility)
        secrets = {
            name: secret.changed(epsilon=budgets[name], upper_bound=bound)
            for name, secret in self.secrets.items()
        }
        return SeveralSecretsMechanism(secrets, self.together, self.confidence)

    def with_together(self, p_sx: FloatArray, s_labels: Labels) -> SeveralSecretsMechanism:
        """Return the mechanism with the joint of all secrets and X, for `together`.

        Examples
        --------
        X is the exclusive or of two secrets: alone, neither is told, but together they are.

        >>> from skprivacy import design_mechanism
        >>> alone = [[0.25, 0.25], [0.25, 0.25]]
        >>> mechanism = design_mechanism({"one": alone, "other": alone}, {"one": 0, "other": 0})
        >>> joint = [[0.25, 0], [0, 0.25], [0, 0.25], [0.25, 0]]
        >>> both = mechanism.with_together(joint, ("00", "01", "10", "11"))
        >>> [round(s.max_leakage, 3) for s in (*both.secrets.values(), both.together)]
        [0.0, 0.0, 0.693]
        """
        labels, about = (s_labels, self.x_labels, self.y_labels), (self.measure, self.objective)
        together = Evaluation(self.channel, p_sx, *labels, *about, groups=self.groups)
        return SeveralSecretsMechanism(self.secrets, together, self.confidence)

    def fidelity(self) -> Fidelity:
        """Return how close values are to the true ones; as in `Mechanism.fidelity`."""
        return fidelity_of_symbols(named_channel(self._first))

    def sentences(self, fidelity: Fidelity | None = None, *, x_name: str = "X") -> list[str]:
        """Return what is revealed of each secret, what is kept and what a reader sees, in words.

        Parameters
        ----------
        fidelity : Fidelity, default=None
            That of a transformer; None for that of this mechanism.
        x_name : str, default="X"
            What to call the columns of X.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> tables = {"sex": [[0.3, 0.1], [0.2, 0.4]], "race": [[0.1, 0.4], [0.4, 0.1]]}
        >>> mechanism = design_mechanism(tables, {"sex": 0.002, "race": 0.02})
        >>> len(mechanism.sentences())
        4
        """
        revealed = [
            secret.sentences(fidelity, s_name=name_of_secret(name))[0]
            for name, secret in self.secrets.items()
        ]
        if self.together is not None:
            revealed.append(said_together(self))
        kept, bound = self.normalized_utility, self.normalized_upper_bound
        is_sure = self.confidence is not None
        return [
            *revealed,
            what_is_kept(self.objective, kept, bound, x_name, is_sure, self.cell_utility),
            at_face_value(self.fidelity() if fidelity is None else fidelity),
        ]

    def to_json(self, *, include_joint: bool = True, indent: int | None = None) -> str:
        """Return the mechanism as JSON text, exact to the last bit.

        Parameters
        ----------
        include_joint, indent
            As in `Mechanism.to_json`: False leaves out what is known about all secrets.

        Examples
        --------
        >>> from skprivacy import SeveralSecretsMechanism, design_mechanism
        >>> tables = {"sex": [[0.3, 0.1], [0.2, 0.4]], "race": [[0.1, 0.4], [0.4, 0.1]]}
        >>> mechanism = design_mechanism(tables, {"sex": 0.002, "race": 0.02})
        >>> SeveralSecretsMechanism.from_json(mechanism.to_json()).epsilon
        {'sex': 0.002, 'race': 0.02}
        """
        return write_document("mechanism", several_content(_parts(self), include_joint), indent)

    @classmethod
    def from_json(
        cls, text: str, *, measure: Measure | None = None, utility: Utility | None = None
    ) -> SeveralSecretsMechanism:
        """Return the mechanism that `to_json` wrote, after checking all of it.

        Parameters
        ----------
        text, measure, utility
            As in `Mechanism.from_json`.

        Examples
        --------
        >>> from skprivacy import SeveralSecretsMechanism, design_mechanism
        >>> tables = {"sex": [[0.3, 0.1], [0.2, 0.4]], "race": [[0.1, 0.4], [0.4, 0.1]]}
        >>> mechanism = design_mechanism(tables, {"sex": 0.002, "race": 0.02})
        >>> shipped = SeveralSecretsMechanism.from_json(mechanism.to_json(include_joint=False))
        >>> shipped.secrets["sex"].p_sx is None
        True
        """
        return _made(read_several(read_document(text, "mechanism"), measure, utility))

    def _repr_html_(self) -> str:
        shares, labels = (self.p_x, self.p_y), (self.x_labels, self.y_labels)
        return as_html(self.sentences(), self.channel, shares, labels)

    def __repr__(self) -> str:
        n_x, n_y = self.channel.shape
        each = [_told(name_of_secret(name), secret) for name, secret in self.secrets.items()]
        kept = f"utility={self.utility:.6g} ({self.normalized_utility:.1%} of the largest)"
        said = [*each, self.scope, f"{n_x} symbols -> {n_y} outputs", kept, f"gap<={self.gap:.2g}"]
        if self.together is not None:
            said.insert(len(each), f"together {self.together.leakage_in(self.scope):.6g}")
        if self.confidence is not None:
            said.append(f"confidence={self.confidence:g} from {self.n_samples:g} rows")
        said.append(f"solver={self.solver!r}")
        return f"{type(self).__name__}({self.measure!r}: {', '.join(said)})"


def _told(name: str, secret: Mechanism) -> str:
    """Return what `repr` says about one secret."""
    if secret.p_sx is None:
        return f"{name} claimed epsilon={secret.epsilon:.6g}"
    return f"{name} {secret.leakage_at_most(secret):.6g} of epsilon={secret.epsilon:.6g}"


def _parts(mechanism: SeveralSecretsMechanism) -> SeveralParts:
    figures, together = mechanism.together, None
    if figures is not None and figures.p_sx is not None:
        together = figures.p_sx, figures.s_labels or ()
    return SeveralParts(mechanism.secrets, mechanism.confidence, together)


def _made(parts: SeveralParts) -> SeveralSecretsMechanism:
    made = SeveralSecretsMechanism(parts.secrets, confidence=parts.confidence)
    return made if parts.together is None else made.with_together(*parts.together)


def mechanism_content_of_any(
    mechanism: Mechanism | SeveralSecretsMechanism, include_joint: bool
) -> dict[str, Any]:
    """Return what a document says about a mechanism for one secret, or for several."""
    if isinstance(mechanism, Mechanism):
        return mechanism_content(mechanism, include_joint)
    return several_content(_parts(mechanism), include_joint)


def make_any_mechanism(
    place: Place, measure: Measure | None, utility: Utility | None
) -> Mechanism | SeveralSecretsMechanism:
    """Return the mechanism at some place, for one secret or for several."""
    if "secrets" in place.members():
        return _made(read_several(place, measure, utility))
    return make_mechanism(place, Mechanism, measure, utility)


def name_of_secret(name: Any) -> str:
    """Return the name of a secret; of a joint one, those of its parts."""
    return " and ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def said_together(mechanism: SeveralSecretsMechanism) -> str:
    """Say what is revealed about all secrets together, where that is known."""
    together, scope = mechanism.together, mechanism.scope
    if together is None or together.p_sx is None:
        return "What is revealed about all secrets together is not known here."
    # A secret with as many groups as all of them together is all of them.
    n_groups = len(together.p_sx)
    sizes = [0 if s.p_sx is None else len(s.p_sx) for s in mechanism.secrets.values()]
    figure = together.leakage_in(scope)
    return leak_together(figure, scope, mechanism.measure.name, max(sizes) >= n_groups)


def check_one_secret(
    mechanism: Mechanism | SeveralSecretsMechanism, owner: str, where: str = "mechanism"
) -> Mechanism:
    """Return a mechanism for one secret; of several, one must be chosen.

    where : what the user calls it.
    """
    if isinstance(mechanism, Mechanism):
        return mechanism
    names = ", ".join(map(repr, mechanism.secrets))
    raise TypeError(
        f"{owner} is about one secret, and this mechanism keeps several ({names}): pass "
        f"{where}.secrets[{next(iter(mechanism.secrets))!r}], and so on."
    )


def one_of(mechanism: Mechanism | SeveralSecretsMechanism) -> Mechanism:
    """Return a mechanism for one of the secrets, for what is the same for all: the channel, X."""
    return mechanism if isinstance(mechanism, Mechanism) else mechanism._first
