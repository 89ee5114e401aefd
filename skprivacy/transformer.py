"""PrivacyFunnelTransformer: replaces the columns X of a frame by Y."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn import get_config
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ._messages import Message
from ._typing import ColumnsLike, Scope, Seed, TableLike
from .cells import Cells
from .encoding import DEFAULT_BINS
from .engines.lazy_frames import LazyTable, any_table
from .fitting.counted_tables import Batches, inputs_of
from .fitting.fitted_estimator import (
    FittedEstimator,
    fitted_of,
    set_fitted,
    settings_of,
    warn_of_unsaved,
)
from .fitting.held_out import certified, evaluated, terms_for
from .fitting.inputs import counts_nothing, read_inputs
from .fitting.learn import check_order, code_rows, fit_mechanism
from .fitting.learned_cells import cells_of
from .measures import Measure
from .mechanism import Evaluation
from .persistence import read_transformer, write_transformer
from .population.certificate import Certificate
from .releasing.keyed import noise_source
from .releasing.output_names import names_out
from .releasing.release import Release, release_of
from .solvers import Solver
from .tables.frames import as_table, converted
from .utilities import Utility

# One column, by name or by position, or several.
_ColumnNames: TypeAlias = str | int | Sequence[Hashable]

# How many bins, or their edges; for all columns, or by name.
_Binning: TypeAlias = int | npt.ArrayLike | Sequence[Any] | dict[Any, Any] | None


class PrivacyFunnelTransformer(TransformerMixin, FittedEstimator):
    """Replace columns X by a randomised Y that reveals at most epsilon about a sensitive S.

    `fit` learns the joint distribution of S and X and designs the channel P(Y|X) that keeps the
    most about X within the budget; `transform` draws Y for each row. It needs no S, and never
    releases S.

    The guarantee is about the joint distribution estimated by `fit`, and with a `confidence` also
    about the population its rows were drawn from. It covers Y and the columns in `beside`: not
    other columns that are passed through, an index, or several releases of the same row taken
    together. It is not differential privacy.

    Parameters
    ----------
    epsilon : float or dict, default=0.02
        The budget: see `design_mechanism`. A number is for all sensitive columns jointly. A dict
        has a budget for each of several secrets: its keys are sensitive columns, or tuples of
        columns that are one secret jointly; for an array, positions. Every sensitive column needs
        a budget. Separate budgets bound no combination of secrets: the leakage about all together
        is in `mechanism_.together`, with a warning if it exceeds the largest budget.
    sensitive : str, int or list of these, default=None
        The columns of X that hold S, taken jointly. None: S is passed to `fit` as
        `sensitive_features`, or is y.
    columns : str, int, list of these, or callable, default=None
        The columns to replace, taken jointly as one X; a callable such as
        `sklearn.compose.make_column_selector` is called with the table. None: all that are
        neither sensitive, nor beside the release, nor person ids.
    beside : str, int or list of these, default=None
        Columns with few values that are released unchanged, whatever `remainder` and `output`
        are, and that the guarantee covers: the budget holds for them and Y together. Each
        combination of their values has its own channel. Values that `fit` did not see are an
        error. Equal values are released in the same form.
    measure, scope, utility, solver : default="kl", "per_output", "mutual_information", "auto"
        As in `design_mechanism`. With utility="target", V is the y that is passed to `fit`: the
        output keeps what X says about y. With utility="distortion", released values are as close
        to the true ones as the budget allows, see `Distortion`.
    max_outputs : int, default=None
        As in `design_mechanism`: merge outputs until at most this many are left.
    confidence : float, default=None
        As in `design_mechanism`: the probability, such as 0.95, that the budget holds for the
        population the rows of `fit` were drawn from. None: it holds for these rows, and a
        `FiniteSampleWarning` says if much more may leak in the population. Weighted rows count by
        their effective sample size.
    solver_options : dict, default=None
        Options of the solver.
    output : {"label", "symbol", "posterior"}, default="label"
        "label": the same columns with the dtypes that `fit` saw, each output named after a value
        of X; for rare combinations that are pooled, and for cells, rows are made up, see
        `made_up`. "symbol": one categorical column. "posterior": a column of P(x|y) for each
        symbol x; for cells that keep a target V, of P(v|y) for each value v.
    made_up : {"for_any_use", "for_one_model", "column_by_column"}, default="for_any_use"
        With output="label", how a row is made up from a cell, or a pool of rare combinations.
        "for_any_use": its columns are drawn together, and every cell is shown as often as it
        occurs. "for_one_model": a row of a cell that the columns themselves would put into another
        cell is drawn again, up to 20 times: this tells a model of the target more, but the columns
        keep their distributions less well. "column_by_column": each output is shown as one cell,
        and each column is drawn by itself. None of this changes what a row reveals about S.
    release_target : bool, default=False
        With utility="target": whether the release has the target as well, as its last columns.
        Like the rest of a row it is drawn from the output alone, so the same budget covers it.
        Without it, a model can only be trained by joining the true target to the released rows.
        Fixed when `fit` is called.
    remainder : {"drop", "passthrough"} or list of columns, default="drop"
        The other columns: all are dropped, all are passed through by value (equal values are
        released in the same form), or those listed are, outside of the guarantee. Sensitive
        columns and person ids (`person` of `ScoreCells`) are always dropped. Fixed when `fit` is
        called.
    alphabet : {"auto", "values", "cells"}, TreeCells or ScoreCells, default="auto"
        "values": each combination of values is a symbol of X. "cells": rows that are alike share
        a symbol, a cell, for tables of many columns; with utility="target" these are `ScoreCells`,
        else `TreeCells`. Every row has a cell, even with values that `fit` did not see. "auto":
        cells if there are too many combinations to design for, or most were seen only once;
        `cells_` shows them. For one column, for another solver than "auto", and in `partial_fit`,
        "auto" means values.
    n_bins : int, sequence of edges, dict of these per column, or None, default=10
        Numbers and times with more distinct values than this are cut at quantiles, or at the given
        edges. None: never. With cells, numbers are cut finely unless edges are given.
    ordered : dict, default=None
        Values of text columns in ascending order, by column, such as
        ``{"risk": ["low", "medium", "high"]}``: distances are then those of an ordered category.
        Ordered categories of pandas and Arrow, and enumerations of polars, have an order anyway.
    min_frequency, max_categories : default=None
        Pool the rare categories of each column, as in `sklearn.preprocessing.OneHotEncoder`.
    smoothing : float, default=0.0
        Added to every count of a pair (s, x), with all sensitive columns as one S: the parameter
        of a Dirichlet prior.
    handle_unknown : {"resample", "error"}, default="resample"
        For values or combinations that `fit` did not see, `transform` draws from P(Y), which
        reveals nothing about the row, or raises an error. `evaluate` reports the share of such
        rows, as P(X) of the symbol "unseen". With cells, nothing is unknown. With columns beside
        Y, the draw is from P(Y|z), which reveals no more than their values z; also for a cell
        that `fit` did not see with z.
    random_state : int, RandomState, Generator or None, default=None
        None: each draw has a new key from the operating system's cryptographic source. A seed
        makes the output reproducible, also for an attacker who guesses it: use it in tests only.

    Attributes
    ----------
    mechanism_ : Mechanism
        The channel and its figures, under the joint distribution learned by `fit`. With several
        secrets, `mechanism_.secrets[name]` has those of each.
    fidelity_ : Fidelity
        How close released values are to the true ones, column by column, with output="label".
    summary_ : ReleaseSummary
        Figures, verdict and sentences about the release.
    swaps_ : dict of DataFrame
        For each released column, the share of all rows with each value, or bin (rows) that are
        released as each (columns).
    p_sx_ : ndarray of shape (n_s, n_x)
        The joint distribution, with all sensitive columns as one S.
    categories_ : list of ndarray
        The symbols of each column of X.
    sensitive_categories_ : list of ndarray
        The symbols of each sensitive column.
    cells_ : DataFrame
        With cells, a row for each: its share of the rows, its rule, and the most frequent value
        of each column.
    n_samples_seen_ : int
        The number of rows seen by `fit`.
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
        epsilon: float | Mapping[Any, float] = 0.02,
        *,
        sensitive: _ColumnNames | None = None,
        columns: _ColumnNames | Callable[[Any], Any] | None = None,
        beside: _ColumnNames | None = None,
        measure: str | Measure = "kl",
        scope: Scope = "per_output",
        utility: str | Utility = "mutual_information",
        solver: str | Solver = "auto",
        max_outputs: int | None = None,
        confidence: float | None = None,
        solver_options: dict[str, Any] | None = None,
        output: Literal["label", "symbol", "posterior"] = "label",
        made_up: Literal["for_any_use", "for_one_model", "column_by_column"] = "for_any_use",
        release_target: bool = False,
        remainder: Literal["drop", "passthrough"] | Sequence[Any] = "drop",
        alphabet: Literal["auto", "values", "cells"] | Cells = "auto",
        n_bins: _Binning = DEFAULT_BINS,
        ordered: Mapping[Any, Sequence[Any]] | None = None,
        min_frequency: float | None = None,
        max_categories: int | None = None,
        smoothing: float = 0.0,
        handle_unknown: Literal["resample", "error"] = "resample",
        random_state: Seed | np.random.RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.sensitive = sensitive
        self.columns = columns
        self.beside = beside
        self.measure = measure
        self.scope = scope
        self.utility = utility
        self.solver = solver
        self.max_outputs = max_outputs
        self.confidence = confidence
        self.solver_options = solver_options
        self.output = output
        self.made_up = made_up
        self.release_target = release_target
        self.remainder = remainder
        self.alphabet = alphabet
        self.n_bins = n_bins
        self.ordered = ordered
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
            The table: a pandas, polars or pyarrow frame, or an array. Dask, Spark and lazy polars
            frames are counted where they are, and S must be among their columns.
        y : array-like, default=None
            The target, used only with utility="target". Without `sensitive_features` and
            `sensitive` columns of X, y itself is S, with a warning. For a lazy frame, the name of
            a column, which is released only if `columns` names it.
        sensitive_features : array-like or frame, default=None
            S. Takes precedence over the `sensitive` columns of X.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: the guarantee is about the weighted joint distribution.

        Returns
        -------
        self
        """
        settings = settings_of(self)
        passed = sensitive_features, sample_weight
        table = any_table(X, settings.owner, *passed)
        return set_fitted(self, fit_mechanism(settings, inputs_of(settings, table, y, *passed)))

    def partial_fit(
        self,
        X: TableLike,
        y: ColumnsLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Count one more batch of rows; the channel is designed when it is first needed.

        After any number of batches the transformer is the same as after one `fit` to all their
        rows, to the last bit if weights are integers. Between batches, counts of all combinations
        of raw values are kept: numbers are cut and rare values pooled only in the design. Up to
        500,000 distinct combinations of S and X (and y, as a target) are counted; beyond that,
        numbers need edges in `n_bins`, and a bin is then shown as roughly its median. With
        alphabet="cells", `TreeCells` or `ScoreCells`, cells are learned from the batches up to
        that limit instead, and from then on only these are counted: other cells need a new start,
        and rows should be in random order. The first batch fixes `sensitive`, `columns` and
        `remainder`. A pickle holds the counts, with the values of S. Some rows of columns that are
        passed through are kept to judge these columns, and left out of a pickle.

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
        settings = settings_of(self)
        if self._fitted is not None and self._batches is None:
            raise ValueError(
                f"This {settings.owner} was fitted by fit, or loaded: it has no counts of raw "
                f"values that partial_fit could add to. Start with partial_fit, on a clone."
            )
        if self._batches is not None and counts_nothing(X, sample_weight):
            return self  # a stream may have empty batches, but the first one defines the columns
        inputs = read_inputs(settings, X, y, sensitive_features, sample_weight)
        if inputs.index:
            check_order(settings, inputs)
        batches = self._batches or Batches(settings, inputs)
        batches.add(settings, inputs)
        self._batches, self._fitted = batches, None
        self._set_features(batches.roles)
        self.n_samples_seen_ = batches.n_rows
        return self

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
            The table. A frame needs the columns that are replaced or passed through, in any order;
            sensitive columns may be missing. An array needs all columns of `fit`.
        record_ids : array-like of shape (n_samples,), or the name of a column, default=None
            Unique ids of the rows, integers or texts. With them and `secret_key` a row gets the
            same Y every time, as long as its X and the mechanism stay the same: several releases
            then reveal no more than one. Without them each call draws anew, and several releases
            reveal more than one. For a lazy frame, the name of a column.
        secret_key : bytes, default=None
            At least 16 bytes, for instance from ``secrets.token_bytes(32)``. It is not kept.
            Whoever has it and the ids can undo the noise.

        Returns
        -------
        frame or ndarray
            The same kind of table as X. A lazy frame (polars, Dask, Spark) stays lazy, and gives
            the same rows whenever it is computed from the same rows in the same partitions and
            order; with `record_ids`, in any partitions and order.

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
        owner, release = type(self).__name__, release_by(self)
        warn_of_unsaved(self, secret_key)
        source = noise_source(release, self.random_state, record_ids, secret_key)
        config = getattr(self, "_sklearn_output_config", {})  # of `set_output`
        container = config.get("transform", get_config()["transform_output"])
        if isinstance(lazy := any_table(X, owner), LazyTable):
            if container != "default":
                raise TypeError(
                    f"set_output(transform={container!r}) does not apply to lazy frames: collect "
                    f"the frame first, or use 'default'."
                )
            return lazy.released(release, source)
        table = as_table(converted(X, container), owner)
        return release.rows(table, source, range(table.n_rows))

    def fit_transform(self, X: TableLike, y: ColumnsLike | None = None, **fit_params: Any) -> Any:
        """Fit, and replace X by a draw of Y in every row.

        Parameters
        ----------
        X, y
            As in `fit`.
        **fit_params : dict
            `sensitive_features` and `sample_weight`, as in `fit`.

        Returns
        -------
        frame or ndarray
            As in `transform`.

        Examples
        --------
        >>> import pandas as pd
        >>> from skprivacy import PrivacyFunnelTransformer
        >>> frame = pd.DataFrame({"s": list("abab") * 50, "x": list("uuvw") * 50})
        >>> PrivacyFunnelTransformer(0.05, sensitive="s").fit_transform(frame).shape
        (200, 1)
        """
        if {"record_ids", "secret_key"} & {*fit_params}:
            template = (
                "fit_transform takes no {record_ids} and {secret_key}: a key is for a mechanism "
                "that is kept. Call fit, to_json, and then transform with them."
            )
            raise TypeError(Message.of(template))
        return super().fit_transform(X, y, **fit_params)

    def symbols(self, X: TableLike) -> pd.DataFrame:
        """Return which value or bin each field of the released columns counts as.

        A released row shows one value for each bin: two rows are alike to the mechanism if their
        symbols are.

        Parameters
        ----------
        X : frame or array-like
            The table, or a release of it.

        Examples
        --------
        >>> import pandas as pd
        >>> from skprivacy import PrivacyFunnelTransformer
        >>> frame = pd.DataFrame({"s": list("abab") * 50, "x": range(200)})
        >>> funnel = PrivacyFunnelTransformer(0.05, sensitive="s", n_bins=2).fit(frame)
        >>> funnel.symbols(frame)["x"].value_counts().to_dict()
        {'x <= 99': 100, 'x >= 100': 100}
        """
        fitted, owner = fitted_of(self), type(self).__name__
        table = as_table(X, owner)
        at, columns = fitted.roles.match(table, owner), {}
        named = zip(fitted.roles.x_positions, fitted.x_names, strict=True)
        for (position, name), column in zip(named, fitted.alphabet.columns, strict=True):
            labels = np.array([*column.symbol_labels, "unseen"], dtype=object)
            columns[name] = labels[column.encode(table.column(at[position]), name)]
        return pd.DataFrame(columns)

    def evaluate(
        self,
        X: TableLike,
        y: ColumnsLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Evaluation:
        """Return the exact figures of the channel on other rows, without drawing any Y.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            As in `fit`: rows with their S, in a frame of any kind. S must come with them: if it
            was passed to `fit` apart from X, as `sensitive_features` or as a column of X with the
            same name. y is S only if it was in `fit`. Rows with values of S that `fit` did not see
            are left out, with a warning; in a lazy frame they are an error.

        Returns
        -------
        Evaluation
            The figures under the joint distribution of these rows; with several secrets, for each
            and for all together. Values that `fit` did not see are one more symbol, which is
            released as a draw from P(Y). It has no budget.

        Examples
        --------
        >>> import pandas as pd
        >>> from skprivacy import PrivacyFunnelTransformer
        >>> frame = pd.DataFrame({"s": list("abab") * 50, "x": list("uuvw") * 50})
        >>> fitted = PrivacyFunnelTransformer(0.05, sensitive="s").fit(frame)
        >>> bool(fitted.evaluate(frame).max_leakage <= 0.05 * (1 + 1e-9))
        True
        """
        passed = sensitive_features, sample_weight
        table = any_table(X, type(self).__name__, *passed)
        return evaluated(fitted_of(self), settings_of(self), table, y, *passed)

    def certify(
        self,
        X: TableLike,
        y: ColumnsLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sample_weight: None = None,
        measure: str | Measure | None = None,
        confidence: float = 0.95,
        n_settings: int = 1,
    ) -> Certificate:
        """Return upper bounds of the leakage in the population that other rows were drawn from.

        The bounds are a theorem for any number of rows, if these are independent draws from the
        population and the design does not depend on them: neither the rows of `fit`, nor rows
        that were used to choose among designs, unless `n_settings` counts these.
        `population_leakage` needs no other rows, and its limits are closer, but approximate.

        Parameters
        ----------
        X, y, sensitive_features
            As in `evaluate`, but values of S that `fit` did not see are an error. For a
            transformer that was loaded, the groups of S are those that occur in these rows. The
            bounds are about a population without any other groups.
        sample_weight : None
            Weights are refused: rows do not show the largest weight in the population, and without
            it nothing can be proven. If you know it, keep each row with a probability of its
            weight / that weight: the rows that are kept are draws from the weighted population.
        measure : str or Measure, default=None
            The measure of leakage; None: the measure of the design.
        confidence : float, default=0.95
            The probability that the bounds hold is at least this.
        n_settings : int, default=1
            Number of settings compared on these rows, for a multiple-testing correction.

        Returns
        -------
        Certificate
            The leakage in the rows, and the bounds, which hold for several secrets at once. Values
            of X that `fit` did not see are one more symbol, which is released as a draw from P(Y).

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from skprivacy import PrivacyFunnelTransformer
        >>> rng = np.random.default_rng(0)
        >>> sex = rng.integers(2, size=40_000)
        >>> rows = pd.DataFrame({"sex": sex, "band": rng.binomial(4, 0.4 + 0.2 * sex)})
        >>> design, fresh = rows[:20_000], rows[20_000:]
        >>> funnel = PrivacyFunnelTransformer(
        ...     0.1, sensitive="sex", measure="parity", scope="average"
        ... )
        >>> certificate = funnel.fit(design).certify(fresh)
        >>> round(certificate.average_leakage, 3), round(certificate.average_leakage_bound, 3)
        (0.106, 0.123)
        """
        terms = terms_for(fitted_of(self), measure, confidence, n_settings, sample_weight)
        table = any_table(X, type(self).__name__, sensitive_features)
        settings = settings_of(self)
        return certified(fitted_of(self), settings, terms, table, y, sensitive_features)

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the fitted transformer as JSON text, to apply it elsewhere.

        It holds the encoder and the channel, without P_SX and without the values of S. Parameters
        that matter only to `fit` (n_bins, the solver, ...) are left out, and so is the random
        state: when it is loaded, it draws from the cryptographic source.

        With `ScoreCells` it holds models, among them one of P(S|x), which says how columns relate
        to S and must not be published. It needs skops, the extra ``models``; it is not a pickle,
        and holds only models that can be checked: see `ScoreCells`.

        Parameters
        ----------
        indent : int, default=None
            As in `json.dumps`.
        """
        text = write_transformer(fitted_of(self), self.get_params(deep=False), indent)
        self._saved = fitted_of(self)
        return text

    @classmethod
    def from_json(
        cls, text: str, *, measure: Measure | None = None, utility: Utility | None = None
    ) -> Self:
        """Return the fitted transformer that `to_json` wrote, after checking all of it.

        Its parameters are those of the design, as far as the file has them. Others (`n_bins`,
        `min_frequency`, `smoothing`, `solver`, ...) have their defaults: set them before you fit a
        clone.

        Parameters
        ----------
        text : str
            The JSON text.
        measure, utility : Measure and Utility, default=None
            Needed for a transformer with a custom measure or utility.

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
        settings_of(transformer)  # checks them
        return set_fitted(transformer, fitted)

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
        # Notebooks ask for these names: nothing should be designed for that.
        settings = self._settings().for_batches()
        needs_design = cells_of(settings) is not None or self._is_current(self._settings())
        if self._batches is None or needs_design:
            fitted = fitted_of(self)
            roles, labels = fitted.roles, fitted.posterior.labels
        else:
            roles, labels = self._batches.roles, ()
            if self.output == "posterior":
                coded = code_rows(settings, self._batches.rows())
                labels = tuple(coded.alphabet.x_alphabet.labels)
        names = names_out(roles.renamed(input_features), labels, self.output)
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.target_tags.required = self.sensitive is None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def release_by(transformer: PrivacyFunnelTransformer) -> Release:
    """Return the release of a fitted transformer."""
    asked = transformer.output, transformer.made_up, transformer.handle_unknown
    return release_of(fitted_of(transformer), *asked, type(transformer).__name__)
