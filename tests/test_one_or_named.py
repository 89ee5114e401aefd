"""A budget as a number, and as a dict with one key: the same, but for the name of the secret.

Nothing here says what is right, only that both sides agree. `twins.py` says what may differ.
"""

import io
import os
import pickle
import re
import shutil
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV
from twin_fits import ERRORS, ROWS, SCENARIOS, SHOWN, SLOW, SURE, Fit, rows_of
from twins import (
    SECRET,
    SIDES,
    answer,
    as_dict,
    as_number,
    differences,
    document,
    drawn,
    plain,
    recorded,
)

from skprivacy import (
    LeakageDisplay,
    Mechanism,
    MechanismDisplay,
    PrivacyFunnelTransformer,
    PrivacyReport,
    PrivacyUtilityDisplay,
    audit,
    compare_mechanisms,
    design_mechanism,
    privacy_utility_path,
)
from skprivacy.budgets import mechanism_for_utility, rows_needed
from skprivacy.cli import main
from skprivacy.cli.values import SOLVERS
from skprivacy.measures import L1
from skprivacy.metrics import (
    estimate_distribution,
    neg_leakage_scorer,
    population_leakage,
    utility_scorer,
)
from skprivacy.repetition import repeated_release_leakage
from skprivacy.utilities import Target

mpl.use("agg")

# Members of a mechanism, an evaluation and a certificate.
OF_CHANNEL = [
    "channel", "p_x", "p_y", "posterior", "x_labels", "y_labels", "strata",
    "symbol_of_output", "objective", "utility", "normalized_utility",
    "normalized_upper_bound", "upper_bound", "gap", "is_certified", "cell_utility",
    "mutual_information", "least_utility", "independent", "unseen", "solver",
]  # fmt: skip
OF_DESIGN = [
    "measure", "scope", "epsilon", "confidence", "n_samples",
]  # fmt: skip
OF_SECRET = [
    "p_sx", "s_labels", "leakage", "max_leakage", "average_leakage", "max_lift",
    "sensitive_posterior", "sensitive_information", "attacker_accuracy",
    "attacker_advantage",
]  # fmt: skip
OF_BUDGET = [
    "advantage_bound", "allows_certainty", "population_limit",
]  # fmt: skip
OF_EVALUATION = [
    "channel", "p_x", "p_y", "posterior", "x_labels", "y_labels", "strata", "objective",
    "measure", "utility", "normalized_utility", "cell_utility", "mutual_information",
    *OF_SECRET,
]  # fmt: skip
OF_CERTIFICATE = [
    "measure", "scope", "confidence", "n_settings", "n_rows", "n_groups", "y_labels",
    "leakage", "leakage_bound", "average_leakage", "average_leakage_bound", "max_leakage",
    "max_leakage_bound",
]  # fmt: skip


def members(thing, names):
    return {name: answer(getattr, thing, name) for name in names}


def of_secret(thing):
    """Return all that is said about a secret, by its own object or by a mechanism that has one."""
    return members(thing, OF_SECRET + OF_BUDGET) | {
        "leakage_in": [answer(lambda s=s: thing.leakage_in(s)) for s in ("per_output", "average")],
        "posterior_ranges": answer(lambda: thing.posterior_ranges()),
        "by another measure": answer(lambda: thing.with_measure(L1()).max_leakage),
    }


def of_mechanism(mechanism):
    return (
        members(mechanism, OF_CHANNEL + OF_DESIGN)
        | of_secret(mechanism)
        | {
            "fidelity": answer(lambda: mechanism.fidelity()),
            "table": answer(lambda: mechanism.table()),
            "excess": answer(lambda: mechanism.excess(mechanism.channel)),
            "together": answer(lambda: mechanism.together.max_leakage),
        }
    )


def of_certificate(certificate):
    return members(certificate, OF_CERTIFICATE) | {
        "holds": [answer(lambda e=e: certificate.holds(e)) for e in (0.01, 10.0)],
        "words": repr(certificate),
    }


