"""Options that several commands share, with their help."""

from __future__ import annotations

import argparse
from typing import Any

from .values import (
    ALPHABETS,
    DEFAULT_BINS,
    MEASURES,
    SOLVERS,
    USUAL_CONFIDENCE,
    UTILITIES,
    budget,
    confidence,
    delimiter,
    edges,
    encoding,
    frequency,
    measure,
    names,
    positive,
    proportions,
    remainder,
    solver_options,
)

S_HELP = "the columns to protect, separated by commas"


def add_input(command: argparse.ArgumentParser) -> None:
    """Add the table that is read, as the command's own argument."""
    command.add_argument(
        "source", metavar="IN", help=".csv, .tsv (both also .gz) or .parquet; - for a pipe"
    )


def add_reading(command: argparse.ArgumentParser) -> None:
    """Add how a table is read, and how the outcome is reported."""
    group = command.add_argument_group("reading and reporting")
    group.add_argument(
        "--format",
        choices=["csv", "tsv", "parquet"],
        help="the kind of table IN is, if its name does not tell (default for -: csv)",
    )
    group.add_argument(
        "--delimiter",
        type=delimiter,
        metavar="CHAR",
        help="the character between fields (default: a comma or, for .tsv, a tab)",
    )
    group.add_argument(
        "--encoding",
        default="utf-8",
        type=encoding,
        help="the encoding of a text file (default: utf-8)",
    )
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first line of IN names its columns (default: yes, but an error if it "
        "looks like data); without a header they are c1, c2, ..., and OUT gets one",
    )
    group.add_argument(
        "--names",
        type=names,
        metavar="NAMES",
        help="the names of all columns of IN, separated by commas, if it has no header",
    )
    add_reporting(group)


def add_reporting(group: Any) -> None:
    """Add what is printed."""
    group.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="say every few seconds on the standard error what is being done (default: yes)",
    )
    group.add_argument(
        "-q", "--quiet", dest="progress", action="store_false", help="the same as --no-progress"
    )
    group.add_argument("--json", action="store_true", help="print the outcome as JSON")


def add_output(command: argparse.ArgumentParser) -> None:
    """Add the file that is written."""
    command.add_argument(
        "target", metavar="OUT", help="output file, same formats as IN; written atomically"
    )
    add_force(command)


def add_force(command: argparse.ArgumentParser) -> None:
    """Add whether existing files are replaced."""
    command.add_argument("--force", action="store_true", help="replace existing files")


def add_show_groups(command: argparse.ArgumentParser) -> None:
    """Add whether groups of S are named."""
    command.add_argument(
        "--show-groups",
        action="store_true",
        help="name the most exposed group of the sensitive columns (default: no value of theirs "
        "is shown on the screen; a report names the groups)",
    )


def add_columns(command: argparse.ArgumentParser) -> None:
    """Add which columns are protected and which are replaced."""
    command.add_argument("--sensitive", type=names, required=True, metavar="NAMES", help=S_HELP)
    command.add_argument(
        "--columns",
        type=names,
        metavar="NAMES",
        help="the columns to release, separated by commas; they are protected jointly (default: "
        "all but those that other options name)",
    )
    command.add_argument(
        "--beside",
        type=names,
        metavar="NAMES",
        help="columns with few values that are published as they are, separated by commas: the "
        "budget holds for them and the release together",
    )


def add_proportions(command: argparse.ArgumentParser) -> None:
    """Add how the budgets of several secrets relate to each other."""
    command.add_argument(
        "--proportions",
        type=proportions,
        metavar="NAME=P,...",
        help="a budget for each sensitive column, or for several jointly, in these proportions: "
        "sex=1,race=10 allows ten times as much about race (default: one budget for all jointly)",
    )


def add_design(command: argparse.ArgumentParser) -> None:
    """Add what a mechanism is designed for, and how."""
    group = command.add_argument_group("design")
    add_confidence(group)
    group.add_argument(
        "--measure",
        type=measure,
        default="kl",
        help=f"the measure of leakage: {', '.join(MEASURES)}; or one with a parameter, such as "
        f"alpha_lift:alpha=4 (default: kl)",
    )
    group.add_argument(
        "--scope",
        choices=["per_output", "average"],
        default="per_output",
        help="whether every released value keeps the budget, or their average",
    )
    group.add_argument(
        "--utility",
        choices=UTILITIES,
        help="what is kept: closeness to the true values, for people who take released ones at "
        "face value (distortion); information about them, for models, and for --output symbol "
        "and posterior (mutual_information); the chance of guessing them (guess); or what they "
        "say about another column (target, with --target). Default: distortion, whatever --output "
        "is",
    )
    group.add_argument(
        "--target",
        dest="target_column",
        metavar="COLUMN",
        help="keep what the released columns say about this one, for models of it (--utility "
        "target); it is itself released only if --columns has it",
    )
    group.add_argument(
        "--solver",
        choices=["auto", *SOLVERS],
        default="auto",
        metavar="NAME",
        help="the solver to use (default: auto, with --confidence none the certified optimum "
        "where the table is not too large)",
    )
    group.add_argument(
        "--solver-options",
        type=solver_options,
        default={},
        metavar="NAME=X,...",
        help="options of the solver, such as tol=0.001,max_time=60",
    )
    group.add_argument(
        "--max-outputs",
        type=positive,
        metavar="N",
        help="merge released values until at most N are left",
    )
    add_alphabet(group)
    add_encoding(group)


