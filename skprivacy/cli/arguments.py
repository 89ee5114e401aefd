"""The parser of the command line: each command with its options."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from .. import __version__
from .._messages import closest
from . import options
from .options import Options

_EXAMPLES = "examples, in the folder made by `skprivacy demo`:\n"
_SANITIZE = """\
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
for these rows only, on average, with another measure, and JSON for scripts:
  skprivacy sanitize patients.csv alone.csv --sensitive sex --columns bmi --epsilon 0.05 \\
      --confidence none --smoothing 1 --scope average --measure alpha_lift:alpha=4 \\
      --show-groups --quiet --json
for models, with few outputs and a chosen solver:
  skprivacy sanitize patients.csv model.csv --sensitive sex --columns bmi --bins 4 \\
      --epsilon 0.1 --utility mutual_information --output posterior --max-outputs 3 \\
      --confidence none --solver optimal --solver-options tol=0.001,max_time=60
for models of one column, with values and with cells; beside a published column:
  awk -F, '{print $0 "," (NR == 1 ? "heavy" : $4 > 27)}' patients.csv > more.csv
  skprivacy sanitize more.csv target.csv --sensitive sex --columns bmi --bins 3 \\
      --epsilon 0.1 --utility target --target heavy
  skprivacy sanitize more.csv scored.csv --sensitive sex --columns bmi,blood_pressure \\
      --epsilon 0.1 --target heavy --alphabet cells --max-cells 8 --person patient \\
      --release-target --made-up for_one_model
  skprivacy sanitize more.csv published.csv --sensitive sex --columns bmi --bins 2 \\
      --epsilon 0.2 --beside heavy --no-progress
codes, rare values, and columns that are copied although they leak:
  skprivacy sanitize patients.csv codes.csv --sensitive sex --columns blood_pressure \\
      --categorical blood_pressure --max-categories 4 --min-frequency 8 --epsilon 0.1 \\
      --remainder bmi --allow-leaking --handle-unknown resample
texts with an order:
  awk -F, '{print $0 "," (NR == 1 ? "size" : $4 > 30 ? "high" : $4 > 24 ? "mid" : "low")}' \\
      patients.csv > sized.csv
  skprivacy sanitize sized.csv ordered.csv --sensitive sex --columns size \\
      --epsilon 0.1 --ordered size=low,mid,high
an organisation's own scale of verdicts:
  echo '{"name": "Example", "strong": {"points": 1, "times": 1.2},' \\
      '"moderate": {"points": 5, "times": 2}, "weak": {"points": 10, "times": 3}}' > own.json
  skprivacy sanitize patients.csv scaled.csv --sensitive sex --columns bmi \\
      --epsilon 0.02 --scale own.json
a file without a header, with a format; a quick report that replaces another:
  awk -F, -v OFS=';' 'NR > 1 {print $2, $3, $4}' patients.csv > rows.txt
  skprivacy sanitize rows.txt named.csv --format csv --delimiter ';' --encoding latin-1 \\
      --no-header --names sex,blood_pressure,bmi --sensitive sex --columns bmi --bins 3 \\
      --epsilon 0.02 --report bmi.html --no-attack --no-curve --force

IN is read twice, once to count and once to write OUT: memory does not grow with the file.
Without --columns, all columns that no other option names are released; with it, columns
that no option names are left out. Columns of --remainder are copied, unless one of them
alone reveals more about the sensitive columns than the budget allows; what they reveal
together with the release is not bounded. Copied fields keep their text byte for byte, with
quotes only where needed. The budget holds for the release and the columns of --beside
together, which are published unchanged. Separate budgets for several columns bound no
combination of them; one for sex+blood_pressure does.
"""
_UI = """\
  skprivacy ui
  skprivacy ui patients.csv --port 8765 --no-browser

The page answers to this machine and this user only, at 127.0.0.1. Nothing is loaded from
a network, and nothing is sent. The address that is printed works once: reload the page,
but do not close its tab. Ctrl-C ends the page, and removes copies of files and releases
that were not saved.
"""
_APPLY = """\
  skprivacy sanitize patients.csv saved.csv --sensitive sex --columns bmi \\
      --epsilon 0.02 --save-mechanism saved.json
  skprivacy apply saved.json patients.csv again.csv
  skprivacy key saved.key
  skprivacy apply saved.json patients.csv twice.csv --record-ids patient \\
      --key-file saved.key

