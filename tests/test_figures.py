"""Every figure that a page quotes was printed: by an example of that page, or by a script."""

import re
import runpy
from pathlib import Path

import pytest
from figures import examples_in, is_printed, printed_in, prose_of, quoted_in

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/*.rst")),
    *sorted(ROOT.glob("docs/api/*.rst")),
    *sorted(ROOT.glob("docs/decisions/*.rst")),
]
SCRIPTS = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}

# Where figures come from, besides the examples on the page itself, which are run: what a script of
# benchmarks/ printed, data, or the examples of another page.
SOURCES = {
    "README.md": ["docs/measured/trade_off.txt"],
    "docs/audit.rst": ["docs/measured/real_table.txt", "docs/measured/population_limits.txt"],
    "docs/beside.rst": ["docs/measured/beside.txt", "docs/measured/random_beside.txt"],
    "docs/beyond.rst": ["docs/measured/dask_and_spark.txt"],
    "docs/commands.rst": ["docs/measured/commands.txt"],
    "docs/confidence.rst": ["docs/measured/confidence.txt", "docs/measured/coverage.txt"],
    "docs/corrections.rst": [
        "docs/measured/simple_mechanisms.txt",
        "examples/published/fig1a_utility.csv",
    ],
    "docs/faq.rst": ["docs/tutorial.rst", "docs/commands.rst"],
    "docs/face_value.rst": ["docs/measured/face_value.txt", "docs/choosing.rst"],
    "docs/installation.rst": ["docs/measured/first_release.txt"],
    "docs/guarantee.rst": ["docs/measured/certificate.txt"],
    "docs/mechanisms.rst": ["docs/measured/simple_mechanisms.txt"],
    "docs/optimum.rst": ["docs/measured/certified_optimum.txt"],
    "docs/several_secrets.rst": ["docs/measured/several_secrets.txt"],
    "docs/speed.rst": ["docs/measured/rows_per_second.txt", "docs/measured/overheads.txt"],
    "docs/ui.rst": ["docs/measured/page.txt"],
    "docs/trade_off.rst": ["docs/measured/trade_off.txt", "docs/measured/real_tables.txt"],
    "docs/whole_tables.rst": [
        "docs/measured/whole_table.txt",
        "docs/measured/grid_search.txt",
        "docs/measured/limit_of_cells.txt",
        "docs/measured/ordered_targets.txt",
        "docs/measured/made_up_rows.txt",
    ],
}

# Figures that nothing prints, each with the reason why nothing has to.
CHOSEN = {
    "3.11": "the oldest Python that is supported",
    "3.14": "the newest one",
    "95%": "the usual confidence",
    "5%": "what that leaves",
    "99.9%": "the confidence of limits that benchmarks print",
    "0%": "an end of a scale",
    "100%": "an end of a scale",
    "0.5": "an end of a scale: the AUC of a guess",
}
OF_A_PAGE = {
    "README.md": {
        "0.02": "a setting of the demo",
        "0.55": "where the picture is read, below",
        "56.1%": "compared in test_documented_commands.py",
        "53.2%": "compared in test_documented_commands.py",
        "63.1%": "compared in test_documented_commands.py",
    },
    "docs/beyond.rst": {"500,000": "a limit in the code"},
    "docs/commands.rst": {
        "90%": "a default of choose",
        "0.02": "a default of choose",
        "4 MB": "a limit in the code",
        "50,000": "a limit in the code",
        "500,000": "a limit in the code",
        "7,214": "a setting of benchmarks/commands.py",
        "2 GB": "a setting of benchmarks/large_file.py",
        "400 MB": "what benchmarks/large_file.py stays below",
    },
    "docs/confidence.rst": {
        "0.3%": "a setting of benchmarks/coverage.py",
        "60%": "a setting of benchmarks/coverage.py",
    },
    "docs/ui.rst": {"200 MB": "a limit in the code", "5 points": "a limit of the verdict"},
    "docs/defaults.rst": {
        "0.02": "a default of the transformer",
        "0.95": "a default of the commands",
    },
    "docs/cheat_sheet.rst": {
        "0.95": "a default of the commands",
        "5 points": "a limit of the verdict",
        "15 points": "a limit of the verdict",
        "30 points": "a limit of the verdict",
    },
    "docs/citing.rst": {"2408.09659": "the number of the preprint"},
    "docs/first_release.rst": {"0.69": "the logarithm of 2"},
    "docs/glossary.rst": {
        "0.69": "the logarithm of 2",
        "53%": "an example of a word",
        "55%": "an example of a word",
    },
    "docs/optimum.rst": {
        "60,000": "a limit in the code",
        "0.502855": "0.502854 and a bit, rounded up",
    },
    "docs/several_secrets.rst": {
        "0.002": "a setting of benchmarks/several_secrets.py",
        "0.02": "a setting of benchmarks/several_secrets.py",
    },
    "docs/speed.rst": {"6 seconds": "a time, by benchmarks/speed_of_confidence.py"},
    "docs/trade_off.rst": {
        "81%": "what examples/correlation_remover.py prints, compared in test_package.py",
        "200,000": "a setting of benchmarks/trade_off.py",
        "1,000": "a setting of benchmarks/trade_off_methods.py",
    },
    "docs/transformer.rst": {"1,000": "a limit in the code"},
    "docs/whole_tables.rst": {
        "200,000": "a limit in the code",
        "500,000": "a limit in the code",
    },
}


def names_of(paths):
    return [str(path.relative_to(ROOT)) for path in paths]


@pytest.mark.parametrize("name", names_of(PAGES))
def test_every_figure_in_the_text_was_printed(name):
    text = (ROOT / name).read_text()
    found = [(ROOT / source).read_text() for source in SOURCES.get(name, [])]
    outputs = [examples_in(text), *(examples_in(t) if ">>> " in t else t for t in found)]
    printed, chosen = printed_in("\n".join(outputs)), CHOSEN | OF_A_PAGE.get(name, {})
    quoted = [f for f in quoted_in(prose_of(text, name)) if f.text not in chosen]
    assert [figure.text for figure in quoted if not is_printed(figure, printed)] == []


def test_the_readme_quotes_the_best_points_of_its_picture(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "pictures")
    picture = runpy.run_path(str(ROOT / "docs" / "pictures" / "trade_off.py"))
    (limit,) = map(float, re.findall(r"Left of (\S+), with 4,000 rows", words := readme()))
    best = picture["best"]("adult", limit)
    said = {
        "skprivacy, names of cells": "from names of cells",
        "skprivacy, rows for one model": "from rows of the same columns made up for one model",
        "skprivacy, rows for any use": "from rows for any use",
        "score without noise": "from a score without noise",
        "FARE's tree": "from a fair decision tree",
        "columns dropped": "if columns are dropped",
    }
    for label, after in said.items():
        assert f" {best.pop(label):.2f} {after}" in words, label
    assert f"The table itself gives {best.pop('the table itself'):.2f};" in words
    assert not best  # no other method is there


def readme():
    return " ".join((ROOT / "README.md").read_text().split())


def test_every_recorded_output_has_its_script():
    recorded = {path.stem for path in (ROOT / "docs" / "measured").glob("*.txt")}
    assert recorded <= SCRIPTS
    named = [Path(source) for sources in SOURCES.values() for source in sources]
    assert {path.stem for path in named if path.parent.name == "measured"} <= recorded


def test_a_figure_that_nobody_printed_is_found():
    text = "It keeps 61.3% (0.6131), 4 s.\n\n>>> print(0.61314, 4.2)\n0.61314 4.2\n"
    printed = printed_in(examples_in(text))
    quoted = list(quoted_in(prose_of(text, "page.rst")))
    assert [figure.text for figure in quoted] == ["61.3%", "0.6131", "4 s"]
    assert all(is_printed(figure, printed) for figure in quoted)
    for wrong in ("61.4%", "0.6132", "5 s", "0.61%"):
        (figure,) = quoted_in(wrong)
        assert not is_printed(figure, printed), wrong


def test_what_is_not_prose():
    text = "A ``0.5`` and :math:`0.5`.\n\n.. code-block:: sh\n\n   --epsilon 0.5\n\nEnd.\n"
    assert list(quoted_in(prose_of(text, "page.rst"))) == []
    assert list(quoted_in(prose_of("A `0.5`.\n```sh\n0.5\n```\n", "page.md"))) == []
