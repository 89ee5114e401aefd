"""Options of the commands: what argparse is told about each, in tables by their flags.

A row has what kind of value an option takes, and its help.
"""

from __future__ import annotations

from argparse import BooleanOptionalAction
from typing import Any, TypeAlias

from .values import (
    ALPHABETS,
    DEFAULT_BINS,
    KEPT_UTILITY,
    MEASURES,
    SOLVERS,
    USUAL_CONFIDENCE,
    UTILITIES,
    budget,
    budget_or_each,
    budgets,
    confidence,
    delimiter,
    edges,
    encoding,
    factor,
    frequency,
    measure,
    names,
    positive,
    proportions,
    remainder,
    share,
    solver_options,
)

Options: TypeAlias = dict[str, tuple[dict[str, Any], str]]

# Kinds of values.
_NAMES = {"type": names, "metavar": "NAMES"}
_NUMBER = {"type": positive, "metavar": "N"}
_SHARE = {"type": share, "metavar": "SHARE"}
_COLUMN, _FILE, _TEXT = ({"metavar": name} for name in ("COLUMN", "FILE", "TEXT"))
_FLAG = {"action": "store_true"}
_YES_OR_NO = {"action": BooleanOptionalAction, "default": True}

INPUT: Options = {
    "source": ({"metavar": "IN"}, ".csv, .tsv (both also .gz) or .parquet; - for a pipe")
}
FORCE: Options = {"--force": (_FLAG, "replace existing files")}
OUTPUT: Options = {
    "target": ({"metavar": "OUT"}, "output file, same formats as IN; written atomically"),
    **FORCE,
}
SAVED: Options = {"mechanism": ({"metavar": "M.json"}, "written by --save-mechanism")}
JSON: Options = {"--json": (_FLAG, "print the outcome as JSON")}
REPORTING: Options = {
    "--progress": (
        _YES_OR_NO,
        "say every few seconds on the standard error what is being done (default: yes)",
    ),
    "-q --quiet": ({"dest": "progress", "action": "store_false"}, "the same as --no-progress"),
    **JSON,
}
READING: Options = {
    "--format": (
        {"choices": ["csv", "tsv", "parquet"]},
        "the kind of table IN is, if its name does not tell (default for -: csv)",
    ),
    "--delimiter": (
        {"type": delimiter, "metavar": "CHAR"},
        "the character between fields (default: a comma or, for .tsv, a tab)",
    ),
    "--encoding": (
        {"type": encoding, "default": "utf-8"},
        "the encoding of a text file (default: utf-8)",
    ),
    "--header": (
        {"action": BooleanOptionalAction},
        "whether the first line of IN names its columns (default: yes, but an error if it "
        "looks like data); without a header they are c1, c2, ..., and OUT gets one",
    ),
    "--names": (
        _NAMES,
        "the names of all columns of IN, separated by commas, if it has no header",
    ),
    **REPORTING,
}
SENSITIVE: Options = {
    "--sensitive": ({**_NAMES, "required": True}, "the columns to protect, separated by commas")
}
COLUMNS: Options = {
    **SENSITIVE,
    "--columns": (
        _NAMES,
        "the columns to release, separated by commas; they are protected jointly (default: "
        "all but those that other options name)",
    ),
    "--beside": (
        _NAMES,
        "columns with few values that are published as they are, separated by commas: the "
        "budget holds for them and the release together",
    ),
}
CONFIDENCE: Options = {
    "--confidence": (
        {"type": confidence, "default": USUAL_CONFIDENCE, "metavar": "LEVEL|none"},
        f"how often the budget is to hold for the population the rows were drawn from, such "
        f"as 0.95 or 0.99; none: it holds for the rows alone (default: {USUAL_CONFIDENCE:g})",
    )
}
CATEGORICAL: Options = {
    "--categorical": (
        {**_NAMES, "action": "extend", "default": []},
        "columns whose numbers are codes: they are not cut into bins",
    )
}
DESIGN: Options = {
    **CONFIDENCE,
    "--measure": (
        {"type": measure, "default": "kl"},
        f"the measure of leakage: {', '.join(MEASURES)}; or one with a parameter, such as "
        f"alpha_lift:alpha=4 (default: kl)",
    ),
    "--scope": (
        {"choices": ["per_output", "average"], "default": "per_output"},
        "whether every released value keeps the budget, or their average",
    ),
    "--utility": (
        {"choices": UTILITIES},
        "what is kept: closeness to the true values, for people who take released ones at "
        "face value (distortion); information about them, for models, and for --output symbol "
        "and posterior (mutual_information); the chance of guessing them (guess); or what they "
        "say about another column (target, with --target). Default: distortion, whatever --output "
        "is",
    ),
    "--target": (
        {**_COLUMN, "dest": "target_column"},
        "keep what the released columns say about this one, for models of it (--utility "
        "target); it is itself released only if --columns has it",
    ),
    "--solver": (
        {"choices": ["auto", *SOLVERS], "default": "auto", "metavar": "NAME"},
        "the solver to use (default: auto, with --confidence none the certified optimum "
        "where the table is not too large)",
    ),
    "--solver-options": (
        {"type": solver_options, "default": {}, "metavar": "NAME=X,..."},
        "options of the solver, such as tol=0.001,max_time=60",
    ),
    "--max-outputs": (_NUMBER, "merge released values until at most N are left"),
    "--alphabet": (
        {"choices": ALPHABETS, "default": ALPHABETS[0]},
        "what is drawn: combinations of values, or cells, which rows that are alike share, "
        "for many columns (default: auto, cells where there are too many combinations)",
    ),
    "--max-cells": (
        _NUMBER,
        "how many cells there are at most, with --alphabet cells (default: 400, with --target 64)",
    ),
    "--person": (
        _COLUMN,
        "column with a person id, if people have several rows: with cells for a --target, no "
        "row is scored by a model of other rows of that person; it is never released",
    ),
    "--bins": (
        {**_NUMBER, "default": DEFAULT_BINS},
        f"numbers with more distinct values than this are cut at quantiles (default: "
        f"{DEFAULT_BINS})",
    ),
    "--edges": (
        {"type": edges, "action": "append", "default": [], "metavar": "NAME=A,B,..."},
        "cut the numbers of a column at these edges instead; may be repeated",
    ),
    **CATEGORICAL,
    "--min-frequency": (
        {"type": frequency, "metavar": "N"},
        "pool values rarer than this: a number of rows, or a share of them",
    ),
    "--max-categories": (_NUMBER, "pool the rarest values of each column beyond this many"),
    "--smoothing": (
        {"type": budget, "default": 0.0, "metavar": "ROWS"},
        "rows added to every pair of values before the design; needs --confidence none "
        "(default: 0)",
    ),
}
KEYED: Options = {
    "--record-ids": (
        _COLUMN,
        "the column of IN with a unique id for every row; in a text file, ids are taken "
        "exactly as written",
    ),
    "--key-file": (_FILE, "a secret key, made by `skprivacy key FILE`"),
}
REPORT: Options = {
    "--report": ({"metavar": "R.html"}, "write a report, to be signed"),
    "--purpose": (_TEXT, "what the release is for (default: a line to fill in by hand)"),
    "--recipient": (_TEXT, "who gets it (default: a line to fill in by hand)"),
    "--input-hash": (
        _YES_OR_NO,
        "whether the report has the SHA-256 of IN: whoever knows all of IN but one value "
        "finds that value by it, so use --no-input-hash for reports you share outside your "
        "organisation (default: yes)",
    ),
    "--attack": (
        _YES_OR_NO,
        "whether the release is attacked for the report, by models that are trained to guess "
        "the sensitive columns, which can take minutes (default: yes)",
    ),
    "--curve": (
        _YES_OR_NO,
        "whether the report shows what other budgets would keep, which takes several designs "
        "(default: yes)",
    ),
}
REMAINDER: Options = {
    "--remainder": (
        {"type": remainder, "default": "drop", "metavar": "drop|passthrough|NAMES"},
        "which other columns are copied, with quotes only where a text needs them: none, all "
        "but the sensitive ones and that of --record-ids, or those named, separated by commas "
        "(default: drop)",
    ),
    "--allow-leaking": (_FLAG, "copy columns even if one of them alone exceeds the budget"),
    "--handle-unknown": (
        {"choices": ["error", "resample"], "default": "error"},
        "what to do with values that were not seen before: stop, or draw from the "
        "distribution of the release, which reveals nothing about the row (default: error)",
    ),
}
SHOW_GROUPS: Options = {
    "--show-groups": (
        _FLAG,
        "name the most exposed group of the sensitive columns (default: no value of theirs "
        "is shown on the screen; a report names the groups)",
    )
}
PROPORTIONS: Options = {
    "--proportions": (
        {"type": proportions, "metavar": "NAME=P,..."},
        "a budget for each sensitive column, or for several jointly, in these proportions: "
        "sex=1,race=10 allows ten times as much about race (default: one budget for all jointly)",
    )
}

