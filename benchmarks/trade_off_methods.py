"""The ways to release a table that trade_off.py compares, each with its settings."""

import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from fair_tree import FairTree, fare_certificate
from plain_scores import releases
from released_rows import most_telling
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skprivacy import PrivacyFunnelTransformer, ScoreCells
from skprivacy.population.certificate import parity_margin

HERE = Path(__file__).parent
FAILURE = 0.05


@dataclass(frozen=True)
class Options:
    """quick : fewer settings; pythons of other environments, where they are given."""

    quick: bool = False
    aif360: str | None = None
    datasynthesizer: str | None = None


@dataclass(frozen=True)
class Release:
    """Released rows of the three parts.

    raw : rows to choose by and to report, unreleased, if a model of released rows can read them;
    certified, other : largest distance by the certificate of the method, and by that of the other
    one; distance : computes it for rows X, s; labels : S and V of the rows to fit, if these are
    made up (there are no other released rows then).
    """

    fit: pd.DataFrame
    choose: pd.DataFrame | None
    report: pd.DataFrame | None
    raw: tuple[pd.DataFrame, pd.DataFrame] | None = None
    certified: float = np.nan
    other: float = np.nan
    distance: Callable | None = None
    labels: tuple[np.ndarray, np.ndarray] | None = None


class DidNotRunError(Exception):
    """A method of another package could not be run; says why."""


def parts_of(split):
    """Return the three parts of a split."""
    return split.fit, split.choose, split.report


def raw(split, options):
    """Yield the table itself."""
    tables = [part.X for part in parts_of(split)]
    yield "raw", "as it is", Release(*tables, raw=tuple(tables[1:]))


def dropped(split, options):
    """Yield the table without the columns that say most about S."""
    names = most_telling(split.fit.X, split.fit.s)
    most = len(names) - 1
    for n in np.unique(np.linspace(1, most, min(most, 6 if options.quick else 12)).round()):
        tables = [part.X.drop(columns=names[: int(n)]) for part in parts_of(split)]
        yield "columns dropped", f"{n:.0f} dropped", Release(*tables, raw=tuple(tables[1:]))


def apart(split, options):
    """Yield columns released one by one, each with the whole budget."""
    for epsilon in (0.001, 0.01, 0.1):
        made = partial(PrivacyFunnelTransformer, epsilon, random_state=0)
        columns = []
        for name in split.fit.X:
            funnel = made(columns=[name])
            funnel.fit(split.fit.X, sensitive_features=split.fit.s)
            columns.append([funnel.transform(part.X) for part in parts_of(split)])
        tables = [pd.concat(each, axis=1) for each in zip(*columns, strict=True)]
        unreleased = split.choose.X, split.report.X
        yield "columns apart", f"epsilon {epsilon:g}", Release(*tables, raw=unreleased)


def funnel_release(funnel, split, output):
    """Return what a fitted transformer releases, with certificates by the rows of the report."""
    report = split.report
    funnel.set_params(output=output)
    tables = [funnel.transform(part.X) for part in parts_of(split)]
    unreleased = None
    if output == "label":
        unreleased = tuple(part.X[tables[0].columns] for part in (split.choose, report))

    def certificate(X, s):
        return funnel.certify(X, sensitive_features=s, measure="parity", confidence=1 - FAILURE)

    return Release(
        *tables,
        raw=unreleased,
        certified=certificate(report.X, report.s).average_leakage_bound,
        other=_fare_on_halves(funnel, split),
        distance=lambda X, s: certificate(X, s).average_leakage,
    )


def _fare_on_halves(funnel, split):
    """Return FARE's certificate for drawn outputs; one half for the outputs, one for the sum."""
    report, output = split.report, funnel.output
    drawn = funnel.set_params(output="symbol").transform(report.X).iloc[:, 0]
    funnel.set_params(output=output)
    codes, half = pd.factorize(drawn)[0], len(drawn) // 2
    n_outputs = len(funnel.mechanism_.y_labels)
    return fare_certificate(split.fit.s, codes[:half], report.s[:half], codes[half:], n_outputs)


def values(split, options):
    """Yield the two or three columns that say most about V, released jointly as values."""
    names = list(most_telling(split.fit.X, split.fit.v))
    for n in (3,) if options.quick else (2, 3):
        for epsilon in (0.01, 0.1):
            funnel = PrivacyFunnelTransformer(
                epsilon,
                columns=names[:n],
                utility="target",
                alphabet="values",
                n_bins=5,
                random_state=0,
            )
            funnel.fit(split.fit.X, split.fit.v, sensitive_features=split.fit.s)
            release = funnel_release(funnel, split, "label")
            yield "values", f"{n} cols, {epsilon:g}", release


