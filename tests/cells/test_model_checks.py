"""Models that anybody may have made: what a file may hold, and what is checked of each."""

import base64
import io
import json
import zipfile
from copy import deepcopy
from functools import partial

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from skprivacy.cells.models import KINDS, check_model, read_models, write_models

RNG = np.random.default_rng(0)
CODES = RNG.integers(4, size=300)
ROWS = pd.DataFrame(
    {
        "x0": RNG.normal(size=300),
        "x1": pd.Categorical.from_codes(CODES, categories=pd.RangeIndex(4)),
        "x2": RNG.normal(size=300),
    }
)
THREE = (CODES + (ROWS["x0"] > 0)).to_numpy() % 3


def boosting(**options):
    given = {"max_iter": 2, "min_samples_leaf": 5, "early_stopping": False} | options
    return HistGradientBoostingClassifier(**given)


BOOSTING = boosting().fit(ROWS, THREE)
LOGISTIC = LogisticRegression().fit(ROWS, THREE > 0)
BAYES = GaussianNB().fit(ROWS, THREE)


@pytest.mark.parametrize("classes", [THREE, THREE > 0], ids=["three", "two"])
@pytest.mark.parametrize("rows", [ROWS, ROWS[["x0", "x2"]]], ids=["mixed", "numbers"])
@pytest.mark.parametrize(
    "model",
    [
        boosting(),
        boosting(early_stopping=True, random_state=0, max_leaf_nodes=3),
        boosting(categorical_features=None, interaction_cst="no_interactions"),
        LogisticRegression(),
        LogisticRegression(fit_intercept=False, solver="newton-cholesky"),
        GaussianNB(),
        GaussianNB(priors=None, var_smoothing=1e-3),
    ],
    ids=repr,
)
def test_what_was_fitted_is_sound(model, rows, classes):
    model.fit(rows, classes.astype(int))
    ((read,),) = read_models(write_models([[model]]))
    check_model(read, rows[:1])
    np.testing.assert_allclose(read.predict_proba(rows), model.predict_proba(rows))


def first_tree(model):
    """Return a tree that asks for a category, whose arrays can be changed."""
    trees = (tree for trees in model._predictors for tree in trees)
    tree = next(tree for tree in trees if tree.nodes["is_categorical"].any())
    tree.nodes = tree.nodes.copy()
    return tree


def node(field, value, is_category=False):
    def change(model):
        nodes = first_tree(model).nodes
        asks = nodes["is_categorical"] if is_category else 1 - nodes["is_leaf"]
        nodes[field][np.argmax(asks)] = value

    return change


def of_tree(name, made):
    def change(model):
        tree = first_tree(model)
        setattr(tree, name, made(getattr(tree, name)))

    return change


def of_part(made, **values):
    return lambda model: vars(made(model)).update(values)


def encoder(model):
    return model._preprocessor.transformers_[0][1]


def numerical(model):
    return model._preprocessor.transformers_[1][1]


def more_of(values):
    return [*values, values[0]]


def other_step(model):
    steps = model._preprocessor.transformers_
    steps[1] = (steps[1][0], make_pipeline(FunctionTransformer()), steps[1][2])


FORGED = {
    "a loop": node("left", 0),
    "a child out of memory": node("right", 10**9),
    "a column out of memory": node("feature_idx", 10**9),
    "a column before all": node("feature_idx", -1),
    "a number as a category": lambda m: node("is_categorical", 1)(m) or node("feature_idx", 2)(m),
    "a set out of memory": node("bitset_idx", 10**9, is_category=True),
    "no value": node("value", np.nan),
    "fewer nodes": of_tree("nodes", lambda nodes: nodes[:2]),
    "no nodes": of_tree("nodes", lambda nodes: nodes[:0]),
    "other nodes": of_tree("nodes", lambda nodes: nodes[["value", "left", "right", "is_leaf"]]),
    "nodes in a list": of_tree("nodes", lambda nodes: nodes.tolist()),
    "fewer words": of_tree("raw_left_cat_bitsets", lambda bits: bits[:, :7]),
    "no sets": of_tree("raw_left_cat_bitsets", lambda bits: bits[:0]),
    "other words": of_tree("raw_left_cat_bitsets", lambda bits: bits.astype(np.uint8)),
    "flat words": of_tree("raw_left_cat_bitsets", np.ravel),
    "a tree with a method": lambda model: vars(first_tree(model)).update(predict=len),
    "a tree too many": lambda model: model._predictors.append(more_of(model._predictors[0])),
    "a tree too few": lambda model: model._predictors[0].pop(),
    "no tree": lambda model: model._predictors[0].__setitem__(0, BAYES),
    "one tree for three classes": of_part(lambda m: m, n_trees_per_iteration_=1),
    "a start of two": of_part(lambda m: m, _baseline_prediction=np.zeros((1, 2))),
    "an endless start": of_part(lambda m: m, _baseline_prediction=np.full((1, 3), np.inf)),
    "a method": of_part(lambda m: m, predict_proba=len),
    "another loss": of_part(lambda m: m, _loss=LOGISTIC),
    "a loss with a method": of_part(lambda m: m._loss, predict_proba=len),
    "a link with a method": of_part(lambda m: m._loss.link, inverse=len),
    "fewer flags": of_part(lambda m: m._bin_mapper, is_categorical_=np.zeros(2, np.uint8)),
    "no flags": of_part(lambda m: m._bin_mapper, is_categorical_=np.zeros(3, np.uint8)),
    "flags in a list": of_part(lambda m: m._bin_mapper, is_categorical_=[1, 0, 0]),
    "fewer bins": of_part(lambda m: m._bin_mapper, bin_thresholds_=[np.zeros(1)] * 2),
    "a bit out of memory": lambda m: m._bin_mapper.bin_thresholds_[0].__setitem__(0, 256),
    "a bit before all": lambda m: m._bin_mapper.bin_thresholds_[0].__setitem__(0, -1),
    "half a bit": lambda m: m._bin_mapper.bin_thresholds_[0].__setitem__(0, 0.5),
    "bins with a method": of_part(lambda m: m._bin_mapper, make_known_categories_bitsets=len),
    "other steps": of_part(lambda m: m, _preprocessor=make_pipeline(FunctionTransformer())),
    "another step": other_step,
    "steps with a method": of_part(lambda m: m._preprocessor, transform=len),
    "many processes": of_part(lambda m: m._preprocessor, n_jobs=1000),
    "another function": of_part(numerical, func=np.save),
    "a part of another function": of_part(numerical, func=partial(np.save, "file")),
    "an encoder with a method": of_part(encoder, transform=len),
    "texts as categories": of_part(encoder, categories_=[np.array(["a", "b"])]),
}