# Those of one command each.
DEMO: Options = {
    "folder": (
        {"nargs": "?", "metavar": "FOLDER"},
        "where to write (default: a new skprivacy-demo)",
    )
}
SANITIZE: Options = {
    "--epsilon": (
        {"type": budget_or_each, "required": True, "metavar": "E|NAME=E,..."},
        "the most that each released value may reveal about the sensitive columns jointly; "
        "or a budget for each, such as sex=0.002,race=0.02, and for several of them jointly, "
        "such as sex+race=0.1",
    ),
    "--output": (
        {"choices": ["label", "symbol", "posterior"], "default": "label"},
        "what comes out: the same columns (label), one column of symbols, or one column of "
        "probabilities for each value (default: label)",
    ),
    **REMAINDER,
    **SHOW_GROUPS,
    "--save-mechanism": ({"metavar": "M.json"}, "write what `skprivacy apply` needs"),
}
KEY: Options = {"file": (_FILE, "where to write it"), **JSON}
CURVE: Options = {
    "--epsilons": (
        {"type": budgets},
        "budgets, separated by commas (default: up to eight round ones, the largest of which "
        "allows the unchanged columns); with --proportions, what these are multiplied by",
    ),
    **PROPORTIONS,
    "-o --out": (_FILE, "a picture (.png, .svg, .pdf) or a table (.csv); default: print a table"),
    **FORCE,
}
AIMS: Options = {  # one of them, or none
    "--keep-utility": (
        _SHARE,
        f"find the smallest epsilon that keeps this share of what --utility says (default: "
        f"{KEPT_UTILITY:g}; with cells, {KEPT_UTILITY:g} of what they keep, as they cannot keep "
        f"everything)",
    ),
    "--max-shift": (
        _SHARE,
        "find the largest epsilon with which no released value can move the probability of "
        "a sensitive group by more than this: 0.05 is 5 percentage points",
    ),
}
CHOOSE: Options = {
    "--max-factor": (
        {"type": factor, "metavar": "NUMBER"},
        "with --max-shift: how many times as likely a released value can make a sensitive "
        "group (default: 2 for shifts of up to 0.05, 3 for up to 0.15, else 5; inf: no limit)",
    ),
    **PROPORTIONS,
    **SHOW_GROUPS,
}
AUDIT: Options = {
    **SENSITIVE,
    "--released": (
        {"required": True, "metavar": "NAMES|FILE"},
        "columns of IN, or a file with the same rows in the same order",
    ),
    "--beside": (
        {**_NAMES, "default": []},
        "columns that were published with the release under its budget, separated by "
        "commas: they are attacked together with it",
    ),
    "--secrets": (
        _NAMES,
        "guess each of these by itself, such as sex,race,sex+race, which must have all "
        "columns of --sensitive (default: all of them jointly)",
    ),
    **CATEGORICAL,
}
CERTIFY: Options = {
    **SENSITIVE,
    "--confidence": (
        {**_SHARE, "default": 0.95},
        "how often such bounds hold, at least (default: 0.95)",
    ),
    "--settings": (
        {**_NUMBER, "default": 1},
        "number of mechanisms compared on these rows (for a multiple-testing correction; "
        "default: 1)",
    ),
    "--measure": (
        {"type": measure},
        f"the measure of leakage: {', '.join(MEASURES)} (default: that of the mechanism)",
    ),
}
