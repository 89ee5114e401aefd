"""What a report says: the facts of what was fitted, in words and tables."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from .._typing import Scope
from ..describing import DOES_NOT_APPLY, percent, shown
from ..fitted import Fitted, Training
from ..fitting.parameters import Settings
from ..measures import every_measure
from ..mechanism import (
    Mechanism,
    PopulationLeakage,
    SeveralSecretsMechanism,
    name_of_secret,
    one_of,
)
from ..plotting import LeakageDisplay, MechanismDisplay, PrivacyUtilityDisplay, path_around
from ..plotting.canvas import MOST_TICKS, text_of_measure, text_of_solver
from ..utilities import UTILITY_ROUNDING
from .attackers import Attacked, attack_section, best_attacker, no_attack
from .cells import cells_section, target_beside
from .columns import COARSER, UNCHANGED, Columns, columns_of, listed
from .conclusions import conclusions
from .face_value import face_value
from .glossary import glossary, unit
from .groups import exposed_groups, most_exposed_group
from .handover import Handover
from .populations import FAIL, PASS, caveat, promise, rows_and_population, to_do, verdict
from .recipe import recipe
from .sections import Figure, Points, Section, Table, facts
from .several import Limits, several_in_short
from .small_numbers import small_numbers

_SEEDED = (
    "The noise was drawn with a fixed random_state: whoever knows it can undo the noise. Release "
    "with random_state=None."
)

_WEAK = (
    f" {FAIL} as a protection: a budget as large as this lets a released value tell a group with "
    f"certainty."
)

# More columns than these are counted rather than listed.
_FEW_COLUMNS = 4

AnyMechanism: TypeAlias = Mechanism | SeveralSecretsMechanism


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
        sections.append(face_value(fitted, fidelity, _as_one(columns.released)))
    if attacked is None:
        sections.append(no_attack(protected))
    else:
        sections += [attack_section(fitted, settings, attacked, name) for name in limits]
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
        first, outcome = _summary(mechanism, limits[None], protected, headline, learned_from)
        beside = [*_rule_of_worst(mechanism, fitted.cells), *beside]
        at_length = [_guarantee(mechanism, limits[None], protected, beside)]
    else:
        said = [headline, *beside]
        first, outcome = several_in_short(mechanism, limits, said, learned_from)
        at_length = list(_about_each(mechanism, limits))
    seeded = [] if settings.random_state is None else [_SEEDED]
    warned = replace(
        first,
        lead=f"{first.lead}{_about_copied(columns)}{_WEAK if _is_weak(mechanism) else ''}",
        paragraphs=[
            *columns.leaking(),
            *seeded,
            *first.paragraphs,
            *handover.in_short(),
        ],
        points=[_to_do(outcome, columns, handover, _is_weak(mechanism))],
    )
    return [warned, files, *at_length]


def _about_copied(columns: Columns) -> str:
    if not columns.failing:
        return ""
    return f" {FAIL} for columns that are copied: {', '.join(columns.failing)}."


def _is_weak(mechanism: AnyMechanism) -> bool:
    """Return whether a budget protects next to nothing."""
    if isinstance(mechanism, Mechanism):
        return mechanism.allows_certainty
    return any(secret.allows_certainty for secret in mechanism.secrets.values())


def _to_do(outcome: str, columns: Columns, handover: Handover, is_weak: bool) -> Points:
    """Return what to do before anybody signs; outcome : for the population."""
    is_fine = outcome == PASS and not columns.failing and not is_weak
    of_outcome = [] if outcome == PASS and not is_fine else to_do(outcome)
    weak = ["Do not sign yet: send it back, and ask for a smaller epsilon."] if is_weak else []
    last = ["Sign under 'Signatures'."] if is_fine else []
    return Points(
        "To do before you sign", [*weak, *columns.to_do(), *of_outcome, *handover.to_do(), *last]
    )


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
) -> tuple[Section, str]:
    """Return the first section, and the outcome for the population."""
    found = verdict(mechanism, limits, protected)
    made_for = promise(mechanism, found.population, learned_from)
    said = [*made_for, headline, *caveat(mechanism, limits)]
    return Section("In short", said, lead=found.line), found.population


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
    if columns.treatment == UNCHANGED:
        return f"{names} {verb} released unchanged, without noise: {that}."
    is_coarser = columns.treatment == COARSER
    kind = "coarser release, without noise," if is_coarser else "randomised release"
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
            f"population, {percent(limits.confidence)} limit": _four(
                limits.max_leakage, limits.average_leakage
            ),
            "budget": [_budget(mechanism, "per_output"), _budget(mechanism, "average")],
            "in the rows": _four(mechanism.max_leakage, mechanism.average_leakage),
        },
        index=pd.Index(["worst released value", "average over all"], name="leakage"),
    )
    return Section(
        "What leaks",
        [
            most_exposed_group(mechanism),
            best_attacker(mechanism, protected),
            rows_and_population(mechanism, limits),
            *_worst_value(mechanism),
            *beside,
        ],
        [
            Table(f"Leakage against the budget{unit(mechanism.measure)}", reached),
            exposed_groups(mechanism, protected),
        ],
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


def _rule_of_worst(mechanism: Mechanism, cells: pd.DataFrame | None) -> list[str]:
    """Say what is in the cell that reveals most, whose name says nothing."""
    worst = mechanism.y_labels[int(np.argmax(mechanism.leakage))]
    if cells is None or worst not in cells.index:
        return []
    return [f"Rows of {shown(worst)}: {cells['rule'].to_dict()[worst]}."]


def _budget(mechanism: Mechanism, scope: Scope) -> str:
    return f"{mechanism.epsilon:g}" if mechanism.scope == scope else DOES_NOT_APPLY


def _four(*figures: float) -> list[str]:
    return [DOES_NOT_APPLY if np.isnan(figure) else f"{figure:.4f}" for figure in figures]


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
        f"The channel: for each of {_drawn(n_x)} symbols of X (rows) the probability of each of "
        f"{_drawn(n_y)} released values (columns). The most frequent one makes up "
        f"{np.max(mechanism.p_y):.0%} of the release.",
        channel,
    )


def _drawn(n: int, which: str = "commonest") -> str:
    return f"the {MOST_TICKS} {which} of {n}" if n > MOST_TICKS else str(n)


def _leakage_of(mechanism: Mechanism, limits: PopulationLeakage, s_name: str) -> Figure:
    def leakage(is_dark: bool) -> Any:
        return LeakageDisplay.from_mechanism(mechanism, limits=limits).figure_

    about = "" if s_name == "S" else f" about {s_name}"
    drawn = _drawn(len(mechanism.y_labels), "most leaking")
    return Figure(
        f"Leakage of each released value{about}",
        f"Left, what each of {drawn} released values leaks{about}: at most "
        f"{mechanism.max_leakage:.4g} in the rows (bars). In the population, the marks are limits "
        f"for one value each, and the dashed line at {limits.max_leakage:.4g} is one for all of "
        f"them at once. Right, the distribution of {s_name} given each value, against that of all "
        f"rows.",
        leakage,
    )
