"""What a report says: the facts of a fitted transformer, in words and tables."""

import platform
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import sklearn

from ..fit_inputs import sensitive_columns
from ..frames import as_table
from ..measures import every_measure
from ..metrics import audit, population_leakage
from ..plotting import LeakageDisplay, MechanismDisplay, PrivacyUtilityDisplay
from .sections import Figure, Section, Table

_LIMITS = (
    "The guarantee is about the joint distribution of S and X as it was estimated from the rows "
    "of fit, and about one release of each row.",
    "It is not differential privacy: it bounds what a released value says about S, not about "
    "whether a person is in the data.",
    "Not protected: columns that are passed through, alone or together with the release; a row "
    "index that carries S; several releases of the same row taken together; rows that depend on "
    "each other.",
    "An attacker who knows the joint distribution and the channel is covered.",
)


def sections_of(transformer, df, sensitive_features, confidence):
    """Return the title and the sections of a report."""
    layout = transformer._layout
    released = _listed(layout.name(position) for position in layout.x_positions)
    protected = _listed(transformer._sensitive_names)
    sections = [
        _summary(transformer, released, protected),
        _guarantee(transformer, confidence),
        _utility(transformer.mechanism_),
        _pictures(transformer),
    ]
    if df is not None:
        sections.append(_attack(transformer, df, sensitive_features, confidence))
    sections += [Section("What it does not cover", list(_LIMITS)), _recipe(transformer)]
    return f"Privacy report: {released} released, {protected} protected", sections


def _listed(names):
    return " and ".join(str(name) for name in names)


def _summary(transformer, released, protected):
    mechanism = transformer.mechanism_
    per_output = mechanism.scope == "per_output"
    scope = "whichever value is seen" if per_output else "on average over the released values"
    n_s, n_x = mechanism.p_sx.shape
    facts = {
        "released": f"{released}: {n_x} symbols, {len(mechanism.y_labels)} outputs",
        "protected": f"{protected}: {n_s} groups",
        "learned from": f"{transformer.n_samples_seen_:,} rows",
        "measure": f"{mechanism.measure!r}, {mechanism.scope.replace('_', ' ')}",
        "budget": f"epsilon = {mechanism.epsilon:g}",
        "solver": mechanism.solver,
    }
    cells = pd.DataFrame({"value": facts})
    return Section(
        "In short",
        [
            f"{released} is replaced by a randomised release that says at most epsilon = "
            f"{mechanism.epsilon:g} about {protected}, {scope}, and keeps "
            f"{mechanism.normalized_utility:.1%} of what there is to know about {released}."
        ],
        [Table("The release", cells)],
    )


def _guarantee(transformer, confidence):
    mechanism = transformer.mechanism_
    limits = population_leakage(mechanism, transformer.n_samples_seen_, confidence=confidence)
    reached = pd.DataFrame(
        {
            "budget": [_budget(mechanism, "per_output"), _budget(mechanism, "average")],
            "reached": _four(mechanism.max_leakage, mechanism.average_leakage),
            f"population, {confidence:.0%} limit": _four(
                limits.max_leakage, limits.average_leakage
            ),
        },
        index=pd.Index(["worst output", "average over outputs"], name="leakage"),
    )
    measures = {
        name: mechanism.with_measure(measure)
        for name, measure in every_measure(mechanism.measure).items()
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
            f"The budget is about the joint distribution of the {limits.n_samples:,} rows of fit. "
            f"The population that they were drawn from is a little different, and the release "
            f"was fitted to the rows: the last column is what leaks under the true distribution "
            f"at most, with a confidence of {confidence:.0%}.",
            f"The best attacker, who knows the joint distribution and the channel and sees one "
            f"released value, guesses S oftener than blindly by "
            f"{mechanism.attacker_advantage:.2%}; "
            f"the budget alone allows {_advantage(mechanism):.2%} at most.",
        ],
        [
            Table("Leakage against the budget", reached),
            Table("Leakage by every measure, each on its epsilon scale", every),
        ],
    )


def _budget(mechanism, scope):
    return f"{mechanism.epsilon:g}" if mechanism.scope == scope else "none"


def _four(*figures):
    return ["none" if np.isnan(figure) else f"{figure:.4f}" for figure in figures]


def _advantage(mechanism):
    return mechanism.measure.advantage(mechanism.epsilon, mechanism.p_sx.sum(axis=1))


