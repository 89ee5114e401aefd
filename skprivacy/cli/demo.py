"""``skprivacy demo``: release real data, from the table to the report."""

import argparse
import hashlib
import textwrap
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._messages import aligned, part_of
from .._typing import FloatArray
from ..datasets import load_diabetes_patients
from ..describing.face_value import face_value_lines
from ..describing.numbers import limit, percent, rounded_up
from ..design import design_mechanism, privacy_utility_path
from ..encoding import learn_column
from ..engines.file_tables import written
from ..fitting.fitted_estimator import fitted_of
from ..mechanism import Evaluation, Leakage, Mechanism, population_limits
from ..metrics import audit
from ..report import PrivacyReport
from ..report.appendix import FileRecord
from ..transformer import PrivacyFunnelTransformer
from .explore import cost_of_rows
from .messages import say
from .values import USUAL_CONFIDENCE

# 442 rows are few: three bins per column leave about fifty rows for each pair of bins, and much
# smaller budgets than these keep next to nothing.
_BUDGETS = (0.2, 0.1, 0.05, 0.02)
_CHOSEN = 0.02
_BINS = 3
_FILES = ("patients.csv", "released.csv", "report.html")
_RELEASED = ["blood_pressure", "bmi"]
_WIDTH = 99
_TEXT = """\
How much of blood pressure and BMI can be released without giving away sex?
442 patients; S = sex (2 values), X = blood pressure and BMI, in {bins} bins each, taken jointly
({n_x} values). A bin is released as its median.
"leaks here" is the most that a released value reveals about S in these rows, in nats; "at most"
is a limit for the population they were drawn from, with {sure} confidence.
"kept" is how close released values are to X: 100% if they are equal, 0% for a blind guess.
"attacker" is how often the best attacker, who knows how the release was made, guesses S correctly
in these rows; a blind guess is right {blind:.1%} of the time.
"""
_AFTER = """
At epsilon = {epsilon:g}:
{people}

A trained attacker, tested on other rows, is right {raw:.1%} of the time from the true bins, and
{released:.1%} from the release at epsilon = {epsilon:g}.
Less than a blind guess ({blind:.1%}) is chance.
{few_rows}

Wrote to {folder}:
  patients.csv   the table
  released.csv   what may be shared at epsilon = {epsilon:g}
  report.html    what is protected, and how well

Try it yourself:
  skprivacy sanitize {table} mine.csv --sensitive sex --columns blood_pressure,bmi \
--bins {bins} --epsilon {epsilon:g}{confidence}"""  # one line: shells continue lines differently
_SURE = (
    "442 rows are few: the population may differ from them. The budget holds there too, with "
    "{sure} confidence. Without that, {alone:.1%} would be kept, but up to {risked} might leak."
)
_UNSURE = (
    "442 rows are few: the population may differ from them, and epsilon = {epsilon:g} holds for "
    "these rows only. Without --confidence none, it holds for the population too, and less is "
    "kept."
)


def demo(options: argparse.Namespace) -> None:
    """Fit, release and audit a built-in table, and write files with a report."""
    folder = _folder(options.folder)
    there = [name for name in _FILES if (folder / name).exists()]
    if there:
        raise FileExistsError(f"{str(folder / there[0])!r} already exists: name another folder.")
    patients = load_diabetes_patients()
    patients.insert(0, "patient", range(1, len(patients) + 1))
    chosen = PrivacyFunnelTransformer(
        _CHOSEN,
        sensitive="sex",
        columns=_RELEASED,
        n_bins=_BINS,
        utility="distortion",
        confidence=options.confidence,
    ).fit(patients)
    released = chosen.transform(patients)
    # With so few rows, attackers learn more from bins than from numbers.
    bins = {name: learn_column(patients[name], None, name, n_bins=_BINS)[1] for name in _RELEASED}
    attacks = audit(released, patients["sex"], raw=pd.DataFrame(bins), mechanism=chosen)
    right = attacks.groupby("attacked")["accuracy"].max()
    tables = [_csv(patients).encode(), _csv(released).encode()]
    files = [
        FileRecord(name, hashlib.sha256(table).hexdigest())
        for name, table in zip(_FILES, tables, strict=False)
    ]
    with part_of("making the report"):
        report = PrivacyReport.from_estimator(
            chosen,
            patients,
            purpose="To see how it works",
            input_file=files[0],
            output_file=files[1],
            n_rows_out=len(patients),
        )
        page = report.to_html().encode()
    for name, content in zip(_FILES, (*tables, page), strict=True):
        with written(folder / name) as file:
            file.write(content)
    facts = {"folder": str(folder), "files": list(_FILES)}
    table = _table(chosen)
    with part_of("computing what few rows cost"):
        after = _after(chosen, right, folder)
    mechanism = chosen.mechanism_
    before = _TEXT.format(
        bins=_BINS,
        n_x=len(mechanism.x_labels),
        sure=percent(mechanism.confidence or USUAL_CONFIDENCE),
        blind=chosen.p_sx_.sum(axis=1).max(),
    )
    say(options, {**facts, "table": table.to_dict("records")}, [before, *_lines(table), after])


