"""What a report says: the facts of what was fitted, in words and tables."""

import platform
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import sklearn

from .._messages import in_points
from .._typing import ColumnsLike, Scope, TableLike
from ..describing import percent
from ..fitted import Fitted, Training
from ..fitting.inputs import sensitive_columns
from ..fitting.parameters import Settings
from ..measures import Measure, every_measure
from ..mechanism import (
    Mechanism,
    PopulationLeakage,
    SeveralSecretsMechanism,
    name_of_secret,
    one_of,
)
from ..metrics import audit
from ..metrics.attack import Attacker, Splits
from ..plotting import LeakageDisplay, MechanismDisplay, PrivacyUtilityDisplay, path_around
from ..releasing.output_names import names_out
from ..tables.frames import as_table
from ..utilities import UTILITY_ROUNDING
from .beside import Others, others_of
from .cells import cells_section, target_beside
from .face_value import face_value
from .groups import exposed_groups, most_exposed_group
from .populations import caveat, rows_and_population, verdict, what_it_is_about
from .sections import Figure, Section, Table
from .several import Limits, several_in_short

_LIMITS = (
    "It is not differential privacy: it bounds what a released value reveals about S, not what it "
    "reveals about whether a person is in the data.",
    "Not protected: columns that are passed through, alone or together with the release; a row "
    "index that reveals S; several releases of the same row taken together; rows that depend on "
    "each other.",
)
# More columns than these are counted rather than listed.
_FEW_COLUMNS = 4

_NOT_TOGETHER = (
    "Each secret has a budget of its own. Separate budgets bound no combination of secrets: what "
    "a released value reveals about several of them together may be more."
)

_SEEDED = (
    "The noise was drawn with a fixed random_state: whoever knows it can undo the noise. Release "
    "with random_state=None."
)


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
    with_curve: bool = True,
) -> tuple[str, list[Section]]:
    """Return the title and the sections of a report on what was fitted by these settings.

    limits : for the population, of each secret; the only one is called None; with_curve : whether
    to show what other budgets would keep.
    """
    assert fitted.training is not None  # or there would be no report
    roles, mechanism = fitted.roles, fitted.mechanism
    released = [str(roles.name(position)) for position in roles.x_positions]
    protected = _listed(fitted.training.names)
    learned_from = f"{_rows(fitted.training)}{_smoothed(settings.smoothing)}"
    sections = [
        *_about_secrets(fitted, limits, released, learned_from),
        _utility(mechanism),
        *cells_section(fitted),
        *_face_value(fitted, settings, released),
        _pictures(mechanism, settings, limits, with_curve),
    ]
    if attacked is not None:
        sections += [_attack(fitted, settings, attacked, name) for name in limits]
    seeded = [] if settings.random_state is None else [_SEEDED]
    several = [] if isinstance(mechanism, Mechanism) else [_NOT_TOGETHER]
    covered = others_of(fitted).covered()
    not_covered = [what_it_is_about(mechanism), *covered, *several, *_LIMITS, *seeded]
    sections += [Section("What it does not cover", not_covered), _recipe(mechanism, settings)]
    title = f"Privacy report: {_in_short(released)} released, {protected} protected"
    return title, sections


def _about_secrets(
    fitted: Fitted, limits: Limits, released: list[str], learned_from: str
) -> list[Section]:
    """Return what is revealed, in short and at length, about each secret."""
    assert fitted.training is not None
    mechanism, protected = fitted.mechanism, _listed(fitted.training.names)
    beside, others = target_beside(fitted), others_of(fitted)
    if isinstance(mechanism, Mechanism):
        return [
            _summary(mechanism, released, protected, learned_from, limits[None], others),
            _guarantee(mechanism, limits[None], beside),
        ]
    kept = _headline(mechanism, released, protected, others.together)
    facts = {**_facts(mechanism, released, learned_from), **others.facts()}
    in_short = several_in_short(mechanism, limits, facts, [kept, *beside], learned_from)
    at_length = (
        (name_of_secret(name), _guarantee(secret, limits[name], []))
        for name, secret in mechanism.secrets.items()
    )
    return [in_short, *(replace(part, title=f"{part.title} about {n}") for n, part in at_length)]