KINDS_OF_ROWS = (("cells, symbol", "symbol", "for_any_use"),
                 ("cells, label", "label", "for_any_use"),
                 ("cells, for V", "label", "for_one_model"))  # fmt: skip


def cells(split, options):
    """Yield cells, as names and as two kinds of rows; and names of cells for the parity."""
    made = partial(
        PrivacyFunnelTransformer, utility="target", alphabet=ScoreCells(), random_state=0
    )
    for epsilon in (0.003, 0.01, 0.03, 0.1) if options.quick else (0.001, 0.003, 0.01, 0.03, 0.1):
        funnel = made(epsilon).fit(split.fit.X, split.fit.v, sensitive_features=split.fit.s)
        for name, output, made_up in KINDS_OF_ROWS:
            release = funnel_release(funnel.set_params(made_up=made_up), split, output)
            yield name, f"epsilon {epsilon:g}", release
    for epsilon in (0.05, 0.15) if options.quick else (0.05, 0.1, 0.2):
        funnel = made(epsilon, measure="parity", scope="average", max_outputs=8)
        funnel.fit(split.fit.X, split.fit.v, sensitive_features=split.fit.s)
        release = funnel_release(funnel, split, "symbol")
        yield "cells, parity", f"distance {epsilon:g}", release


def plain_scores(split, options):
    """Yield plain scores made of the models of the cells, in levels, without noise or promise."""
    funnel = PrivacyFunnelTransformer(0.01, utility="target", alphabet=ScoreCells())
    funnel.fit(split.fit.X, split.fit.v, sensitive_features=split.fit.s)
    tables, settings = [part.X for part in parts_of(split)], ((0.0, 0.6, 0.9), (2, 6, 20))
    for name, setting, levels in releases(funnel, tables, *settings):
        released = [pd.DataFrame({"level": each.astype(str)}) for each in levels]
        yield name, setting, Release(*released)


def fair_trees(split, options):
    """Yield leaves of a fair tree; it grows on one half of the rows to fit, as FARE's does."""
    half = len(split.fit.s) // 2
    grown, kept = split.fit.rows(slice(half)), split.fit.rows(slice(half, None))
    for weight in (0.0, 0.5, 0.85) if options.quick else (0.0, 0.5, 0.7, 0.85, 0.95):
        for n in (8, 24):
            tree = FairTree(weight, n).fit(grown.X, grown.v, grown.s)
            release = _tree_release(tree, grown, kept, split)
            yield "FARE's tree", f"{weight:g}, {n} leaves", release


def _tree_release(tree, grown, kept, split):
    report, n_leaves = split.report, tree.n_leaves
    leaves = [tree.apply(part.X) for part in parts_of(split)]
    certified = fare_certificate(grown.s, tree.apply(kept.X), kept.s, leaves[2], n_leaves)
    sizes = np.bincount(report.s, minlength=2)

    def distance(X, s):
        counts = pd.crosstab(s, tree.apply(X)).to_numpy(float)
        shares = counts / counts.sum(axis=1, keepdims=True)
        return float(abs(shares[0] - shares[1]).sum() / 2)

    margin = parity_margin(sizes, np.eye(n_leaves), FAILURE) if n_leaves > 1 else 0.0
    tables = [pd.DataFrame({"leaf": each.astype(str)}) for each in leaves]
    return Release(
        *tables,
        certified=certified,
        other=distance(report.X, report.s) + margin,
        distance=distance,
    )


def numbers(split):
    """Return the columns of the three parts as numbers: categories as a column each, scaled."""
    is_number = make_column_selector(dtype_include="number")
    is_other = make_column_selector(dtype_exclude="number")
    encoder = make_column_transformer(
        (StandardScaler(), is_number),
        (OneHotEncoder(handle_unknown="ignore", max_categories=5, sparse_output=False), is_other),
    ).fit(split.fit.X)
    return [pd.DataFrame(encoder.transform(part.X)).add_prefix("x") for part in parts_of(split)]


