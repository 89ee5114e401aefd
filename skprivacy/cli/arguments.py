"""The parser of the command line: each command with its options."""

from __future__ import annotations

import argparse
from typing import NoReturn, TypeAlias

from .. import __version__
from .options import (
    S_HELP,
    add_categorical,
    add_columns,
    add_confidence,
    add_design,
    add_force,
    add_input,
    add_keyed,
    add_output,
    add_proportions,
    add_reading,
    add_remainder,
    add_report,
    add_reporting,
    add_show_groups,
    add_unknown,
)
from .values import (
    KEPT_UTILITY,
    MEASURES,
    budget_or_each,
    budgets,
    factor,
    measure,
    names,
    positive,
    share,
)

_SANITIZE = """\
examples, in the folder that `skprivacy demo` makes:
  skprivacy sanitize patients.csv bins.csv --sensitive sex \\
      --columns blood_pressure,bmi --bins 3 --epsilon 0.05
  skprivacy sanitize patients.csv bmi.parquet --sensitive sex --columns bmi \\
      --bins 3 --epsilon 0.02 --report bmi.html --save-mechanism bmi.json \\
      --purpose "a study of BMI" --recipient "Example University" \\
      --no-input-hash
  skprivacy sanitize patients.csv beside.csv --sensitive sex --columns bmi \\
      --epsilon 0.02 --remainder patient
  cat patients.csv | skprivacy sanitize - - --sensitive sex --columns bmi \\
      --epsilon 0.02 > piped.csv
  skprivacy key secret.key
  skprivacy sanitize patients.csv keyed.csv --sensitive sex --columns bmi \\
      --epsilon 0.02 --record-ids patient --key-file secret.key
  skprivacy sanitize patients.csv each.csv --sensitive sex,blood_pressure --bins 3 \\
      --columns bmi --epsilon sex=0.05,blood_pressure=0.1 --edges blood_pressure=95
for the rows alone, on average, by another measure; figures for a script:
  skprivacy sanitize patients.csv alone.csv --sensitive sex --columns bmi --epsilon 0.05 \\
      --confidence none --smoothing 1 --scope average --measure alpha_lift:alpha=4 \\
      --show-groups --quiet --json
for models, with few outputs, by a solver of your choice:
  skprivacy sanitize patients.csv model.csv --sensitive sex --columns bmi --bins 4 \\
      --epsilon 0.1 --utility mutual_information --output posterior --max-outputs 3 \\
      --confidence none --solver optimal --solver-options tol=0.001,max_time=60
for models of one column, and beside columns that are published; the others are cells:
  awk -F, '{print $0 "," (NR == 1 ? "heavy" : $4 > 27)}' patients.csv > more.csv
  skprivacy sanitize more.csv target.csv --sensitive sex --columns bmi --bins 3 \\
      --epsilon 0.1 --utility target --target heavy
  skprivacy sanitize more.csv scored.csv --sensitive sex --columns bmi,blood_pressure \\
      --epsilon 0.1 --target heavy --alphabet cells --max-cells 8 --groups patient
  skprivacy sanitize more.csv published.csv --sensitive sex --columns bmi --bins 2 \\
      --epsilon 0.2 --beside heavy --no-progress
codes, rare values, and columns that are copied although they leak:
  skprivacy sanitize patients.csv codes.csv --sensitive sex --columns blood_pressure \\
      --categorical blood_pressure --max-categories 4 --min-frequency 8 --epsilon 0.1 \\
      --remainder bmi --allow-leaking --handle-unknown resample
a file without a header, read as you say; a quick report replaces another:
  awk -F, -v OFS=';' 'NR > 1 {print $2, $3, $4}' patients.csv > rows.txt
  skprivacy sanitize rows.txt named.csv --format csv --delimiter ';' --encoding latin-1 \\
      --no-header --names sex,blood_pressure,bmi --sensitive sex --columns bmi --bins 3 \\
      --epsilon 0.02 --report bmi.html --no-attack --no-curve --force

A first pass over IN counts and a second one writes OUT: memory does not grow with the
file. Without --columns, all columns that no other option names are released; with it,
those that no option names are left out. Those of --remainder are copied, unless one of them
alone reveals more about the sensitive columns than the budget allows; what they reveal
together with the release is not bounded. The text of a copied field stays byte for byte;
quotes are written only where it needs them. The budget holds for the release and the
columns of --beside together, whose values are published as they are. Budgets for each of
several columns bound no combination of them; one for sex+blood_pressure does.
"""
_APPLY = """\
examples, in the folder that `skprivacy demo` makes:
  skprivacy sanitize patients.csv saved.csv --sensitive sex --columns bmi \\
      --epsilon 0.02 --save-mechanism saved.json
  skprivacy apply saved.json patients.csv again.csv
  skprivacy key saved.key
  skprivacy apply saved.json patients.csv twice.csv --record-ids patient \\
      --key-file saved.key

IN needs the columns that are replaced, those of --beside and those that are copied. It
needs no sensitive column; any that it has is left out. Only columns that were copied by the
`sanitize` that wrote M.json can be copied: what they reveal was measured there.
"""
_KEY = """\
examples, in the folder that `skprivacy demo` makes:
  skprivacy key own.key
  skprivacy sanitize patients.csv own.csv --sensitive sex --columns bmi \\
      --epsilon 0.02 --record-ids patient --key-file own.key

FILE gets 64 hexadecimal digits from the operating system's cryptographic source, and
only you can read it; on Windows, whoever may read the files of its folder. An existing
file is never replaced.
"""
_CURVE = """\
examples, in the folder that `skprivacy demo` makes:
  skprivacy curve patients.csv --sensitive sex --columns blood_pressure,bmi --bins 3 \\
      -o curve.png
  skprivacy curve patients.csv --sensitive sex --columns bmi --epsilons 0.001,0.01,0.1 \\
      --confidence none --out curve.csv --force
  skprivacy curve patients.csv --sensitive sex,blood_pressure --columns bmi --bins 3 \\
      --edges blood_pressure=95 --proportions sex=1,blood_pressure=2 --epsilons 0.05,0.1
"""
_CHOOSE = """\
examples, in the folder that `skprivacy demo` makes:
  skprivacy choose patients.csv --sensitive sex --columns bmi --bins 3 --keep-utility 0.9
  skprivacy choose patients.csv --sensitive sex --columns bmi --bins 3 --max-shift 0.05 \\
      --max-factor 1.5
  skprivacy choose patients.csv --sensitive sex,blood_pressure --columns bmi --bins 3 \\
      --edges blood_pressure=95 --proportions sex=1,blood_pressure=2 --keep-utility 0.5
"""
_AUDIT = """\
examples, in the folder that `skprivacy demo` makes:
  skprivacy audit patients.csv --sensitive sex --released blood_pressure,bmi
  skprivacy sanitize patients.csv attacked.csv --sensitive sex --columns bmi --epsilon 0.02
  skprivacy audit patients.csv --sensitive sex --released attacked.csv
  awk -F, '{print $0 "," (NR == 1 ? "high,heavy" : ($3 > 95) "," ($4 > 27))}' \\
      patients.csv > more.csv
  skprivacy audit more.csv --sensitive sex,high --secrets sex,high --released bmi \\
      --beside heavy
"""
_CERTIFY = """\
examples, in the folder that `skprivacy demo` makes:
  awk 'NR == 1 || NR % 2 == 0' patients.csv > design.csv
  awk 'NR % 2 == 1' patients.csv > held_out.csv
  skprivacy sanitize design.csv fair.csv --sensitive sex --columns bmi \\
      --epsilon 0.02 --measure parity --scope average --save-mechanism fair.json
  skprivacy certify fair.json held_out.csv --sensitive sex
  skprivacy certify fair.json held_out.csv --sensitive sex --measure kl --confidence 0.9 \\
      --settings 5

A theorem, not an estimate, if the rows of IN are independent and nothing about the
mechanism depends on them: it must have been designed with other rows. M.json holds no
sensitive values, so IN must have them; the groups are those that occur in IN.
"""