@pytest.mark.parametrize("change", FORGED)
def test_forged_trees_are_refused(change):
    model = deepcopy(BOOSTING)
    FORGED[change](model)
    with pytest.raises(ValueError, match=r"^\w+ must (have|be) "):
        check_model(model, ROWS[:1])


@pytest.mark.parametrize(
    ("model", "name", "low"),
    [
        (LOGISTIC, "coef_", None),
        (LOGISTIC, "intercept_", None),
        (BAYES, "theta_", None),
        (BAYES, "var_", 0.0),
        (BAYES, "class_prior_", 0.0),
    ],
)
def test_forged_numbers_are_refused(model, name, low):
    own = getattr(model, name)
    wrong = [own[:0], own[..., :-1], own[None], own.astype(object), own.astype(complex), None]
    wrong += [own.tolist(), np.full_like(own, np.nan), np.full_like(own, np.inf)]
    for value in [*wrong, *([] if low is None else [np.full_like(own, low)])]:
        forged = deepcopy(model)
        setattr(forged, name, value)
        with pytest.raises(ValueError, match=f"{type(model).__name__} must have {name} with num"):
            check_model(forged, ROWS[:1])
    forged = deepcopy(model)
    delattr(forged, name)
    with pytest.raises(ValueError, match=f"must have {name} with numbers of shape"):
        check_model(forged, ROWS[:1])
    forged = deepcopy(model)
    forged.predict_proba = len
    with pytest.raises(ValueError, match=r"no other attributes"):
        check_model(forged, ROWS[:1])


OTHERS = [
    SVC(),
    KNeighborsClassifier(),
    DecisionTreeClassifier(max_depth=2),
    RandomForestClassifier(2),
    make_pipeline(boosting()),
    ColumnTransformer([("x", FunctionTransformer(), ["x0"])]),
]


@pytest.mark.parametrize("model", OTHERS, ids=lambda model: type(model).__name__)
def test_other_models_are_refused_by_name(model):
    name = type(model).__name__
    model.fit(ROWS, THREE)
    if name == "ColumnTransformer":  # which is a part of gradient boosting, and no classifier
        model.classes_ = np.arange(3)
    else:
        with pytest.raises(ValueError, match=rf"hold sklearn\S*{name}, .* or one of {KINDS[0]}"):
            write_models([[model]])
        with pytest.raises(ValueError, match=rf"hold sklearn\S*{name}, .* may hold {KINDS[0]}"):
            read_models(base64.b64encode(skops.io.dumps([[model]])).decode())
    with pytest.raises(ValueError, match=f"{name} is none of {KINDS[0]}"):
        check_model(model, ROWS[:1])


def test_shortened_arrays_of_libsvm_are_never_made():
    model = SVC().fit(ROWS, THREE)
    model.support_vectors_ = model.support_vectors_[:2]
    with pytest.raises(ValueError, match="hold sklearn.svm._classes.SVC, which is refused"):
        read_models(base64.b64encode(skops.io.dumps([[model]])).decode())


def test_no_other_loader_makes_what_is_trusted():
    data = base64.b64decode(write_models([[BOOSTING]]))
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "schema.json":
                schema = json.loads(content)
                schema["content"][0]["content"].append(
                    {"__class__": "partial", "__module__": "functools", "__loader__": "TreeNode"}
                )
                content = json.dumps(schema).encode()
            new.writestr(name, content)
    with pytest.raises(ValueError, match="models hold functools.partial, which is refused"):
        read_models(base64.b64encode(changed.getvalue()).decode())