def words_of(transformer):
    mechanism = transformer.mechanism_
    return {
        "transformer": answer(repr, transformer),
        "mechanism": answer(repr, mechanism),
        "sentences": answer(lambda: mechanism.sentences()),
        "sentences with names": answer(lambda: mechanism.sentences(x_name="the band")),
        "notebook": answer(lambda: mechanism._repr_html_()),
    }


def documents_of(transformer):
    mechanism = transformer.mechanism_
    return {
        "transformer": answer(lambda: document(transformer.to_json())),
        "mechanism": answer(lambda: document(mechanism.to_json())),
        "without joint": answer(lambda: document(mechanism.to_json(include_joint=False))),
    }


class Side(NamedTuple):
    """One of the twins."""

    fitted: PrivacyFunnelTransformer
    warnings: list[str]


@cache
def twins_of(name):
    """Return the same fit with both kinds of budgets."""
    return [Side(*recorded(SCENARIOS[name].by, side)) for side in SIDES]


def some_slow(names):
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in names]


@pytest.fixture(scope="module", params=some_slow(SCENARIOS))
def twins(request):
    return twins_of(request.param)


@pytest.fixture(scope="module", params=some_slow(SHOWN))
def shown(request):
    return twins_of(request.param)


def transformers(twins):
    for side in twins:
        if isinstance(side.fitted, Exception):
            raise side.fitted
        yield side.fitted


def secret_of(transformer):
    """Return what the only secret is called."""
    return SECRET if isinstance(transformer.epsilon, dict) else None


def compared(twins, question):
    """Return how answers of two transformers differ."""
    return differences(*(plain(question(each)) for each in transformers(twins)))


class TestFit:
    def test_warnings(self, twins):
        assert differences(*(side.warnings for side in twins)) == {}

    def test_mechanism(self, twins):
        assert compared(twins, lambda each: of_mechanism(each.mechanism_)) == {}

    def test_secrets(self, twins):
        number, named = (each.mechanism_.secrets for each in transformers(twins))
        assert ([*number], [*named]) == ([None], [SECRET])
        assert differences(of_secret(number[None]), of_secret(named[SECRET])) == {}

    def test_attributes_and_released_rows(self, twins):
        names = ["p_sx_", "categories_", "sensitive_categories_", "fidelity_", "n_samples_seen_"]

        def question(each):
            released = answer(lambda: each.transform(ROWS))
            return members(each, names) | {"released": released}

        assert compared(twins, question) == {}

    def test_held_out_rows(self, twins):
        fresh = rows_of(300, seed=1)

        def figures_of(each):
            given = fresh["label"] if each.utility == "target" else None
            apart = {} if each.sensitive else {"sensitive_features": fresh["sex"]}
            figures = each.evaluate(fresh, given, **apart)
            return {
                "evaluation": members(figures, OF_EVALUATION),
                "certificate": answer(lambda: of_certificate(each.certify(fresh, given, **apart))),
                "secret": answer(lambda: members(figures.secrets[secret_of(each)], OF_SECRET)),
                "words": answer(repr, figures),
            }

        # In a file, labels are texts: a frame has others, which are refused.
        assert compared(twins, lambda each: answer(figures_of, each)) == {}

    def test_words(self, twins):
        assert compared(twins, words_of) == {}

    def test_documents(self, twins):
        assert compared(twins, documents_of) == {}


class TestShown:
    def test_loaded(self, shown):
        def question(each):
            loaded = PrivacyFunnelTransformer.from_json(each.to_json())
            own = Mechanism.from_json(each.mechanism_.to_json())
            return {
                "figures": of_mechanism(loaded.mechanism_),
                "words": answer(lambda: [repr(loaded), *loaded.mechanism_.sentences()]),
                "document": document(own.to_json()),
            }

        assert compared(shown, question) == {}

    def test_report(self, shown):
        def question(each):
            return str(PrivacyReport.from_estimator(each, with_curve=False))

        assert compared(shown, question) == {}


