"""The options of the commands: tables of flags with arguments for argparse and help texts."""

from __future__ import annotations

from argparse import BooleanOptionalAction
from typing import Any, TypeAlias

from ..recipes import DEFAULT_BINS
from . import values

Options: TypeAlias = dict[str, tuple[dict[str, Any], str]]

# Kinds of values.
_NAMES = {"type": values.names, "metavar": "NAMES"}
_NUMBER = {"type": values.positive, "metavar": "N"}
_SHARE = {"type": values.share, "metavar": "SHARE"}
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
JSON: Options = {"--json": (_FLAG, "print the result as JSON")}
REPORTING: Options = {
    "--progress": (_YES_OR_NO, "print progress messages to standard error (default: yes)"),
    "-q --quiet": ({"dest": "progress", "action": "store_false"}, "same as --no-progress"),
    **JSON,
}
READING: Options = {
    "--format": (
        {"choices": ["csv", "tsv", "parquet"]},
        "format of IN, if its name does not show it (default for -: csv)",
    ),
    "--delimiter": (
        {"type": values.delimiter, "metavar": "CHAR"},
        "character between fields (default: comma, for .tsv tab)",
    ),
    "--encoding": (
        {"type": values.encoding, "default": "utf-8"},
        "encoding of text files (default: utf-8)",
    ),
    "--header": (
        {"action": BooleanOptionalAction},
        "whether the first line of IN has the column names (default: yes, but an error if it "
        "looks like data); without a header, columns are named c1, c2, ..., and OUT gets a header",
    ),
    "--names": (_NAMES, "names of all columns of IN, separated by commas, if it has no header"),
    **REPORTING,
}
SENSITIVE: Options = {
    "--sensitive": ({**_NAMES, "required": True}, "columns to protect, separated by commas")
}
COLUMNS: Options = {
    **SENSITIVE,
    "--columns": (
        _NAMES,
        "columns to release, separated by commas; they are released jointly (default: all columns "
        "that no other option names)",
    ),
    "--beside": (
        _NAMES,
        "columns with few values to publish unchanged, separated by commas; the budget holds for "
        "them and the release together",
    ),
}
CONFIDENCE: Options = {
    "--confidence": (
        {"type": values.confidence, "default": values.USUAL_CONFIDENCE, "metavar": "LEVEL|none"},
        f"confidence that the budget holds for the population the rows were drawn from, such as "
        f"0.95 or 0.99; none: enforce it for these rows only (default: "
        f"{values.USUAL_CONFIDENCE:g})",
    )
}
CATEGORICAL: Options = {
    "--categorical": (
        {**_NAMES, "action": "extend", "default": []},
        "columns whose numbers are codes, not to be binned",
    )
}
DESIGN: Options = {
    **CONFIDENCE,
    "--measure": (
        {"type": values.measure, "default": "kl"},
        f"measure of leakage: {', '.join(values.MEASURES)}; or one with a parameter, such as "
        f"alpha_lift:alpha=4 (default: kl)",
    ),
    "--scope": (
        {"choices": ["per_output", "average"], "default": "per_output"},
        "whether the budget holds for every released value, or on average (default: per_output)",
    ),
    "--utility": (
        {"choices": values.UTILITIES},
        "what to keep: closeness to the true values, for readers who take released ones at face "
        "value (distortion); information about them, for models, and for --output symbol and "
        "posterior (mutual_information); the chance of guessing them (guess); or information "
        "about another column (target, with --target). Default: distortion, whatever --output is",
    ),
    "--target": (
        {**_COLUMN, "dest": "target_column"},
        "keep what the released columns say about this column, for models that predict it "
        "(--utility target); it is itself released only if --columns has it",
    ),
    "--solver": (
        {"choices": ["auto", *values.SOLVERS], "default": "auto", "metavar": "NAME"},
        "solver (default: auto; with --confidence none, the certified optimum if the table is not "
        "too large)",
    ),
    "--solver-options": (
        {"type": values.solver_options, "default": {}, "metavar": "NAME=X,..."},
        "options of the solver, such as tol=0.001,max_time=60",
    ),
    "--max-outputs": (_NUMBER, "merge released values until at most N are left"),
    "--alphabet": (
        {"choices": values.ALPHABETS, "default": values.ALPHABETS[0]},
        "what the mechanism draws: combinations of values, or cells of similar rows, for many "
        "columns (default: auto, cells if there are too many combinations)",
    ),
    "--max-cells": (
        _NUMBER,
        "maximum number of cells, with --alphabet cells (default: 400, with --target 64)",
    ),
    "--person": (
        _COLUMN,
        "column with a person id, if people have several rows: with cells for a --target, no row "
        "is scored by a model that saw other rows of the same person; never released",
    ),
    "--bins": (
        {**_NUMBER, "default": DEFAULT_BINS},
        f"bin numbers with more distinct values than this at quantiles (default: {DEFAULT_BINS})",
    ),
    "--edges": (
        {"type": values.edges, "action": "append", "default": [], "metavar": "NAME=A,B,..."},
        "bin the numbers of a column at these edges instead; may be repeated",
    ),
    "--ordered": (
        {"type": values.ordered, "action": "append", "default": [], "metavar": "NAME=A,B,..."},
        "texts of a column in ascending order, such as risk=low,medium,high, so that low is "
        "closer to medium than to high; may be repeated",
    ),
    **CATEGORICAL,
    "--min-frequency": (
        {"type": values.frequency, "metavar": "N"},
        "pool values that are rarer than this: a number of rows, or a share",
    ),
    "--max-categories": (_NUMBER, "pool the rarest values of each column, to leave at most N"),
    "--smoothing": (
        {"type": values.budget, "default": 0.0, "metavar": "ROWS"},
        "rows to add to every pair of values before the design; needs --confidence none "
        "(default: 0)",
    ),
}
KEYED: Options = {
    "--record-ids": (
        _COLUMN,
        "column of IN with a unique id for every row; in text files, ids are taken exactly as "
        "written",
    ),
    "--key-file": (_FILE, "file with a secret key, made by `skprivacy key FILE`"),
}
REPORT: Options = {
    "--report": ({"metavar": "R.html"}, "write a report to sign"),
    "--purpose": (_TEXT, "what the release is for (default: a line to fill in by hand)"),
    "--recipient": (_TEXT, "who gets it (default: a line to fill in by hand)"),
    "--input-hash": (
        _YES_OR_NO,
        "whether the report shows the SHA-256 of IN; whoever knows all of IN except one value can "
        "find that value from it, so use --no-input-hash for reports you share outside your "
        "organisation (default: yes)",
    ),
    "--attack": (
        _YES_OR_NO,
        "whether to train models to guess the sensitive columns from the release, for the report, "
        "which can take minutes (default: yes)",
    ),
    "--curve": (
        _YES_OR_NO,
        "whether the report shows what other budgets would keep, which takes several designs "
        "(default: yes)",
    ),
}
REMAINDER: Options = {
    "--remainder": (
        {"type": values.remainder, "default": "drop", "metavar": "drop|passthrough|NAMES"},
        "other columns to copy: none (drop), all except the sensitive ones and that of "
        "--record-ids (passthrough), or these, separated by commas (default: drop)",
    ),
    "--allow-leaking": (_FLAG, "copy columns even if one of them alone exceeds the budget"),
    "--handle-unknown": (
        {"choices": ["error", "resample"], "default": "error"},
        "what to do with values not seen before: stop, or draw from the distribution of the "
        "release, which reveals nothing about the row (default: error)",
    ),
}
SCALE: Options = {
    "--scale": (
        _FILE,
        "your organisation's scale of verdicts, as JSON: it decides instead of the default scale, "
        "whose verdict is printed beside it (default: none)",
    )
}
SHOW_GROUPS: Options = {
    "--show-groups": (
        _FLAG,
        "name the most exposed group of the sensitive columns (default: print no sensitive "
        "values; a report always names the groups)",
    )
}
PROPORTIONS: Options = {
    "--proportions": (
        {"type": values.proportions, "metavar": "NAME=P,..."},
        "separate budgets for sensitive columns, or for several jointly, in these proportions: "
        "sex=1,race=10 allows ten times as much about race (default: one budget for all jointly)",
    )
}