# The parsers of the commands, as argparse hands them out.
_Subparsers: TypeAlias = "argparse._SubParsersAction[_Parser]"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}; see {self.prog} --help\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = _Parser(
        prog="skprivacy",
        description="Release columns of a table so that they reveal little about a sensitive one.",
        epilog="skprivacy COMMAND --help shows the options of a command, with examples.",
    )
    top.add_argument("--version", action="version", version=f"skprivacy {__version__}")
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_demo(subparsers)
    _add_sanitize(subparsers)
    _add_apply(subparsers)
    _add_key(subparsers)
    _add_curve(subparsers)
    _add_choose(subparsers)
    _add_audit(subparsers)
    _add_certify(subparsers)
    return top


def _command(
    subparsers: _Subparsers,
    name: str,
    run: str,  # the function in this package, as "module:name"
    summary: str,
    usage: str,
    epilog: str | None = None,
) -> argparse.ArgumentParser:
    command = subparsers.add_parser(
        name,
        usage=f"skprivacy {name} {usage}",
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.set_defaults(run=run)
    return command


def _add_demo(subparsers: _Subparsers) -> None:
    command = _command(
        subparsers, "demo", "demo:demo", "see it at work on 442 real patients", "[FOLDER]"
    )
    add_confidence(command)
    command.add_argument(
        "folder",
        nargs="?",
        metavar="FOLDER",
        help="where to write (default: a new skprivacy-demo)",
    )
    add_reporting(command)


def _add_sanitize(subparsers: _Subparsers) -> None:
    summary = "replace columns of a file by a release that reveals little about another"
    usage = "IN OUT --sensitive NAMES [--columns NAMES] --epsilon E [options]"
    command = _command(subparsers, "sanitize", "release:sanitize", summary, usage, _SANITIZE)
    add_input(command)
    add_output(command)
    add_columns(command)
    command.add_argument(
        "--epsilon",
        type=budget_or_each,
        required=True,
        metavar="E|NAME=E,...",
        help="the most that each released value may reveal about the sensitive columns jointly; "
        "or a budget for each, such as sex=0.002,race=0.02, and for several of them jointly, "
        "such as sex+race=0.1",
    )
    command.add_argument(
        "--output",
        choices=["label", "symbol", "posterior"],
        default="label",
        help="what comes out: the same columns (label), one column of symbols, or one column of "
        "probabilities for each value (default: label)",
    )
    add_remainder(command)
    add_unknown(command)
    add_show_groups(command)
    add_report(command)
    command.add_argument(
        "--save-mechanism", metavar="M.json", help="write what `skprivacy apply` needs"
    )
    add_keyed(command)
    add_design(command)
    add_reading(command)


def _add_apply(subparsers: _Subparsers) -> None:
    summary = "release new rows through a saved mechanism, without sensitive data"
    usage = "M.json IN OUT [options]"
    command = _command(subparsers, "apply", "release:apply", summary, usage, _APPLY)
    command.add_argument("mechanism", metavar="M.json", help="written by --save-mechanism")
    add_input(command)
    add_output(command)
    add_remainder(command)
    add_unknown(command)
    add_keyed(command)
    add_reading(command)


def _add_key(subparsers: _Subparsers) -> None:
    summary = "make a secret key that gives a row the same values in every release"
    command = _command(subparsers, "key", "release:key", summary, "FILE [--json]", _KEY)
    command.add_argument("file", metavar="FILE", help="where to write it")
    command.add_argument("--json", action="store_true", help="print the outcome as JSON")


def _add_curve(subparsers: _Subparsers) -> None:
    summary = "show how much can be kept at each budget"
    usage = "IN --sensitive NAMES [--columns NAMES] [-o FILE] [options]"
    command = _command(subparsers, "curve", "explore:curve", summary, usage, _CURVE)
    add_input(command)
    add_columns(command)
    command.add_argument(
        "--epsilons",
        type=budgets,
        help="budgets, separated by commas (default: up to eight round ones, the largest of which "
        "allows the unchanged columns); "
        "with --proportions, what these are multiplied by",
    )
    add_proportions(command)
    command.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        help="a picture (.png, .svg, .pdf) or a table (.csv); default: print a table",
    )
    add_force(command)
    add_design(command)
    add_reading(command)


