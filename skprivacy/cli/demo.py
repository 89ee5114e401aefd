"""``skprivacy demo``: a release of real data, from the table to the report."""

import argparse
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._messages import aligned
from ..datasets import load_diabetes_bands
from ..describing import exposure
from ..files.locations import written
from ..metrics import audit
from ..report import PrivacyReport
from ..transformer import PrivacyFunnelTransformer
from .people import face_value_lines
from .words import say

_BUDGETS = (0.05, 0.02, 0.005, 0.0)
_CHOSEN = 0.02
_FILES = ("patients.csv", "released.csv", "report.html")
_RELEASED = ["blood_pressure", "bmi"]
_TEXT = """\
How much of blood pressure and BMI can be released without giving away sex?
442 patients; S = sex (2 values), X = blood pressure and BMI taken jointly ({n_x} values).
"leaks" is the most that a released value reveals about S, in nats.
"kept" is the share of {kept_of}.
"attacker" is how often the best attacker, who knows how the release was made, guesses S; a blind
guess of S is right {blind:.1%} of the time.
"""
_AFTER = """
At epsilon = {epsilon:g}:
{people}
A trained attacker, on rows it had not seen, is right {raw:.1%} of the time with the columns as
they are, {released:.1%} with the release at epsilon = {epsilon:g}.
The guarantee is about the distribution estimated from these rows.

Wrote to {folder}:
  patients.csv   the table
  released.csv   what may be shared at epsilon = {epsilon:g}
  report.html    what was protected, and by how much

Do it yourself:
  skprivacy sanitize {folder}/patients.csv mine.csv --sensitive sex \\
      --columns blood_pressure,bmi --epsilon {epsilon:g}"""


def demo(options: argparse.Namespace) -> None:
    """Fit, sanitize and audit a built-in table, and write it with its report."""
    folder = _folder(options.folder)
    there = [name for name in _FILES if (folder / name).exists()]
    if there:
        raise FileExistsError(f"{str(folder / there[0])!r} already exists: name another folder.")
    patients = load_diabetes_bands().astype(str)  # as in the file, which tells no order of bands
    funnels = {
        epsilon: PrivacyFunnelTransformer(
            epsilon, sensitive="sex", columns=_RELEASED, utility="distortion"
        )
        for epsilon in _BUDGETS
    }
    for funnel in funnels.values():
        funnel.fit(patients)
    chosen = funnels[_CHOSEN]
    released = chosen.transform(patients)
    attacks = audit(released, patients["sex"], raw=patients[_RELEASED], mechanism=chosen)
    right = attacks.groupby("attacked")["accuracy"].max()
    report = PrivacyReport.from_estimator(chosen, patients)
    contents = (
        patients.to_csv(index=False, lineterminator="\n"),
        released.to_csv(index=False, lineterminator="\n"),
        report.to_html(),
    )
    for name, text in zip(_FILES, contents, strict=True):
        with written(folder / name) as file:
            file.write(text.encode())
    table = _table(funnels)
    text = _TEXT.format(
        n_x=chosen.p_sx_.shape[1],
        kept_of=chosen.mechanism_.objective.in_words("X"),
        blind=chosen.p_sx_.sum(axis=1).max(),
    )
    ranges, fidelity = chosen.mechanism_.posterior_ranges(), chosen.fidelity_
    after = _AFTER.format(
        raw=right["raw"],
        released=right["released"],
        epsilon=_CHOSEN,
        folder=folder,
        people="\n".join([exposure(ranges), *face_value_lines(fidelity), ""]),
    )
    facts = {"folder": str(folder), "files": list(_FILES), "table": table.to_dict("records")}
    say(options, facts, [text, *_lines(table), after])


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


def _table(funnels: dict[float, PrivacyFunnelTransformer]) -> pd.DataFrame:
    """Return the figures of X as it is, and of each release."""
    mechanisms = {f"epsilon = {epsilon:g}": f.mechanism_ for epsilon, f in funnels.items()}
    first = next(iter(mechanisms.values()))
    unchanged = first.with_channel(np.eye(len(first.x_labels)))
    return pd.DataFrame(
        [
            {
                "release": name,
                "leaks": mechanism.max_leakage,
                "kept": mechanism.normalized_utility,
                "attacker": mechanism.attacker_accuracy,
            }
            for name, mechanism in {"as it is": unchanged, **mechanisms}.items()
        ]
    )


def _lines(table: pd.DataFrame) -> list[str]:
    rows: list[tuple[Any, ...]] = [("release", "leaks", "kept", "attacker")]
    for row in table.itertuples():
        rows.append((row.release, f"{row.leaks:.4f}", f"{row.kept:.1%}", f"{row.attacker:.1%}"))
    return aligned(rows)
