"""What several benchmarks do with released rows: columns as models take them, and as numbers."""

import pandas as pd
from sklearn.preprocessing import TargetEncoder

from skprivacy.metrics import mutual_information

# Gradient boosting takes no column with more categories.
_MOST_CATEGORIES = 255


def features(train, test, y):
    """Return columns as gradient boosting takes them; those of many categories as their scores."""
    pairs = {}
    for name in train:
        one, other = train[name], test[name]
        if pd.api.types.is_numeric_dtype(one):
            pairs[name] = one, other
        elif one.nunique() <= _MOST_CATEGORIES:
            one = one.astype("category")
            pairs[name] = one, other.astype(one.dtype)
        else:
            encoder = TargetEncoder(random_state=0)
            scores = encoder.fit_transform(one.to_frame(), y), encoder.transform(other.to_frame())
            for number, columns in enumerate(zip(scores[0].T, scores[1].T, strict=True)):
                pairs[f"{name} {number}"] = columns
    return (pd.DataFrame({name: pair[i] for name, pair in pairs.items()}) for i in (0, 1))


def most_telling(X, s):
    """Return the columns, those that say most about s first."""

    def told(column):
        if pd.api.types.is_numeric_dtype(column):
            column = pd.qcut(column, 20, duplicates="drop", labels=False)
        return mutual_information(s, column)

    return X.apply(told).sort_values(ascending=False).index


def as_numbers(X, s):
    """Return all columns and S as numbers, a column for each category and group but one."""
    groups = pd.get_dummies(pd.Series(s, X.index), prefix="S", drop_first=True)
    return pd.concat([pd.get_dummies(X), groups], axis=1).astype(float)