def _face_value(fitted: Fitted, settings: Settings, released: list[str]) -> list[Section]:
    if settings.output != "label":  # what comes out is not what went in
        return []
    return [face_value(fitted.fidelity, fitted.mechanism, _as_one(released))]


def _listed(names: Iterable[Hashable]) -> str:
    return " and ".join(str(name) for name in names)


def _in_short(names: list[str]) -> str:
    """Return names, or how many there are."""
    return _listed(names) if len(names) <= _FEW_COLUMNS else f"{len(names)} columns"


def _as_one(names: list[str]) -> str:
    """Return names as the subject of "tells", of one thing."""
    return _listed(names) if len(names) <= _FEW_COLUMNS else "the table"


def _summary(
    mechanism: Mechanism,
    released: list[str],
    protected: str,
    learned_from: str,
    limits: PopulationLeakage,
    others: Others,
) -> Section:
    n_s = len(mechanism.s_labels or ())
    general = _facts(mechanism, released, learned_from)
    facts = {
        "released": general["released"],
        **others.facts(),
        "protected": f"{protected}: {n_s} groups",
        "learned from": learned_from,
        "measure": general["measure"],
        "budget": f"epsilon = {mechanism.epsilon:g}, for {general['budgets are for']}",
        "solver": mechanism.solver,
    }
    return Section(
        "In short",
        [
            verdict(mechanism, limits, learned_from),
            _headline(mechanism, released, protected, others.together),
            *([] if len(released) <= _FEW_COLUMNS else [f"Released: {', '.join(released)}."]),
            *caveat(mechanism, limits),
        ],
        [Table("The release", pd.DataFrame({"value": facts}))],
    )


def _facts(mechanism: AnyMechanism, released: list[str], learned_from: str) -> dict[str, str]:
    """Return what can be said about the release without naming what is protected."""
    sure = "the rows alone"
    if mechanism.confidence is not None:
        sure = f"the population, with {percent(mechanism.confidence)} confidence"
    n_x, n_y = mechanism.channel.shape
    return {
        "released": f"{_in_short(released)}: {n_x} symbols, {n_y} outputs",
        "learned from": learned_from,
        "measure": f"{mechanism.measure!r}, {mechanism.scope.replace('_', ' ')}",
        "budgets are for": sure,
        "solver": mechanism.solver,
    }


def _rows(training: Training) -> str:
    """Say how many rows there were, and how many equally weighted ones would be as good."""
    text = f"{training.n_rows:,} rows"
    if training.effective_rows == training.n_rows:
        return text
    return f"{text}, as good as {training.effective_rows:,} equally weighted ones"


def _smoothed(smoothing: float) -> str:
    return f", smoothed by {smoothing:g} rows in every cell" if smoothing else ""


def _headline(mechanism: AnyMechanism, released: list[str], protected: str, together: str) -> str:
    names, verb = _in_short(released), "is" if len(released) == 1 else "are"
    per_output = mechanism.scope == "per_output"
    scope = "whichever value is seen" if per_output else "on average over the released values"
    limit = f"at most {_budgets(mechanism, protected)}, {scope}"
    if mechanism.confidence is None:
        limit += ", judging by the rows seen"
    without_noise = bool(np.isin(mechanism.channel, [0.0, 1.0]).all())
    if without_noise and mechanism.channel.sum(axis=0).max() == 1:
        return f"{names} {verb} released unchanged, without noise: that{together} reveals {limit}."
    kind = "coarser release, without noise," if without_noise else "randomised release"
    return (
        f"{names} {verb} replaced by a {kind} that{together} reveals {limit}. It keeps "
        f"{mechanism.normalized_utility:.1%} of {mechanism.objective.in_words(_as_one(released))}."
    )


