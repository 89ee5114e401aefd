"""``skprivacy demo``: a release of real data, from the table to the report."""

import argparse
import textwrap
import warnings
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._messages import aligned
from ..datasets import load_diabetes_patients
from ..describing import exposure
from ..design import privacy_utility_path
from ..encoding import learn_column
from ..exceptions import FidelityWarning
from ..files.locations import written
from ..metrics import audit
from ..report import PrivacyReport
from ..transformer import PrivacyFunnelTransformer
from .people import face_value_lines
from .words import say

_BUDGETS = (0.05, 0.02, 0.005, 0.0)
_CHOSEN = 0.02
_BINS = 4
_FILES = ("patients.csv", "released.csv", "report.html")
_RELEASED = ["blood_pressure", "bmi"]
_WIDTH = 99
_TEXT = """\
How much of blood pressure and BMI can be released without giving away sex?
442 patients; S = sex (2 values), X = blood pressure and BMI, cut into {bins} bins each and taken
jointly ({n_x} values). A bin is released as its median.
"leaks" is the most that a released value reveals about S, in nats.
"kept" is the share of {kept_of}.
"attacker" is how often the best attacker, who knows how the release was made, guesses S; a blind
guess of S is right {blind:.1%} of the time.
"""
_AFTER = """
At epsilon = {epsilon:g}:
{people}

A trained attacker, on rows it had not seen, is right {raw:.1%} of the time with the bins as they
are, {released:.1%} with the release at epsilon = {epsilon:g}.
The guarantee is about the distribution estimated from these rows.

Wrote to {folder}:
  patients.csv   the table
  released.csv   what may be shared at epsilon = {epsilon:g}
  report.html    what was protected, and by how much

Do it yourself:
  skprivacy sanitize {folder}/patients.csv mine.csv --sensitive sex \\
      --columns blood_pressure,bmi --bins {bins} --epsilon {epsilon:g}"""


def demo(options: argparse.Namespace) -> None:
    """Fit, sanitize and audit a built-in table, and write it with its report."""
    folder = _folder(options.folder)
    there = [name for name in _FILES if (folder / name).exists()]
    if there:
        raise FileExistsError(f"{str(folder / there[0])!r} already exists: name another folder.")
    patients = load_diabetes_patients()
    chosen = _fitted(patients)
    released = chosen.transform(patients)
    attacks = audit(released, patients["sex"], raw=_bins(patients), mechanism=chosen)
    right = attacks.groupby("attacked")["accuracy"].max()
    report = PrivacyReport.from_estimator(chosen, patients)
    for name, text in zip(_FILES, (_csv(patients), _csv(released), report.to_html()), strict=True):
        with written(folder / name) as file:
            file.write(text.encode())
    mechanism = chosen.mechanism_
    table = _table(chosen)
    before = _TEXT.format(
        bins=_BINS,
        n_x=len(mechanism.x_labels),
        kept_of=mechanism.objective.in_words("X"),
        blind=chosen.p_sx_.sum(axis=1).max(),
    )
    after = _AFTER.format(
        bins=_BINS,
        epsilon=_CHOSEN,
        people="\n".join(_people(chosen)),
        raw=right["raw"],
        released=right["released"],
        folder=folder,
    )
    facts = {"folder": str(folder), "files": list(_FILES), "table": table.to_dict("records")}
    say(options, facts, [before, *_lines(table), after])


def _folder(given: str | None) -> Path:  # type: ignore[return]  # count does not end
    """Return a folder to write to: the one that is given, or a new one."""
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


def _fitted(patients: pd.DataFrame) -> PrivacyFunnelTransformer:
    """Return a transformer with the chosen budget."""
    funnel = PrivacyFunnelTransformer(
        _CHOSEN, sensitive="sex", columns=_RELEASED, n_bins=_BINS, utility="distortion"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FidelityWarning)  # our text lists the swaps
        return funnel.fit(patients)


def _bins(patients: pd.DataFrame) -> pd.DataFrame:
    """Return the bin of each number: from so few rows, attackers learn more than from numbers."""
    return pd.DataFrame(
        {name: learn_column(patients[name], None, name, n_bins=_BINS)[1] for name in _RELEASED}
    )


def _csv(table: pd.DataFrame) -> str:
    """Return a table as `sanitize` would write it: 101, not 101.0."""
    return table.to_csv(index=False, lineterminator="\n", float_format="%g")


def _people(funnel: PrivacyFunnelTransformer) -> list[str]:
    """Return what the release means to patients, and to readers."""
    exposed = exposure(funnel.mechanism_.posterior_ranges())
    return [*textwrap.wrap(exposed, _WIDTH), *face_value_lines(funnel.fidelity_)]


def _table(funnel: PrivacyFunnelTransformer) -> pd.DataFrame:
    """Return the figures of X as it is, and of a release for each budget."""
    path = privacy_utility_path(funnel.p_sx_, _BUDGETS, utility=funnel.mechanism_.objective)
    releases = {"as it is": path[0].with_channel(np.eye(len(path[0].x_labels)))}
    releases |= {f"epsilon = {mechanism.epsilon:g}": mechanism for mechanism in path}
    return pd.DataFrame(
        [
            {
                "release": name,
                "leaks": release.max_leakage,
                "kept": release.normalized_utility,
                "attacker": release.attacker_accuracy,
            }
            for name, release in releases.items()
        ]
    )


def _lines(table: pd.DataFrame) -> list[str]:
    rows: list[tuple[Any, ...]] = [("release", "leaks", "kept", "attacker")]
    for row in table.itertuples():
        rows.append((row.release, f"{row.leaks:.4f}", f"{row.kept:.1%}", f"{row.attacker:.1%}"))
    return aligned(rows)
