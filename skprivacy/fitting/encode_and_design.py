"""What `fit` learns from labelled rows: alphabets, counts, and the mechanism for them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from .._messages import InPython, Message, Named, Setting
from .._progress import doing
from .._typing import CountArray, FloatArray, IntArray, NamedColumns
from .._warnings import warn
from ..cells import CellAlphabet, Cells
from ..codes import UNKNOWN, count, take
from ..design import designed
from ..encoding import (
    DEFAULT_BINS,
    Alphabet,
    PairedAlphabet,
    ValueAlphabet,
    learn_alphabet,
    paired,
)
from ..encoding.bins import BinsLike
from ..encoding.distances import gower
from ..fidelity import RawX
from ..finishing import Arrange
from ..fitted import Fitted, Posterior, Training
from ..joint import as_joint, count_pairs
from ..measures import get_measure
from ..mechanism import Mechanism
from ..merging import tidied
from ..releasing.output_names import check_names_out, named_outputs, names_out, readable
from ..releasing.sampler import as_sampled
from ..secret_columns import Secrets, secrets_of
from ..solvers import DesignTask, most_symbols
from ..utilities import (
    Distortion,
    EachColumn,
    Guess,
    MutualInformation,
    Target,
    Utility,
    guess_of_cells,
)
from .beside import code_beside, few_valued, most_beside
from .inputs import FitInputs, LabelledRows
from .known_cells import KnownCells
from .leak_warnings import (
    Budget,
    judged_for_each,
    warn_of_bins,
    warn_of_design,
    warn_of_index,
    warn_of_passed_through,
)
from .learned_cells import automatic_cells, cells_of, check_groups, check_known, learn_cells
from .parameters import Settings, frozen
from .raw_values import CodedX, raw_x
from .teachers import teaching_rows

# Outputs of cells are merged as long as that costs at most this share of the utility.
_MERGED_UTILITY = 0.005

# The alphabet of S, the symbol of each row, and what is protected.
CodedSensitive: TypeAlias = tuple[Alphabet, IntArray, Secrets]


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows as symbols, with the alphabets that they are written in.

    target, v_codes : None without a target; names : the columns of X that are released; counts :
    of pairs (s, x), weighted; group_sizes : rows for each s, without weights; n_effective : how
    many equally weighted rows would say as much, about every s and every x; secrets : what is
    protected.
    """

    sensitive: Alphabet
    alphabet: Alphabet
    target: Alphabet | None
    s_codes: IntArray
    x_codes: IntArray
    v_codes: IntArray | None
    names: tuple[Any, ...]
    counts: CountArray
    group_sizes: CountArray
    n_effective: int
    secrets: Secrets


def code_rows(
    settings: Settings, rows: LabelledRows, of_s: CodedSensitive | None = None
) -> CodedRows:
    """Learn the alphabets of S and X as the settings ask, and count pairs.

    of_s : what is known of S already.
    """
    sensitive, s_codes, secrets = of_s or code_sensitive(settings, rows)
    target, v_codes = _code_target(settings, rows)
    beside = _code_beside(settings, rows) if rows.beside else None  # or refused, before cells
    alphabet, x_codes, names = _code_x(settings, rows, secrets, s_codes, v_codes)
    if beside is not None:
        alphabet, x_codes = paired(alphabet, x_codes, *beside, rows.weights)
    counts = count_pairs(s_codes, x_codes, rows.weights, sensitive.n_symbols)
    sizes = count(s_codes, sensitive.n_symbols, rows.multiplicities)[:-1]
    n_effective = rows.effective_rows(s_codes, x_codes)
    codes = s_codes, x_codes, v_codes
    return CodedRows(
        sensitive, alphabet, target, *codes, names, counts, sizes, n_effective, secrets
    )


def _code_x(
    settings: Settings,
    rows: LabelledRows,
    secrets: Secrets,
    s_codes: IntArray,
    v_codes: IntArray | None,
) -> tuple[Alphabet, IntArray, tuple[Any, ...]]:
    """Return the alphabet of X, values or cells, the symbol of each row, and its columns."""
    if rows.cells is not None:
        check_known(settings, rows.cells)
        (of_row,) = rows.x_columns.values()
        return rows.cells.alphabet, of_row.to_numpy(dtype=np.int32), rows.cells.names
    check_groups(settings, rows)
    names = tuple(rows.x_columns)
    if (cells := cells_of(settings)) is None:
        alphabet, x_codes = _learn(settings, rows, rows.x_columns)
        cells = automatic_cells(settings, rows, alphabet, x_codes, secrets.n_groups)
        if cells is None:
            return *_pooled(settings, rows, alphabet, x_codes, secrets.n_groups), names
    teachers = teaching_rows(settings, rows, cells)
    if teachers is rows:
        return learn_cells(settings, rows, cells, secrets, s_codes, v_codes)
    known = cells_taught_by(settings, teachers, cells)
    return known.alphabet, known.of_columns(rows.x_columns, rows.fold), known.names