# Options of single commands.
DEMO: Options = {
    "folder": (
        {"nargs": "?", "metavar": "FOLDER"},
        "output folder (default: a new folder skprivacy-demo)",
    )
}
SANITIZE: Options = {
    "--epsilon": (
        {"type": values.budget_or_each, "required": True, "metavar": "E|NAME=E,..."},
        "budget: the most that each released value may reveal about the sensitive columns "
        "jointly; or separate budgets, such as sex=0.002,race=0.02, also for several columns "
        "jointly, such as sex+race=0.1",
    ),
    "--output": (
        {"choices": ["label", "symbol", "posterior"], "default": "label"},
        "what to release: the same columns (label), one column of symbols (symbol), or a column "
        "of probabilities for each value (posterior); default: label",
    ),
    "--made-up": (
        {"choices": list(values.MADE_UP), "default": values.MADE_UP[0]},
        "how rows are made up from cells or pools of rare combinations: columns drawn together "
        "(for_any_use); the same, but drawn again if a row falls into another cell, which suits "
        "one model of the --target (for_one_model); or each column drawn by itself "
        "(column_by_column); default: for_any_use",
    ),
    "--release-target": (
        _FLAG,
        "also release the --target, drawn with each row under the same budget, so that models can "
        "be trained on OUT alone (default: it is left out)",
    ),
    **REMAINDER,
    **SCALE,
    **SHOW_GROUPS,
    "--save-mechanism": ({"metavar": "M.json"}, "save the mechanism for `skprivacy apply`"),
}
UI: Options = {
    "file": (
        {"nargs": "?", "metavar": "FILE"},
        ".csv, .tsv (both also .gz) or .parquet, to open at once",
    ),
    "--port": (
        {"type": values.port, "default": 0, "metavar": "N"},
        "port of the page, from 1024 to 65535 (default: any that is free)",
    ),
    "--browser": (
        _YES_OR_NO,
        "whether to open the page in the browser (default: yes)",
    ),
}
KEY: Options = {"file": (_FILE, "output file"), **JSON}
CURVE: Options = {
    "--epsilons": (
        {"type": values.budgets},
        "budgets, separated by commas (default: up to eight round numbers, the largest of which "
        "allows to release the columns unchanged); with --proportions, factors of these",
    ),
    **PROPORTIONS,
    "-o --out": (
        _FILE,
        "write a picture (.png, .svg, .pdf) or a table (.csv) instead of printing",
    ),
    **FORCE,
}
AIMS: Options = {  # one of them, or none
    "--keep-utility": (
        _SHARE,
        f"find the smallest epsilon that keeps this share of the --utility (default: "
        f"{values.KEPT_UTILITY:g}; with cells, which cannot keep everything, "
        f"{values.KEPT_UTILITY:g} of what they can keep)",
    ),
    "--max-shift": (
        _SHARE,
        "find the largest epsilon at which no released value can move the probability of a "
        "sensitive group by more than this: 0.05 is 5 percentage points",
    ),
}
CHOOSE: Options = {
    "--max-factor": (
        {"type": values.factor, "metavar": "NUMBER"},
        "with --max-shift: the largest factor by which a released value can raise the probability "
        "of a sensitive group (default: 2 for shifts up to 0.05, 3 up to 0.15, else 5; inf: no "
        "limit)",
    ),
    **PROPORTIONS,
    **SHOW_GROUPS,
}
AUDIT: Options = {
    **SENSITIVE,
    "--released": (
        {"required": True, "metavar": "NAMES|FILE"},
        "columns of IN to attack, or a file with a release of the same rows in the same order",
    ),
    "--beside": (
        {**_NAMES, "default": []},
        "columns published beside the release, under its budget, separated by commas; they are "
        "attacked together with it",
    ),
    "--others": (
        _FILE,
        "a file like IN with people from the same population who were left out of the release: "
        "tests whether people in IN can be found in the release better than these",
    ),
    "--known": (
        _NAMES,
        "with --others: the columns that somebody knows about a person (default: the first seven "
        "released ones)",
    ),
    "--secrets": (
        _NAMES,
        "what to guess, one by one, such as sex,race,sex+race; every column of --sensitive must "
        "occur (default: guess all of them jointly)",
    ),
    **CATEGORICAL,
}
CERTIFY: Options = {
    **SENSITIVE,
    "--confidence": ({**_SHARE, "default": 0.95}, "confidence of the bounds (default: 0.95)"),
    "--settings": (
        {**_NUMBER, "default": 1},
        "number of mechanisms compared on these rows (for a multiple-testing correction; "
        "default: 1)",
    ),
    "--measure": (
        {"type": values.measure},
        f"measure of leakage: {', '.join(values.MEASURES)} (default: that of the mechanism)",
    ),
}