IN needs the released columns, those of --beside and those to copy. It needs no sensitive
column, and any it has is left out. Only columns copied by the `sanitize` that wrote M.json
can be copied: what they reveal was measured there.
"""
_KEY = """\
  skprivacy key own.key
  skprivacy sanitize patients.csv own.csv --sensitive sex --columns bmi \\
      --epsilon 0.02 --record-ids patient --key-file own.key

FILE gets 64 hexadecimal digits from the operating system's cryptographic random source.
Only you can read it; on Windows, everybody who can read files in its folder. An existing
file is never replaced.
"""
_CURVE = """\
  skprivacy curve patients.csv --sensitive sex --columns blood_pressure,bmi --bins 3 \\
      -o curve.png
  skprivacy curve patients.csv --sensitive sex --columns bmi --epsilons 0.001,0.01,0.1 \\
      --confidence none --out curve.csv --force
  skprivacy curve patients.csv --sensitive sex,blood_pressure --columns bmi --bins 3 \\
      --edges blood_pressure=95 --proportions sex=1,blood_pressure=2 --epsilons 0.05,0.1
"""
_CHOOSE = """\
  skprivacy choose patients.csv --sensitive sex --columns bmi --bins 3 --keep-utility 0.9
  skprivacy choose patients.csv --sensitive sex --columns bmi --bins 3 --max-shift 0.05 \\
      --max-factor 1.5
  skprivacy choose patients.csv --sensitive sex,blood_pressure --columns bmi --bins 3 \\
      --edges blood_pressure=95 --proportions sex=1,blood_pressure=2 --keep-utility 0.5
"""
_AUDIT = """\
  skprivacy audit patients.csv --sensitive sex --released blood_pressure,bmi
  skprivacy sanitize patients.csv attacked.csv --sensitive sex --columns bmi --epsilon 0.02
  skprivacy audit patients.csv --sensitive sex --released attacked.csv
  awk -F, '{print $0 "," (NR == 1 ? "high,heavy" : ($3 > 95) "," ($4 > 27))}' \\
      patients.csv > more.csv
  skprivacy audit more.csv --sensitive sex,high --secrets sex,high --released bmi \\
      --beside heavy
  awk 'NR == 1 || NR % 2 == 0' patients.csv > half.csv
  awk 'NR % 2 == 1' patients.csv > others.csv
  skprivacy sanitize half.csv made.csv --sensitive sex --columns blood_pressure,bmi \\
      --epsilon 0.1
  skprivacy audit half.csv --sensitive sex --released made.csv --others others.csv \\
      --known blood_pressure
"""
_CERTIFY = """\
  awk 'NR == 1 || NR % 2 == 0' patients.csv > design.csv
  awk 'NR % 2 == 1' patients.csv > held_out.csv
  skprivacy sanitize design.csv fair.csv --sensitive sex --columns bmi \\
      --epsilon 0.02 --measure parity --scope average --save-mechanism fair.json
  skprivacy certify fair.json held_out.csv --sensitive sex
  skprivacy certify fair.json held_out.csv --sensitive sex --measure kl --confidence 0.9 \\
      --settings 5