def _code_beside(settings: Settings, rows: LabelledRows) -> tuple[ValueAlphabet, IntArray]:
    """Return the values of the columns beside X, and that of each row."""
    each = rows.weights, rows.multiplicities, rows.n_rows
    return code_beside(settings, rows.beside, *each)


def cells_taught_by(settings: Settings, rows: LabelledRows, cells: Cells) -> KnownCells:
    """Learn cells from the rows that teach them, by which others can be counted."""
    _, s_codes, secrets = code_sensitive(settings, rows)
    _, v_codes = _code_target(settings, rows)
    alphabet, _, names = learn_cells(settings, rows, cells, secrets, s_codes, v_codes)
    return KnownCells(alphabet, names, frozen(cells), tuple(rows.folds))


def code_sensitive(settings: Settings, rows: LabelledRows) -> CodedSensitive:
    """Learn the alphabet of S, and return it with the symbol of each row and what is protected.

    With a confidence, a group that is declared and has no rows is one: it may merely be rare.
    """
    has_columns = len(rows.s_columns) == 1 or isinstance(settings.epsilon, Mapping)
    as_declared = settings.confidence is not None and has_columns
    alphabet, codes = _learn(
        settings, rows, rows.s_columns, is_sensitive=True, as_declared=as_declared
    )
    secrets = secrets_of(settings.owner, settings.epsilon, tuple(rows.s_columns), alphabet)
    return alphabet, codes, secrets


def _learn(
    settings: Settings,
    rows: LabelledRows,
    columns: NamedColumns,
    is_sensitive: bool = False,
    as_declared: bool = False,
) -> tuple[ValueAlphabet, IntArray]:
    """Return the alphabet of columns of some rows taken jointly, and the symbol of each row."""
    pooling = (None, None) if is_sensitive else (settings.min_frequency, settings.max_categories)
    options = [
        {
            "n_bins": _bins_of(settings.n_bins, label, is_sensitive),
            "pooling": pooling,
            "multiplicities": rows.multiplicities,
            "as_declared": as_declared,
        }
        for label in columns
    ]
    return learn_alphabet(list(columns.values()), list(columns), rows.weights, options)


def _bins_of(n_bins: Any, label: Hashable, is_sensitive: bool) -> BinsLike | None:
    if isinstance(n_bins, dict):
        return n_bins.get(label, DEFAULT_BINS)
    if is_sensitive and np.ndim(n_bins) == 1:  # edges are for X
        return DEFAULT_BINS
    return n_bins


def _pooled(
    settings: Settings, rows: LabelledRows, alphabet: ValueAlphabet, codes: IntArray, n_s: int
) -> tuple[ValueAlphabet, IntArray]:
    """Pool the rarest symbols where the design would take long."""
    n_x, kept = alphabet.n_symbols, most_symbols(n_s)
    if rows.beside:
        kept = min(kept, most_beside(_code_beside(settings, rows)[0].n_symbols))
    if settings.solver != "auto" or n_x <= kept:
        return alphabet, codes
    pooled, symbols = alphabet.pooled(kept)
    warn(
        Message(
            InPython("X has", "The released columns have"),
            " too many symbols to design for in seconds: the rarest are pooled into one. Set ",
            Named("max_categories"),
            ", ",
            Named("min_frequency"),
            " or ",
            Named("n_bins"),
            ", or release fewer columns jointly, to choose yourself what is pooled; ",
            Setting("solver", "one_per_label" if settings.has_distances else "column_generation"),
            " designs for all of them.",
        )
    )
    return pooled, take(np.append(symbols, UNKNOWN), codes)


