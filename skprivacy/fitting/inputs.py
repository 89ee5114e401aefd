"""The inputs of `fit`: X, S, the target, weights, and columns published beside the release."""

from __future__ import annotations

from collections.abc import Collection, Container, Hashable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import combinations, compress
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._messages import InPython, Message, Named, Owner, warn
from .._typing import ColumnsLike, FloatArray, IntArray, NamedColumns
from .._validation import about, message
from ..encoding import ValueAlphabet, learn_alphabet
from ..exceptions import PrivacyLeakWarning
from ..fitted import Fitted
from ..releasing.record_ids import folds_of_persons, persons_in
from ..tables.frames import Table, as_columns, as_table, check_length, check_weights, plain_column
from ..tables.table import ColumnRoles, ColumnType, check_no_copy, labels_of, type_of_dtype
from .parameters import Settings
from .tally import NUMBER, KnownCells

# Columns published beside a release may have 20 values, or one for every 50 rows.
_FEW_VALUES, _ROWS_OF_EACH = 20, 50


def beside_positions(settings: Settings, table: Table) -> tuple[int, ...]:
    """Return the columns that are published beside a release, in the order of the table."""
    given = settings.beside
    listed = [given] if isinstance(given, str | int) or callable(given) else list(given)
    for name in {level.name for level in table.index_levels()} - {None, *(table.names or ())}:
        if name in listed:  # only columns are published under the budget
            where = f" names {name!r}, which is the index of X: make it a column first, "
            raise ValueError(about(settings.owner, "beside", where + "X.reset_index()."))
    found = table.positions(settings.owner, "beside", settings.beside)
    return tuple(sorted(found))


def code_beside(settings: Settings, rows: LabelledRows) -> tuple[ValueAlphabet, IntArray]:
    """Return the alphabet of the columns beside a release, and the symbol z of each row."""
    columns, exact = rows.beside, {"n_bins": None, "multiplicities": rows.multiplicities}
    options: list[dict[str, Any]] = [exact] * len(columns)
    # The set of categories and their order must not reveal more than the values.
    plain = list(map(plain_column, columns.values()))
    alphabet, codes = learn_alphabet(plain, list(columns), rows.weights, options)
    n_values, n_rows, listed = alphabet.n_symbols, rows.n_rows, " and ".join(map(repr, columns))
    if n_values > (most := _most_values(n_rows)):
        template = (
            "{listed}, in {beside}: {n_values:,} values in {n_rows:,} rows are too many, because "
            "so few rows do not show what each of them reveals. At most {most:,} can be published "
            "unchanged: make them coarser first, or release these columns too, in {columns}."
        )
        numbers = {"n_values": n_values, "n_rows": n_rows, "most": most}
        raise ValueError(Message.of(template, listed=listed, **numbers))
    if settings.max_outputs is not None and settings.max_outputs < n_values:
        why = " must be at least {least}: no output is shared by different values of {listed}, in "
        values = {"least": n_values, "listed": listed, "got": settings.max_outputs}
        text = Message.of(why + "{beside}. Got {got}.", **values)
        raise ValueError(about(settings.owner, "max_outputs", text))
    return alphabet, codes


def has_few_values(column: pd.Series) -> bool:
    """Whether a column has few enough values to be published beside a release."""
    try:
        n_values = column.nunique(dropna=False)
    except TypeError:  # lists, say
        return False
    return n_values <= min(_FEW_VALUES, _most_values(len(column)))


