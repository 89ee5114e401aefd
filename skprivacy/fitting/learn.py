"""`fit` from labelled rows: alphabets, counts, the mechanism."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from .._messages import InPython, Message, Notice, Setting, doing, warn
from .._typing import CountArray, FloatArray, IntArray, NamedColumns
from ..cells import CellAlphabet, Cells
from ..cells.cells import Classes
from ..channels import tidied
from ..codes import UNKNOWN, chunks, count, take
from ..design import Arrange, design_task
from ..encoding import (
    DEFAULT_BINS,
    Alphabet,
    ColumnAlphabet,
    PairedAlphabet,
    ValueAlphabet,
    learn_alphabet,
    paired,
)
from ..encoding.alphabets import ShownColumn, combine
from ..encoding.columns import edges_below
from ..encoding.values import coded, coded_by_offset
from ..fidelity import (
    ComparedColumn,
    RawX,
    compared_columns,
    gower,
    mid_ranks,
    places_of,
    spread,
    unit_of,
)
from ..fitted import Fitted, Posterior, ReleasedTarget, Secrets, Training, secrets_of
from ..joint import as_joint, count_pairs
from ..measures import get_measure
from ..mechanism import Mechanism, named_channel
from ..releasing.output_names import (
    check_names_out,
    named_outputs,
    names_out,
    readable,
    shown_symbols,
)
from ..releasing.sampler import as_sampled
from ..solvers import DesignTask, most_symbols
from ..utilities import (
    Distortion,
    EachColumn,
    Guess,
    MutualInformation,
    Target,
    Utility,
    entropy,
    guess_of_cells,
)
from .inputs import FitInputs, LabelledRows, code_beside, has_few_values, names_left_out
from .leak_warnings import (
    Budget,
    Judgement,
    is_nearly_sorted,
    leaking_columns,
    warn_of_bins,
    warn_of_design,
    warn_of_index,
    warn_of_order,
    warn_of_passed_through,
    warn_of_unjudged,
)
from .learned_cells import (
    automatic_cells,
    cells_of,
    check_known,
    check_no_ids,
    learn_cells,
    training_rows,
)
from .parameters import Settings, frozen
from .tally import KnownCells

# Outputs of cells are merged as long as that costs at most this share of the utility; of cells for
# a target, which are fewer, this one.
_MERGED_UTILITY, _MERGED_ABOUT_TARGET = 0.005, 0.001

# The tolerance of designs of cells for a target, for more than two groups: what further digits
# are worth is far less than what the counts of cells get wrong, and they take most of the time.
_TOL_OF_CELLS = 1e-3

# The alphabet of S, the symbol of each row, and the secrets.
CodedSensitive: TypeAlias = tuple[Alphabet, IntArray, Secrets]


def fit_mechanism(settings: Settings, inputs: FitInputs, *, allow_leaking: bool = True) -> Fitted:
    """Learn the alphabets and the joint distribution, design the channel, judge other columns.

    allow_leaking : whether columns that are passed through may exceed the budget.
    """
    of_s = code_sensitive(settings, inputs.rows)
    # Columns may be refused: before the design, which takes long.
    has_copied = bool(inputs.roles.kept_positions)
    leaking = _check_passed_through(settings, inputs, of_s, allow_leaking) if has_copied else {}
    coded = code_rows(settings, inputs.rows, of_s)
    if coded.alphabet.of_cells:  # which may leave columns out
        inputs = inputs.released_as(coded.names, of_cells=True)
    inputs = _with_order(settings, inputs)
    roles, rows = inputs.roles, inputs.rows
    mechanism = _design(settings, inputs, coded)
    warn_of_bins(list(rows.s_columns), coded.sensitive, settings.n_bins)
    of_index = check_order(settings, inputs, of_s)
    counted = coded.counts, coded.group_sizes, coded.n_effective
    warn_of_design(mechanism, coded.secrets, *counted)
    raw = raw_x(settings, inputs, coded, mechanism)
    with_target = None if coded.target is None else _with_target(coded, rows.weights)
    protected = coded.sensitive, tuple(rows.s_columns), coded.counts, coded.secrets
    n_rows = rows.n_rows, coded.n_effective
    training = Training(
        *protected, *n_rows, raw, with_target, names_left_out(inputs), of_index, inputs.s_from
    )
    of_target = _target_given_y(coded, rows, mechanism) if rows.target else None
    designed = inputs.types, coded.alphabet, mechanism, leaking
    shown = None
    if coded.alphabet.of_cells and settings.draws_together:
        loss = distances_of(settings, inputs, coded) if settings.has_distances else None
        shown = shown_symbols(mechanism.channel, mechanism.p_x, mechanism.strata, loss)
    target = None
    if settings.release_target:
        assert rows.target is not None
        roles = replace(roles, target_names=tuple(rows.target))
        target = _released_target(coded, inputs, mechanism)
    fitted = Fitted(roles, *designed, of_target, shown, target, training)
    check_names_out(names_out(roles, fitted.posterior.labels, settings.output))
    return fitted


def _with_order(settings: Settings, inputs: FitInputs) -> FitInputs:
    """Return inputs whose types say which columns are ordered by a parameter."""
    if not settings.ordered:
        return inputs
    names = map(inputs.roles.name, inputs.roles.typed_positions)
    typed = zip(names, inputs.types, strict=True)
    types = (
        replace(t, is_ordered=t.is_ordered or n in (settings.ordered or {})) for n, t in typed
    )
    return replace(inputs, types=tuple(types))


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows as symbols, with their alphabets.

    target, v_codes : None without a target; names : the columns of X that are released; counts :
    of pairs (s, x), weighted; group_sizes : rows for each s, without weights; n_effective : the
    effective sample size, see `LabelledRows.effective_rows`.
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
    """Learn the alphabets of S and X, and count pairs; of_s : if S is already coded."""
    sensitive, s_codes, secrets = of_s or code_sensitive(settings, rows)
    target, v_codes = _learn(settings, rows, rows.target) if rows.target else (None, None)
    beside = (
        code_beside(settings, rows) if rows.beside else None
    )  # checked before cells are learned
    s = Classes.of(sensitive, s_codes, list(rows.s_columns.values()))
    v = None
    if target is not None and v_codes is not None and rows.target:
        v = Classes.of(target, v_codes, list(rows.target.values()))
    alphabet, x_codes, names = _code_x(settings, rows, secrets, s, v)
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
    s: Classes,
    v: Classes | None,
) -> tuple[Alphabet, IntArray, tuple[Any, ...]]:
    """Return the alphabet of X (values or cells), the symbol of each row, and its columns."""
    if rows.cells is not None:
        check_known(settings, rows.cells)
        (of_row,) = rows.x_columns.values()
        return rows.cells.alphabet, of_row.to_numpy(dtype=np.int32), rows.cells.names
    if tuple(rows.persons) != (() if settings.person is None else (settings.person,)):
        # Batches were counted before the parameter was changed.
        template = (
            "These rows were counted with another {person}: set it as it was, or start again."
        )
        raise ValueError(Message.of(template))
    names = tuple(rows.x_columns)
    if (cells := cells_of(settings)) is None:
        alphabet, x_codes = _learn(settings, rows, rows.x_columns)
        cells = automatic_cells(settings, rows, alphabet, x_codes, secrets.n_groups)
        if cells is None:
            check_no_ids(alphabet, names, rows.n_rows)
            return *_pooled(settings, rows, alphabet, x_codes, secrets.n_groups), names
    training = training_rows(settings, rows, cells)
    if training is rows:
        return learn_cells(settings, rows, cells, secrets, s, v)
    known = cells_learned_from(settings, training, cells)
    return known.alphabet, known.of_columns(rows.x_columns, rows.fold), known.names


def cells_learned_from(settings: Settings, rows: LabelledRows, cells: Cells) -> KnownCells:
    """Learn cells from some rows, by which other rows can be counted."""
    sensitive, s_codes, secrets = code_sensitive(settings, rows)
    s, v = Classes.of(sensitive, s_codes, list(rows.s_columns.values())), None
    if rows.target:
        v = Classes.of(*_learn(settings, rows, rows.target), list(rows.target.values()))
    alphabet, _, names = learn_cells(settings, rows, cells, secrets, s, v)
    return KnownCells(alphabet, names, tuple(rows.persons), frozen(cells))


def code_sensitive(settings: Settings, rows: LabelledRows) -> CodedSensitive:
    """Return the alphabet of S, the symbol of each row, and the secrets.

    With a confidence, categories without rows are groups too: they may merely be rare.
    """
    has_columns = len(rows.s_columns) == 1 or isinstance(settings.epsilon, Mapping)
    as_declared = settings.confidence is not None and has_columns
    alphabet, codes = _learn(settings, rows, rows.s_columns, as_declared=as_declared)
    secrets = secrets_of(settings.owner, settings.epsilon, tuple(rows.s_columns), alphabet)
    return alphabet, codes, secrets


def _learn(
    settings: Settings, rows: LabelledRows, columns: NamedColumns, as_declared: bool = False
) -> tuple[ValueAlphabet, IntArray]:
    """Return the joint alphabet of some columns, and the symbol of each row.

    Values of S and of a target are not pooled; edges without names are for X.
    """
    n_bins, pooling = settings.n_bins, (settings.min_frequency, settings.max_categories)
    if columns is not rows.x_columns:
        n_bins, pooling = DEFAULT_BINS if np.ndim(n_bins) == 1 else n_bins, (None, None)
    by_name = n_bins if isinstance(n_bins, dict) else dict.fromkeys(columns, n_bins)
    same = {"pooling": pooling, "multiplicities": rows.multiplicities, "as_declared": as_declared}
    options = [
        {"n_bins": by_name.get(label, DEFAULT_BINS), "order": settings.order_of(label), **same}
        for label in columns
    ]
    return learn_alphabet(list(columns.values()), list(columns), rows.weights, options)


def _pooled(
    settings: Settings, rows: LabelledRows, alphabet: ValueAlphabet, codes: IntArray, n_s: int
) -> tuple[ValueAlphabet, IntArray]:
    """Pool the rarest symbols if the design would take long."""
    n_x, kept = alphabet.n_symbols, most_symbols(n_s, in_pairs=settings.is_plain)
    if rows.beside:
        # More pairs of z and a symbol of X would make channels too large for memory.
        kept = min(kept, max(2, 2000 // code_beside(settings, rows)[0].n_symbols))
    if settings.solver != "auto" or n_x <= kept:
        return alphabet, codes
    pooled, symbols = alphabet.pooled(kept)
    solver = "one_per_label" if settings.has_distances else "column_generation"
    text = Message.of(
        "{x} too many symbols to design for in seconds: the rarest are pooled into one. Set "
        "{max_categories}, {min_frequency} or {n_bins}, or release fewer columns jointly, to "
        "choose what is pooled; {solver} designs for all of them.",
        x=InPython("X has", "The released columns have"),
        solver=Setting("solver", solver),
    )
    warn(text, Notice)
    return pooled, take(np.append(symbols, UNKNOWN), codes)


def _with_target(coded: CodedRows, weights: FloatArray | None) -> FloatArray:
    """Return the counts of (s, v, x), where v is a value of the target."""
    assert coded.target is not None
    assert coded.v_codes is not None
    shape = coded.sensitive.n_symbols, coded.target.n_symbols, coded.alphabet.n_symbols
    together = np.ravel_multi_index((coded.s_codes, coded.v_codes, coded.x_codes), shape)
    return np.bincount(together, weights, math.prod(shape)).reshape(shape).astype(float)


def _target_given_y(
    coded: CodedRows, rows: LabelledRows, mechanism: Mechanism
) -> Posterior | None:
    """Return P(V|y), which is released in place of P(x|y) if symbols are cells for a target."""
    if not (coded.alphabet.of_cells and isinstance(mechanism.objective, Target)):
        return None
    assert rows.target is not None
    assert coded.target is not None
    name = "|".join(map(str, rows.target))
    labels = tuple(f"{name}={text}" for text in readable(coded.target.labels))
    return Posterior(labels, mechanism.posterior @ mechanism.objective.p_v_given_x.T)


def _released_target(coded: CodedRows, inputs: FitInputs, mechanism: Mechanism) -> ReleasedTarget:
    """Return the target as it is released."""
    assert isinstance(coded.target, ValueAlphabet)
    assert isinstance(mechanism.objective, Target)
    given_y = mechanism.posterior @ mechanism.objective.p_v_given_x.T
    return ReleasedTarget(coded.target, inputs.target_types, given_y)


def distances_of(settings: Settings, inputs: FitInputs, coded: CodedRows) -> FloatArray:
    """Return the distances between symbols of X."""
    in_order = [type_.is_ordered for type_ in _with_order(settings, inputs).x_types]
    return gower(coded.alphabet, in_order, settings.column_weights(inputs.rows.x_names))


def _utility(
    settings: Settings, rows: LabelledRows, coded: CodedRows, loss: FloatArray
) -> str | Utility:
    """Return the utility: with the target of the rows, or the loss of their columns, if any."""
    x_alphabet = coded.alphabet.x_alphabet
    cells = x_alphabet if isinstance(x_alphabet, CellAlphabet) else None
    if coded.v_codes is not None:
        table = count_pairs(coded.v_codes, coded.x_codes, rows.weights)
        return Target(table, whole=0.0 if cells is None else cells.partition.information)
    if settings.has_distances:
        return Distortion.of_symbols(loss, of_cells=cells is not None)
    asked = settings.utility
    is_information = asked == MutualInformation.name or isinstance(asked, MutualInformation)
    if cells is not None and is_information:
        return EachColumn.of_tables(coded.alphabet.tables())
    if cells is not None and asked in (Guess.name, Guess()):
        return guess_of_cells()
    return asked


def design_options(
    settings: Settings, rows: LabelledRows, coded: CodedRows, loss: FloatArray
) -> dict[str, Any]:
    """Return the arguments of `design_mechanism`, without counts and budget."""
    beside, alphabet = {}, coded.alphabet
    if isinstance(alphabet, PairedAlphabet):
        names = alphabet.stratum_names(list(rows.beside))
        beside["beside"] = [names[z] for z in alphabet.strata]
    return {
        "measure": settings.measure,
        "scope": settings.scope,
        "utility": _utility(settings, rows, coded, loss),
        "solver": settings.solver,
        "max_outputs": settings.max_outputs,
        "confidence": settings.confidence,
        "n_samples": None if settings.confidence is None else coded.n_effective,
        **beside,
        "solver_options": settings.solver_options,
    }


def _design(settings: Settings, inputs: FitInputs, coded: CodedRows) -> Mechanism:
    """Return the mechanism that will be sampled, with names for its outputs."""
    loss = distances_of(settings, inputs, coded)
    asked = design_options(settings, inputs.rows, coded, loss)
    counts = coded.counts.astype(float) + settings.smoothing
    secrets, owner = coded.secrets, "PrivacyFunnelTransformer"
    solver, solver_options = asked.pop("solver"), asked.pop("solver_options")
    task = DesignTask.checked(owner, secrets.tables(counts), secrets.budgets.values(), **asked)
    arrange = _arrangement(task, coded.alphabet, loss)
    about_target = coded.alphabet.of_cells and isinstance(task.utility, Target)
    tol = _TOL_OF_CELLS if about_target and coded.sensitive.n_symbols > 2 else None
    chosen = owner, solver, solver_options, tol
    mechanism = design_task(task, secrets.budgets, *chosen, arrange=arrange, as_sampled=as_sampled)
    x_labels = tuple(coded.alphabet.labels)
    assert mechanism.symbol_of_output is not None
    return mechanism.renamed(
        x_labels=x_labels,
        y_labels=tuple(x_labels[symbol] for symbol in mechanism.symbol_of_output),
        s_labels={name: groups.labels for name, groups in secrets.groups.items()},
        together=(as_joint(counts, owner).p_sx, tuple(coded.sensitive.labels)),
    )


def _arrangement(task: DesignTask, alphabet: Alphabet, loss: FloatArray) -> Arrange:
    """Return a function that names each output of a channel after a symbol of X.

    For cells, it also merges outputs with nearly the same posterior of X, or of the target. They
    differ in what they say about S: merged, they say less about it, and on more rows each.
    """
    p_x, utility, strata = task.p_x, task.utility, task.strata
    if alphabet.of_cells and isinstance(utility, Target):
        loss = utility.surprise()

    def arranged(channel: FloatArray) -> tuple[FloatArray, IntArray]:
        if alphabet.of_cells:
            share = _MERGED_ABOUT_TARGET if isinstance(utility, Target) else _MERGED_UTILITY
            allowance = share * utility.of_channel(p_x, channel)
            channel = tidied(channel, p_x, utility, allowance, strata)
        return named_outputs(channel, p_x, utility, loss, strata)

    return arranged


def _leaking_columns(
    settings: Settings, inputs: FitInputs, of_s: CodedSensitive, columns: NamedColumns, **how: Any
) -> Judgement:
    """Judge columns that are released with the rows of `fit`, by these rows or a sample."""
    (sensitive, s_codes, secrets), weights = of_s, inputs.rows.weights
    if (s_passed := inputs.s_passed) is not None:
        s_codes, _ = sensitive.encode(list(s_passed.values()), list(s_passed))
        weights = None
    about = get_measure(settings.measure), settings.scope
    budgets = {name: Budget(epsilon, *about) for name, epsilon in secrets.budgets.items()}
    of_each = {name: groups.codes(s_codes) for name, groups in secrets.groups.items()}
    return leaking_columns(budgets, columns, of_each, weights, **how)


def check_order(
    settings: Settings, inputs: FitInputs, of_s: CodedSensitive | None = None
) -> dict[str, float]:
    """Return the leakage of levels of the index that exceed the budget, with a warning.

    NaN for a level that cannot be judged. The order of the rows is released too, with any index.
    """
    of_s = of_s or code_sensitive(settings, inputs.rows)
    found = _check_index(settings, inputs, of_s) if inputs.index else {}
    _, s_codes, secrets = of_s
    if not found and inputs.rows.multiplicities is None:  # else it is not known
        groups = (g for s, g in secrets.groups.items() if secrets.budgets[s] < np.inf)
        if any(is_nearly_sorted(each.codes(s_codes)) for each in groups):
            warn_of_order()
    return found


def _check_index(settings: Settings, inputs: FitInputs, of_s: CodedSensitive) -> dict[str, float]:
    found = _leaking_columns(settings, inputs, of_s, inputs.index, in_order=True)
    warn_of_index(found)
    return {f"{name} (the index)": leakage for name, leakage in found.by_column().items()}


def _check_passed_through(
    settings: Settings, inputs: FitInputs, of_s: CodedSensitive, allow_leaking: bool
) -> dict[Any, float]:
    """Return the leakage of columns that are passed through and exceed the budget.

    NaN for a column that cannot be judged, because of its values or for lack of rows.
    """
    passed, unjudged = inputs.passed_through, set(inputs.kept) - set(inputs.passed_through)
    warn_of_unjudged([name for name in inputs.kept if name in unjudged])
    if not passed:
        return dict.fromkeys(inputs.kept, np.nan)
    doing("judging columns that are copied")
    found = _leaking_columns(settings, inputs, of_s, passed, written=inputs.written)
    few = [name for name in found.leaking if has_few_values(passed[name])]
    warn_of_passed_through(found, settings.epsilon, allow_leaking, few)
    return found.by_column() | dict.fromkeys(unjudged, np.nan)


# The raw X, before it was cut and pooled: how much of it a release keeps.


def raw_x(
    settings: Settings, inputs: FitInputs, coded: CodedRows, mechanism: Mechanism
) -> RawX | None:
    """Return the figures about X before it was cut and pooled.

    None if it was neither, if it is not known, or for cells, whose figures are about it anyway.
    """
    alphabet, rows = coded.alphabet, inputs.rows
    if rows.is_coarse or not isinstance(alphabet.x_alphabet, ValueAlphabet):
        return None
    if not (alphabet.is_pool.any() or any(column.is_cut for column in alphabet.columns)):
        return None
    raw = _RawRows.of(rows, coded)

    def compared(by_rank: bool) -> list[ComparedColumn | None]:
        both = enumerate(zip(alphabet.columns, alphabet.shown, strict=True))
        return [_compared(c, s, raw, i, by_rank) if c.is_cut else None for i, (c, s) in both]

    figures = tuple(compared(by_rank=False))
    if not settings.has_distances:
        return RawX(figures, _utility_before_cuts(mechanism, raw, coded.v_codes, rows.weights))
    in_order = [type_.is_ordered for type_ in inputs.x_types]
    pairs = zip(
        compared(by_rank=True), compared_columns(alphabet, in_order, by_rank=True), strict=True
    )
    ranked = [other if column is None else column for column, other in pairs]
    return RawX(figures, _closeness(mechanism, ranked, settings.column_weights(rows.x_names)))


@dataclass(frozen=True, eq=False)
class _RawRows:
    """The distinct raw rows of X.

    places : of each distinct row in each column that was cut, NaN if missing, and None for other
    columns; symbols, weights : of each distinct row; of_row : the distinct row of each row.
    """

    places: list[FloatArray | None]
    symbols: IntArray
    weights: CountArray
    of_row: IntArray

    @classmethod
    def of(cls, rows: LabelledRows, x: CodedRows) -> _RawRows:
        """Return the distinct rows."""
        places, of_row, n = _distinct_rows(rows, x)
        symbols = np.empty(n, dtype=x.x_codes.dtype)
        for chunk in chunks(len(of_row)):
            symbols[of_row[chunk]] = x.x_codes[chunk]
        if rows.weights is None and n == len(of_row):
            return cls(places, symbols, np.ones(n, dtype=np.int8), of_row)
        return cls(places, symbols, np.bincount(of_row, rows.weights, n), of_row)

    def shares(self, n_symbols: int) -> FloatArray:
        """Return the share of each distinct row among those with the same symbol."""
        totals = count(self.symbols, n_symbols, self.weights)[:-1]
        totals = np.where(totals > 0, totals, 1.0)
        shares = np.empty(len(self.symbols))
        for rows in chunks(len(shares)):
            shares[rows] = self.weights[rows] / totals[self.symbols[rows]]
        return shares


def _distinct_rows(
    rows: LabelledRows, x: CodedRows
) -> tuple[list[FloatArray | None], IntArray, int]:
    """Return the places of the distinct raw rows, the distinct row of each, and their number."""
    columns, strata = x.alphabet.columns, x.alphabet.strata
    named = zip(columns, rows.x_columns.items(), strict=True)
    parts = [_factorized(column, series, name) for column, (name, series) in named]
    codes, sizes = [code for code, _ in parts], [max(len(values), 1) for _, values in parts]
    if len(columns) == 1 and strata is None and _all_occur(parts[0][1]):
        of_row, numbers = parts[0]
        if (of_row == UNKNOWN).any():  # missing values come first
            of_row, numbers = of_row + 1, np.append(np.nan, numbers)
        return [numbers], of_row, len(numbers)
    if strata is not None:  # one raw row is in several pairs
        codes, sizes = [*codes, strata[x.x_codes]], [*sizes, int(strata.max()) + 1]
    distinct, of_row = combine(codes, sizes)
    places = [
        np.append(values, np.nan)[distinct[:, i]] if columns[i].is_cut else None
        for i, (_, values) in enumerate(parts)
    ]
    return places, of_row, len(distinct)


def _all_occur(values: Any) -> bool:
    """Whether values are places in the order of rows, not integers of a range, or categories."""
    return isinstance(values, np.ndarray) and values.dtype.kind == "f"


def _factorized(column: ColumnAlphabet, series: pd.Series, name: Hashable) -> tuple[IntArray, Any]:
    """Return the codes of a column, -1 for missing values, and its values."""
    if not column.is_cut:
        return coded(series, name)
    if (near := coded_by_offset(series)) is not None:
        return near
    numbers = places_of(column, series)
    known = ~np.isnan(numbers)
    values = numbers if known.all() else numbers[known]
    in_order = np.sort(values)
    if (in_order[1:] == in_order[:-1]).any():
        return pd.factorize(numbers)
    codes = np.cumsum(known, dtype=np.min_scalar_type(-len(known) - 1))  # without a hash table
    codes -= 1
    codes[~known] = UNKNOWN
    return codes, values


def _compared(
    column: ColumnAlphabet, shown: ShownColumn, raw: _RawRows, position: int, by_rank: bool
) -> ComparedColumn:
    """Return the comparison of a column that was cut with its raw values.

    by_rank : by mid-ranks in place of numbers.
    """
    numbers = raw.places[position]
    assert numbers is not None
    shown_numbers = places_of(column, pd.Series(shown.values, dtype=object))
    places, shown_places, unit = numbers, shown_numbers, unit_of(column)
    if by_rank:
        values, codes = np.unique(numbers, return_inverse=True)  # NaN, if there is any, is last
        values = values[~np.isnan(values)]
        weights = np.bincount(codes, raw.weights)[: len(values)].astype(float)
        below = np.cumsum(weights)
        places = np.append((below - weights / 2) / below[-1], np.nan)[codes]
        shown_places, unit = mid_ranks(values, weights, shown_numbers), ""
    as_missing = shown.values.index(None) if None in shown.values else UNKNOWN
    held, by_symbol = _found(numbers, shown_numbers, as_missing), shown.by_symbol()
    found = spread(held, raw.symbols, raw.weights, by_symbol.shape, places, shown_places)
    return ComparedColumn(found, by_symbol, unit)


def _found(numbers: FloatArray, shown: FloatArray, as_missing: int) -> IntArray:
    """Return the position of each number among the shown ones, -1 for none."""
    order = np.argsort(shown, kind="stable")  # a missing one comes last, and equals none
    found = np.empty(len(numbers), dtype=np.min_scalar_type(-len(shown)))
    for rows in chunks(len(numbers)):
        number = numbers[rows]
        nearest = order[edges_below(shown[order], number).clip(max=len(shown) - 1)]
        found[rows] = np.where(shown[nearest] == number, nearest, UNKNOWN)
        found[rows][np.isnan(number)] = as_missing
    return found


def _utility_before_cuts(
    mechanism: Mechanism, raw: _RawRows, v_codes: IntArray | None, weights: FloatArray | None
) -> float:
    """Return the share of the utility of the raw X that a mechanism keeps, NaN if not known."""
    p_x, objective, least = mechanism.p_x, mechanism.objective, mechanism.least_utility
    shares = raw.shares(len(p_x))
    if isinstance(objective, MutualInformation):
        for rows in chunks(len(shares)):
            share = shares[rows]
            shares[rows] = -share * np.log(np.where(share > 0, share, 1.0))
        within = count(raw.symbols, len(p_x), shares)[:-1]
        whole = float(entropy(p_x) + p_x @ within)
        return _share(mechanism.utility - least, whole - least)
    if isinstance(objective, Guess) and mechanism.strata is None:
        likeliest = np.zeros(len(p_x))
        np.maximum.at(likeliest, raw.symbols, shares)
        blind = (p_x * likeliest).max()
        right = ((p_x * likeliest)[:, None] * mechanism.channel).max(axis=0).sum()
        return _share(float(right - blind), float(1 - blind))
    if isinstance(objective, Target) and v_codes is not None:
        whole = _target_information(v_codes, raw.of_row, weights)
        return _share(mechanism.utility - least, whole - least)
    return np.nan


def _target_information(v_codes: IntArray, codes: IntArray, weights: FloatArray | None) -> float:
    """Return I(V; raw X) in the rows."""
    pairs, of_row = combine([v_codes, codes], [int(v_codes.max()) + 1, int(codes.max()) + 1])
    p = np.bincount(of_row, weights)
    p = p / p.sum()
    p_v, p_x = (np.bincount(column, p) for column in pairs.T)
    v, x = pairs.T
    used = p > 0
    return float(p[used] @ np.log(p[used] / (p_v[v] * p_x[x])[used]))


def _closeness(
    mechanism: Mechanism, columns: Sequence[ComparedColumn], column_weights: Sequence[float]
) -> float:
    """Return the relative reduction of the distance to raw values, compared with no release."""
    if mechanism.strata is not None:
        return np.nan
    p_x, p_symbol = mechanism.p_x, named_channel(mechanism).p_symbol
    pairs = list(zip(column_weights, columns, strict=True))
    loss = sum(weight * column.distance(p_x, p_symbol) for weight, column in pairs)
    nothing = sum(weight * column.distances(p_x) for weight, column in pairs)
    best = float(np.min(nothing))
    return _share(best - loss, best)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 1.0
