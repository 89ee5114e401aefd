"""The inputs of fit, told apart: X, S, target, weights, and columns published beside."""

from __future__ import annotations

from collections.abc import Collection, Container, Hashable, Sequence, Sized
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._messages import InPython, Message, Named, Owner, Parameter, Setting, warn
from .._typing import ColumnsLike, FloatArray, IntArray, NamedColumns
from .._validation import message
from ..encoding import ValueAlphabet, learn_alphabet
from ..exceptions import PrivacyLeakWarning
from ..releasing.record_ids import folds_in
from ..tables.frames import Table, as_columns, as_table, check_length, check_weights, plain_column
from ..tables.table import ColumnRoles, ColumnType, check_no_copy, labels_of
from .parameters import Settings
from .tally import NUMBER, KnownCells

# Beside a release there may be so many values, or one for so many rows.
_FEW_VALUES, _ROWS_OF_EACH = 20, 50

# Pairs of z and a symbol of X, beyond which channels do not fit into memory.
_MOST_PAIRS = 2000


def beside_positions(
    settings: Settings, table: Table, s_positions: Container[int]
) -> tuple[int, ...]:
    """Return the columns that are published beside a release, in the order of the table."""
    given = settings.beside
    listed = [given] if isinstance(given, str | int) or callable(given) else list(given)
    for level in table.index_levels():  # only columns are published under the budget
        if (
            level.name is not None
            and level.name in listed
            and level.name not in (table.names or ())
        ):
            said = f" names {level.name!r}, which is the index of X: make it a column first, "
            where = Parameter("beside", settings.owner)
            raise ValueError(Message(where, said, "X.reset_index()."))
    found = table.positions(settings.owner, "beside", settings.beside)
    for name in (table.label(position) for position in found if position in s_positions):
        told = f"The column {name!r} is both sensitive and in ", Named("beside")
        why = ": it cannot be protected and published. "
        raise ValueError(Message(*told, why, "Leave it out of one of the two."))
    return tuple(sorted(found))


def _check_beside(
    settings: Settings, table: Table, beside: Sequence[int], released: Container[int]
) -> None:
    """Refuse bins and a release for columns that are published as they are."""
    for name in (table.label(position) for position in beside if position in released):
        told = f"The column {name!r} is both in ", Named("columns"), " and in ", Named("beside")
        why = f" of {settings.owner}: it is either replaced or published as it is. "
        raise ValueError(Message(*told, why, "Leave it out of one of the two."))
    bins = settings.n_bins if isinstance(settings.n_bins, dict) else {}
    for name in map(table.label, beside):
        if bins.get(name) is not None:
            where = (
                Parameter("n_bins", settings.owner),
                f" names the column {name!r}, which is in ",
            )
            advice = " and leaves as it is: cut it before fit, or release it too."
            raise ValueError(Message(*where, Named("beside"), advice))


def code_beside(settings: Settings, rows: LabelledRows) -> tuple[ValueAlphabet, IntArray]:
    """Return the values z of columns that are published beside a release, and that of each row."""
    columns, exact = rows.beside, {"n_bins": None, "multiplicities": rows.multiplicities}
    options: list[dict[str, Any]] = [exact] * len(columns)
    # Which categories there are, and in what order, must not tell more than the values.
    plain = list(map(plain_column, columns.values()))
    alphabet, codes = learn_alphabet(plain, list(columns), rows.weights, options)
    n_values, n_rows, listed = alphabet.n_symbols, rows.n_rows, " and ".join(map(repr, columns))
    if n_values > (most := _most_values(n_rows)):
        each = ", as many as rows" if n_values >= n_rows else f" in {n_rows:,} rows"
        have, them = ("has", "it") if len(columns) == 1 else ("have", "them")
        many = f"{listed}, in ", Named("beside"), f", {have} {n_values:,} values{each}: what each "
        why = f"of them reveals is not known from so few rows. At most {most:,} can be published "
        advice = f"as they are: make them coarser first, or release {them} too, in "
        raise ValueError(Message(*many, why, advice, Named("columns"), "."))
    if settings.max_outputs is not None and settings.max_outputs < n_values:
        told = f" must be at least {n_values}: no output is shared by different values of {listed}"
        got = ", in ", Named("beside"), f". Got {settings.max_outputs}."
        raise ValueError(Message(Parameter("max_outputs", settings.owner), told, *got))
    return alphabet, codes


