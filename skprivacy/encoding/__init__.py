"""From columns to symbols and back: categories, bins, pools, and combinations of columns.

A value of a column is a category or falls into a bin; rare ones may be pooled. Columns taken
jointly have one symbol for each combination that was seen. Symbols are numbered from 0; -1 stands
for a value or combination that was not seen when the alphabet was learned.
"""

from ..codes import UNKNOWN
from .alphabets import Alphabet, ValueAlphabet, learn_alphabet
from .columns import DEFAULT_BINS, ColumnAlphabet, learn_column
from .paired import PairedAlphabet, paired

__all__ = [
    "DEFAULT_BINS",
    "UNKNOWN",
    "Alphabet",
    "ColumnAlphabet",
    "PairedAlphabet",
    "ValueAlphabet",
    "learn_alphabet",
    "learn_column",
    "paired",
]
