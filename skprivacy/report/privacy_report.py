"""PrivacyReport: all sections of a report, in order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

from .._typing import ColumnsLike, FilePath, TableLike
from .._validation import check_real, message
from ..describing import ReleaseSummary
from ..describing.verdict import CAUTION, PASS, Scale
from ..fitted import Fitted
from ..fitting.fitted_estimator import fitted_of, settings_of
from ..fitting.parameters import Settings
from ..metrics.attack import Attacker, Splits
from ..transformer import PrivacyFunnelTransformer
from .appendix import FileRecord, Handover, for_specialists, pictures, recipe, words_on
from .attackers import (
    Attacked,
    attack_section,
    groups_of,
    no_attack,
    reidentification_section,
    small_numbers,
)
from .columns import before_and_after, cells_section, columns_of, target_beside
from .layout import Points, Section, as_fragment, as_page, as_text, facts
from .leaks import against_budgets, conclusions, in_short, to_do, what_leaks

_SEEDED = (
    "The noise was drawn with a fixed random_state: whoever knows it can undo the noise. Release "
    "with random_state=None."
)


def sections_of(
    fitted: Fitted,
    settings: Settings,
    summary: ReleaseSummary,
    attacked: Attacked | None,
    handover: Handover,
    notes: list[str],
    with_curve: bool,
) -> tuple[str, list[Section]]:
    """Return the title and the sections of a report.

    summary : of the release, with limits for the population; notes : of the caller, on the
    guarantee; with_curve : whether to show what other budgets would keep.
    """
    assert fitted.training is not None  # checked by from_estimator
    columns, secrets = columns_of(fitted, summary), list(summary.secrets.values())
    protected, mechanism = columns.protected, fitted.mechanism
    may_sign = summary.status in (PASS, CAUTION)
    are_values = settings.output == "label"
    attacks = [no_attack(protected)]
    if attacked is not None:
        attacks = [*reidentification_section(fitted, settings, attacked, protected)]
        attacks += [attack_section(fitted, settings, attacked, secret) for secret in secrets]
    first = Section(
        "In short",
        [
            *filter(None, [summary.by_default()]),
            *columns.leaking(),
            *([] if settings.random_state is None else [_SEEDED]),
            *in_short(summary),
            *target_beside(fitted, protected),
            *handover.in_short(),
        ],
        [against_budgets(summary)],
        points=[
            Points(
                "To do before you sign",
                [*columns.to_do(), *to_do(summary), *(handover.to_do() if may_sign else [])],
            )
        ],
        lead=summary.lead(),
        status=summary.status,
    )
    rows = f"{fitted.training.n_rows:,} rows"
    if fitted.training.effective_rows != fitted.training.n_rows:
        rows += f", worth {fitted.training.effective_rows:,} equally weighted ones"
    if settings.smoothing:
        rows += f", smoothed by {settings.smoothing:g} rows in every cell"
    treatments = columns.table(fitted.training.alphabet.n_symbols)
    files = Section(
        "Files and columns", handover.notes(protected), [handover.files(rows), treatments]
    )
    sections = [
        first,
        *(what_leaks(secret, fitted.cells) for secret in secrets),
        *([before_and_after(fitted, summary.fidelity, attacked)] if are_values else []),
        *attacks,
        conclusions(summary, columns, are_values, notes),
        files,
        handover.signatures(may_sign),
        small_numbers(fitted, protected, summary.fidelity.pooled),
        *cells_section(fitted),
        pictures(summary, mechanism, settings, with_curve),
        Section("Words", tables=[facts("Words of this report", words_on(summary.scale))]),
        for_specialists(summary, mechanism),
        recipe(mechanism.epsilon, settings),
    ]
    return f"Privacy report: {summary.x_name()} released, {protected} protected", sections


class PrivacyReport:
    """A report on the release of a fitted transformer, for whoever signs it off.

    Made by `from_estimator`. It prints as text, shows as HTML in a notebook, and `save` writes a
    single HTML file that needs no network. It holds aggregate figures on S, and no rows.

    It is not for the recipient of the data: it names the groups of S, and whoever knows all of the
    input except one value can find that value from its SHA-256, which no budget prevents.

    Examples
    --------
    >>> import pandas as pd
    >>> from skprivacy import PrivacyFunnelTransformer, PrivacyReport
    >>> frame = pd.DataFrame({"sex": list("mfmf") * 50, "band": list("uuvw") * 50})
    >>> funnel = PrivacyFunnelTransformer(0.02, sensitive="sex").fit(frame)
    >>> print(PrivacyReport.from_estimator(funnel))
    Privacy report: band released, sex protected
    ...
    """

    def __init__(self, title: str, sections: list[Section]) -> None:
        self.title = title
        self.sections = sections

    @classmethod
    def from_estimator(
        cls,
        transformer: PrivacyFunnelTransformer,
        df: TableLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        confidence: float = 0.95,
        attacker: Attacker | None = None,
        cv: Splits = 5,
        purpose: str | None = None,
        recipient: str | None = None,
        input_file: FilePath | FileRecord | None = None,
        output_file: FilePath | FileRecord | None = None,
        n_rows_out: int | None = None,
        notes: Sequence[str] = (),
        with_curve: bool = True,
        scale: FilePath | Scale | None = None,
    ) -> Self:
        """Return the report of a fitted transformer.

        Parameters
        ----------
        transformer : PrivacyFunnelTransformer
            Fitted.
        df : frame, default=None
            Rows with their S, to be released again and attacked. None: no attack.
        sensitive_features : array-like, default=None
            S of `df`, if `fit` got S this way and `df` has no column of that name.
        confidence : float, default=0.95
            The confidence of the limits for the population and of the intervals of the audit. A
            transformer with a confidence has its own limits, which are shown instead.
        attacker, cv
            As in `audit`.
        purpose, recipient : str, default=None
            What the release is for, and who gets it. None: a line to fill in by hand.
        input_file, output_file : str or Path, default=None
            The files with the rows of `fit` and of the release. They are read, and the report
            shows their names, without folders, and their SHA-256. Whoever knows or can guess all
            of the input except one value can find that value from its SHA-256: leave out
            `input_file` for reports you share outside your organisation.
        n_rows_out : int, default=None
            Number of released rows.
        notes : list of str, default=()
            Your own sentences on the guarantee.
        with_curve : bool, default=True
            Whether to show what other budgets would keep, which takes several designs.
        scale : str or Path, default=None
            A JSON file with your organisation's own scale of verdicts: a `name` and, for each of
            `strong`, `moderate` and `weak`, the largest move of a probability in `points`, and how
            many `times` as large it may become. The report prints it with its SHA-256, and the
            verdict on the default scale beside it.

        Examples
        --------
        >>> import pandas as pd
        >>> from skprivacy import PrivacyFunnelTransformer, PrivacyReport
        >>> frame = pd.DataFrame({"sex": list("mfmf") * 50, "band": list("uuvw") * 50})
        >>> funnel = PrivacyFunnelTransformer(0.02, sensitive="sex").fit(frame)
        >>> report = PrivacyReport.from_estimator(funnel, frame)
        >>> [section.title for section in report.sections[:3]]
        ['In short', 'What leaks', 'Before and after']
        >>> report = PrivacyReport.from_estimator(funnel, purpose="a study", n_rows_out=200)
        >>> report.sections[0].status
        'CAUTION'
        """
        if not isinstance(transformer, PrivacyFunnelTransformer):
            requirement = "a fitted PrivacyFunnelTransformer"
            raise TypeError(message("PrivacyReport", "transformer", requirement, transformer))
        fitted = fitted_of(transformer)
        if fitted.training is None:
            raise ValueError(
                "This transformer was loaded without its joint distribution: its leakage is not "
                "known here. Make the report where it was fitted."
            )
        name = cls.__name__
        files = FileRecord.of(input_file), FileRecord.of(output_file)
        handover = Handover(*files, n_rows_out, purpose, recipient)
        handover.check(name)
        check_real(name, "confidence", confidence, low=0, high=1, low_open=True, high_open=True)
        summary = fitted.summary_with_limits(confidence)
        if scale is not None:
            own = scale if isinstance(scale, Scale) else Scale.from_file(scale)
            summary = summary.on_scale(own)
        attacked, settings = None, settings_of(transformer)
        if df is not None:
            groups = groups_of(fitted, settings, df, sensitive_features)
            released = transformer.transform(df)
            attacked = Attacked(df, groups, released, attacker, cv, confidence)
        return cls(
            *sections_of(fitted, settings, summary, attacked, handover, list(notes), with_curve)
        )

    def __str__(self) -> str:
        return as_text(self.title, self.sections)

    def __repr__(self) -> str:
        return f"<PrivacyReport: {self.title}>"

    def _repr_html_(self) -> str:
        return self._fragment

    @cached_property
    def _fragment(self) -> str:
        return as_fragment(self.title, self.sections)

    def to_html(self) -> str:
        """Return the report as the text of one HTML page."""
        return as_page(self.title, self._fragment)

    def save(self, path: str | Path) -> None:
        """Write the report as one HTML file.

        Parameters
        ----------
        path : str or Path
            The file, which is overwritten.

        Examples
        --------
        >>> import pathlib
        >>> import tempfile
        >>> import pandas as pd
        >>> from skprivacy import PrivacyFunnelTransformer, PrivacyReport
        >>> frame = pd.DataFrame({"sex": list("mfmf") * 50, "band": list("uuvw") * 50})
        >>> funnel = PrivacyFunnelTransformer(0.02, sensitive="sex").fit(frame)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "report.html")
        ...     PrivacyReport.from_estimator(funnel).save(file)
        ...     file.read_text(encoding="utf-8")[:15]
        '<!DOCTYPE html>'
        """
        Path(path).write_bytes(self.to_html().encode())  # the same on every system