def _utility(mechanism):
    figures = {
        "utility": f"{mechanism.utility:.5f} ({mechanism.objective!r})",
        "share of the largest": f"{mechanism.normalized_utility:.2%}",
        "certified gap": f"{mechanism.gap:.2g}",
        "I(X;Y)": f"{mechanism.mutual_information:.5f} nats",
        "I(S;Y)": f"{mechanism.sensitive_information:.5f} nats",
    }
    room = "No mechanism within the budget keeps more than the utility and the certified gap."
    return Section("What is kept", [room], [Table("Utility", pd.DataFrame({"value": figures}))])


def _pictures(transformer):
    mechanism = transformer.mechanism_

    def curve(is_dark):
        return PrivacyUtilityDisplay.from_estimator(transformer).figure_

    def channel(is_dark):
        display = MechanismDisplay(mechanism)
        return display.plot(cmap="Blues_r" if is_dark else "Blues").figure_

    def leakage(is_dark):
        return LeakageDisplay.from_estimator(transformer).figure_

    likeliest = f"{np.max(mechanism.p_y):.0%}"
    return Section(
        "Pictures",
        figures=[
            Figure(
                f"Utility kept against the budget: {mechanism.normalized_utility:.0%} at epsilon "
                f"= {mechanism.epsilon:g}, which is marked.",
                curve,
            ),
            Figure(
                f"The channel: for each of {len(mechanism.x_labels)} symbols of X (rows) the "
                f"probability of each of {len(mechanism.y_labels)} released values (columns). The "
                f"most frequent one makes up {likeliest} of the release.",
                channel,
            ),
            Figure(
                f"Left, what each released value leaks: at most {mechanism.max_leakage:.4g}. "
                f"Right, the distribution of S given each value, against that of all rows.",
                leakage,
            ),
        ],
    )


def _attack(transformer, df, sensitive_features, confidence):
    owner = "PrivacyReport"
    table, layout = as_table(df, owner), transformer._layout
    s_columns, _ = sensitive_columns(owner, table, None, transformer.sensitive, sensitive_features)
    positions = layout.match(table, owner, False)
    raw = [table.column(positions[p]) for p in layout.x_positions]
    passed = transformer.remainder == "passthrough"
    others = {str(layout.name(p)) for p in layout.other_positions} if passed else set()
    out = as_table(transformer.transform(df), owner)
    columns = {
        str(name): out.column(p) for p, name in enumerate(transformer.get_feature_names_out())
    }
    figures = audit(
        _frame({name: column for name, column in columns.items() if name not in others}),
        _frame(s_columns),
        raw=_frame({layout.name(p): c for p, c in zip(layout.x_positions, raw, strict=True)}),
        mechanism=transformer,
        remainder=_frame({name: columns[name] for name in columns if name in others}),
        confidence=confidence,
    )
    shown = figures.set_index("attacked").rename_axis("columns seen")
    cells = pd.DataFrame(
        {
            "attacker": shown["attacker"],
            "right": [f"{x:.1%}" for x in shown["accuracy"]],
            "advantage": [f"{x:+.2%}" for x in shown["advantage"]],
            f"{confidence:.0%} interval": [
                f"{low:+.2%} to {high:+.2%}"
                for low, high in zip(shown["low"], shown["high"], strict=True)
            ],
        }
    )
    text = (
        f"Classifiers were trained to guess S on {table.n_rows:,} rows with a fresh release of "
        f"each, and judged on rows that they had not seen. The best blind guess is right in "
        f"{figures['majority'][0]:.1%} of the rows; the advantage is beyond that."
    )
    return Section("Attacked", [text], [Table("How well S can be guessed", cells)])


def _frame(columns):
    """Return columns as a frame, or None if there are none."""
    if not columns:
        return None
    return pd.DataFrame({str(k): column.reset_index(drop=True) for k, column in columns.items()})


def _recipe(transformer):
    from .. import __version__

    parameters = {
        name: "Target of y" if name == "utility" and value == "target" else repr(value)
        for name, value in transformer.get_params(deep=False).items()
    }
    versions = {
        "skprivacy": __version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "Python": platform.python_version(),
        "made on": datetime.now(UTC).date().isoformat(),
    }
    return Section(
        "To repeat it",
        ["The same rows and these parameters give the same channel."],
        [
            Table("Parameters of PrivacyFunnelTransformer", pd.DataFrame({"value": parameters})),
            Table("Versions", pd.DataFrame({"value": versions})),
        ],
    )