def has_few_values(column: pd.Series) -> bool:
    """Whether a column has few values, whatever the number of rows."""
    try:
        n_values = column.nunique(dropna=False)
    except TypeError:  # lists, say
        return False
    return n_values <= min(_FEW_VALUES, _most_values(len(column)))


def _most_values(n_rows: int) -> int:
    return min(max(_FEW_VALUES, n_rows // _ROWS_OF_EACH), max(1, n_rows - 1))


def most_beside(n_values: int) -> int:
    """Return how many symbols X may have beside so many values."""
    return max(2, _MOST_PAIRS // n_values)


# What `fit` gets: the table with its columns told apart, y, weights, and S in all its forms.


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of S and X, and how much each of them counts.

    s_columns, x_columns : pandas Series by name; target : those of V, for utility="target";
    weights : of the rows, None for one each; multiplicities : how many rows of the data each row
    stands for, None for one; squares : sums of the squared weights of these, where there are
    weights; is_coarse : whether numbers of X may already stand for bins; cells : where X is
    already in cells, these, and its one column is the number of the cell; folds : where a column
    tells people apart, the fold of each row under the name of that column; beside : the columns
    that are published as they are, under the budget.
    """

    s_columns: NamedColumns
    x_columns: NamedColumns
    target: NamedColumns | None = None
    weights: FloatArray | None = None
    multiplicities: FloatArray | None = None
    squares: FloatArray | None = None
    is_coarse: bool = False
    cells: KnownCells | None = None
    folds: NamedColumns = field(default_factory=dict)
    beside: NamedColumns = field(default_factory=dict)

    @property
    def fold(self) -> IntArray | None:
        """The fold of each row, None where no column tells people apart."""
        return next((column.to_numpy() for column in self.folds.values()), None)

    @property
    def x_names(self) -> tuple[Any, ...]:
        """The names of the columns of X that are released."""
        return tuple(self.x_columns) if self.cells is None else self.cells.names

    @cached_property
    def n_rows(self) -> int:
        """How many rows of the data there were."""
        if self.multiplicities is None:
            return len(next(iter(self.s_columns.values())))
        return int(self.multiplicities.sum())

    def at(self, chosen: IntArray) -> LabelledRows:
        """Return some of the rows."""
        names = (f.name for f in fields(self) if f.name not in ("is_coarse", "cells"))
        return replace(self, **{name: _at(getattr(self, name), chosen) for name in names})

    def effective_rows(self, *codes: IntArray) -> int:
        """Return how many equally weighted rows would say as much: Kish's effective sample size.

        codes : of groups of the rows. Of each group, these would be as many as say as much about
        it: a few heavy rows do not count for many.
        """
        if self.weights is None or (self.squares is None and self.multiplicities is not None):
            return self.n_rows
        together = np.zeros(len(self.weights), dtype=int)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self.weights**2 if self.squares is None else self.squares
            fewest = min(_kish(code, self.weights, squares) for code in (together, *codes))
        if not fewest < np.inf:
            raise ValueError("sample_weight is too large or too small to be squared: rescale it.")
        return max(1, round(fewest))


def _at(values: Any, chosen: IntArray) -> Any:
    """Return columns, an array, or None at some rows."""
    if isinstance(values, dict):
        return {name: column.iloc[chosen] for name, column in values.items()}
    return None if values is None else values[chosen]


@dataclass(frozen=True)
class CountedColumns:
    """The names of columns that are counted together: of S, of X, of a target, and beside X.

    person : the column that tells people apart, if any. Their folds are counted, no keys.
    """

    s: tuple[Any, ...]
    x: tuple[Any, ...]
    target: tuple[Any, ...] | None = None
    person: tuple[Any, ...] = ()
    beside: tuple[Any, ...] = ()

    @classmethod
    def of(cls, rows: LabelledRows) -> CountedColumns:
        """Return the names of the columns of some rows."""
        target = None if rows.target is None else tuple(rows.target)
        s, x = tuple(rows.s_columns), tuple(rows.x_columns)
        return cls(s, x, target, tuple(rows.folds), tuple(rows.beside))

    @property
    def names(self) -> list[Any]:
        """All names; the target may be a column of X as well."""
        targets = (f"the target {name!r}" for name in self.target or ())
        folds = (f"the fold of {name!r}" for name in self.person)
        return [*self.s, *self.x, *targets, *folds, *self.beside]

    @property
    def in_table(self) -> list[Any]:
        """What the table calls them, in the order of `names`."""
        return [*self.s, *self.x, *(self.target or ()), *self.person, *self.beside]

    def in_cells(self) -> CountedColumns:
        """Return the columns with one in place of X: the number of its cell."""
        return replace(self, x=(NUMBER,), person=())

    def columns(self, rows: LabelledRows) -> list[pd.Series]:
        """Return the columns of some rows in the order of `names`."""
        parts = (rows.s_columns, rows.x_columns, rows.target or {}, rows.folds, rows.beside)
        return [column for part in parts for column in part.values()]

    def rows(
        self,
        columns: Sequence[pd.Series],
        counts: FloatArray,
        weights: FloatArray | None = None,
        squares: FloatArray | None = None,
        is_coarse: bool = False,
        cells: KnownCells | None = None,
    ) -> LabelledRows:
        """Return distinct rows that occur `counts` times, with the sums of their weights."""
        rest = iter(columns)

        def named(names: tuple[Any, ...]) -> NamedColumns:
            return dict(zip(names, rest, strict=False))

        s, x = named(self.s), named(self.x)
        target = None if self.target is None else named(self.target)
        sums = counts if weights is None else weights, counts, squares
        others = named(self.person), named(self.beside)
        return LabelledRows(s, x, target, *sums, is_coarse, cells, *others)


@dataclass(frozen=True, eq=False)
class FitInputs:
    """What was passed to `fit`.

    roles : which column is what; types : of its `typed_positions`; rows : S, X and the target;
    passed_through : the columns that are released as they are; s_passed : the columns of S of the
    same rows, None where these are `rows`; index : the levels of an index, of the same rows;
    written : what else can be read in columns that are passed through, see `judged`.
    """

    roles: ColumnRoles
    types: tuple[ColumnType, ...]
    rows: LabelledRows
    passed_through: NamedColumns = field(default_factory=dict)
    s_passed: NamedColumns | None = None
    index: NamedColumns = field(default_factory=dict)
    written: dict[Any, list[pd.Series]] = field(default_factory=dict)

    @property
    def kept(self) -> list[Any]:
        """The columns that are passed through, whether or not some of their rows are known."""
        return self.roles.names_or_positions(self.roles.kept_positions)

    @property
    def x_types(self) -> tuple[ColumnType, ...]:
        """The types of the columns of X."""
        return self.types[: len(self.roles.x_positions)]

    def released_as(self, names: Collection[Hashable], of_cells: bool) -> FitInputs:
        """Return the inputs with only some columns of X, which may be released as cells."""
        own = self.roles.names_or_positions(self.roles.x_positions)
        is_kept = [name in names for name in own]
        positions = compress(self.roles.x_positions, is_kept)
        of_others = self.types[len(is_kept) :]
        rows = self.rows
        if rows.cells is None:
            columns = {name: c for name, c in rows.x_columns.items() if name in names}
            rows = replace(rows, x_columns=columns)
        return replace(
            self,
            roles=replace(self.roles, x_positions=tuple(positions), of_cells=of_cells),
            types=(*compress(self.x_types, is_kept), *of_others),
            rows=rows,
        )


def read_inputs(
    settings: Settings,
    X: Any,
    y: ColumnsLike | None,
    sensitive_features: ColumnsLike | None,
    sample_weight: npt.ArrayLike | None,
) -> FitInputs:
    """Tell the columns apart as the settings name them."""
    owner = settings.owner
    table = as_table(X, owner)
    if table.n_rows == 0:
        raise ValueError(f"Found array with 0 sample(s) while {owner} needs at least one row.")
    check_length(y, table.n_rows, "y")
    weights = check_weights(sample_weight, table.n_rows)
    s_columns, s_positions = sensitive_columns(
        owner, table, y, settings.sensitive, sensitive_features
    )
    passed_s = y if sensitive_features is None else sensitive_features
    is_named = getattr(passed_s, "name", None) is not None or hasattr(passed_s, "columns")
    from_table = sensitive_features is None and settings.sensitive is not None
    s_names = tuple(s_columns) if is_named or from_table else ()
    roles = roles_of(settings, table, s_positions, s_names)
    index: NamedColumns = {}
    if levels := table.index_levels():
        check_no_copy(levels, roles.s_names, s_columns, owner)
        index = dict(zip(labels_of(levels), levels, strict=True))
    settings.check_names(table.names or range(table.n_columns), tuple(s_columns))
    folds = None if settings.person is None else folds_in(roles, table, owner)
    rows = LabelledRows(
        s_columns,
        table.named(roles.x_positions),
        target_columns(owner, y, s_columns) if settings.has_target else None,
        weights,
        folds={} if folds is None else {settings.person: pd.Series(folds)},
        beside=table.named(roles.beside_positions),
    )
    passed = table.named(roles.kept_positions)
    if weights is not None:  # a row of weight zero counts no more than one that is not there
        counted = np.flatnonzero(weights)
        rows, passed, index = rows.at(counted), _at(passed, counted), _at(index, counted)
    types = tuple(map(table.type_of, roles.typed_positions))
    return FitInputs(roles, types, rows, passed, index=index)


def roles_of(
    settings: Settings,
    table: Table,
    s_positions: Sequence[int],
    s_names: tuple[Any, ...],
    apart: Sequence[int] = (),
) -> ColumnRoles:
    """Return which columns of a table are what; apart : released only if they are named."""
    owner, person = settings.owner, list[int]()
    published: tuple[int, ...] = ()
    if settings.person is not None:
        person = table.positions("ScoreCells", "person", [settings.person])
    if settings.beside is not None:
        published = beside_positions(settings, table, s_positions)
    listed = () if isinstance(settings.remainder, str) else settings.remainder
    named = table.positions(owner, "remainder", listed)
    if settings.columns is None:
        others = [*s_positions, *apart, *published, *named, *person]
        found = [p for p in range(table.n_columns) if p not in others]
    else:
        found = table.positions(owner, "columns", settings.columns)
        both = [table.label(position) for position in found if position in s_positions]
        if both:
            said = f"The column {both[0]!r} is both sensitive and one of "
            why = InPython(f"the 'columns' of {owner}", Named("columns"))
            raise ValueError(Message(said, why, ": it cannot be protected and released."))
    roles = {"sensitive": s_positions, "beside": published, "remainder": named, "columns": found}
    for parameter in (name for name, own in roles.items() if person and person[0] in own):
        of_people = f"The column {table.label(person[0])!r} is named by ", Named("person")
        never = ", which tells whose row a row is and is never released, and by ", Named(parameter)
        raise ValueError(Message(*of_people, *never, ": leave it out of one of them."))
    if published:
        _check_beside(settings, table, published, found)
    if not found:
        told = Parameter("columns", owner), " must name at least one column that is not "
        raise ValueError(Message(*told, f"sensitive. Got {settings.columns!r}."))
    s_names = tuple(dict.fromkeys([*s_names, *map(table.label, s_positions)]))
    special = [*found, *s_positions, *person]
    if both := [table.label(position) for position in named if position in special]:
        twice = (
            Parameter("remainder", owner),
            f" names the column {both[0]!r}, which is sensitive ",
        )
        raise ValueError(Message(*twice, "or released: it cannot be passed through."))
    every = range(table.n_columns) if settings.remainder == "passthrough" else sorted(named)
    kept = tuple(p for p in every if p not in special and p not in published)
    of_all = table.names, table.n_columns, tuple(found), tuple(s_positions), s_names, kept
    group = next(iter(person), None)
    return ColumnRoles(*of_all, person_position=group, beside_positions=published)


def roles_of_names(
    settings: Settings, names: list[str], where: str, apart: Container[Any] = ()
) -> ColumnRoles:
    """Return which columns are what in a table that is not in memory: S must be among them.

    apart : columns that are released only if they are named.
    """
    owner = settings.owner
    if settings.sensitive is None:
        told = f" must name columns of {where}."
        raise ValueError(Message(Parameter("sensitive", owner), told))
    for name in ("columns", "beside"):
        if callable(getattr(settings, name)):
            told = f" must name columns of {where}."
            raise TypeError(Message(Parameter(name, owner), told))
    table = as_table(pd.DataFrame(columns=names), owner)
    s_positions = table.positions(owner, "sensitive", settings.sensitive)
    s_names = tuple(map(table.label, s_positions))
    left_out = [p for p, name in enumerate(names) if name in apart]
    roles = roles_of(settings, table, s_positions, s_names, left_out)
    settings.check_names(names, s_names)
    return roles


def counts_nothing(X: Any, sample_weight: npt.ArrayLike | None) -> bool:
    """Whether a batch has no rows, or none with any weight."""
    if sample_weight is not None and not np.any(sample_weight):
        return True
    return isinstance(X, Sized) and len(X) == 0


def _kish(codes: IntArray, weights: FloatArray, squares: FloatArray) -> float:
    """Return the smallest effective sample size over groups (Kish), scaled to all rows."""
    known = codes >= 0
    totals, of_squares = (np.bincount(codes[known], w[known]) for w in (weights, squares))
    occurs = totals > 0
    if not (of_squares[occurs] > 0).all():
        return np.inf
    return float((totals[occurs] * totals.sum() / of_squares[occurs]).min())


def sensitive_columns(
    owner: str,
    table: Table,
    y: ColumnsLike | None,
    sensitive: Any,
    sensitive_features: ColumnsLike | None,
) -> tuple[NamedColumns, list[int]]:
    """Return the columns of S by name, and the positions in the table that must not come out."""
    if sensitive_features is not None:
        check_length(sensitive_features, table.n_rows, "sensitive_features")
        columns = as_columns(sensitive_features, "sensitive_features")
        hidden = [] if sensitive is None else table.known_positions(owner, "sensitive", sensitive)
        return columns, sorted({*hidden, *_named_like(columns, table)})
    if sensitive is not None:
        positions = table.positions(owner, "sensitive", sensitive)
        if not positions:
            requirement = "at least one column"
            raise ValueError(message(owner, "sensitive", requirement, sensitive))
        return table.named(positions), positions
    if y is None:
        said = Owner(owner), " requires y to be passed, but the target y is None: "
        because = "it does not know what to protect. Name the sensitive column of X with "
        way_out = Setting("sensitive", ...), ", or pass fit(X, sensitive_features=...)."
        raise ValueError(Message(*said, because, *way_out))
    told = "y is taken as the sensitive variable and is being protected: "
    why = "a model that predicts y from the output will fail. Name the sensitive column with "
    advice = Setting("sensitive", ...)
    warn(Message(told, why, advice, ", or pass sensitive_features to fit."), PrivacyLeakWarning)
    columns = as_columns(y, "y")
    return columns, _named_like(columns, table)


def target_columns(owner: str, y: ColumnsLike | None, s_columns: NamedColumns) -> NamedColumns:
    """Return the columns of the target V by name, from y."""
    if y is None:
        told = Owner(owner), " with ", Setting("utility", "target")
        advice = " requires y to be passed to fit: it is the target that the output should stay "
        raise ValueError(Message(*told, advice, "informative about."))
    columns = as_columns(y, "y")
    if any(
        column is s_column or column.equals(s_column)
        for column in columns.values()
        for s_column in s_columns.values()
    ):
        said = Owner(owner), " with ", Setting("utility", "target")
        why = " got the sensitive variable itself as y: it cannot protect it and keep what X says "
        way_out = "about it. Name the sensitive column with ", Setting("sensitive", ...)
        raise ValueError(Message(*said, why, *way_out, ", or pass sensitive_features to fit."))
    return columns


def _named_like(columns: NamedColumns, table: Table) -> list[int]:
    """Return the columns of the table that hold S even though S was passed separately."""
    if table.names is None:
        return []
    return [p for p, name in enumerate(table.names) if name in columns]
