"""What a report says: the facts of what was fitted, in words and tables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from .._messages import in_points
from .._typing import ColumnsLike, Scope, TableLike
from ..describing import percent, shown
from ..fitted import Fitted, Training
from ..fitting.inputs import sensitive_columns
from ..fitting.parameters import Settings
from ..measures import every_measure
from ..mechanism import (
    Mechanism,
    PopulationLeakage,
    SeveralSecretsMechanism,
    name_of_secret,
    one_of,
)
from ..metrics import audit
from ..metrics.attack import Attacker, Splits
from ..metrics.attack_notes import attack_notes
from ..plotting import LeakageDisplay, MechanismDisplay, PrivacyUtilityDisplay, path_around
from ..plotting.canvas import MOST_TICKS, text_of_measure, text_of_solver
from ..releasing.output_names import names_out
from ..tables.frames import as_table
from ..utilities import UTILITY_ROUNDING
from .cells import cells_section, target_beside
from .columns import Columns, columns_of, is_unchanged, is_without_noise, listed
from .conclusions import conclusions
from .face_value import face_value
from .glossary import glossary
from .groups import exposed_groups, most_exposed_group
from .handover import Handover
from .populations import FAIL, PASS, caveat, promise, rows_and_population, to_do, verdict
from .recipe import recipe
from .sections import Figure, Section, Table, facts
from .several import Limits, several_in_short
from .small_numbers import small_numbers

_SEEDED = (
    "The noise was drawn with a fixed random_state: whoever knows it can undo the noise. Release "
    "with random_state=None."
)

# More columns than these are counted rather than listed.
_FEW_COLUMNS = 4

AnyMechanism: TypeAlias = Mechanism | SeveralSecretsMechanism


@dataclass(frozen=True, eq=False)
class Attacked:
    """Rows with their S, and their release, for classifiers to attack as in `audit`."""

    df: TableLike
    sensitive_features: ColumnsLike | None
    released: TableLike
    attacker: Attacker | None
    cv: Splits
    confidence: float


def sections_of(
    fitted: Fitted,
    settings: Settings,
    limits: Limits,
    attacked: Attacked | None,
    handover: Handover,
    notes: list[str],
    with_curve: bool = True,
) -> tuple[str, list[Section]]:
    """Return the title and the sections of a report on what was fitted by these settings.

    limits : for the population, of each secret; the only one is called None; notes : those of the
    caller on the guarantee; with_curve : whether to show what other budgets would keep. What is
    for specialists comes after the signatures.
    """
    columns, mechanism = columns_of(fitted), fitted.mechanism
    protected, fidelity = listed(columns.protected), fitted.fidelity
    are_values = settings.output == "label"  # or what comes out is not what went in
    sections = [
        *_about_secrets(fitted, settings, limits, columns, handover),
        small_numbers(fitted, protected, fidelity.pooled),
        *cells_section(fitted),
    ]
    if are_values:
        sections.append(face_value(fidelity, mechanism, _as_one(columns.released)))
    if attacked is not None:
        sections += [_attack(fitted, settings, attacked, name) for name in limits]
    sections += [
        conclusions(mechanism, columns, fidelity if are_values else None, notes),
        handover.signatures(),
        glossary(),
        _pictures(mechanism, settings, limits, columns, with_curve),
        _for_specialists(mechanism),
        recipe(mechanism, settings),
    ]
    title = f"Privacy report: {_in_short(columns.released)} released, {protected} protected"
    return title, sections


def _about_secrets(
    fitted: Fitted, settings: Settings, limits: Limits, columns: Columns, handover: Handover
) -> list[Section]:
    """Return what is revealed about each secret, in short and at length, and by which files."""
    assert fitted.training is not None  # or there would be no report
    mechanism, protected = fitted.mechanism, listed(columns.protected)
    learned_from = f"{_rows(fitted.training)}{_smoothed(settings.smoothing)}"
    beside = target_beside(fitted, protected)
    headline = _headline(mechanism, columns, protected)
    n_groups = fitted.training.alphabet.n_symbols
    tables = [handover.files(learned_from), columns.table(n_groups, mechanism.channel.shape)]
    files = Section("Files and columns", handover.notes(protected), tables)
    if isinstance(mechanism, Mechanism):
        first = _summary(mechanism, limits[None], protected, headline, learned_from)
        at_length = [_guarantee(mechanism, limits[None], protected, beside)]
    else:
        first = several_in_short(mechanism, limits, [headline, *beside], learned_from)
        at_length = list(_about_each(mechanism, limits))
    is_seeded = settings.random_state is not None
    return [_with_warnings(first, columns, is_seeded), files, *at_length]


def _with_warnings(first: Section, columns: Columns, is_seeded: bool) -> Section:
    """Return the first section with what undoes the budget from outside."""
    lead, paragraphs = first.lead, first.paragraphs
    warnings = [*columns.leaking(), *([_SEEDED] if is_seeded else [])]
    if columns.failing:
        lead = f"{lead} {FAIL} for columns that are copied: {', '.join(columns.failing)}."
        paragraphs = [text for text in paragraphs if text != to_do(PASS)]
    return replace(first, lead=lead, paragraphs=[*warnings, *paragraphs])


def _about_each(mechanism: SeveralSecretsMechanism, limits: Limits) -> Iterator[Section]:
    for key, secret in mechanism.secrets.items():
        name = name_of_secret(key)
        section = _guarantee(secret, limits[key], name, [])
        yield replace(section, title=f"{section.title} about {name}")


def _in_short(names: tuple[str, ...]) -> str:
    """Return names, or how many there are."""
    return listed(names) if len(names) <= _FEW_COLUMNS else f"{len(names)} columns"


def _as_one(names: tuple[str, ...]) -> str:
    """Return names as the subject of "tells", of one thing."""
    return listed(names) if len(names) <= _FEW_COLUMNS else "the table"


def _summary(
    mechanism: Mechanism,
    limits: PopulationLeakage,
    protected: str,
    headline: str,
    learned_from: str,
) -> Section:
    found = verdict(mechanism, limits, protected)
    return Section(
        "In short",
        [
            *promise(mechanism, found.population, learned_from),
            headline,
            *caveat(mechanism, limits),
            to_do(found.population),
        ],
        lead=found.line,
    )


def _rows(training: Training) -> str:
    """Say how many rows there were, and how many equally weighted ones would be as good."""
    text = f"{training.n_rows:,} rows"
    if training.effective_rows == training.n_rows:
        return text
    return f"{text}, as good as {training.effective_rows:,} equally weighted ones"


def _smoothed(smoothing: float) -> str:
    return f", smoothed by {smoothing:g} rows in every cell" if smoothing else ""


def _headline(mechanism: AnyMechanism, columns: Columns, protected: str) -> str:
    names, verb = _in_short(columns.released), "is" if len(columns.released) == 1 else "are"
    per_output = mechanism.scope == "per_output"
    scope = "whichever value is seen" if per_output else "on average over the released values"
    limit = f"at most {_budgets(mechanism, protected)}, {scope}"
    if mechanism.confidence is None:
        limit += ", judging by the rows seen"
    that = f"that{columns.together} reveals {limit}"
    if is_unchanged(mechanism):
        return f"{names} {verb} released unchanged, without noise: {that}."
    without_noise = is_without_noise(mechanism)
    kind = "coarser release, without noise," if without_noise else "randomised release"
    kept = mechanism.objective.in_words(_as_one(columns.released))
    return (
        f"{names} {verb} replaced by a {kind} {that}. It keeps "
        f"{mechanism.normalized_utility:.1%} of {kept}."
    )


def _budgets(mechanism: AnyMechanism, protected: str = "") -> str:
    if isinstance(mechanism, Mechanism):
        about = f" about {protected}" if protected else ""
        return f"epsilon = {mechanism.epsilon:g}{about}"
    budgets = (f"{x:g} about {name_of_secret(name)}" for name, x in mechanism.epsilon.items())
    return f"epsilon = {', '.join(budgets)}"


def _guarantee(
    mechanism: Mechanism, limits: PopulationLeakage, protected: str, beside: list[str]
) -> Section:
    reached = pd.DataFrame(
        {
            "budget": [_budget(mechanism, "per_output"), _budget(mechanism, "average")],
            "in the rows": _four(mechanism.max_leakage, mechanism.average_leakage),
            f"population, {percent(limits.confidence)} limit": _four(
                limits.max_leakage, limits.average_leakage
            ),
        },
        index=pd.Index(["worst released value", "average over all"], name="leakage"),
    )
    return Section(
        "What leaks",
        [
            most_exposed_group(mechanism),
            f"The best attacker knows the channel, and how {protected} goes with the true values "
            f"in these rows. From one released value, such an attacker is right about {protected} "
            f"more often than a blind guess, by {in_points(mechanism.attacker_advantage, '.2f')}; "
            f"the budget alone allows at most {in_points(mechanism.advantage_bound, '.2f')}.",
            rows_and_population(mechanism, limits),
            *_worst_value(mechanism),
            *beside,
        ],
        [Table("Leakage against the budget", reached), exposed_groups(mechanism, protected)],
    )


def _worst_value(mechanism: Mechanism) -> list[str]:
    """Name the released value that reveals most in the rows: it is in the release anyway."""
    worst = int(np.argmax(mechanism.leakage))
    if not np.isfinite(mechanism.leakage[worst]) or len(mechanism.y_labels) < 2:
        return []
    return [
        f"The released value that reveals most in the rows is {shown(mechanism.y_labels[worst])}, "
        f"which makes up {mechanism.p_y[worst]:.1%} of the release."
    ]


def _budget(mechanism: Mechanism, scope: Scope) -> str:
    return f"{mechanism.epsilon:g}" if mechanism.scope == scope else "none"


def _four(*figures: float) -> list[str]:
    return ["none" if np.isnan(figure) else f"{figure:.4f}" for figure in figures]


def _for_specialists(mechanism: AnyMechanism) -> Section:
    """Return figures that only those need who know the theory."""
    about_s = mechanism if isinstance(mechanism, Mechanism) else mechanism.together
    figures = {
        "measure of leakage": f"{text_of_measure(mechanism.measure)}, "
        f"{mechanism.scope.replace('_', ' ')}",
        "solver": text_of_solver(mechanism.solver),
        "utility": f"{mechanism.utility:.5f} ({mechanism.objective.name.replace('_', ' ')})",
        **_shares(mechanism),
        "certified gap": f"{mechanism.gap:.2g}",
        "I(X;Y)": f"{mechanism.mutual_information:.5f} nats",
        **({} if about_s is None else {"I(S;Y)": f"{about_s.sensitive_information:.5f} nats"}),
    }
    room = "No mechanism within the budget keeps more than the utility plus the certified gap."
    if not mechanism.is_certified:
        room += " The gap is not zero: this mechanism is not proven optimal."
    if mechanism.confidence is not None:
        room = (
            "The certified gap is for the rows alone: no mechanism that keeps the budget there "
            "keeps more than the utility plus this gap. Part of it is the price of a budget that "
            "holds for the population; more rows make it smaller."
        )
    if isinstance(mechanism, Mechanism):
        tables = [_every_measure(mechanism, "")]
    else:
        secrets = mechanism.secrets.items()
        tables = [_every_measure(m, f" about {name_of_secret(name)}") for name, m in secrets]
    return Section(
        "For specialists",
        ["S is what is protected, X what went in, Y what came out.", room],
        [facts("What was kept, and how", figures), *tables],
    )


def _every_measure(mechanism: Mechanism, about: str) -> Table:
    measures = {
        text_of_measure(measure): mechanism.with_measure(measure)
        for measure in every_measure(mechanism.measure).values()
    }
    cells = pd.DataFrame(
        {
            "worst released value": _four(*(m.max_leakage for m in measures.values())),
            "average over all": _four(*(m.average_leakage for m in measures.values())),
        },
        index=pd.Index(measures, name="measure"),
    )
    return Table(f"Leakage{about} by every measure, each on its epsilon scale", cells)


def _shares(mechanism: AnyMechanism) -> dict[str, str]:
    kept, by_cells = mechanism.normalized_utility, mechanism.cell_utility
    if not 0 < by_cells < 1 - UTILITY_ROUNDING:
        return {"share of the largest": f"{kept:.2%}"}
    return {
        "share of the raw table": f"{kept:.2%}",
        "share that the cells keep": f"{by_cells:.2%}",
        "share of that in the release": f"{kept / by_cells:.2%}",
    }


def _pictures(
    mechanism: AnyMechanism,
    settings: Settings,
    limits: Limits,
    columns: Columns,
    with_curve: bool,
) -> Section:
    """Return pictures of the mechanism."""
    names = (
        f"S is {listed(columns.protected)}, X is {_in_short(columns.released)} before and Y after "
        f"the release; P stands for a share of the rows, P(S | y) for that among the rows with "
        f"one released value."
    )
    curve = [_curve(mechanism, settings)] if with_curve else []
    if isinstance(mechanism, Mechanism):
        figures = [
            *curve,
            _channel(mechanism),
            _leakage_of(mechanism, limits[None], "S"),
        ]
        return Section("Pictures", [names], figures=figures)
    each = mechanism.secrets.items()
    leakages = [_leakage_of(m, limits[name], name_of_secret(name)) for name, m in each]
    figures = [*curve, _channel(one_of(mechanism)), *leakages]
    return Section("Pictures", [names], figures=figures)


def _curve(mechanism: AnyMechanism, settings: Settings) -> Figure:
    options = {"max_outputs": settings.max_outputs, **(settings.solver_options or {})}
    path = path_around(mechanism, settings.solver, is_own=True, **options)

    def curve(is_dark: bool) -> Any:
        return PrivacyUtilityDisplay.from_path(path, chosen=mechanism.epsilon).figure_

    return Figure(
        "What is kept at each budget",
        f"What is kept at each budget: {mechanism.normalized_utility:.0%} at "
        f"{_budgets(mechanism)}. A larger budget keeps more, and allows more to leak.",
        curve,
    )


def _channel(mechanism: Mechanism) -> Figure:
    def channel(is_dark: bool) -> Any:
        display = MechanismDisplay(mechanism)
        return display.plot(cmap="Blues_r" if is_dark else "Blues").figure_

    n_x, n_y = len(mechanism.x_labels), len(mechanism.y_labels)
    return Figure(
        "The channel",
        f"The channel: for {_drawn(n_x)} symbols of X (rows) the probability of "
        f"{_drawn(n_y)} released values (columns). The most frequent one makes up "
        f"{np.max(mechanism.p_y):.0%} of the release.",
        channel,
    )


def _drawn(n: int, which: str = "commonest") -> str:
    return f"the {MOST_TICKS} {which} of {n}" if n > MOST_TICKS else f"each of {n}"


def _leakage_of(mechanism: Mechanism, limits: PopulationLeakage, s_name: str) -> Figure:
    def leakage(is_dark: bool) -> Any:
        return LeakageDisplay.from_mechanism(mechanism, limits=limits).figure_

    about = "" if s_name == "S" else f" about {s_name}"
    drawn = _drawn(len(mechanism.y_labels), "most leaking")
    return Figure(
        f"Leakage of each released value{about}",
        f"Left, what {drawn} released values leaks{about}: at most {mechanism.max_leakage:.4g} "
        f"in the rows (bars). In the population, the marks are limits for one value each, and the "
        f"dashed line at {limits.max_leakage:.4g} is one for all of them at once. Right, the "
        f"distribution of {s_name} given each value, against that of all rows.",
        leakage,
    )


def _attack(fitted: Fitted, settings: Settings, attacked: Attacked, secret: Any) -> Section:
    assert fitted.training is not None
    s_name = listed(tuple(map(str, fitted.training.names)))
    s_name = s_name if secret is None else name_of_secret(secret)
    title = "Attacked" if secret is None else f"Attacked, for {s_name}"
    owner, roles, confidence = "PrivacyReport", fitted.roles, attacked.confidence
    table, out = (as_table(frame, owner) for frame in (attacked.df, attacked.released))
    s_columns, _ = sensitive_columns(
        owner, table, None, settings.sensitive, attacked.sensitive_features
    )
    raw = [table.column(position) for position in roles.read_in(table, owner)]
    others = {str(roles.name(p)) for p in roles.kept_positions}
    names = map(str, names_out(roles, fitted.posterior.labels, settings.output))
    columns = {name: out.column(position) for position, name in enumerate(names)}
    released = {name: column for name, column in columns.items() if name not in others}
    beside = {name: column for name, column in columns.items() if name in others}
    # S as it is protected: numbers in their bins.
    groups, _ = fitted.training.alphabet.encode(list(s_columns.values()), list(s_columns))
    groups = fitted.training.secrets.groups[secret].codes(groups)
    try:
        figures = audit(
            _frame(released),
            groups,
            raw=_frame(dict(zip(map(roles.name, roles.read_positions), raw, strict=True))),
            remainder=_frame(beside) if beside else None,
            confidence=confidence,
            attacker=attacked.attacker,
            cv=attacked.cv,
        )
    except ValueError as error:  # a group of few rows, say
        return Section(title, [f"No attack was made. {error}"])
    again = "a fresh release of each" if settings.random_state is None else "their release"
    text = (
        f"Classifiers were trained to guess {s_name} on {table.n_rows:,} rows with {again}, and "
        f"tested on rows that they had not seen: from the columns as they were (raw), and as they "
        f"are released. A blind guess is right in {figures['blind'][0]:.1%} of the rows; the "
        f"advantage is what exceeds that. Where one group is that common, it can be zero even "
        f"though something leaks; where it is below zero, chance was against the attacker."
    )
    shown_as = Table(f"How well {s_name} can be guessed", _attacks(figures, confidence))
    return Section(title, [text, *attack_notes(figures)], [shown_as])


def _attacks(figures: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Return the figures of an audit as texts."""
    found = figures.set_index("attacked").rename_axis("columns seen")
    return pd.DataFrame(
        {
            "attacker": found["attacker"],
            "right": [f"{x:.1%}" for x in found["accuracy"]],
            "advantage": [in_points(x, "+z.2f") for x in found["advantage"]],
            f"{percent(confidence)} interval": [
                f"{100 * low:+z.2f} to {in_points(high, '+z.2f')}"
                for low, high in zip(found["low"], found["high"], strict=True)
            ],
        }
    )


def _frame(columns: Mapping[Any, pd.Series]) -> pd.DataFrame:
    """Return columns as a frame."""
    return pd.DataFrame({str(k): column.reset_index(drop=True) for k, column in columns.items()})