@pytest.mark.parametrize("name", [0, ("sex", "label")])
def test_a_secret_may_have_other_names(name):
    """One of an array is a position, and several columns jointly are a tuple."""
    rows = ROWS[["sex", "label", "trio"]]
    if name == 0:
        rows, options = rows.astype(object).to_numpy(), {"sensitive": 0, "columns": [2]}
    else:
        options = {"sensitive": list(name)}
    number, named = (
        Side(*recorded(Fit(options, budget, rows).by, as_number)).fitted
        for budget in (0.05, {name: 0.05})
    )
    assert [*named.mechanism_.secrets] == [name]
    assert differences(of_mechanism(number.mechanism_), of_mechanism(named.mechanism_)) == {}
    loaded = Mechanism.from_json(named.mechanism_.to_json())
    assert [*loaded.secrets] == [name]
    assert differences(of_mechanism(number.mechanism_), of_mechanism(loaded)) == {}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    sides = [recorded(ERRORS[name].by, side) for side in SIDES]
    assert all(isinstance(error, Exception) for error, _ in sides)
    assert differences(*map(plain, sides)) == {}


@pytest.fixture(scope="module")
def pair():
    """Return the plainest fit of all, by both sides."""
    return twins_of("kl per_output")


@pytest.fixture(scope="module")
def sure():
    """Return the same with a confidence."""
    return twins_of("confidence: kl per_output")


def test_a_number_has_every_member(pair):
    """What both sides lack would be equal."""
    mechanism = pair[0].fitted.mechanism_
    names = [*OF_CHANNEL, *OF_DESIGN, *OF_SECRET, *OF_BUDGET]
    assert [name for name in names if not hasattr(mechanism, name)] == []
    figures, certificate = pair[0].fitted.evaluate(ROWS), pair[0].fitted.certify(ROWS)
    assert [name for name in OF_EVALUATION if not hasattr(figures, name)] == []
    assert [name for name in OF_CERTIFICATE if not hasattr(certificate, name)] == []


# What takes a fitted transformer, or its mechanism.


def released_by(fitted):
    return fitted.transform(ROWS)


def report_of(fitted, **options):
    guesses = {"attacker": DummyClassifier(), "cv": 2}
    return PrivacyReport.from_estimator(fitted, ROWS, **guesses, **options)


def searched(fitted):
    """Return the scores of a search for the best budget."""
    side = as_dict if isinstance(fitted.epsilon, dict) else as_number
    grid = {"epsilon": [side(0.01), side(0.1)]}
    search = GridSearchCV(fitted, grid, scoring=utility_scorer(), cv=2).fit(ROWS)
    return [search.best_params_, search.cv_results_["mean_test_score"]]


def path_of(fitted):
    mechanism = fitted.mechanism_
    return PrivacyUtilityDisplay.from_path([mechanism], chosen=mechanism.epsilon)


