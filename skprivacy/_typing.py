"""Types that several modules use."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

Scope: TypeAlias = Literal["per_output", "average"]

# Also numpy scalars, which numpy returns for an array without axes.
FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.integer]
BoolArray: TypeAlias = npt.NDArray[np.bool]

# Counts of rows are whole numbers, unless the rows have weights.
CountArray: TypeAlias = IntArray | FloatArray

# A table of rows, or of probabilities or counts, where a DataFrame has the names of symbols.
# Frames of polars and pyarrow are array-like.
TableLike: TypeAlias = npt.ArrayLike | pd.DataFrame

# One column of samples, or several taken jointly.
ColumnsLike: TypeAlias = npt.ArrayLike | Sequence[Hashable] | pd.Series | pd.DataFrame

# Columns by name or, for an array, by position.
NamedColumns: TypeAlias = dict[Any, pd.Series]

Labels: TypeAlias = tuple[Hashable, ...]

# The seed of reproducible noise; None: the noise is not reproducible.
Seed: TypeAlias = int | np.random.Generator | None

# A file; "-" is a pipe.
FilePath: TypeAlias = str | Path