def _budgets(mechanism: AnyMechanism, protected: str = "") -> str:
    if isinstance(mechanism, Mechanism):
        about = f" about {protected}" if protected else ""
        return f"epsilon = {mechanism.epsilon:g}{about}"
    budgets = (f"{x:g} about {name_of_secret(name)}" for name, x in mechanism.epsilon.items())
    return f"epsilon = {', '.join(budgets)}"


def _guarantee(mechanism: Mechanism, limits: PopulationLeakage, beside: list[str]) -> Section:
    reached = pd.DataFrame(
        {
            "budget": [_budget(mechanism, "per_output"), _budget(mechanism, "average")],
            "in the rows": _four(mechanism.max_leakage, mechanism.average_leakage),
            f"population, {percent(limits.confidence)} limit": _four(
                limits.max_leakage, limits.average_leakage
            ),
        },
        index=pd.Index(["worst output", "average over outputs"], name="leakage"),
    )
    measures = {
        _named(measure): mechanism.with_measure(measure)
        for measure in every_measure(mechanism.measure).values()
    }
    every = pd.DataFrame(
        {
            "worst output": _four(*(m.max_leakage for m in measures.values())),
            "average over outputs": _four(*(m.average_leakage for m in measures.values())),
        },
        index=pd.Index(measures, name="measure"),
    )
    return Section(
        "What leaks",
        [
            rows_and_population(mechanism, limits),
            most_exposed_group(mechanism),
            f"The best attacker, who knows the joint distribution and the channel and sees one "
            f"released value, is right about S more often than a blind guess, by "
            f"{in_points(mechanism.attacker_advantage, '.2f')}; the budget alone allows at most "
            f"{in_points(mechanism.advantage_bound, '.2f')}.",
            *beside,
        ],
        [
            Table("Leakage against the budget", reached),
            exposed_groups(mechanism),
            Table("Leakage by every measure, each on its epsilon scale", every),
        ],
    )


def _budget(mechanism: Mechanism, scope: Scope) -> str:
    return f"{mechanism.epsilon:g}" if mechanism.scope == scope else "none"


def _named(measure: Measure) -> str:
    """Return the name of a measure, with its parameters if it has any."""
    parameters = {k: v for k, v in measure.to_dict().items() if k != "name" and v is not None}
    listed = ", ".join(f"{name} {value:g}" for name, value in parameters.items())
    return f"{measure.name}, {listed}" if listed else measure.name


def _four(*figures: float) -> list[str]:
    return ["none" if np.isnan(figure) else f"{figure:.4f}" for figure in figures]


def _utility(mechanism: AnyMechanism) -> Section:
    about_s = mechanism if isinstance(mechanism, Mechanism) else mechanism.together
    figures = {
        "utility": f"{mechanism.utility:.5f} ({mechanism.objective.name})",
        **_shares(mechanism),
        "certified gap": f"{mechanism.gap:.2g}",
        "I(X;Y)": f"{mechanism.mutual_information:.5f} nats",
        **({} if about_s is None else {"I(S;Y)": f"{about_s.sensitive_information:.5f} nats"}),
    }
    room = "No mechanism within the budget keeps more than the utility plus the certified gap."
    if mechanism.confidence is not None:
        room = (
            "The certified gap is for the rows alone: no mechanism that keeps the budget there "
            "keeps more than the utility plus this gap. Part of it is the price of a budget that "
            "holds for the population; more rows make it smaller."
        )
    return Section("What is kept", [room], [Table("Utility", pd.DataFrame({"value": figures}))])


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
    mechanism: AnyMechanism, settings: Settings, limits: Limits, with_curve: bool
) -> Section:
    """Return pictures of the mechanism."""
    curve = [_curve(mechanism, settings)] if with_curve else []
    if isinstance(mechanism, Mechanism):
        figures = [
            *curve,
            _channel(mechanism),
            _leakage_of(mechanism, limits[None], "S"),
        ]
        return Section("Pictures", figures=figures)
    each = mechanism.secrets.items()
    leakages = [_leakage_of(m, limits[name], name_of_secret(name)) for name, m in each]
    figures = [*curve, _channel(one_of(mechanism)), *leakages]
    return Section("Pictures", figures=figures)


