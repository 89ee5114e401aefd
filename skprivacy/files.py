"""Tables in files of any size: CSV, TSV and Parquet, compressed or piped.

Rows are read and written in blocks, so that memory does not grow with the file; fields that are
not replaced are copied as bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

from ._typing import FilePath
from .engines.files import fit_source, held_out_table, read_from, release_rows, write_to
from .fitting.fitted_estimator import fitted_of, set_fitted, settings_of, warn_of_unsaved
from .fitting.held_out import certified, evaluated, terms_for
from .measures import Measure
from .mechanism import Evaluation
from .population.certificate import Certificate
from .transformer import PrivacyFunnelTransformer

__all__ = ["certify_file", "evaluate_file", "fit_file", "transform_file"]


class Reading(TypedDict, total=False):
    """Options for reading a file: see `fit_file`."""

    delimiter: str | None
    encoding: str
    header: bool | None
    names: Sequence[str] | None


def fit_file(
    transformer: PrivacyFunnelTransformer,
    path: FilePath,
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
    path : str or Path
        .csv, .tsv (both also .gz) or .parquet; "-" is the standard input.
    target : str, default=None
        The column of the target, for utility="target". It is released only if `columns` names it.
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
    path: FilePath,
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
