"""PrivacyFunnelTransformer: a frame in, a frame out, with X replaced by Y."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ._typing import ColumnsLike, FloatArray, IntArray, Scope, Seed, TableLike
from .encoding import DEFAULT_BINS, Alphabet
from .engines import as_lazy_table, lazy_inputs
from .fitting.batches import Batches
from .fitting.encode_and_design import CodedRows, code_rows, code_sensitive, design, target_of
from .fitting.held_out import evaluated_on
from .fitting.inputs import FitInputs, counts_nothing, read_inputs
from .fitting.leak_warnings import (
    Budget,
    judged,
    warn_if_misleading,
    warn_of_bins,
    warn_of_index,
    warn_of_passed_through,
)
from .fitting.parameters import check_parameters
from .measures import Measure, get_measure
from .mechanism import Evaluation, Mechanism
from .persistence import read_transformer, write_transformer
from .releasing.noise_sources import noise_source
from .releasing.output_names import check_names_out, names_out
from .releasing.release import release_of
from .solvers import Solver
from .tables.column_roles import ColumnRoles
from .tables.column_types import ColumnType
from .tables.frames import as_table, converted
from .utilities import Utility

# One column, by name or by position, or several.
_ColumnNames: TypeAlias = str | int | Sequence[Hashable]

# How many bins, or their edges; for all columns, or by name.
_Binning: TypeAlias = int | npt.ArrayLike | Sequence[Any] | dict[Any, Any] | None


# What a design sets, and batches that came in between take away.
_DESIGNED = (
    "mechanism_", "p_sx_", "categories_", "sensitive_categories_", "_roles", "_types",
    "_alphabet", "_names", "_leaking", "_sensitive", "_sensitive_names", "_counts",
    "_effective_rows",
)  # fmt: skip


class PrivacyFunnelTransformer(TransformerMixin, BaseEstimator):
    """Replace columns X by a randomised Y that says at most epsilon about a sensitive S.

    `fit` learns the joint distribution of S and X and designs the channel P(Y|X) that keeps the
    most about X within the budget; `transform` draws Y for each row. It needs no S, and S never
    comes out of it.

    The guarantee is about the joint distribution estimated by `fit` and about Y alone: not about
    other columns that are passed through, not about an index, not about several releases of the
    same row taken together. It is not differential privacy.

    Parameters
    ----------
    epsilon : float, default=0.02
        The budget, see `design_mechanism`.
    sensitive : str, int or list of these, default=None
        The columns of X that hold S, taken jointly. None: S is passed to `fit` as
        `sensitive_features`, or is y.
    columns : str, int, list of these, or callable, default=None
        The columns to be replaced, taken jointly as one X; a callable such as
        `sklearn.compose.make_column_selector` gets the table. None: all that are not sensitive.
    measure, scope, utility, solver : default="kl", "per_output", "mutual_information", "auto"
        As in `design_mechanism`. With utility="target", V is the y that is passed to `fit`: the
        output keeps what X says about y.
    solver_options : dict, default=None
        Options of the solver.
    output : {"label", "symbol", "posterior"}, default="label"
        "label": the same columns with the dtypes that `fit` saw, each output named by a value of
        X; of rare combinations that are pooled, every column is drawn on its own. "symbol": one
        categorical column. "posterior": a column of P(x|y) for each symbol x.
    remainder : {"drop", "passthrough"} or list of columns, default="drop"
        What happens to the other columns: all are dropped, all come out as they are, or those
        listed do. The sensitive ones are always dropped. It is decided by `fit`.
    n_bins : int, sequence of edges, dict of these per column, or None, default=10
        Numbers and times with more distinct values are cut at quantiles, or at the edges given.
        None: never.
    min_frequency, max_categories : default=None
        Pool the rare categories of each column, as in `sklearn.preprocessing.OneHotEncoder`.
    smoothing : float, default=0.0
        Added to every count of a pair (s, x): the parameter of a Dirichlet prior.
    handle_unknown : {"resample", "error"}, default="resample"
        What `transform` does with values or combinations that `fit` did not see: draw from P(Y),
        which says nothing about the row, with a warning; or raise an error.
    random_state : int, RandomState, Generator or None, default=None
        None draws with a new key from the operating system's cryptographic source each time.
        A seed makes the output reproducible, also for an attacker who guesses it: it is for tests.

    Attributes
    ----------
    mechanism_ : Mechanism
        The channel and its figures, under the joint distribution that `fit` has learned.
    p_sx_ : ndarray of shape (n_s, n_x)
        That joint distribution.
    categories_ : list of ndarray
        The symbols of each column of X.
    sensitive_categories_ : list of ndarray
        The symbols of each sensitive column.
    n_samples_seen_ : int
        From how many rows it was learned.
    n_features_in_ : int
        The number of columns seen by `fit`.
    feature_names_in_ : ndarray of str
        Their names, where all are strings.

    Examples
    --------
    >>> import pandas as pd
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> frame = pd.DataFrame({
    ...     "sex": ["f", "m"] * 200,
    ...     "band": ["low", "high", "low", "low", "low", "high", "high", "high"] * 50,
    ... })
    >>> transformer = PrivacyFunnelTransformer(0.001, sensitive="sex", random_state=0)
    >>> released = transformer.fit_transform(frame)
    >>> released.columns.tolist()
    ['band']
    >>> bool(transformer.mechanism_.max_leakage <= 0.001 * (1 + 1e-9))
    True
    """

    def __init__(
        self,
        epsilon: float = 0.02,
        *,
        sensitive: _ColumnNames | None = None,
        columns: _ColumnNames | Callable[[Any], Any] | None = None,
        measure: str | Measure = "kl",
        scope: Scope = "per_output",
        utility: str | Utility = "mutual_information",
        solver: str | Solver = "auto",
        solver_options: dict[str, Any] | None = None,
        output: Literal["label", "symbol", "posterior"] = "label",
        remainder: Literal["drop", "passthrough"] | Sequence[Any] = "drop",
        n_bins: _Binning = DEFAULT_BINS,
        min_frequency: float | None = None,
        max_categories: int | None = None,
        smoothing: float = 0.0,
        handle_unknown: Literal["resample", "error"] = "resample",
        random_state: Seed | np.random.RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.sensitive = sensitive
        self.columns = columns
        self.measure = measure
        self.scope = scope
        self.utility = utility
        self.solver = solver
        self.solver_options = solver_options
        self.output = output
        self.remainder = remainder
        self.n_bins = n_bins
        self.min_frequency = min_frequency
        self.max_categories = max_categories
        self.smoothing = smoothing
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def fit(
        self,
        X: TableLike,
        y: ColumnsLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn the joint distribution of S and X and design the channel.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            The table. pandas, polars and pyarrow frames, and arrays. Frames of Dask and Spark and
            lazy ones of polars are counted where they are, and S must be among their columns.
        y : array-like, default=None
            The target, which only utility="target" uses. Where S comes neither from
            `sensitive_features` nor from the `sensitive` columns of X, y itself is S, with a
            warning. For a lazy frame, the name of a column.
        sensitive_features : array-like or frame, default=None
            S. Goes before the `sensitive` columns of X.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: the guarantee is about the weighted joint distribution.

        Returns
        -------
        self
        """
        check_parameters(self)
        if (lazy := as_lazy_table(X, type(self).__name__)) is not None:
            inputs = lazy_inputs(self, lazy, y, sensitive_features, sample_weight)
        else:
            inputs = read_inputs(self, X, y, sensitive_features, sample_weight)
        return self._fit_inputs(inputs)

    def partial_fit(
        self,
        X: TableLike,
        y: ColumnsLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Count one more batch of rows; the channel is designed when it is first asked for.

        After any number of batches the transformer is the same as after one `fit` to all their
        rows, to the last bit where weights are integers. What is kept between them is how often
        each combination of values occurs, as they are: alphabets grow, and numbers are cut and
        rare values pooled only in the design. Up to 500,000 distinct combinations of S and X (and
        y, as a target) are counted; beyond, numbers need edges in `n_bins`, and a bin is then
        shown by about its median. The first batch decides on `sensitive`, `columns` and
        `remainder`. A pickle holds the counts, with the values of S; of columns that are passed
        through, some rows are kept to judge them, and left out of it.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As in `fit`, for the rows of this batch. All batches have the same columns.

        Returns
        -------
        self

        Examples
        --------
        >>> import pandas as pd
        >>> from skprivacy import PrivacyFunnelTransformer
        >>> frame = pd.DataFrame({"s": list("abab") * 50, "x": list("uuvw") * 50})
        >>> streamed = PrivacyFunnelTransformer(0.05, sensitive="s")
        >>> for start in range(0, 200, 40):
        ...     streamed = streamed.partial_fit(frame.iloc[start:start + 40])
        >>> streamed.n_samples_seen_
        200
        >>> at_once = PrivacyFunnelTransformer(0.05, sensitive="s").fit(frame)
        >>> bool((streamed.mechanism_.channel == at_once.mechanism_.channel).all())
        True
        """
        check_parameters(self)
        owner = type(self).__name__
        if "_roles" in vars(self) and "_batches" not in vars(self):
            raise ValueError(
                f"This {owner} was fitted by fit, or loaded: it has no counts of raw values that "
                f"partial_fit could go on with. Begin with partial_fit, on a clone of it."
            )
        if "_batches" in vars(self) and counts_nothing(X, sample_weight):
            return self  # as a stream may have it; the first batch shows the columns
        inputs = read_inputs(self, X, y, sensitive_features, sample_weight)
        if inputs.index:
            self._judge_index(inputs, code_sensitive(self, inputs.rows)[1])
        batches = vars(self).get("_batches") or Batches(self, inputs)
        batches.add(self, inputs)
        for name in _DESIGNED:  # by the batches before
            self.__dict__.pop(name, None)
        self._batches = batches
        self._set_features(batches.roles)
        self.n_samples_seen_ = batches.n_rows
        return self

    if not TYPE_CHECKING:  # or any attribute would seem to be there

        def __getattr__(self, name: str) -> Any:
            """Design the channel for the batches so far when it is asked for."""
            if name in _DESIGNED and "_batches" in vars(self):
                check_parameters(self)
                self._fit_inputs(self._batches.inputs(), self._batches)
                return getattr(self, name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return "_roles" in vars(self) or "_batches" in vars(self)

    def _fit_inputs(
        self, inputs: FitInputs, batches: Batches | None = None, *, allow_leaking: bool = True
    ) -> Self:
        """Fit to columns of S and X that have been told apart.

        batches : that they come from; others that were counted before are forgotten;
        allow_leaking : whether columns that leave as they are may exceed the budget.
        """
        roles, rows = inputs.roles, inputs.rows
        coded = code_rows(self, rows)
        utility = self.utility
        if rows.target is not None:
            utility = target_of(self, rows, coded)
        mechanism, names = design(self, coded, utility)
        warn_of_bins(list(rows.s_columns), coded.sensitive, self.n_bins)
        self._judge_index(inputs, coded.s_codes)
        leaking = self._judge_passed_through(inputs, coded, Budget.of(mechanism), allow_leaking)
        warn_if_misleading(mechanism, coded.counts, coded.group_sizes)
        check_names_out(names_out(roles, mechanism, self.output))
        self._assign(roles, inputs.types, coded.alphabet, names, mechanism, leaking)
        self.p_sx_: FloatArray = mechanism.p_sx  # type: ignore[assignment]  # a design has one
        self._sensitive, self._sensitive_names = coded.sensitive, list(rows.s_columns)
        self.sensitive_categories_ = _categories(coded.sensitive)
        self._counts, self._effective_rows = coded.counts, rows.effective_rows
        self.n_samples_seen_ = rows.n_rows
        if batches is None:
            self.__dict__.pop("_batches", None)
        return self

    def _judge_index(self, inputs: FitInputs, s_codes: IntArray) -> None:
        if inputs.index:
            weights = inputs.rows.weights
            budget = Budget(self.epsilon, get_measure(self.measure), self.scope)
            found = judged(budget, inputs.index, s_codes, weights, in_order=True)
            warn_of_index(found, budget)

    def _judge_passed_through(
        self, inputs: FitInputs, coded: CodedRows, budget: Budget, allow_leaking: bool
    ) -> dict[Any, float]:
        """Return what columns that leave as they are leak, where that is more than the budget.

        NaN for a column that cannot be judged.
        """
        if not inputs.passed_through:
            return {}
        s_codes, weights = coded.s_codes, inputs.rows.weights
        if (beside := inputs.beside) is not None:
            s_codes, _ = coded.sensitive.encode(list(beside.values()), list(beside))
            weights = None
        found = judged(budget, inputs.passed_through, s_codes, weights)
        warn_of_passed_through(found, budget, allow_leaking)
        return {**found.leaking, **dict.fromkeys(found.unclear, np.nan)}

    def _assign(
        self,
        roles: ColumnRoles,
        types: tuple[ColumnType, ...],
        alphabet: Alphabet,
        names: IntArray,
        mechanism: Mechanism,
        leaking: dict[Any, float],
    ) -> None:
        """Set what `transform` needs: last, so that a failed fit leaves nothing."""
        self._roles, self._types, self._alphabet, self._names = roles, types, alphabet, names
        self._leaking = leaking
        self.mechanism_ = mechanism
        self.categories_ = _categories(alphabet)
        self._set_features(roles)

    def _set_features(self, roles: ColumnRoles) -> None:
        self.n_features_in_ = roles.n_columns
        if roles.has_string_names:
            self.feature_names_in_ = np.array(roles.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def transform(
        self,
        X: TableLike,
        *,
        record_ids: npt.ArrayLike | pd.Series | str | int | None = None,
        secret_key: bytes | None = None,
    ) -> Any:
        """Replace X by a draw of Y in every row.

        Parameters
        ----------
        X : frame or array-like
            The table. A frame needs the columns that are replaced (and passed through), in any
            order; sensitive columns may be missing. An array needs all columns of `fit`.
        record_ids : array-like of shape (n_samples,), or the name of a column, default=None
            Unique ids of the rows, integers or texts. With them and `secret_key` a row gets the
            same Y every time, as long as its X and the mechanism stay the same: several releases
            then say what one says. Without, each call draws anew, and several releases say more.
            For a lazy frame, the name of a column.
        secret_key : bytes, default=None
            At least 16, for instance from ``secrets.token_bytes(32)``. It is not kept. Whoever
            has it and the ids can undo the noise.

        Returns
        -------
        frame or ndarray
            Of the kind that was given. A lazy frame (polars, Dask, Spark) stays lazy, and gives
            the same rows whenever it is computed from the same rows in the same partitions and
            order; with `record_ids`, in any.

        Examples
        --------
        >>> import secrets
        >>> import pandas as pd
        >>> from skprivacy import PrivacyFunnelTransformer
        >>> frame = pd.DataFrame({"s": list("abab") * 50, "x": list("uuvw") * 50})
        >>> fitted = PrivacyFunnelTransformer(0.05, sensitive="s").fit(frame)
        >>> key, ids = secrets.token_bytes(32), range(200)
        >>> first = fitted.transform(frame, record_ids=ids, secret_key=key)
        >>> first.equals(fitted.transform(frame, record_ids=ids, secret_key=key))
        True
        """
        check_is_fitted(self)
        owner, release = type(self).__name__, release_of(self)
        source = noise_source(release, self.random_state, record_ids, secret_key)
        container = self._container()
        if (lazy := as_lazy_table(X, owner)) is not None:
            if container != "default":
                raise TypeError(
                    f"set_output(transform={container!r}) does not apply to lazy frames, which "
                    f"stay what they are: collect it first, or use 'default'."
                )
            return lazy.released(release, source)
        table = as_table(converted(X, container), owner)
        return release.rows(table, source, range(table.n_rows))

    def _container(self) -> str:
        """Return what `set_output` asks for."""
        own = getattr(self, "_sklearn_output_config", {})
        return own.get("transform", get_config()["transform_output"])

    def evaluate(
        self,
        X: TableLike,
        y: ColumnsLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
    ) -> Evaluation:
        """Return the figures of the channel on other rows, exactly and without drawing any Y.

        Parameters
        ----------
        X, y, sensitive_features
            As in `fit`: rows with their S.

        Returns
        -------
        Evaluation
            Under the joint distribution of these rows. Values that `fit` did not see are one
            more symbol, which is released as a draw from P(Y). There is no budget in it.

        Examples
        --------
        >>> import pandas as pd
        >>> from skprivacy import PrivacyFunnelTransformer
        >>> frame = pd.DataFrame({"s": list("abab") * 50, "x": list("uuvw") * 50})
        >>> fitted = PrivacyFunnelTransformer(0.05, sensitive="s").fit(frame)
        >>> bool(fitted.evaluate(frame).max_leakage <= 0.05 * (1 + 1e-9))
        True
        """
        check_is_fitted(self)
        return evaluated_on(self, X, y, sensitive_features)

    def to_json(self, *, indent: int | None = None) -> str:
        """Return what another machine needs to apply the fitted transformer, as JSON text.

        The encoder and the channel, without P_SX and without the values of S. What matters only
        to `fit` (n_bins, the solver, ...) is left out, and so is the random state: whoever loads
        it draws from the cryptographic source.

        Parameters
        ----------
        indent : int, default=None
            As in `json.dumps`.
        """
        check_is_fitted(self)
        return write_transformer(self, indent)

    @classmethod
    def from_json(
        cls, text: str, *, measure: Measure | None = None, utility: Utility | None = None
    ) -> Self:
        """Return the fitted transformer that `to_json` wrote, after checking all of it.

        Parameters
        ----------
        text : str
            The JSON text.
        measure, utility : Measure and Utility, default=None
            Needed for a transformer with a measure or a utility of your own.

        Examples
        --------
        >>> import pandas as pd
        >>> from skprivacy import PrivacyFunnelTransformer
        >>> frame = pd.DataFrame({"s": list("abab") * 50, "x": list("uuvw") * 50})
        >>> fitted = PrivacyFunnelTransformer(0.05, sensitive="s").fit(frame)
        >>> shipped = PrivacyFunnelTransformer.from_json(fitted.to_json())
        >>> shipped.transform(frame[["x"]]).shape
        (200, 1)
        """
        parameters, fitted = read_transformer(text, measure, utility)
        transformer = cls(**parameters)
        check_parameters(transformer)
        transformer._assign(*fitted)
        return transformer

    def get_feature_names_out(
        self, input_features: Iterable[str] | None = None
    ) -> npt.NDArray[np.object_]:
        """Return the names of the columns of the output.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns of the input, for an array; for a frame they must be those of
            `fit`.
        """
        check_is_fitted(self)
        roles = self._roles.renamed(input_features)
        names = names_out(roles, self.mechanism_, self.output)
        return np.array(names, dtype=object)

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """Return what scikit-learn shows of a fitted transformer in a notebook: nothing of S."""
        shown = super()._get_fitted_attr_html(doc_link)
        for name in ("p_sx_", "sensitive_categories_"):
            shown.pop(name, None)
        return shown

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.target_tags.required = self.sensitive is None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _categories(alphabet: Alphabet) -> list[npt.NDArray[np.object_]]:
    return [np.array(_hollow(c.symbol_labels), dtype=object) for c in alphabet.columns]


def _hollow(labels: Iterable[Any]) -> list[Any]:
    return [np.nan if label is None else label for label in labels]