def fitted_to(settings: Settings, inputs: FitInputs, *, allow_leaking: bool = True) -> Fitted:
    """Learn the alphabets and the joint distribution, design the channel, and judge the rest.

    allow_leaking : whether columns that are passed through may exceed the budget.
    """
    sensitive, s_codes, secrets = of_s = code_sensitive(settings, inputs.rows)
    # What is refused for the sake of the table alone is refused before what takes long.
    leaking = _judge_passed_through(settings, inputs, of_s, allow_leaking)
    coded = code_rows(settings, inputs.rows, of_s)
    inputs = inputs.released_as(coded.names, coded.alphabet.of_cells)
    roles, rows = inputs.roles, inputs.rows
    mechanism = _design(settings, inputs, coded)
    warn_of_bins(list(rows.s_columns), sensitive, settings.n_bins)
    judge_index(settings, inputs, s_codes, secrets)
    _warn_of_figures(mechanism, coded)
    training = Training(
        coded.sensitive,
        tuple(rows.s_columns),
        coded.counts,
        coded.secrets,
        rows.n_rows,
        coded.n_effective,
        _raw(settings, inputs, coded, mechanism),
        _with_target(coded, rows.weights),
    )
    fitted = Fitted(
        roles,
        inputs.types,
        coded.alphabet,
        mechanism,
        leaking,
        _target_given_y(coded, rows, mechanism),
        training,
    )
    check_names_out(names_out(roles, fitted.posterior.labels, settings.output))
    return fitted


def _with_target(coded: CodedRows, weights: FloatArray | None) -> FloatArray | None:
    """Return how often each group of S, value of the target and symbol of X occur together."""
    if coded.target is None or coded.v_codes is None:
        return None
    shape = coded.sensitive.n_symbols, coded.target.n_symbols, coded.alphabet.n_symbols
    together = np.ravel_multi_index((coded.s_codes, coded.v_codes, coded.x_codes), shape)
    return np.bincount(together, weights, math.prod(shape)).reshape(shape).astype(float)


def _target_given_y(
    coded: CodedRows, rows: LabelledRows, mechanism: Mechanism
) -> Posterior | None:
    """Return P(V|y), which is released in place of P(x|y) where rows are cells for a target."""
    if not (coded.alphabet.of_cells and isinstance(mechanism.objective, Target)):
        return None
    assert rows.target is not None
    assert coded.target is not None
    name = "|".join(map(str, rows.target))
    labels = tuple(f"{name}={text}" for text in readable(coded.target.labels))
    return Posterior(labels, mechanism.posterior @ mechanism.objective.p_v_given_x.T)


def _raw(
    settings: Settings,
    inputs: FitInputs,
    coded: CodedRows,
    mechanism: Mechanism,
) -> RawX | None:
    """Return X as it was before it was cut and pooled."""
    if not isinstance(coded.alphabet.x_alphabet, ValueAlphabet):
        return None  # figures of cells are about X as it was
    weights = _column_weights(settings, inputs.rows) if settings.has_distances else None
    x = CodedX(coded.alphabet, coded.x_codes, coded.v_codes)
    return raw_x(inputs, x, mechanism, weights)


def _column_weights(settings: Settings, rows: LabelledRows) -> list[float]:
    return settings.distances.weights_of(list(rows.x_names), settings.owner)


def _code_target(
    settings: Settings, rows: LabelledRows
) -> tuple[Alphabet | None, IntArray | None]:
    """Return the alphabet of the target and its codes, if there is one."""
    if rows.target is None:
        return None, None
    return _learn(settings, rows, rows.target, is_sensitive=True)


def distances_of(settings: Settings, inputs: FitInputs, coded: CodedRows) -> FloatArray:
    """Return how far symbols of X are from each other, by the weights of its columns."""
    in_order = [type_.is_ordered for type_ in inputs.x_types]
    return gower(coded.alphabet, in_order, _column_weights(settings, inputs.rows))


def _utility(
    settings: Settings, rows: LabelledRows, coded: CodedRows, loss: FloatArray
) -> str | Utility:
    """Return the utility: I(V;Y) of rows with a target V, a loss as the columns have it."""
    x_alphabet = coded.alphabet.x_alphabet
    cells = x_alphabet if isinstance(x_alphabet, CellAlphabet) else None
    if coded.v_codes is not None:
        table = count_pairs(coded.v_codes, coded.x_codes, rows.weights)
        return Target(table, whole=0.0 if cells is None else cells.partition.information)
    if settings.has_distances:
        return Distortion.of_symbols(loss, of_cells=cells is not None)
    if cells is not None and _is_information(settings.utility):
        return EachColumn.of_tables(coded.alphabet.tables())
    if cells is not None and settings.utility in (Guess.name, Guess()):
        return guess_of_cells()
    return settings.utility


def _is_information(utility: str | Utility) -> bool:
    return utility == MutualInformation.name or isinstance(utility, MutualInformation)


def design_options(
    settings: Settings, rows: LabelledRows, coded: CodedRows, loss: FloatArray
) -> dict[str, Any]:
    """Return what `design_mechanism` is asked for, besides counts and a budget."""
    return {
        "measure": settings.measure,
        "scope": settings.scope,
        "utility": _utility(settings, rows, coded, loss),
        "solver": settings.solver,
        "max_outputs": settings.max_outputs,
        "confidence": settings.confidence,
        "n_samples": None if settings.confidence is None else coded.n_effective,
        **_groups(rows, coded.alphabet),
        **(settings.solver_options or {}),
    }


