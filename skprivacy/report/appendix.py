"""Report: files and signatures, glossary, pictures, figures for specialists, settings."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn

from .._messages import listed
from .._typing import FilePath
from .._validation import check_integer, message
from ..cells import Cells
from ..describing import ReleaseSummary, SecretSummary
from ..describing.face_value import DOES_NOT_APPLY
from ..describing.numbers import limit
from ..describing.verdict import Scale
from ..engines.file_tables import sha256_of
from ..fitting.fitted_estimator import settings_of
from ..fitting.parameters import Settings
from ..measures import SCOPES, Measure, every_measure
from ..measures.measure import leakage_in, output_values
from ..plotting import LeakageDisplay, MechanismDisplay, PrivacyUtilityDisplay, path_around
from ..plotting.canvas import text_of_measure, text_of_solver
from ..plotting.trade_off import OWN
from ..solvers import Solver
from ..transformer import PrivacyFunnelTransformer
from ..utilities import UTILITY_ROUNDING, Utility
from .layout import BLANK, Figure, Section, Table, facts

_FINGERPRINTS = (
    "SHA-256 is the fingerprint of a file: 'sha256sum FILE' computes it again (on Windows "
    "'certutil -hashfile FILE SHA256', on macOS 'shasum -a 256 FILE'), and any change to the file "
    "changes it."
)
_NOT_FOR_THE_RECIPIENT = (
    "This report is for those who sign, not for the recipient of the data: {reasons}. The "
    "recipient needs the section on what may and may not be concluded."
)
_FINGERPRINT_REVEALS = (
    "whoever knows or can guess all of the input except one value can find that value from the "
    "fingerprint of the input, which no budget prevents"
)


# What only those who prepared the release know.
_ASKED = (
    "one row per person?",
    "released before?",
    "who agreed to the budget",
    "who keeps the input and the key",
)


@dataclass(frozen=True)
class FileRecord:
    """The name of a file, without its folder, and its fingerprint, if known and to be shown."""

    name: str
    sha256: str | None = None

    @classmethod
    def of(cls, given: FilePath | FileRecord | None) -> FileRecord | None:
        """Return the record of a file, which is read completely."""
        if given is None or isinstance(given, FileRecord):
            return given
        with open(given, "rb") as file:
            return cls(Path(given).name, sha256_of(file))


@dataclass(frozen=True)
class Handover:
    """The files of a release, its purpose and its recipient; None for what is not known."""

    input_file: FileRecord | None = None
    output_file: FileRecord | None = None
    n_rows_out: int | None = None
    purpose: str | None = None
    recipient: str | None = None

    def check(self, owner: str) -> None:
        """Check types; owner : for messages."""
        for name in ("purpose", "recipient"):
            if not isinstance(value := getattr(self, name), str | None):
                raise TypeError(message(owner, name, "a str or None", value))
        if self.n_rows_out is not None:
            check_integer(owner, "n_rows_out", self.n_rows_out, low=0)

    def files(self, learned_from: str) -> Table:
        """Return the table of files; learned_from : the number of rows, in words."""
        n_rows = self.n_rows_out
        rows_out = "number of rows not known" if n_rows is None else f"{n_rows:,} rows"
        rows_out += ", in the order of the input unless shuffled"
        texts = {
            "input": f"{_name(self.input_file)}: {learned_from}",
            **_fingerprint("input", self.input_file),
            "output": f"{_name(self.output_file)}: {rows_out}",
            **_fingerprint("output", self.output_file),
        }
        return facts("Files", texts)

    def notes(self, protected: str) -> list[str]:
        """Return notes on fingerprints, and on who may read this report."""
        reasons = f"it names the groups of {protected}, with their shares"
        if self.input_file is not None and self.input_file.sha256 is not None:
            reasons = f"{reasons}, and {_FINGERPRINT_REVEALS}"
        has_hashes = any(file and file.sha256 for file in (self.input_file, self.output_file))
        for_whom = _NOT_FOR_THE_RECIPIENT.format(reasons=reasons)
        return [_FINGERPRINTS, for_whom] if has_hashes else [for_whom]

    @property
    def _purposes(self) -> dict[str, str]:
        """Purpose and recipient, in one line each; empty if unknown."""
        given = {"purpose": self.purpose, "recipient": self.recipient}
        return {name: " ".join((text or "").split()) for name, text in given.items()}

    def in_short(self) -> list[str]:
        """Return a line with the purpose and the recipient, if known."""
        known = [f"{name.capitalize()}: {text}" for name, text in self._purposes.items() if text]
        return [f"{'. '.join(known)}."] if known else []

    def to_do(self) -> list[str]:
        """Return what to fill in and sign."""
        empty = [f"the {name}" for name, text in self._purposes.items() if not text]
        fill_in = [f"Fill in {' and '.join(empty)} under 'Signatures'."] if empty else []
        return [*fill_in, "Sign under 'Signatures'."]

    def signatures(self, may_sign: bool) -> Section:
        """Return the section to sign, with blanks to fill in by hand."""
        if not may_sign:
            return Section("Signatures", ["Nobody should sign for this release: see 'In short'."])
        texts = {
            "output": _name(self.output_file),
            **_fingerprint("output", self.output_file),
            **{name: text or BLANK for name, text in self._purposes.items()},
            **dict.fromkeys(_ASKED, BLANK),
        }
        lines = pd.DataFrame(
            BLANK,
            index=pd.Index(["prepared by", "checked by", "approved by"], name=""),
            columns=["name", "date", "signature"],
        )
        return Section(
            "Signatures",
            ["For the files above, this purpose and this recipient. Fill in the blanks by hand."],
            [facts("Release, purpose and recipient", texts), Table("Names and signatures", lines)],
        )


def _name(file: FileRecord | None) -> str:
    return "not named" if file is None else file.name


def _fingerprint(name: str, file: FileRecord | None) -> dict[str, str]:
    if file is None:
        return {}
    return {f"SHA-256 of the {name}": file.sha256 or "left out"}


WORDS = {
    "attacker": "Anybody who tries to learn from the release what is protected. Attackers are "
    "assumed to know how the release was made.",
    "blind guess": "The best guess without seeing the release: always the most frequent group.",
    "budget": "Also epsilon: the most that the release may leak. Zero allows nothing; 'What "
    "leaks' shows what it allows in percent.",
    "channel": "The table of probabilities with which each symbol is released as each value.",
    "confidence": "How often such a limit is right: at 95%, for 95 of 100 tables like this one.",
    "group": "All people with the same value in the protected column.",
    "leakage": "How much a released value changes what is known about the group of a person, on "
    "the scale of the budget.",
    "nat": "The unit of information, and of leakage by the measure kl. To know yes or no, "
    "if both are equally likely, is 0.69 nats.",
    "points": "Percentage points, the difference of two percentages: 53% is 3 points more than "
    "50%.",
    "population": "All people the rows could have been about. The rows themselves are a sample.",
    "symbol": "What the channel treats as one value: a value, a range of numbers, a pool of rare "
    "values, or a cell of similar rows.",
}


def words_on(scale: Scale) -> dict[str, str]:
    """Return the words of a report, with the scale of its verdict."""
    whose = "" if scale.is_default else f" (the scale of {scale.name}, SHA-256 {scale.sha256})"
    return dict(sorted({**WORDS, "protection": f"{scale.in_words()}{whose}"}.items()))


def for_specialists(summary: ReleaseSummary, mechanism: Any) -> Section:
    """Return figures for readers who know the theory."""
    about_s, by_cells = mechanism.together, mechanism.cell_utility
    is_cells = 0 < by_cells < 1 - UTILITY_ROUNDING
    figures = {
        "measure of leakage": f"{text_of_measure(summary.measure)}, "
        f"{summary.scope.replace('_', ' ')}",
        "solver": text_of_solver(mechanism.solver),
        "utility": f"{mechanism.utility:.5f} ({mechanism.objective.name.replace('_', ' ')})",
        "kept": f"{summary.kept:.2%}",
        **({"utility of the cells": f"{by_cells:.2%}"} if is_cells else {}),
        "certified gap": limit(mechanism.gap, 2),
        "I(X;Y)": f"{mechanism.mutual_information:.5f} nats",
        **({} if about_s is None else {"I(S;Y)": f"{about_s.sensitive_information:.5f} nats"}),
    }
    gap = "No mechanism within the budget has a utility larger than this plus the certified gap."
    if not mechanism.is_certified:
        gap += " The gap is not zero: this mechanism is not proven optimal."
    if summary.confidence is not None:
        gap = (
            "The certified gap is for these rows alone: no mechanism within the budget there has "
            "a utility larger than this plus the gap. Part of the gap is the price of a budget "
            "that holds for the population; more rows make it smaller."
        )
    return Section(
        "For specialists",
        [f"S is protected, X is the input of the mechanism, and Y its output. {gap}"],
        [
            facts("What was kept, and how", figures),
            *(_every_measure(secret) for secret in summary.secrets.values()),
        ],
    )


def _every_measure(secret: SecretSummary) -> Table:
    given_y, p_y = secret.secret.sensitive_posterior, secret.release.mechanism.p_y
    prior, rows = secret.ranges["prior"].to_numpy(), {}
    for measure in every_measure(secret.release.measure).values():
        values = output_values(measure, given_y, prior)
        found = [leakage_in(scope, measure, values, p_y) for scope in SCOPES]
        texts = [DOES_NOT_APPLY if np.isnan(each) else f"{each:.4f}" for each in found]
        rows[text_of_measure(measure)] = texts
    columns = ["worst released value", "average over all"]
    cells = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    about = f"Leakage about {secret.name} by every measure, each on its epsilon scale"
    return Table(about, cells.rename_axis("measure"))


# Maximum number of symbols and of released values in a picture that is printed.
_MOST_DRAWN = 8


def pictures(
    summary: ReleaseSummary, mechanism: Any, settings: Settings, with_curve: bool
) -> Section:
    """Return pictures of the mechanism; with_curve : also what other budgets would keep."""
    names = (
        f"S is {listed(summary.protected)}; X is {summary.x_name()} before the release, and Y "
        f"after it. P is a share of all rows, P(S | y) of the rows with one released value."
    )
    figures = [_curve(summary, mechanism, settings)] if with_curve else []
    if not summary.fidelity.of_cells:  # the names of cells say nothing
        figures.append(_channel(mechanism))
    figures += map(_leakage_of, summary.secrets.values())
    return Section("Pictures", [names], figures=figures)


def _curve(summary: ReleaseSummary, mechanism: Any, settings: Settings) -> Figure:
    options: dict[str, Any] = {name: getattr(settings, name) for name in OWN}
    path = path_around(mechanism, settings.solver, is_own=True, **options)
    budgets = ", ".join(f"{limit(s.epsilon, 6)} about {s.name}" for s in summary.secrets.values())
    return Figure(
        "What is kept at each budget",
        f"What is kept at each budget: {summary.kept:.1%} at epsilon = {budgets}. A larger budget "
        f"keeps more, and allows more to leak.",
        lambda is_dark: PrivacyUtilityDisplay.from_path(path, chosen=mechanism.epsilon).figure_,
    )


def _channel(mechanism: Any) -> Figure:
    n_x, n_y = mechanism.channel.shape
    return Figure(
        "The channel",
        f"The channel: for each of {_drawn(n_x)} symbols of X (rows), the probability of each of "
        f"{_drawn(n_y)} released values (columns). The most frequent value makes up "
        f"{np.max(mechanism.p_y):.0%} of the release.",
        lambda is_dark: (
            MechanismDisplay(mechanism)
            .plot(cmap="Blues_r" if is_dark else "Blues", most=_MOST_DRAWN)
            .figure_
        ),
    )


def _drawn(n: int, which: str = "commonest") -> str:
    return f"the {_MOST_DRAWN} {which} of {n}" if n > _MOST_DRAWN else str(n)


def _leakage_of(secret: SecretSummary) -> Figure:
    limits: Any = secret.limits
    drawn = _drawn(secret.release.mechanism.channel.shape[1], "most leaking")
    return Figure(
        f"Leakage of each released value about {secret.name}",
        f"Left: the leakage of each of {drawn} released values about {secret.name}, at most "
        f"{limit(secret.secret.max_leakage)} in the rows (bars). For the population, each mark is "
        f"a limit for one value, and the dashed line at {limit(limits.max_leakage)} is a limit "
        f"for all of them at once. Right: the distribution of {secret.name} given each value, and "
        f"in all rows.",
        lambda is_dark: (
            LeakageDisplay(secret.secret, limits=limits).plot(most=_MOST_DRAWN).figure_
        ),
    )


def recipe(epsilon: Any, settings: Settings) -> Section:
    """Return settings and versions; epsilon : the budgets of the mechanism."""
    usual = settings_of(PrivacyFunnelTransformer()).parameters()
    chosen = settings.parameters()
    chosen = {name: value for name, value in chosen.items() if repr(value) != repr(usual[name])}
    parameters = {name: repr(value) for name, value in chosen.items()}
    for name, value in chosen.items():
        if isinstance(value, Measure | Solver | Utility | Cells):  # by its name, not by its class
            parameters[name] = repr(value).replace(type(value).__name__, value.name)
    parameters["epsilon"] = repr(epsilon)
    if settings.has_target:
        parameters["utility"] = "information about the target"
    if settings.random_state is not None:
        parameters["random_state"] = "set; not shown, because it can undo the noise"
    versions = {
        "skprivacy": metadata.version("skprivacy"),
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "Python": platform.python_version(),
        "made on": datetime.now(UTC).date().isoformat(),
    }
    return Section(
        "How to repeat it",
        [
            "The same rows, with the same weights, and these settings give the same channel. All "
            "other settings have the default of this version."
        ],
        [facts("Settings", parameters), facts("Versions", versions)],
    )
