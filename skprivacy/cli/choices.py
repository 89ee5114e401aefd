"""The names that options accept, known without the library, which takes seconds to import.

A test compares them with what the library has.
"""

MEASURES = ("kl", "l1", "chi2", "max_lift", "alpha_lift", "lip", "parity")
SOLVERS = (
    "optimal",
    "one_per_label",
    "column_generation",
    "algorithm1",
    "max_lift",
    "best_partition",
    "subset_merging",
    "watchdog",
    "greedy_funnel",
    "chi2_design",
    "randomized_response",
)
UTILITIES = ("distortion", "mutual_information", "guess", "target")
ALPHABETS = ("auto", "values", "cells")
DEFAULT_BINS = 10
USUAL_CONFIDENCE = 0.95
KEPT_UTILITY = 0.9
LARGEST_CONFIDENCE = 0.9999
