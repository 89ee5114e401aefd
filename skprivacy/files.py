"""Tables in files of any size: CSV, TSV and Parquet, compressed or piped.

Rows are read and written in blocks, so that memory does not grow with the file; fields that are
not replaced are copied as bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, BinaryIO, TypedDict, Unpack

import numpy as np
from sklearn.base import clone

from ._messages import Message
from ._typing import CountArray, FilePath, IntArray
from ._validation import about
from .budgets import epsilon_beside, epsilon_for_shift
from .codes import count
from .describing.numbers import rounded_down
from .encoding import Alphabet
from .engines.files import (
    FileTable,
    count_source,
    fit_source,
    held_out_table,
    read_from,
    release_rows,
    write_to,
)
from .fitting.fitted_estimator import fitted_of, set_fitted, settings_of, warn_of_unsaved
from .fitting.held_out import certified, evaluated, terms_for
from .fitting.inputs import FitInputs, code_beside
from .fitting.learn import CodedSensitive, code_rows, code_sensitive, fit_mechanism
from .fitting.tally import MOST_DISTINCT
from .joint import count_pairs
from .measures import Measure
from .mechanism import Evaluation
from .population.certificate import Certificate
from .repetition import LeakageTogether, leakage_of_all
from .transformer import PrivacyFunnelTransformer

__all__ = [
    "CountedFile",
    "certify_file",
    "count_file",
    "evaluate_file",
    "fit_file",
    "leakage_together",
    "transform_file",
]


class Reading(TypedDict, total=False):
    """Options for reading a file: see `fit_file`."""

    format: str | None
    delimiter: str | None
    encoding: str
    header: bool | None
    names: Sequence[str] | None


def fit_file(
    transformer: PrivacyFunnelTransformer,
    path: FilePath | BinaryIO,
    *,
    target: str | None = None,
    verbose: bool = False,
    **reading: Unpack[Reading],
) -> PrivacyFunnelTransformer:
    """Fit a transformer to a table in a file, in bounded memory.

    The result is the same as with `fit` on the frame (for a Parquet file, on the table of
    pyarrow), to the last bit. One pass over the file is enough, except for cells of more distinct
    rows than can be counted.

    Parameters
    ----------
    transformer : PrivacyFunnelTransformer
        With `sensitive` set. A column of a text file is read as numbers if all its fields are
        numbers, and as categories otherwise; fields with leading zeros are categories, empty ones
        are missing. Up to 500,000 distinct combinations of S and X are counted as they are. Beyond
        that, numbers need edges in `n_bins`, and a bin is shown as roughly its median; cells are
        learned from about 200,000 distinct rows and counted in all rows.
    path : str, Path or binary file
        .csv, .tsv (both also .gz) or .parquet; "-" is the standard input. An open file stays open.
    target : str, default=None
        The column of the target, for utility="target". It is released only with
        `release_target`, or if `columns` names it.
    format : {"csv", "tsv", "parquet"}, default=None
        The kind of table, if no suffix of a name shows it.
    delimiter : str, default=None
        The delimiter of a text file; by default a comma or, for .tsv, a tab.
    encoding : str, default="utf-8"
        The encoding of a text file.
    header : bool, default=None
        Whether the first line of a text file has the names of its columns. By default it is
        taken for a header, but a line that looks like data is an error, because a row mistaken
        for a header would be published unchanged.
    names : list of str, default=None
        The names of the columns of a text file without a header; with ``header=False`` alone
        they are c1, c2 and so on.
    verbose : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    PrivacyFunnelTransformer
        The same one, fitted.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> from skprivacy.datasets import load_diabetes_bands
    >>> from skprivacy.files import fit_file, transform_file
    >>> folder = Path(tempfile.mkdtemp())
    >>> load_diabetes_bands().to_csv(folder / "patients.csv", index=False)
    >>> funnel = PrivacyFunnelTransformer(0.02, sensitive="sex", columns=["bmi", "blood_pressure"])
    >>> fit_file(funnel, folder / "patients.csv").n_samples_seen_
    442
    """
    with read_from(path, **reading) as source:
        settings = settings_of(transformer)
        fitted, _ = fit_source(settings, source, target=target, is_watched=verbose)
    return set_fitted(transformer, fitted)


def transform_file(
    transformer: PrivacyFunnelTransformer,
    path: FilePath | BinaryIO,
    out: FilePath,
    *,
    record_ids: str | None = None,
    secret_key: bytes | None = None,
    force: bool = False,
    verbose: bool = False,
    **reading: Unpack[Reading],
) -> int:
    """Release the rows of a file through a fitted transformer, in bounded memory.

    From text to text, fields that are not replaced are copied byte for byte; quotes are written
    only if a text needs them. `out` is written atomically, and always has a header.

    Parameters
    ----------
    transformer : PrivacyFunnelTransformer
        Fitted, to a file or to a frame, or loaded with `from_json`.
    path, delimiter, encoding, header, names, verbose
        As in `fit_file`.
    out : str or Path
        The output file, possibly of another kind than `path`.
    record_ids : str, default=None
        The name of a column of unique ids; it is written to `out` only if it is passed through.
        With it and `secret_key` a row gets the same Y in every release, as from `transform`. Ids
        of a text file are texts, without their quotes: ``007`` is not ``7``, and `transform` must
        get them as ``frame["id"].astype(str)`` to give the same Y. Ids of a Parquet file keep
        their type; the integer 7 and the text "7" are different ids. The whole file is checked
        for repeated ids; beyond a million rows this takes a temporary file of 8 bytes per row.
    secret_key : bytes, default=None
        As in `transform`.
    force : bool, default=False
        Whether to replace an existing file.

    Returns
    -------
    int
        The number of rows released.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> from skprivacy.datasets import load_diabetes_bands
    >>> from skprivacy.files import transform_file
    >>> folder, patients = Path(tempfile.mkdtemp()), load_diabetes_bands()
    >>> patients.to_csv(folder / "patients.csv", index=False)
    >>> funnel = PrivacyFunnelTransformer(0.02, sensitive="sex", columns=["bmi"]).fit(patients)
    >>> transform_file(funnel, folder / "patients.csv", folder / "released.csv")
    442

    With ids and a key, another release gives every row the same values, whatever the order of the
    rows:

    >>> import secrets
    >>> keyed = {"record_ids": "patient", "secret_key": secrets.token_bytes(32)}
    >>> numbered = patients.assign(patient=range(442))
    >>> numbered.to_csv(folder / "numbered.csv", index=False)
    >>> outs = [folder / "monday.csv", folder / "friday.csv"]
    >>> [transform_file(funnel, folder / "numbered.csv", out, **keyed) for out in outs]
    [442, 442]
    >>> outs[0].read_bytes() == outs[1].read_bytes()
    True
    """
    warn_of_unsaved(transformer, secret_key)
    with read_from(path, **reading) as source, write_to(out, source, force=force) as sink:
        fitted, settings = fitted_of(transformer), settings_of(transformer)
        given: dict[str, Any] = {"record_ids": record_ids, "secret_key": secret_key}
        return release_rows(fitted, settings, source, sink, **given, is_watched=verbose)


def evaluate_file(
    transformer: PrivacyFunnelTransformer,
    path: FilePath,
    *,
    target: str | None = None,
    verbose: bool = False,
    **reading: Unpack[Reading],
) -> Evaluation:
    """Return the figures of a fitted transformer on the rows of a file, without drawing any Y.

    Like `PrivacyFunnelTransformer.evaluate` on the frame, in bounded memory.

    Parameters
    ----------
    transformer : PrivacyFunnelTransformer
        Fitted, with `sensitive` set.
    path, target, delimiter, encoding, header, names, verbose
        As in `fit_file`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> from skprivacy.datasets import load_diabetes_bands
    >>> from skprivacy.files import evaluate_file
    >>> path, patients = Path(tempfile.mkdtemp()) / "patients.csv", load_diabetes_bands()
    >>> patients.to_csv(path, index=False)
    >>> funnel = PrivacyFunnelTransformer(0.02, sensitive="sex", columns=["bmi"]).fit(patients)
    >>> evaluate_file(funnel, path).max_leakage == funnel.evaluate(patients).max_leakage
    True
    """
    with read_from(path, **reading) as source:
        fitted = fitted_of(transformer)
        table = held_out_table(fitted, source, is_watched=verbose)
        return evaluated(fitted, settings_of(transformer), table, target)


def certify_file(
    transformer: PrivacyFunnelTransformer,
    path: FilePath,
    *,
    measure: str | Measure | None = None,
    confidence: float = 0.95,
    n_settings: int = 1,
    verbose: bool = False,
    **reading: Unpack[Reading],
) -> Certificate:
    """Return upper bounds of the leakage in the population the rows of a file were drawn from.

    Like `PrivacyFunnelTransformer.certify` on the frame, in bounded memory.

    Parameters
    ----------
    transformer : PrivacyFunnelTransformer
        Fitted to other rows, with `sensitive` set.
    measure, confidence, n_settings
        As in `PrivacyFunnelTransformer.certify`.
    path, delimiter, encoding, header, names, verbose
        As in `fit_file`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> from skprivacy.datasets import load_diabetes_bands
    >>> from skprivacy.files import certify_file
    >>> path, patients = Path(tempfile.mkdtemp()) / "fresh.csv", load_diabetes_bands()
    >>> patients[1::2].to_csv(path, index=False)
    >>> funnel = PrivacyFunnelTransformer(0.02, sensitive="sex", columns=["bmi"])
    >>> certify_file(funnel.fit(patients[::2]), path).n_rows
    221
    """
    fitted = fitted_of(transformer)
    terms = terms_for(fitted, measure, confidence, n_settings)
    with read_from(path, **reading) as source:
        table = held_out_table(fitted, source, is_watched=verbose)
        return certified(fitted, settings_of(transformer), terms, table)


def count_file(
    transformer: PrivacyFunnelTransformer,
    path: FilePath | BinaryIO,
    *,
    target: str | None = None,
    **reading: Unpack[Reading],
) -> CountedFile:
    """Count the rows of a file once, to fit a transformer with many budgets.

    Parameters
    ----------
    transformer : PrivacyFunnelTransformer
        With `sensitive` set. It stays as it is, and its epsilon is not used.
    path, target, format, delimiter, encoding, header, names
        As in `fit_file`.

    Returns
    -------
    CountedFile

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> from skprivacy.datasets import load_diabetes_bands
    >>> from skprivacy.files import count_file
    >>> path = Path(tempfile.mkdtemp()) / "patients.csv"
    >>> load_diabetes_bands().to_csv(path, index=False)
    >>> counted = count_file(PrivacyFunnelTransformer(sensitive="sex", columns=["bmi"]), path)
    >>> [round(fitted.summary_.kept, 2) for fitted in counted.path([0.01, 0.02])]
    [0.74, 0.82]
    """
    settings = settings_of(transformer)
    with read_from(path, **reading) as source:
        inputs = count_source(settings, source, target=target)
    again = {"path": path, "target": target, **reading}
    return CountedFile(clone(transformer), inputs, again)


@dataclass(frozen=True, eq=False, repr=False)
class CountedFile:
    """The distinct rows of a file, counted for many designs; made by `count_file`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> from skprivacy.datasets import load_diabetes_bands
    >>> from skprivacy.files import count_file
    >>> path = Path(tempfile.mkdtemp()) / "patients.csv"
    >>> load_diabetes_bands().to_csv(path, index=False)
    >>> counted = count_file(PrivacyFunnelTransformer(sensitive="sex", columns=["bmi"]), path)
    >>> counted.epsilon_for_shift(0.1)
    0.02004
    >>> counted.fit(max_shift=0.1).epsilon
    0.02004
    """

    _transformer: PrivacyFunnelTransformer
    _inputs: FitInputs
    _again: Mapping[str, Any]

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self._inputs.rows.n_rows

    @cached_property
    def n_combinations(self) -> int:
        """The number of combinations of values, or bins, of the columns to release.

        Beyond a hundred or so, a design takes a while; beyond some hundreds, rare ones are pooled.
        """
        if self._inputs.rows.cells is not None:
            return self._inputs.rows.cells.alphabet.n_symbols
        # A named solver has nothing pooled.
        plain = replace(settings_of(self._transformer), alphabet="values", solver="optimal")
        return len(code_rows(plain, self._inputs.rows, self._of_s).alphabet.x_alphabet.labels)

    @cached_property
    def _of_s(self) -> CodedSensitive:
        return code_sensitive(settings_of(self._transformer), self._inputs.rows)

    @cached_property
    def group_sizes(self) -> CountArray:
        """The number of rows in each group of the sensitive columns, taken jointly."""
        sensitive, s_codes, _ = self._of_s
        return count(s_codes, sensitive.n_symbols, self._inputs.rows.weights)[:-1]

    @cached_property
    def smallest_epsilon(self) -> float:
        """The smallest budget that the columns published beside the release allow.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from skprivacy import PrivacyFunnelTransformer
        >>> from skprivacy.datasets import load_diabetes_bands
        >>> from skprivacy.files import count_file
        >>> path = Path(tempfile.mkdtemp()) / "patients.csv"
        >>> load_diabetes_bands().to_csv(path, index=False)
        >>> roles = {"sensitive": "sex", "columns": ["bmi"], "beside": ["blood_pressure"]}
        >>> round(count_file(PrivacyFunnelTransformer(**roles), path).smallest_epsilon, 3)
        0.056
        """
        settings, rows = settings_of(self._transformer), self._inputs.rows
        if not rows.beside:
            return 0.0
        sensitive, s_codes, _ = self._of_s
        _, z_codes = code_beside(settings, rows)
        counts = count_pairs(s_codes, z_codes, rows.weights, sensitive.n_symbols)
        return epsilon_beside(counts, settings.measure, settings.scope, settings.confidence)

    def epsilon_for_shift(self, max_shift: float, max_factor: float | None = None) -> float:
        """Return the largest budget that keeps shifts below a limit, rounded down to 4 digits.

        Parameters
        ----------
        max_shift, max_factor
            As in `skprivacy.budgets.epsilon_for_shift`, for the groups of this file.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from skprivacy import PrivacyFunnelTransformer
        >>> from skprivacy.datasets import load_diabetes_bands
        >>> from skprivacy.files import count_file
        >>> path = Path(tempfile.mkdtemp()) / "patients.csv"
        >>> load_diabetes_bands().to_csv(path, index=False)
        >>> funnel = PrivacyFunnelTransformer(sensitive="sex", columns=["bmi"])
        >>> count_file(funnel, path).epsilon_for_shift(0.05)
        0.005007
        """
        measure = settings_of(self._transformer).measure
        exact = epsilon_for_shift(self.group_sizes, max_shift, measure, max_factor)
        return float(rounded_down(exact)) if np.isfinite(exact) else exact

    def fit(
        self,
        epsilon: Any = None,
        *,
        max_shift: float | None = None,
        max_factor: float | None = None,
    ) -> PrivacyFunnelTransformer:
        """Return a transformer as `fit_file` fits it, for a budget or for a largest shift.

        Parameters
        ----------
        epsilon : float or dict, default=None
            As in `PrivacyFunnelTransformer`; None: that of `epsilon_for_shift`.
        max_shift, max_factor : float, default=None
            As in `epsilon_for_shift`, in place of epsilon.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from skprivacy import PrivacyFunnelTransformer
        >>> from skprivacy.datasets import load_diabetes_bands
        >>> from skprivacy.files import count_file, fit_file
        >>> path = Path(tempfile.mkdtemp()) / "patients.csv"
        >>> load_diabetes_bands().to_csv(path, index=False)
        >>> funnel = PrivacyFunnelTransformer(0.02, sensitive="sex", columns=["bmi"])
        >>> fitted = count_file(funnel, path).fit(0.02)
        >>> bool((fitted.mechanism_.channel == fit_file(funnel, path).mechanism_.channel).all())
        True
        """
        if (epsilon is None) == (max_shift is None):
            owner = "CountedFile.fit"
            text = Message.of(" or {max_shift} must be given, and not both.")
            raise ValueError(about(owner, "epsilon", text))
        if max_shift is not None:
            epsilon = self.epsilon_for_shift(max_shift, max_factor)
        transformer = clone(self._transformer).set_params(epsilon=epsilon)
        if self._inputs.rows.cells is not None:  # learned for another budget
            return fit_file(transformer, **self._again)
        return set_fitted(transformer, fit_mechanism(settings_of(transformer), self._inputs))

    def path(
        self,
        epsilons: Iterable[Any] = (),
        *,
        max_shifts: Iterable[float] = (),
        max_factor: float | None = None,
    ) -> Iterator[PrivacyFunnelTransformer]:
        """Yield a transformer for each budget, then for each largest shift, as soon as it is made.

        Parameters
        ----------
        epsilons : iterable, default=()
            Budgets; the next one is asked for when the next design is.
        max_shifts, max_factor
            As in `fit`.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from skprivacy import PrivacyFunnelTransformer
        >>> from skprivacy.datasets import load_diabetes_bands
        >>> from skprivacy.files import count_file
        >>> path = Path(tempfile.mkdtemp()) / "patients.csv"
        >>> load_diabetes_bands().to_csv(path, index=False)
        >>> funnel = PrivacyFunnelTransformer(sensitive="sex", columns=["bmi"])
        >>> counted = count_file(funnel, path)
        >>> [fitted.epsilon for fitted in counted.path(max_shifts=[0.05, 0.1])]
        [0.005007, 0.02004]
        """
        for epsilon in epsilons:
            yield self.fit(epsilon)
        for max_shift in max_shifts:
            yield self.fit(max_shift=max_shift, max_factor=max_factor)


def leakage_together(
    transformers: Sequence[PrivacyFunnelTransformer],
    path: FilePath | BinaryIO,
    **reading: Unpack[Reading],
) -> LeakageTogether:
    """Return what several releases of the same rows reveal together.

    Budgets do not add: two releases that reveal nothing one by one may reveal everything together.

    Parameters
    ----------
    transformers : list of PrivacyFunnelTransformer
        Fitted to this file; each released its rows once, with noise of its own. The secret and the
        measure are those of the last.
    path, format, delimiter, encoding, header, names
        As in `fit_file`.

    Returns
    -------
    LeakageTogether

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> from skprivacy.datasets import load_diabetes_bands
    >>> from skprivacy.files import fit_file, leakage_together
    >>> path = Path(tempfile.mkdtemp()) / "patients.csv"
    >>> load_diabetes_bands().to_csv(path, index=False)
    >>> funnels = [
    ...     fit_file(PrivacyFunnelTransformer(0.02, sensitive="sex", columns=[name]), path)
    ...     for name in ("bmi", "blood_pressure")
    ... ]
    >>> together = leakage_together(funnels, path)
    >>> together.is_exact, 0.04 < together.max_leakage
    (True, True)
    """
    every = [fitted_of(transformer) for transformer in transformers]
    training = every[-1].training
    if training is None:
        raise ValueError(about("leakage_together", "transformers", " must be fitted, not loaded."))
    read = [[fitted.roles.name(p) for p in fitted.roles.read_positions] for fitted in every]
    named = dict.fromkeys([*training.names, *(name for names in read for name in names)])
    with read_from(path, **reading) as source:
        found = FileTable(source).count(list(named), {}, MOST_DISTINCT)

    def codes(alphabet: Alphabet, names: Sequence[str]) -> IntArray:
        return alphabet.encode([found.columns[name] for name in names], names)[0]

    s_codes = codes(training.alphabet, list(training.names))
    x_codes = [codes(fitted.alphabet, names) for fitted, names in zip(every, read, strict=True)]
    return leakage_of_all([each.mechanism for each in every], s_codes, x_codes, found.counts)