def _most_values(n_rows: int) -> int:
    return min(max(_FEW_VALUES, n_rows // _ROWS_OF_EACH), max(1, n_rows - 1))


# The inputs of `fit`.


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of S and X, with weights.

    s_columns, x_columns : pandas Series by name; target : those of V, for utility="target";
    weights : of the rows, None for one each; multiplicities : the number of rows of the data that
    each row stands for, None for one; squares : sums of their squared weights, if there are
    weights; is_coarse : whether numbers of X may already stand for bins; cells : given if X is
    already in cells, and its only column is the number of the cell; persons : the number of each
    row's person, under the name of the column with person ids, if there is one; beside : the
    columns that are published unchanged, under the budget.
    """

    s_columns: NamedColumns
    x_columns: NamedColumns
    target: NamedColumns | None = None
    weights: FloatArray | None = None
    multiplicities: FloatArray | None = None
    squares: FloatArray | None = None
    is_coarse: bool = False
    cells: KnownCells | None = None
    persons: NamedColumns = field(default_factory=dict)
    beside: NamedColumns = field(default_factory=dict)

    @property
    def person(self) -> IntArray | None:
        """The number of each row's person, None without a column of person ids."""
        return next((c.to_numpy(dtype=np.intp) for c in self.persons.values()), None)

    @property
    def fold(self) -> IntArray | None:
        """The fold of each row, None without a column of person ids."""
        return None if self.person is None else folds_of_persons(self.person)

    @property
    def x_names(self) -> tuple[Any, ...]:
        """The names of the columns of X that are released."""
        return tuple(self.x_columns) if self.cells is None else self.cells.names

    @cached_property
    def n_rows(self) -> int:
        """The number of rows of the data."""
        if self.multiplicities is None:
            return len(next(iter(self.s_columns.values())))
        return int(self.multiplicities.sum())

    def at(self, chosen: IntArray) -> LabelledRows:
        """Return some of the rows."""
        names = (f.name for f in fields(self) if f.name not in ("is_coarse", "cells"))
        return replace(self, **{name: _at(getattr(self, name), chosen) for name in names})

    def effective_rows(self, *codes: IntArray) -> int:
        """Return the effective sample size (Kish), the smallest over all groups of the rows.

        codes : of the groups. A few heavy rows of a group do not count for many.
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
    """Return some rows of columns or of an array; None stays None."""
    if isinstance(values, dict):
        return {name: column.iloc[chosen] for name, column in values.items()}
    return None if values is None else values[chosen]


@dataclass(frozen=True)
class CountedColumns:
    """The names of columns that are counted together: of S, of X, of a target, and beside X.

    person : the column with person ids, if any; their numbers are counted in its place.
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
        return cls(s, x, target, tuple(rows.persons), tuple(rows.beside))

    @property
    def names(self) -> list[Any]:
        """All names, without repetition: the target may be a column of X as well."""
        targets = (f"the target {name!r}" for name in self.target or ())
        persons = (f"the person of {name!r}" for name in self.person)
        return [*self.s, *self.x, *targets, *persons, *self.beside]

    @property
    def in_table(self) -> list[Any]:
        """Their names in the table, in the order of `names`."""
        return [*self.s, *self.x, *(self.target or ()), *self.person, *self.beside]

    def in_cells(self) -> CountedColumns:
        """Return the same with the number of a cell in place of X."""
        return replace(self, x=(NUMBER,), person=())

    def columns(self, rows: LabelledRows) -> list[pd.Series]:
        """Return the columns of some rows in the order of `names`."""
        parts = (rows.s_columns, rows.x_columns, rows.target or {}, rows.persons, rows.beside)
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
    """The inputs of `fit`.

    roles : of all columns; types : of its `typed_positions`; rows : S, X and the target;
    passed_through : the columns that are released unchanged, in all rows or in a sample;
    s_passed : S in that sample; index : the levels of an index, in the same rows; written : other
    columns that can be read from those passed through, see `judged`; target_types : of a target;
    s_from : where S came from: columns of "X", "sensitive_features" or "y".
    """

    roles: ColumnRoles
    types: tuple[ColumnType, ...]
    rows: LabelledRows
    passed_through: NamedColumns = field(default_factory=dict)
    s_passed: NamedColumns | None = None
    index: NamedColumns = field(default_factory=dict)
    written: dict[Any, list[pd.Series]] = field(default_factory=dict)
    target_types: tuple[ColumnType, ...] = ()
    s_from: str = "X"

    @property
    def kept(self) -> list[Any]:
        """The columns that are passed through, even those without known rows."""
        return self.roles.names_or_positions(self.roles.kept_positions)

    @property
    def x_types(self) -> tuple[ColumnType, ...]:
        """The types of the columns of X."""
        return self.types[: len(self.roles.x_positions)]

    def released_as(self, names: Collection[Hashable], of_cells: bool) -> FitInputs:
        """Return the inputs with only some columns of X; of_cells : whether X is in cells."""
        x_names = self.roles.names_or_positions(self.roles.x_positions)
        is_kept = [name in names for name in x_names]
        positions = compress(self.roles.x_positions, is_kept)
        rows = self.rows
        if rows.cells is None:
            columns = {name: c for name, c in rows.x_columns.items() if name in names}
            rows = replace(rows, x_columns=columns)
        return replace(
            self,
            roles=replace(self.roles, x_positions=tuple(positions), of_cells=of_cells),
            types=(*compress(self.x_types, is_kept), *self.types[len(is_kept) :]),
            rows=rows,
        )


def read_inputs(
    settings: Settings,
    X: Any,
    y: ColumnsLike | None,
    sensitive_features: ColumnsLike | None,
    sample_weight: npt.ArrayLike | None,
) -> FitInputs:
    """Return the inputs of `fit` from a frame or an array."""
    owner = settings.owner
    table = as_table(X, owner)
    if table.n_rows == 0:
        raise ValueError(f"Found array with 0 sample(s) while {owner} needs at least one row.")
    check_length(y, table.n_rows, "y")
    weights = check_weights(sample_weight, table.n_rows)
    s_columns, s_positions = sensitive_columns(settings, table, y, sensitive_features)
    passed_s, s_from = sensitive_features, "sensitive_features"
    if passed_s is None:
        passed_s, s_from = y, "y" if settings.sensitive is None else "X"
    is_named = getattr(passed_s, "name", None) is not None or hasattr(passed_s, "columns")
    s_names = tuple(s_columns) if is_named or s_from == "X" else ()
    roles = roles_of(settings, table, s_positions, s_names)
    index: NamedColumns = {}
    if levels := table.index_levels():
        check_no_copy(levels, roles.s_names, s_columns, owner)
        index = dict(zip(labels_of(levels), levels, strict=True))
    settings.check_names(table.names or range(table.n_columns), tuple(s_columns))
    _check_orders(settings, table.named(roles.x_positions))
    persons = None if settings.person is None else persons_in(roles, table, owner)
    rows = LabelledRows(
        s_columns,
        table.named(roles.x_positions),
        target_columns(owner, y, s_columns) if settings.has_target else None,
        weights,
        persons={} if persons is None else {settings.person: pd.Series(persons)},
        beside=table.named(roles.beside_positions),
    )
    passed = table.named(roles.kept_positions)
    if weights is not None:  # rows of weight zero do not count
        counted = np.flatnonzero(weights)
        rows, passed, index = rows.at(counted), _at(passed, counted), _at(index, counted)
    if y is not None and s_from != "y":
        vectors, released = as_columns(y, "y"), table.named(roles.order)
        found = [n for n, column in released.items() if _is_one_of(column, vectors.values())]
        check_y(settings, found, [name for name in vectors if name in released])
    types = tuple(map(table.type_of, roles.typed_positions))
    of_target = (type_of_dtype(column.dtype, "") for column in (rows.target or {}).values())
    target_types = tuple(of_target)
    return FitInputs(
        roles, types, rows, passed, index=index, target_types=target_types, s_from=s_from
    )


def _check_orders(settings: Settings, columns: NamedColumns) -> None:
    """Check that orders have all values of the columns of X, which may be shown, unlike S."""
    given = {name: values for name, values in (settings.ordered or {}).items() if name in columns}
    for name, order in given.items():
        values = columns[name].dropna().unique().tolist()
        are_texts = not pd.api.types.is_numeric_dtype(columns[name].dtype)  # others have an order
        if are_texts and (lacking := [value for value in values if value not in order]):
            text = f" of the column {name!r} lacks {', '.join(map(repr, lacking[:5]))}"
            more = f" and {len(lacking) - 5} more values" if len(lacking) > 5 else ""
            raise ValueError(about(settings.owner, "ordered", f"{text}{more}."))


def roles_of(
    settings: Settings,
    table: Table,
    s_positions: Sequence[int],
    s_names: tuple[Any, ...],
    apart: Sequence[int] = (),
) -> ColumnRoles:
    """Return the roles of the columns of a table; apart : released only if they are named."""
    owner, beside = settings.owner, tuple[int, ...]()
    person = [] if settings.person is None else [settings.person]
    person = table.positions("ScoreCells", "person", person)
    if settings.beside is not None:
        beside = beside_positions(settings, table)
    listed = () if isinstance(settings.remainder, str) else settings.remainder
    remainder = table.positions(owner, "remainder", listed)
    if settings.columns is None:
        others = [*s_positions, *apart, *beside, *remainder, *person]
        x_positions = [p for p in range(table.n_columns) if p not in others]
    else:
        x_positions = table.positions(owner, "columns", settings.columns)
    roles = {"sensitive": s_positions, "person": person, "beside": beside, "columns": x_positions}
    _check_one_role(table, roles | {"remainder": remainder})
    bins = settings.n_bins if isinstance(settings.n_bins, dict) else {}
    if cut := [name for name in map(table.label, beside) if bins.get(name) is not None]:
        where = " names the column {name!r}, which is published unchanged in {beside}: "
        advice = "cut it before fit, or release it too."
        raise ValueError(about(owner, "n_bins", Message.of(where + advice, name=cut[0])))
    if not x_positions:
        got = f" must name at least one column that is not sensitive. Got {settings.columns!r}."
        raise ValueError(about(owner, "columns", got))
    s_names = tuple(dict.fromkeys([*s_names, *map(table.label, s_positions)]))
    every = range(table.n_columns) if settings.remainder == "passthrough" else sorted(remainder)
    kept = tuple(p for p in every if p not in (*x_positions, *s_positions, *person, *beside))
    x_and_s = tuple(x_positions), tuple(s_positions), s_names
    person_position = next(iter(person), None)
    return ColumnRoles(
        table.names, table.n_columns, *x_and_s, kept, False, person_position, beside
    )


def _check_one_role(table: Table, roles: Mapping[str, Sequence[int]]) -> None:
    """Check that no column is named by two parameters; roles : positions by parameter."""
    for (one, positions), (other, more) in combinations(roles.items(), 2):
        both = [position for position in positions if position in more]
        if both and (one, other) != ("beside", "remainder"):
            text = Message.of(
                "The column {name!r} is both {one} and in {other}: it can have only one role. "
                "Leave it out of one of the two.",
                name=table.label(both[0]),
                one="sensitive" if one == "sensitive" else Message("in ", Named(one)),
                other=Named(other),
            )
            raise ValueError(text)


def roles_of_names(
    settings: Settings, names: list[str], where: str, apart: Container[Any] = ()
) -> ColumnRoles:
    """Return the roles of the columns of a table that is not in memory: S must be among them.

    apart : columns that are released only if they are named.
    """
    owner = settings.owner
    check_sensitive(settings, where)
    for name in ("columns", "beside"):
        if callable(getattr(settings, name)):
            raise TypeError(about(owner, name, f" must name columns of {where}."))
    table = as_table(pd.DataFrame(columns=names), owner)
    s_positions = table.positions(owner, "sensitive", settings.sensitive)
    s_names = tuple(map(table.label, s_positions))
    left_out = [p for p, name in enumerate(names) if name in apart]
    roles = roles_of(settings, table, s_positions, s_names, left_out)
    settings.check_names(names, s_names)
    return roles


def check_sensitive(settings: Settings, where: str) -> None:
    """Check that S is named by columns of a table; where : what messages call it."""
    if settings.sensitive is None:
        raise ValueError(about(settings.owner, "sensitive", f" must name columns of {where}."))


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
    settings: Settings,
    table: Table,
    y: ColumnsLike | None,
    sensitive_features: ColumnsLike | None,
) -> tuple[NamedColumns, list[int]]:
    """Return the columns of S by name, and the positions that must not be released."""
    owner, sensitive = settings.owner, settings.sensitive
    if sensitive_features is not None:
        columns = _passed_columns(sensitive_features, table)
        hidden = [] if sensitive is None else table.known_positions(owner, "sensitive", sensitive)
        return columns, sorted({*hidden, *_named_like(columns, table)})
    if sensitive is not None:
        positions = _sensitive_positions(settings, table)
        return table.named(positions), positions
    if isinstance(settings.epsilon, Mapping):
        template = (
            "The keys of {epsilon} are budgets, and do not say where the sensitive columns are: "
            "name them in {sensitive=[...]} as well, or pass fit(X, sensitive_features=...)."
        )
        raise ValueError(Message.of(template))
    if y is None:
        template = (
            "{owner} requires y to be passed, but the target y is None: it does not know what to "
            "protect. Name the sensitive column of X with {sensitive=...}, or pass fit(X, "
            "sensitive_features=...)."
        )
        raise ValueError(Message.of(template, owner=Owner(owner)))
    text = Message.of(
        "y is taken as the sensitive variable and is being protected: a model that predicts y "
        "from the output will fail. Name the sensitive column with {sensitive=...}, or pass "
        "sensitive_features to fit."
    )
    warn(text, PrivacyLeakWarning)
    columns = as_columns(y, "y")
    return columns, _named_like(columns, table)


def _passed_columns(sensitive_features: ColumnsLike, table: Table) -> NamedColumns:
    check_length(sensitive_features, table.n_rows, "sensitive_features")
    return as_columns(sensitive_features, "sensitive_features")


def _sensitive_positions(settings: Settings, table: Table) -> list[int]:
    if positions := table.positions(settings.owner, "sensitive", settings.sensitive):
        return positions
    requirement = "at least one column"
    raise ValueError(message(settings.owner, "sensitive", requirement, settings.sensitive))


def sensitive_again(
    fitted: Fitted,
    settings: Settings,
    table: Table,
    y: ColumnsLike | None,
    sensitive_features: ColumnsLike | None,
) -> NamedColumns:
    """Return the columns of S in other rows than those of `fit`, from where `fit` had them.

    y is S only if `fit` took it for S: it may have few values that look like groups.
    """
    known, training = fitted.roles.s_names, fitted.training
    source = "X" if training is None else training.s_from
    names = known if training is None else training.names
    if sensitive_features is not None:
        columns = _passed_columns(sensitive_features, table)
    elif source == "y" and y is not None:
        columns = as_columns(y, "y")
    elif source == "X" and settings.sensitive is not None:
        columns = table.named(_sensitive_positions(settings, table))
    else:
        if not names or not {*names} <= {*known} & {*(table.names or ())}:
            raise _no_s(settings.owner)
        columns = table.named([(table.names or []).index(name) for name in names])
    if training is not None and len(columns) != len(names):
        requirement = f"{len(names)} column{'s'[: len(names) != 1]}, as in fit"
        raise ValueError(message(settings.owner, "sensitive_features", requirement, [*columns]))
    return {name: columns[name] for name in names} if {*names} == {*columns} else columns


def _no_s(owner: str) -> ValueError:
    template = (
        "{owner} got S apart from X in fit, and these rows come without it: pass "
        "sensitive_features, or fit with {sensitive=...} and keep that column in X. A scorer in a "
        "search gets S from such a column, or by metadata routing: "
        "sklearn.set_config(enable_metadata_routing=True), "
        "set_fit_request(sensitive_features=True), and search.fit with sensitive_features."
    )
    return ValueError(Message.of(template, owner=Owner(owner)))


def _is_one_of(column: pd.Series, vectors: Iterable[pd.Series]) -> bool:
    """Whether a column has the values of a vector; names may be kept by what is made of it."""
    plain = column.reset_index(drop=True)
    return any(plain.equals(vector.reset_index(drop=True)) for vector in vectors)


def names_left_out(inputs: FitInputs) -> tuple[str, ...]:
    """Return the names of the target, without columns that are released as those of X."""
    rows, target = inputs.rows, inputs.rows.target or {}
    if rows.multiplicities is not None:  # rows were counted, and have no order
        released = inputs.roles.names_or_positions(inputs.roles.order)
        return tuple(str(name) for name in target if name not in released)
    columns = [*rows.x_columns.values(), *rows.beside.values(), *inputs.passed_through.values()]
    return tuple(str(name) for name, c in target.items() if not _is_one_of(c, columns))


def check_y(settings: Settings, found: Sequence[Hashable], named: Sequence[Hashable]) -> None:
    """Warn if y is released among the columns of X; refuse to release two of the same name.

    found : the released columns that are y; named : those with a name of y.
    """
    y = InPython("y", "the target")
    if settings.release_target and named:
        template = (
            "{release_target} releases {y} after the columns of {X}, and {name!r} is one of them: "
            "leave it out of {columns}."
        )
        raise ValueError(Message.of(template, y=y, name=named[0]))
    if found:
        text = Message.of(
            "The column {name!r} is {y}, and is released: a model that predicts {y} from the "
            "release finds it among its features, so its scores say little. Leave it out of "
            "{columns}, or of the table.",
            y=y,
            name=found[0],
        )
        warn(text)


def target_columns(owner: str, y: ColumnsLike | None, s_columns: NamedColumns) -> NamedColumns:
    """Return the columns of the target V by name, from y."""
    if y is None:
        template = (
            "{owner} with {utility='target'} requires y to be passed to fit: it is the target "
            "that the output should stay informative about."
        )
        raise ValueError(Message.of(template, owner=Owner(owner)))
    columns = as_columns(y, "y")
    if any(v is s or v.equals(s) for v in columns.values() for s in s_columns.values()):
        template = (
            "{owner} with {utility='target'} got the sensitive variable itself as y: it cannot "
            "protect it and keep what X says about it. Name the sensitive column with "
            "{sensitive=...}, or pass sensitive_features to fit."
        )
        raise ValueError(Message.of(template, owner=Owner(owner)))
    return columns


def _named_like(columns: NamedColumns, table: Table) -> list[int]:
    """Return the columns of the table with a name of S, which was passed separately."""
    if table.names is None:
        return []
    return [p for p, name in enumerate(table.names) if name in columns]