def add_alphabet(group: Any) -> None:
    """Add what the symbols of X are."""
    group.add_argument(
        "--alphabet",
        choices=ALPHABETS,
        default=ALPHABETS[0],
        help="what is drawn: combinations of values, or cells, which rows that are alike share, "
        "for many columns (default: auto, cells where there are too many combinations)",
    )
    group.add_argument(
        "--max-cells",
        type=positive,
        metavar="N",
        help="how many cells there are at most, with --alphabet cells (default: 400, with "
        "--target 64)",
    )
    group.add_argument(
        "--groups",
        metavar="COLUMN",
        help="column with a person id, if people have several rows: with cells for a --target, no "
        "row is scored by a model of other rows of that person; it is never released",
    )


def add_confidence(group: Any) -> None:
    """Add for whom the budget is to hold."""
    group.add_argument(
        "--confidence",
        type=confidence,
        default=USUAL_CONFIDENCE,
        metavar="LEVEL|none",
        help=f"how often the budget is to hold for the population the rows were drawn from, such "
        f"as 0.95 or 0.99; none: it holds for the rows alone (default: {USUAL_CONFIDENCE:g})",
    )


def add_encoding(group: Any) -> None:
    """Add how values become symbols."""
    group.add_argument(
        "--bins",
        type=positive,
        default=DEFAULT_BINS,
        metavar="N",
        help=f"numbers with more distinct values than this are cut at quantiles (default: "
        f"{DEFAULT_BINS})",
    )
    group.add_argument(
        "--edges",
        type=edges,
        action="append",
        default=[],
        metavar="NAME=A,B,...",
        help="cut the numbers of a column at these edges instead; may be repeated",
    )
    add_categorical(group)
    group.add_argument(
        "--min-frequency",
        type=frequency,
        metavar="N",
        help="pool values rarer than this: a number of rows, or a share of them",
    )
    group.add_argument(
        "--max-categories",
        type=positive,
        metavar="N",
        help="pool the rarest values of each column beyond this many",
    )
    group.add_argument(
        "--smoothing",
        type=budget,
        default=0.0,
        metavar="ROWS",
        help="rows added to every pair of values before the design; needs --confidence none "
        "(default: 0)",
    )


def add_categorical(command: Any) -> None:
    """Add which numbers are codes."""
    command.add_argument(
        "--categorical",
        type=names,
        action="extend",
        default=[],
        metavar="NAMES",
        help="columns whose numbers are codes: they are not cut into bins",
    )


def add_keyed(command: argparse.ArgumentParser) -> None:
    """Add where the noise comes from, if it is to be the same every time."""
    group = command.add_argument_group(
        "keyed release", "the same row gets the same values every time; both options or neither"
    )
    group.add_argument(
        "--record-ids",
        metavar="COLUMN",
        help="the column of IN with a unique id for every row; in a text file, ids are taken "
        "exactly as written",
    )
    group.add_argument(
        "--key-file", metavar="FILE", help="a secret key, made by `skprivacy key FILE`"
    )


def add_remainder(command: argparse.ArgumentParser) -> None:
    """Add which other columns are copied."""
    command.add_argument(
        "--remainder",
        type=remainder,
        default="drop",
        metavar="drop|passthrough|NAMES",
        help="which other columns are copied, with quotes only where a text needs them: none, all "
        "but the sensitive ones and that of --record-ids, or those named, separated by commas "
        "(default: drop)",
    )
    command.add_argument(
        "--allow-leaking",
        action="store_true",
        help="copy columns even if one of them alone exceeds the budget",
    )


def add_report(command: argparse.ArgumentParser) -> None:
    """Add the report, and what is written into it."""
    group = command.add_argument_group(
        "report", "for those who sign off the release, not for its recipient"
    )
    group.add_argument("--report", metavar="R.html", help="write a report, to be signed")
    for name, what in {"purpose": "what the release is for", "recipient": "who gets it"}.items():
        group.add_argument(
            f"--{name}", metavar="TEXT", help=f"{what} (default: a line to fill in by hand)"
        )
    group.add_argument(
        "--input-hash",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether the report has the SHA-256 of IN: whoever knows all of IN but one value "
        "finds that value by it, so use --no-input-hash for reports you share outside your "
        "organisation (default: yes)",
    )
    group.add_argument(
        "--attack",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether the release is attacked for the report, by models that are trained to guess "
        "the sensitive columns, which can take minutes (default: yes)",
    )
    group.add_argument(
        "--curve",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether the report shows what other budgets would keep, which takes several designs "
        "(default: yes)",
    )


def add_unknown(command: argparse.ArgumentParser) -> None:
    """Add what becomes of values that were not seen before."""
    command.add_argument(
        "--handle-unknown",
        choices=["error", "resample"],
        default="error",
        help="what to do with values that were not seen before: stop, or draw from the "
        "distribution of the release, which reveals nothing about the row (default: error)",
    )