def _add_choose(subparsers: _Subparsers) -> None:
    summary = "find the smallest epsilon that keeps enough, or the largest that limits shifts"
    aims = "[--keep-utility SHARE | --max-shift SHARE [--max-factor NUMBER]]"
    usage = f"IN --sensitive NAMES [--columns NAMES] {aims} [options]"
    command = _command(subparsers, "choose", "explore:choose", summary, usage, _CHOOSE)
    add_input(command)
    add_columns(command)
    aim = command.add_mutually_exclusive_group()
    aim.add_argument(
        "--keep-utility",
        type=share,
        metavar="SHARE",
        help=f"find the smallest epsilon that keeps this share of what --utility says (default: "
        f"{KEPT_UTILITY:g}; with cells, {KEPT_UTILITY:g} of what they keep, as they cannot keep "
        f"everything)",
    )
    aim.add_argument(
        "--max-shift",
        type=share,
        metavar="SHARE",
        help="find the largest epsilon with which no released value can move the probability of "
        "a sensitive group by more than this: 0.05 is 5 percentage points",
    )
    command.add_argument(
        "--max-factor",
        type=factor,
        metavar="NUMBER",
        help="with --max-shift: how many times as likely a released value can make a sensitive "
        "group (default: 2 for shifts of up to 0.05, 3 for up to 0.15, else 5; inf: no limit)",
    )
    add_proportions(command)
    add_show_groups(command)
    add_design(command)
    add_reading(command)