def _groups(rows: LabelledRows, alphabet: Alphabet) -> dict[str, Any]:
    """Return what each symbol has beside it, for the design."""
    if not isinstance(alphabet, PairedAlphabet):
        return {}
    names = alphabet.group_names(list(rows.beside))
    return {"groups": [names[z] for z in alphabet.groups]}


def _design(settings: Settings, inputs: FitInputs, coded: CodedRows) -> Mechanism:
    """Return the mechanism as it is sampled, with names for its outputs."""
    loss = distances_of(settings, inputs, coded)
    asked = design_options(settings, inputs.rows, coded, loss)
    counts = coded.counts.astype(float) + settings.smoothing
    secrets, owner = coded.secrets, "PrivacyFunnelTransformer"
    options = {name: asked.pop(name) for name in settings.solver_options or {}}
    solver = asked.pop("solver")
    task = DesignTask.checked(owner, secrets.tables(counts), secrets.budgets.values(), **asked)
    arrange = _arrangement(task, coded.alphabet, loss)
    finishing = {"arrange": arrange, "as_sampled": as_sampled}
    mechanism = designed(task, secrets.budgets, owner, solver, options, **finishing)
    x_labels = tuple(coded.alphabet.labels)
    assert mechanism.symbol_of_output is not None
    return mechanism.renamed(
        x_labels=x_labels,
        y_labels=tuple(x_labels[symbol] for symbol in mechanism.symbol_of_output),
        s_labels={name: groups.labels for name, groups in secrets.groups.items()},
        together=(as_joint(counts, owner).p_sx, tuple(coded.sensitive.labels)),
    )


def _arrangement(task: DesignTask, alphabet: Alphabet, loss: FloatArray) -> Arrange:
    """Return what puts outputs in order: each is named after a symbol of X.

    Of cells, outputs that say nearly the same about X, or the target, are merged. They differ in
    what they say about S: merged, they say less about it, and on more rows each.
    """
    p_x, utility, groups = task.p_x, task.utility, task.groups
    if alphabet.of_cells and isinstance(utility, Target):
        loss = utility.surprise()

    def arranged(channel: FloatArray) -> tuple[FloatArray, IntArray]:
        if alphabet.of_cells:
            allowance = _MERGED_UTILITY * utility.of_channel(p_x, channel)
            channel = tidied(channel, p_x, utility, allowance, groups)
        return named_outputs(channel, p_x, utility, loss, groups)

    return arranged


def _warn_of_figures(mechanism: Any, coded: CodedRows) -> None:
    counts, sizes = coded.counts, coded.group_sizes
    warn_of_design(mechanism, coded.secrets, counts, sizes, coded.n_effective)


def _budgets(settings: Settings, secrets: Secrets) -> dict[Any, Budget]:
    about = get_measure(settings.measure), settings.scope
    return {name: Budget(epsilon, *about) for name, epsilon in secrets.budgets.items()}


def judge_index(
    settings: Settings, inputs: FitInputs, s_codes: IntArray, secrets: Secrets
) -> None:
    """Warn of an index that reveals more about S than the budget allows."""
    if inputs.index:
        found = judged_for_each(
            _budgets(settings, secrets),
            inputs.index,
            {name: groups.codes(s_codes) for name, groups in secrets.groups.items()},
            inputs.rows.weights,
            in_order=True,
        )
        warn_of_index(found)


def _judge_passed_through(
    settings: Settings, inputs: FitInputs, of_s: CodedSensitive, allow_leaking: bool
) -> dict[Any, float]:
    """Return what columns that are passed through leak, where that is more than the budget.

    NaN for a column that cannot be judged.
    """
    if not inputs.passed_through:
        return {}
    doing("judging columns that are copied")
    (sensitive, s_codes, secrets), weights = of_s, inputs.rows.weights
    if (s_passed := inputs.s_passed) is not None:
        s_codes, _ = sensitive.encode(list(s_passed.values()), list(s_passed))
        weights = None
    of_each = {name: groups.codes(s_codes) for name, groups in secrets.groups.items()}
    budgets = _budgets(settings, secrets)
    passed, written = inputs.passed_through, inputs.written
    found = judged_for_each(budgets, passed, of_each, weights, written=written)
    few = few_valued({name: passed[name] for name in found.leaking})
    warn_of_passed_through(found, settings.epsilon, allow_leaking, few)
    return {**found.leaking, **dict.fromkeys(found.unclear, np.nan)}
