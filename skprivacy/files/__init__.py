"""Tables in files, of any size: CSV, TSV and Parquet, compressed or piped.

Rows are read and written in blocks, so that memory does not grow with the file; fields that are
not replaced are copied as bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._typing import FilePath
from ..transformer import PrivacyFunnelTransformer, fitted_of, set_fitted, settings_of
from .counting import fit_source
from .opening import read_from, write_to
from .releasing import release_rows

__all__ = ["fit_file", "transform_file"]


def fit_file(
    transformer: PrivacyFunnelTransformer,
    path: FilePath,
    *,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    header: bool | None = None,
    names: Sequence[str] | None = None,
    verbose: bool = False,
) -> PrivacyFunnelTransformer:
    """Fit a transformer to a table in a file, in one pass and in bounded memory.

    It learns what `fit` would learn from the frame (of a Parquet file: the table of pyarrow): the
    counts are the same, to the last bit.

    Parameters
    ----------
    transformer : PrivacyFunnelTransformer
        With `sensitive` set. Columns of a text file are numbers where all their fields are, and
        categories otherwise; fields with leading zeros are categories, empty ones are missing.
        Up to 500,000 distinct combinations of S and X are counted as they are; beyond that,
        numbers need edges in `n_bins`, and a bin is shown by about its median.
    path : str or Path
        .csv, .tsv (both also .gz) or .parquet; "-" is the standard input.
    delimiter : str, default=None
        Between the fields of a text file; by default a comma or, for .tsv, a tab.
    encoding : str, default="utf-8"
        Of a text file.
    header : bool, default=None
        Whether the first line of a text file has the names of its columns. By default it is
        taken for a header, unless it looks like data: then that is an error, because a row that
        is taken for names would be published as it is.
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
    with read_from(
        path, delimiter=delimiter, encoding=encoding, header=header, names=names
    ) as source:
        fitted, _ = fit_source(settings_of(transformer), source, is_watched=verbose)
    return set_fitted(transformer, fitted)


def transform_file(
    transformer: PrivacyFunnelTransformer,
    path: FilePath,
    out: FilePath,
    *,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    header: bool | None = None,
    names: Sequence[str] | None = None,
    record_ids: str | None = None,
    secret_key: bytes | None = None,
    force: bool = False,
    verbose: bool = False,
) -> int:
    """Release the rows of a file through a fitted transformer, in bounded memory.

    From text to text with the same delimiter, fields that are not replaced are copied to the
    byte. `out` appears when it is complete; it has a header in any case.

    Parameters
    ----------
    transformer : PrivacyFunnelTransformer
        Fitted, to a file or to a frame, or loaded with `from_json`.
    path, delimiter, encoding, header, names, verbose
        As in `fit_file`.
    out : str or Path
        Where to write: as `path`, also of another kind.
    record_ids : str, default=None
        The name of a column of unique ids; it is written to `out` only if it is passed through.
        With it and `secret_key` a row gets the same Y in every release, as from `transform`. Ids
        of a text file are texts as they are written, without their quotes: ``007`` is not ``7``,
        and `transform` gets the same as ``frame["id"].astype(str)``. Those of a Parquet file have
        the type that they have there; the integer 7 and the text "7" are different ids. That
        no two rows have the same id is checked over the whole file, beyond a million rows with
        a temporary file of 8 bytes for each.
    secret_key : bytes, default=None
        As in `transform`.
    force : bool, default=False
        Whether to replace a file that is there.

    Returns
    -------
    int
        How many rows were released.

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

    By ids and a key, another release gives every row the same values, in any order of the rows:

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
    with (
        read_from(
            path, delimiter=delimiter, encoding=encoding, header=header, names=names
        ) as source,
        write_to(out, source, force=force) as sink,
    ):
        return release_rows(
            fitted_of(transformer),
            settings_of(transformer),
            source,
            sink,
            record_ids=record_ids,
            secret_key=secret_key,
            is_watched=verbose,
        )
