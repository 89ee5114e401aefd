"""What several benchmarks do with released rows: models that read them, and columns as numbers."""

import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder

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


def scores(train, test, y):
    """Yield P(y = 1) for test rows, by gradient boosting and by logistic regression."""
    train, test = train.reset_index(drop=True), test.reset_index(drop=True)
    boosting = HistGradientBoostingClassifier(
        max_iter=60, categorical_features="from_dtype", random_state=0
    )
    one, other = features(train, test, y)
    yield boosting.fit(one, y).predict_proba(other)[:, 1]
    encoder = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    regression = make_pipeline(encoder, LogisticRegression(max_iter=300)).fit(train, y)
    yield regression.predict_proba(test)[:, 1]


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