The bounds are a theorem, not an estimate, if the rows of IN are independent and nothing
about the mechanism depends on them: it must have been designed with other rows. M.json
holds no sensitive values, so IN needs the sensitive columns; groups are those in IN.
"""


class _Group(NamedTuple):
    """Options with a title of their own in the help."""

    options: Options
    title: str
    description: str | None = None


class _Command(NamedTuple):
    """A command; run : its function, as "module:name"."""

    run: str
    summary: str
    usage: str
    parts: list[Options | _Group]
    examples: str | None = None


_READING = _Group(options.READING, "reading and reporting")
_DESIGN = _Group(options.DESIGN, "design")
_KEYED = _Group(
    options.KEYED,
    "keyed release",
    "the same row gets the same values every time; both options or neither",
)
_REPORT = _Group(
    options.REPORT, "report", "for those who sign off the release, not for its recipient"
)

_COMMANDS = {
    "demo": _Command(
        "demo:demo",
        "run an example on 442 real patients",
        "[FOLDER]",
        [options.CONFIDENCE, options.DEMO, options.REPORTING],
    ),
    "ui": _Command(
        "page:ui",
        "open a page on this machine: choose, look and release without writing code",
        "[FILE] [--port N] [--no-browser]",
        [options.UI],
        _UI,
    ),
    "sanitize": _Command(
        "release:sanitize",
        "replace columns of a file by values that reveal little about a sensitive column",
        "IN OUT --sensitive NAMES [--columns NAMES] --epsilon E [options]",
        [
            options.INPUT,
            options.OUTPUT,
            options.COLUMNS,
            options.SANITIZE,
            _REPORT,
            _KEYED,
            _DESIGN,
            _READING,
        ],
        _SANITIZE,
    ),
    "apply": _Command(
        "release:apply",
        "release new rows through a saved mechanism, without sensitive data",
        "M.json IN OUT [options]",
        [options.SAVED, options.INPUT, options.OUTPUT, options.REMAINDER, _KEYED, _READING],
        _APPLY,
    ),
    "key": _Command(
        "keys:key",
        "make a secret key, with which a row gets the same values in every release",
        "FILE [--json]",
        [options.KEY],
        _KEY,
    ),
    "curve": _Command(
        "explore:curve",
        "show how much utility each budget keeps",
        "IN --sensitive NAMES [--columns NAMES] [-o FILE] [options]",
        [options.INPUT, options.COLUMNS, options.CURVE, _DESIGN, _READING],
        _CURVE,
    ),
    "choose": _Command(
        "explore:choose",
        "find the smallest epsilon that keeps enough, or the largest that limits shifts",
        "IN --sensitive NAMES [--columns NAMES] "
        "[--keep-utility SHARE | --max-shift SHARE [--max-factor NUMBER]] [options]",
        [options.INPUT, options.COLUMNS, options.AIMS, options.CHOOSE, _DESIGN, _READING],
        _CHOOSE,
    ),
    "audit": _Command(
        "audit:audit_file",
        "attack a release: measure how well the sensitive column can be guessed from it",
        "IN --sensitive NAMES --released NAMES|FILE [options]",
        [options.INPUT, options.AUDIT, _READING],
        _AUDIT,
    ),
    "certify": _Command(
        "audit:certify_file",
        "bound what a saved mechanism leaks in the population, with rows not used to design it",
        "M.json IN --sensitive NAMES [options]",
        [options.SAVED, options.INPUT, options.CERTIFY, _READING],
        _CERTIFY,
    ),
}


# The choice, or the option, that argparse does not know.
_UNKNOWN = re.compile(r"invalid choice: '(.*?)'|unrecognized arguments: (--[^\s=]+)")
_NO_EPSILON = (
    ". Which epsilon? `skprivacy choose IN --sensitive NAMES --max-shift 0.05` finds one, and "
    "docs/choosing.rst explains how"
)


# Options are more alike than names of columns.
_CLOSE = 0.75


class _Parser(argparse.ArgumentParser):
    """A parser with one-line errors, which say what may be meant."""

    _given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._given = sys.argv[1:] if args is None else args
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        known = self._names()
        flags = [given.split("=")[0] for given in self._given if given.startswith("--")]
        unknown = [flag for flag in flags if flag not in known]
        if found := _UNKNOWN.search(message):
            unknown = [found[1] or found[2]]
        hints = [
            f" (did you mean {close}?)"
            for name in unknown
            if (close := closest(name, known, _CLOSE))
        ]
        if not hints and "are required: " in message and "--epsilon" in message:
            hints = [_NO_EPSILON]
        self.exit(
            2, f"{self.prog}: error: {message}{''.join(hints[:1])}; see {self.prog} --help\n"
        )

    def _names(self) -> list[str]:
        """Return the commands, options and choices that are known here."""
        names: list[str] = []
        for action in self._actions:
            choices: Any = action.choices or ()
            names += [*action.option_strings, *map(str, choices)]
            for command in self._given[:1] if isinstance(choices, dict) else ():
                names += choices[command]._names() if command in choices else []
        return names


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = _Parser(
        prog="skprivacy",
        description="Release columns of a table so that they reveal little about a sensitive one.",
        epilog="skprivacy COMMAND --help shows the options of a command, with examples.",
    )
    top.add_argument("--version", action="version", version=f"skprivacy {__version__}")
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in _COMMANDS.items():
        subparser = subparsers.add_parser(
            name,
            usage=f"skprivacy {name} {command.usage}",
            help=command.summary,
            description=command.summary[0].upper() + command.summary[1:] + ".",
            epilog=command.examples and _EXAMPLES + command.examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        subparser.set_defaults(run=command.run)
        for part in command.parts:
            _add(subparser, part)
    return top


def _add(command: argparse.ArgumentParser, part: Options | _Group) -> None:
    """Add options to a command."""
    group: Any = command
    if isinstance(part, _Group):
        part, *titles = part
        group = command.add_argument_group(*titles)
    elif part is options.AIMS:
        group = command.add_mutually_exclusive_group()
    for flags, (arguments, text) in part.items():
        group.add_argument(*flags.split(), help=text, **arguments)
