"""Numerical tolerances that several modules share, each with its reason.

Those of budgets are in ``measures/base.py``, those of utilities in ``utilities/base.py``.
"""

import numpy as np

# The relative rounding of one operation: sums are off by a few times this, times their terms.
EPS = np.finfo(float).eps

# Keeps a denominator positive: nothing that matters is smaller.
TINY = 1e-300

# A probability, or a weight, below this is left over from the tolerances of HiGHS.
NEGLIGIBLE = 1e-12

# Deviations of lifts from 1 up to this are rounding: a tenth of the tolerance of budgets.
DEVIATION_ROUNDING = 1e-13

# Distributions, deviations and utilities that agree to this many digits are the same.
SAME_DIGITS = 13

# Halvings of an interval from 0 to 1: to 1e-18, less than any probability is rounded by.
BISECTIONS = 60