ABOUT_FITTED = {
    "notebook": lambda f: f._repr_html_(),
    "pickle": lambda f: of_mechanism(pickle.loads(pickle.dumps(f)).mechanism_),
    "evaluate a table": lambda f: members(
        f.mechanism_.evaluate(f.p_sx_[:, ::-1].copy()), OF_EVALUATION
    ),
    "population_leakage": lambda f: population_leakage(f, n_resamples=99),
    "population_leakage of a mechanism": lambda f: population_leakage(
        f.mechanism_, 400, n_resamples=99
    ),
    "repeated_release_leakage": lambda f: repeated_release_leakage(f.mechanism_, 3),
    "estimate_distribution": lambda f: estimate_distribution(released_by(f), f),
    "audit": lambda f: audit(
        released_by(f), ROWS["sex"], mechanism=f, attacker=DummyClassifier(), cv=2
    ),
    "audit by a mechanism": lambda f: audit(
        released_by(f), ROWS["sex"], mechanism=f.mechanism_, attacker=DummyClassifier(), cv=2
    ),
    "evaluate with weights": lambda f: members(
        f.evaluate(ROWS, sample_weight=ROWS["noise"].abs() + 0.1), OF_EVALUATION
    ),
    "evaluate with S apart": lambda f: members(
        f.evaluate(ROWS.drop(columns="sex"), sensitive_features=ROWS["sex"]), OF_EVALUATION
    ),
    "certify with S apart": lambda f: of_certificate(
        f.certify(ROWS.drop(columns="sex"), sensitive_features=ROWS["sex"])
    ),
    "certify with S unnamed": lambda f: of_certificate(
        f.certify(ROWS.drop(columns="sex"), sensitive_features=ROWS["sex"].to_numpy())
    ),
    "audit with S unnamed": lambda f: audit(
        released_by(f), ROWS["sex"].to_numpy(), mechanism=f, attacker=DummyClassifier(), cv=2
    ),
    "audit of another column": lambda f: audit(
        released_by(f), ROWS["label"], mechanism=f, attacker=DummyClassifier(), cv=2
    ),
    "leakage scorer": lambda f: neg_leakage_scorer()(f, ROWS),
    "leakage scorer of a secret": lambda f: neg_leakage_scorer(secret=secret_of(f))(f, ROWS),
    "leakage scorer by another measure": lambda f: neg_leakage_scorer("l1", scope="average")(
        f, ROWS
    ),
    "utility scorer": lambda f: utility_scorer()(f, ROWS),
    "report of an attack": lambda f: str(report_of(f, with_curve=False)),
}
DRAWN = {
    "LeakageDisplay": lambda f: LeakageDisplay.from_estimator(f),
    "LeakageDisplay of a mechanism": lambda f: LeakageDisplay.from_mechanism(f.mechanism_),
    "MechanismDisplay": lambda f: MechanismDisplay.from_estimator(f),
    "MechanismDisplay of a mechanism": lambda f: MechanismDisplay.from_mechanism(f.mechanism_),
    "PrivacyUtilityDisplay": lambda f: PrivacyUtilityDisplay.from_estimator(f),
    "PrivacyUtilityDisplay of a path": path_of,
}


def sides_of(twins, function):
    """Return how two sides differ in what a function returns or raises, and in its warnings."""
    return differences(*(plain([*recorded(function, each)]) for each in transformers(twins)))


@pytest.mark.parametrize("name", ABOUT_FITTED)
class TestAboutFitted:
    def test_plain(self, pair, name):
        assert sides_of(pair, ABOUT_FITTED[name]) == {}

    def test_with_a_confidence(self, sure, name):
        assert sides_of(sure, ABOUT_FITTED[name]) == {}


def test_a_search(pair):
    assert sides_of(pair, searched) == {}


@pytest.mark.slow
def test_a_page_of_a_report(pair):
    assert sides_of(pair, lambda each: report_of(each).to_html()) == {}


@pytest.mark.parametrize("name", DRAWN)
def test_drawn(pair, name):
    def shown(fitted):
        figure = DRAWN[name](fitted).figure_
        plt.close(figure)
        return drawn(figure)

    assert sides_of(pair, shown) == {}


# What takes a table, or a dict of one.

TABLE = pd.crosstab(ROWS["sex"], ROWS["trio"]).set_axis([10, 20, 40], axis=1)
SMALL = pd.crosstab(ROWS["sex"], ROWS["label"])  # for what takes many designs
BESIDE = [0, 1, 0]
TARGET = pd.crosstab(ROWS["label"], ROWS["trio"]).to_numpy()


def designed(side, epsilon=0.05, **options):
    return of_mechanism(design_mechanism(side(TABLE), side(epsilon), **options))