def _curve(mechanism: AnyMechanism, settings: Settings) -> Figure:
    options = {"max_outputs": settings.max_outputs, **(settings.solver_options or {})}
    path = path_around(mechanism, settings.solver, is_own=True, **options)

    def curve(is_dark: bool) -> Any:
        return PrivacyUtilityDisplay.from_path(path, chosen=mechanism.epsilon).figure_

    return Figure(
        "Utility kept against the budget",
        f"Utility kept against the budget: {mechanism.normalized_utility:.0%} at "
        f"{_budgets(mechanism)}.",
        curve,
    )


def _channel(mechanism: Mechanism) -> Figure:
    def channel(is_dark: bool) -> Any:
        display = MechanismDisplay(mechanism)
        return display.plot(cmap="Blues_r" if is_dark else "Blues").figure_

    likeliest = f"{np.max(mechanism.p_y):.0%}"
    return Figure(
        "The channel",
        f"The channel: for each of {len(mechanism.x_labels)} symbols of X (rows) the "
        f"probability of each of {len(mechanism.y_labels)} released values (columns). The "
        f"most frequent one makes up {likeliest} of the release.",
        channel,
    )


def _leakage_of(mechanism: Mechanism, limits: PopulationLeakage, s_name: str) -> Figure:
    def leakage(is_dark: bool) -> Any:
        return LeakageDisplay.from_mechanism(mechanism, limits=limits).figure_

    about = "" if s_name == "S" else f" about {s_name}"
    return Figure(
        f"Leakage of each released value{about}",
        f"Left, what each released value leaks{about}: at most {mechanism.max_leakage:.4g} in "
        f"the rows, {limits.max_leakage:.4g} in the population. Right, the "
        f"distribution of {s_name} given each value, against that of all rows.",
        leakage,
    )


def _attack(fitted: Fitted, settings: Settings, attacked: Attacked, secret: Any) -> Section:
    assert fitted.training is not None
    s_name = "S" if secret is None else name_of_secret(secret)
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
    shown = figures.set_index("attacked").rename_axis("columns seen")
    cells = pd.DataFrame(
        {
            "attacker": shown["attacker"],
            "right": [f"{x:.1%}" for x in shown["accuracy"]],
            "advantage": [in_points(x, "+z.2f") for x in shown["advantage"]],
            f"{percent(confidence)} interval": [
                f"{100 * low:+z.2f} to {in_points(high, '+z.2f')}"
                for low, high in zip(shown["low"], shown["high"], strict=True)
            ],
        }
    )
    again = "a fresh release of each" if settings.random_state is None else "their release"
    text = (
        f"Classifiers were trained to guess {s_name} on {table.n_rows:,} rows with {again}, and "
        f"tested on rows that they had not seen. A blind guess is right in "
        f"{figures['blind'][0]:.1%} of the rows; the advantage is what exceeds that. Where one "
        f"group is that common, it can be zero even though something leaks."
    )
    return Section(title, [text], [Table(f"How well {s_name} can be guessed", cells)])


def _frame(columns: Mapping[Any, pd.Series]) -> pd.DataFrame:
    """Return columns as a frame."""
    return pd.DataFrame({str(k): column.reset_index(drop=True) for k, column in columns.items()})


def _recipe(mechanism: AnyMechanism, settings: Settings) -> Section:
    parameters = {name: repr(value) for name, value in settings.parameters().items()}
    parameters["epsilon"] = repr(mechanism.epsilon)
    if settings.has_target:
        parameters["utility"] = "Target of y"
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
        ["The same rows, with the same weights, and these parameters give the same channel."],
        [
            Table("Parameters of PrivacyFunnelTransformer", pd.DataFrame({"value": parameters})),
            Table("Versions", pd.DataFrame({"value": versions})),
        ],
    )
