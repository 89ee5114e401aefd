"""Warnings that point at the user's line, however many frames of ours lie in between."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Packages that call us, or are called by us and call back: no line of theirs is the user's.
_BETWEEN = sys.stdlib_module_names | {
    "cloudpickle",
    "dask",
    "distributed",
    "imblearn",
    "joblib",
    "narwhals",
    "numpy",
    "pandas",
    "polars",
    "py4j",
    "pyarrow",
    "pyspark",
    "sklearn",
    "skprivacy",
    "tqdm",
}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's code that led here.

    A worker thread or process has none: the warning is then at the line where that began.
    """
    frame = _users_frame(sys._getframe(1))
    # The module and the registry of that line, as `warnings.warn` takes those of its caller:
    # filters by module work, and a warning is shown once for each line.
    warnings.warn_explicit(
        message,
        category,
        filename=frame.f_code.co_filename,
        lineno=frame.f_lineno,
        module=frame.f_globals.get("__name__", "<string>"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _users_frame(frame: FrameType) -> FrameType:
    while _is_between(frame) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _is_between(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in _BETWEEN


@contextmanager
def silenced(category: type[Warning]) -> Iterator[None]:
    """Within it, warnings of a kind are not shown: they are about parts of what was asked for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        yield