def correlation_remover(split, options):
    """Yield Fairlearn's CorrelationRemover, which reads S of each row that it releases."""
    try:
        from fairlearn.preprocessing import CorrelationRemover
    except ImportError as error:
        raise DidNotRunError("Fairlearn is not installed") from error
    tables = numbers(split)
    with_s = [table.assign(S=part.s) for table, part in zip(tables, parts_of(split), strict=True)]
    for alpha in (0.5, 1.0):
        remover = CorrelationRemover(sensitive_feature_ids=["S"], alpha=alpha).fit(with_s[0])
        released = [
            pd.DataFrame(remover.transform(each), columns=tables[0].columns) for each in with_s
        ]
        release = Release(*released, raw=tuple(tables[1:]))
        yield "CorrelationRemover", f"alpha {alpha:g}", release


def prototypes(split, options):
    """Yield Fairlearn's PrototypeRepresentationLearner: how near a row is to each prototype."""
    try:
        from fairlearn.preprocessing import PrototypeRepresentationLearner
    except ImportError as error:
        raise DidNotRunError(
            "Fairlearn has no PrototypeRepresentationLearner before 0.13"
        ) from error
    tables, some = numbers(split), slice(500 if options.quick else 1000)
    for weight in (1.0, 30.0):
        learner = PrototypeRepresentationLearner(
            n_prototypes=5,
            fairness_weight=weight,
            reconstruct_weight=0.01,
            max_iter=8 if options.quick else 10,
            random_state=0,
        )
        learner.fit(
            tables[0].to_numpy()[some], split.fit.v[some], sensitive_features=split.fit.s[some]
        )
        released = [pd.DataFrame(learner.transform(each.to_numpy())) for each in tables]
        released = [each.add_prefix("prototype ") for each in released]
        yield "PrototypeLearner", f"fairness {weight:g}", Release(*released)


def aif360(split, options):
    """Yield AIF360's disparate impact remover and LFR, which read S of each row, too."""
    if options.aif360 is None:
        raise DidNotRunError("no Python with AIF360 was given")
    tables, levels, weights = numbers(split), [0.5, 1.0], [1.0, 50.0]
    given = {"levels": levels, "weights": weights, "rows": 500 if options.quick else 1000}
    given["evaluations"] = 4000 if options.quick else 6000
    for name, part, table in zip(
        ("fit", "choose", "report"), parts_of(split), tables, strict=True
    ):
        given |= {f"{name}_X": table.to_numpy(), f"{name}_s": part.s, f"{name}_v": part.v}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, **given)
        run_elsewhere(options.aif360, "with_aif360.py", source, target)
        made = dict(np.load(target))
    for method, name, word, settings in (
        ("repaired", "DisparateImpactRemover", "level", levels),
        ("learned", "LFR", "fairness", weights),
    ):
        for setting in settings:
            released = [
                pd.DataFrame(made[f"{method} {setting:g} {part}"], columns=tables[0].columns)
                for part in ("fit", "choose", "report")
            ]
            yield name, f"{word} {setting:g}", Release(*released, raw=tuple(tables[1:]))


def synthesizer(split, options):
    """Yield rows that a differentially private Bayesian network makes up, S and V among them."""
    if options.datasynthesizer is None:
        raise DidNotRunError("no Python with DataSynthesizer was given")
    unreleased = split.choose.X, split.report.X
    for epsilon in (1,) if options.quick else (1, 10):
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "in.csv", Path(folder) / "out.csv"
            split.fit.X.assign(S=split.fit.s, V=split.fit.v).to_csv(source, index=False)
            given = source, target, epsilon, split.seed
            run_elsewhere(options.datasynthesizer, "with_datasynthesizer.py", *given)
            made = pd.read_csv(target)
        labels = made.pop("S").to_numpy(int), made.pop("V").to_numpy(int)
        if min(len(np.unique(label)) for label in labels) < 2:
            continue  # so much noise that all made-up rows have the same S or V
        release = Release(made, None, None, raw=unreleased, labels=labels)
        yield "DataSynthesizer", f"epsilon {epsilon:g}", release


def run_elsewhere(python, script, *arguments):
    """Run a script in another environment, and say the last thing it said if it fails."""
    command = [python, HERE / script, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, env={"OMP_NUM_THREADS": "1"})
    if run.returncode:
        raise DidNotRunError(f"{script}: {run.stderr.strip().splitlines()[-1]}")


METHODS = (raw, dropped, apart, values, cells, plain_scores, fair_trees, correlation_remover,
           prototypes, aif360, synthesizer)  # fmt: skip