def _add_audit(subparsers: _Subparsers) -> None:
    summary = "attack a release: how well can the sensitive column be guessed from it"
    usage = "IN --sensitive NAMES --released NAMES|FILE [options]"
    command = _command(subparsers, "audit", "audit:audit_file", summary, usage, _AUDIT)
    add_input(command)
    command.add_argument("--sensitive", type=names, required=True, metavar="NAMES", help=S_HELP)
    command.add_argument(
        "--released",
        required=True,
        metavar="NAMES|FILE",
        help="columns of IN, or a file with the same rows in the same order",
    )
    command.add_argument(
        "--beside",
        type=names,
        default=[],
        metavar="NAMES",
        help="columns that were published with the release under its budget, separated by "
        "commas: they are attacked together with it",
    )
    command.add_argument(
        "--secrets",
        type=names,
        metavar="NAMES",
        help="guess each of these by itself, such as sex,race,sex+race, which must have all "
        "columns of --sensitive (default: all of them jointly)",
    )
    add_categorical(command)
    add_reading(command)


def _add_certify(subparsers: _Subparsers) -> None:
    summary = "bound what a saved mechanism leaks in the population, by rows that it has not seen"
    usage = "M.json IN --sensitive NAMES [options]"
    command = _command(subparsers, "certify", "audit:certify_file", summary, usage, _CERTIFY)
    command.add_argument("mechanism", metavar="M.json", help="written by --save-mechanism")
    add_input(command)
    command.add_argument("--sensitive", type=names, required=True, metavar="NAMES", help=S_HELP)
    command.add_argument(
        "--confidence",
        type=share,
        default=0.95,
        metavar="SHARE",
        help="how often such bounds hold, at least (default: 0.95)",
    )
    command.add_argument(
        "--settings",
        type=positive,
        default=1,
        metavar="N",
        help="number of mechanisms compared on these rows (for a multiple-testing correction; "
        "default: 1)",
    )
    command.add_argument(
        "--measure",
        type=measure,
        help=f"the measure of leakage: {', '.join(MEASURES)} (default: that of the mechanism)",
    )
    add_reading(command)