def on_path(side, **options):
    path = privacy_utility_path(side(TABLE), [side(e) for e in (0.1, 0.01, 0.03)], **options)
    return [of_mechanism(each) for each in path]


def smallest(side, share=0.7, **options):
    if side is as_dict:
        options["proportions"] = {SECRET: 1}
    return of_mechanism(mechanism_for_utility(side(TABLE), share, **options))


def needed(side, share=0.3):
    return rows_needed(side(SMALL), side(0.05), share)


def side_by_side(side, **options):
    epsilons = [side(e) for e in (0.1, 0.01)]
    return compare_mechanisms(side(TABLE), epsilons, **options).drop(columns="seconds")


CALLS = {
    "design": designed,
    "design beside": lambda side: designed(side, 0.2, beside=BESIDE),
    "design beside on average": lambda side: designed(side, 0.15, beside=BESIDE, scope="average"),
    "design for a target": lambda side: designed(side, utility=Target(TARGET)),
    "design for closeness": lambda side: designed(side, utility="distortion"),
    "design with a confidence": lambda side: designed(side, confidence=0.9, n_samples=200),
    "design from few rows": lambda side: designed(side, 1e-5, confidence=0.95, n_samples=50),
    "design for zero": lambda side: designed(side, 0.0, confidence=0.9),
    "design that is refused": lambda side: designed(side, -1),
    **{
        f"design by {name}": lambda side, name=name: designed(side, solver=name)
        for name in SOLVERS
    },
    "path": on_path,
    "path on average": lambda side: on_path(side, scope="average"),
    "path of watchdog": lambda side: on_path(side, solver="watchdog"),
    "mechanism_for_utility": smallest,
    "mechanism_for_utility of too much": lambda side: smallest(side, 0.99, max_outputs=2),
    "mechanism_for_utility of nothing": lambda side: smallest(side, 0.0),
    "rows_needed": needed,
    "rows_needed for too much": lambda side: needed(side, 0.99),
    "compare_mechanisms": side_by_side,
    "compare_mechanisms with a confidence": lambda side: side_by_side(
        side, solvers=["optimal", "watchdog"], confidence=0.9
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions(name):
    assert differences(*(plain([*recorded(CALLS[name], side)]) for side in SIDES)) == {}


@pytest.mark.slow
def test_smallest_epsilon_with_a_confidence():
    sides = [recorded(lambda s=side: smallest(s, 0.5, confidence=0.9)) for side in SIDES]
    assert differences(*map(plain, sides)) == {}


# Commands: "@" is the name of the secret with "=", or nothing, and so is what is in brackets.

COLUMNS = "--sensitive sex --columns trio"
KEYED = "--record-ids id --key-file key"
SAVE = f"sanitize rows.csv out.csv {COLUMNS} {KEYED} --save-mechanism m.json"
ALONE = f"{SAVE} --confidence none"
EXPLORE = f"rows.csv {COLUMNS} [--proportions sex=1] --confidence"
COMMANDS = {
    "sanitize": f"{ALONE} --epsilon @0.05",
    "sanitize with a confidence": f"{SAVE} --epsilon @0.05",
    "sanitize beside": f"{ALONE} --epsilon @0.3 --beside label",
    "sanitize without noise": f"{ALONE} --epsilon @5",
    "sanitize for a target": f"{ALONE} --epsilon @0.05 --target label",
    "sanitize Parquet": f"{ALONE} --epsilon @0.05".replace("rows.csv", "rows.parquet"),
    "sanitize and refuse": f"{ALONE} --epsilon @0.05 --remainder zip",
    "sanitize with a report": f"{ALONE} --epsilon @0.05 --report r.html --no-attack --no-curve",
    "sanitize and show groups": f"{ALONE} --epsilon @0.05 --show-groups",
    "sanitize on average": f"{ALONE} --epsilon @0.02 --scope average",
    "sanitize beside with a confidence": f"{SAVE} --epsilon @0.5 --beside label",
    "sanitize and copy": f"{ALONE} --epsilon @0.05 --remainder zip --allow-leaking",
    "sanitize symbols": f"{ALONE} --epsilon @0.05 --output symbol",
    "apply": f"{ALONE} --epsilon @0.05; apply m.json rows.csv more.csv {KEYED}",
    "certify": f"{ALONE} --epsilon @0.05; certify m.json fresh.csv --sensitive sex",
    "curve": f"curve {EXPLORE} none --epsilons 0.01,0.1",
    "curve of round budgets": f"curve {EXPLORE} none",
    "curve with a confidence": f"curve {EXPLORE} 0.9 --epsilons 0.05",
    "curve as a table": f"curve {EXPLORE} none --out curve.csv",
    "choose": f"choose {EXPLORE} none --keep-utility 0.7",
    "choose a shift": f"choose {EXPLORE} none --max-shift 0.05",
    "choose with a confidence": f"choose {EXPLORE} 0.9 --keep-utility 0.3",
    "audit": "audit rows.csv --sensitive sex --released trio [--secrets sex]",
}
TOLD = {"sanitize with a report", "curve as a table", "curve with a confidence"}  # not as JSON
FACTS = [f"{name} --json" for name in COMMANDS if name not in TOLD]
NAMED = {as_number: ("", ""), as_dict: (f"{SECRET}=", r"\1")}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder with what commands read."""
    folder = tmp_path_factory.mktemp("files")
    columns = ["id", "sex", "trio", "label", "zip"]
    ROWS[columns].to_csv(folder / "rows.csv", index=False)
    ROWS[columns].to_parquet(folder / "rows.parquet", index=False)
    rows_of(300, seed=1)[columns].to_csv(folder / "fresh.csv", index=False)
    Path(folder, "key").write_text("0" * 64)
    Path(folder, "key").chmod(0o600)
    return folder


def run(command, is_json):
    """Return the exit code of a command, and what it prints."""
    words = [*command.split(), "--json"] if is_json else command.split()
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            code = main(words)
        except SystemExit as stopped:  # argparse
            code = stopped.code
    said = out.getvalue()
    return [code, document(said) if is_json and said else said, err.getvalue().splitlines()]


def written(folder, known):
    """Return what commands have written, by the name of the file."""
    new = [path for path in folder.iterdir() if path.name not in known]
    texts = {path.name: path.read_text(encoding="utf-8") for path in new}
    return {name: document(text) if name == "m.json" else text for name, text in texts.items()}


@pytest.mark.parametrize("name", [*COMMANDS, *FACTS])
def test_commands(name, files, tmp_path, quick_attackers):
    name, is_json, _ = name.partition(" --json")
    sides = []
    for side in SIDES:
        folder = tmp_path / str(len(sides))
        shutil.copytree(files, folder)
        name_of_secret, option = NAMED[side]
        commands = re.sub(r"\[(.*?)\]", option, COMMANDS[name].replace("@", name_of_secret))
        with chdir(folder):
            said = [run(command, is_json) for command in commands.split(";")]
        sides.append({"said": said, "files": written(folder, os.listdir(files))})
    assert differences(*map(plain, sides)) == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("options", [{}, dict(SURE)], ids=["plain", "confidence"])
def test_spark(options, tmp_path):
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Spark needs Java")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    host = {f"spark.driver.{name}": "127.0.0.1" for name in ("host", "bindAddress")}
    session = SparkSession.builder.master("local[2]").config(map=host).getOrCreate()
    try:
        lazy = session.createDataFrame(ROWS[["sex", "trio"]])
        sides = [Side(*recorded(Fit(options, rows=lazy).by, side)) for side in SIDES]
        assert differences(*(side.warnings for side in sides)) == {}
        assert compared(sides, lambda each: of_mechanism(each.mechanism_)) == {}
        assert compared(sides, documents_of) == {}
    finally:
        session.stop()