def _after(chosen: PrivacyFunnelTransformer, right: pd.Series, folder: Path) -> str:
    """Return the text below the table; right : the accuracy of attackers, by what they see."""
    confidence = chosen.confidence
    summary = fitted_of(chosen).summary_with_limits(USUAL_CONFIDENCE)
    said = [summary.lead(), summary.kept_sentence()]
    option = "" if confidence == USUAL_CONFIDENCE else f" --confidence {confidence or 'none'}"
    return _AFTER.format(
        bins=_BINS,
        epsilon=_CHOSEN,
        people="\n".join([*_wrapped(said), *face_value_lines(chosen.fidelity_)]),
        raw=right["raw"],
        released=right["released"],
        blind=chosen.p_sx_.sum(axis=1).max(),
        few_rows="\n".join(_wrapped([_about_few_rows(chosen)])),
        folder=folder,
        table=folder / _FILES[0],
        confidence=option,
    )


def _wrapped(texts: list[str]) -> list[str]:
    return [line for text in texts for line in textwrap.wrap(text, _WIDTH)]


def _about_few_rows(chosen: PrivacyFunnelTransformer) -> str:
    """Return a text on what it costs that the budget holds for the population."""
    mechanism: Any = chosen.mechanism_
    if mechanism.confidence is None:
        return _UNSURE.format(epsilon=_CHOSEN)
    counts = _counts(chosen)
    alone = design_mechanism(counts, _CHOSEN, utility=mechanism.objective)
    design = {"utility": mechanism.objective, "confidence": mechanism.confidence}
    text = _SURE.format(
        sure=percent(mechanism.confidence),
        alone=alone.normalized_utility,
        risked=limit(_limit(alone.secrets[None], counts, mechanism.confidence)),
    )
    cost = cost_of_rows(mechanism, counts, design)
    if cost is None or cost.enough is None:
        return text
    return f"{text} From about {cost.enough:,} rows like these, {cost.aim:.0%} would be kept."


def _folder(given: str | None) -> Path:  # type: ignore[return]  # count does not end
    """Return the given folder, or a new one."""
    if given is not None:
        folder = Path(given)
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    for number in count(1):
        folder = Path("skprivacy-demo" if number == 1 else f"skprivacy-demo-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder


def _csv(table: pd.DataFrame) -> str:
    """Return a table as `sanitize` writes it: 101, not 101.0."""
    return table.to_csv(index=False, lineterminator="\n", float_format="%g")


def _table(funnel: PrivacyFunnelTransformer) -> pd.DataFrame:
    """Return the figures of X unchanged, and of a release for each budget."""
    chosen, counts = funnel.mechanism_, _counts(funnel)
    design: dict[str, Any] = {"utility": chosen.objective, "confidence": chosen.confidence}
    path = privacy_utility_path(counts, _BUDGETS, **design)
    confidence = chosen.confidence or USUAL_CONFIDENCE
    unchanged = path[0].with_channel(np.eye(len(path[0].x_labels)))
    releases: dict[str, Mechanism | Evaluation] = {"as it is": unchanged}
    releases |= {f"epsilon = {mechanism.epsilon:g}": mechanism for mechanism in path}
    return pd.DataFrame(
        [
            {
                "release": name,
                "leaks": release.max_leakage,
                "population": _limit(release.secrets[None], counts, confidence),
                "kept": release.normalized_utility,
                "attacker": release.attacker_accuracy,
            }
            for name, release in releases.items()
        ]
    )


def _counts(funnel: PrivacyFunnelTransformer) -> FloatArray:
    """Return the number of rows with each pair of S and X."""
    return np.round(funnel.n_samples_seen_ * funnel.p_sx_)


def _limit(release: Leakage, counts: FloatArray, confidence: float) -> float:
    return population_limits(release, counts, confidence).max_leakage


def _lines(table: pd.DataFrame) -> list[str]:
    rows: list[tuple[Any, ...]] = [("release", "leaks here", "at most", "kept", "attacker")]
    for row in table.to_dict("records"):
        leaks = f"{row['leaks']:.4f}", rounded_up(row["population"], 4)
        rows.append((row["release"], *leaks, f"{row['kept']:.1%}", f"{row['attacker']:.1%}"))
    return aligned(rows)
