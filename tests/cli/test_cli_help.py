"""The command line is understood without the library, and knows what the library knows."""

import gzip
import io
import subprocess
import sys
from pathlib import Path

import pytest

from skprivacy import recipes
from skprivacy._validation import check_confidence
from skprivacy.cli import main
from skprivacy.cli import values as choices
from skprivacy.cli.arguments import parser
from skprivacy.encoding import DEFAULT_BINS
from skprivacy.measures import MEASURES
from skprivacy.mechanism import USUAL_CONFIDENCE
from skprivacy.solvers import SOLVERS
from skprivacy.utilities import UTILITIES

COMMANDS = next(action.choices for action in parser()._actions if action.choices)

PARSE = """
import sys
from skprivacy.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as stop:
    code = stop.code
heavy = {"numpy", "pandas", "scipy", "sklearn"} & set(sys.modules)
print("imported", *sorted(heavy))
sys.exit(code)
"""


def parsed(*arguments):
    command = [sys.executable, "-c", PARSE, *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize(
    "arguments",
    [["--version"], ["--help"], *([command, "--help"] for command in COMMANDS)],
    ids=" ".join,
)
def test_the_version_and_help_do_not_wait_for_the_library(arguments):
    run = parsed(*arguments)
    assert (run.returncode, run.stderr) == (0, "")
    assert "skprivacy" in run.stdout
    assert run.stdout.endswith("imported\n")


@pytest.mark.parametrize("arguments", [[], ["sanitise"], ["sanitize", "--epsilon", "x"]])
def test_neither_does_a_mistake(arguments):
    run = parsed(*arguments)
    assert (run.returncode, run.stderr.count("\n"), run.stdout) == (2, 1, "imported\n")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Go to a folder with a table, which is also compressed, and a file that is no key."""
    monkeypatch.chdir(tmp_path)
    table = b"sex,age,band\n" + b"m,20,a\nf,30,b\n" * 5
    Path("in.csv").write_bytes(table)
    Path("in.csv.gz").write_bytes(gzip.compress(table))
    Path("no.key").write_text("1234")


MISTAKES = {
    "sanitize no.csv out.csv --epsilon 1": "no.csv: No such file or directory",
    "sanitize in.csv no.key --epsilon 1": "'no.key' already exists: use --force to replace it.",
    "sanitize in.csv in.csv --epsilon 1": "OUT is IN (in.csv): name another file",
    "sanitize in.csv no/out.csv --epsilon 1": "The folder 'no' does not exist.",
    "sanitize in.csv out.csv --epsilon 1 --record-ids age": "--record-ids and --key-file go",
    "apply in.csv in.csv out.csv --record-ids age --key-file no.key": "not hold a key",
    "sanitize in.csv out.csv --epsilon 1 --purpose fun": "--purpose is a part of the report",
    "apply no.json in.csv out.csv": "no.json: No such file or directory",
    "curve in.csv -o out.txt": "out.txt: a curve can be a .csv, .png, .svg or .pdf file",
    "choose in.csv --max-factor 2": "--max-factor needs --max-shift",
    "choose in.csv --proportions age=1": "--proportions names 'age', which is not a column of",
    "certify no.json in.csv": "no.json: No such file or directory",
    "key no.key": "'no.key' already exists, and a key is never replaced",
}
WRONG_NAMES = {
    "sanitize in.csv out.csv --epsilon 1 --columns bond,age": "did you mean 'band'? It has the",
    "sanitize in.csv.gz out.csv --epsilon 1 --columns bond": "the column 'bond', which in.csv.gz",
    "sanitize in.csv out.csv --epsilon 1 --columns age --edges band=1": "is neither released nor",
    "sanitize in.csv out.csv --epsilon bond=1": "--epsilon names 'bond', which is not a column",
    "curve in.csv --beside bond": "--beside names the column 'bond', which in.csv does not have",
    "choose in.csv --smoothing 1": "--smoothing needs --confidence none",
    "choose in.csv --utility target": "--utility target needs --target",
    "choose in.csv --person band": "--person is for cells that keep a target",
    "audit in.csv --released bond": "--released bond is no file, and names the column 'bond'",
}


@pytest.mark.parametrize("command", [*MISTAKES, *WRONG_NAMES])
def test_what_files_and_names_show_is_told_before_the_library_is_imported(folder, command):
    sensitive = [] if command.startswith(("key", "apply")) else ["--sensitive", "sex"]
    run = parsed(*command.split(), *sensitive)
    assert (run.returncode, run.stderr.count("\n")) == (1, 1)
    assert (MISTAKES | WRONG_NAMES)[command] in run.stderr
    assert run.stdout == ("imported\n" if command in MISTAKES else "imported numpy\n")


def test_pipes_are_read_once(folder, capsys, monkeypatch):
    table = Path("in.csv").read_bytes()
    for names, told in {"bond,age": "did you mean 'band'", "band,age": "replaced"}.items():
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(table)))
        options = ["--columns", names, "--epsilon", "1", "--confidence", "none"]
        main(["sanitize", "-", "out.csv", "--sensitive", "sex", *options])
        assert told in "".join(capsys.readouterr())


def test_every_command_has_its_function():
    for name, command in COMMANDS.items():
        module, function = command.get_default("run").split(":")
        imported = __import__(f"skprivacy.cli.{module}", fromlist=[function])
        assert callable(getattr(imported, function)), name


def test_the_names_are_those_of_the_library():
    assert tuple(MEASURES) == choices.MEASURES
    assert tuple(SOLVERS) == choices.SOLVERS
    assert set(choices.UTILITIES) == set(UTILITIES)
    assert recipes.DEFAULT_BINS == DEFAULT_BINS
    assert choices.USUAL_CONFIDENCE == USUAL_CONFIDENCE
    assert check_confidence("", choices.LARGEST_CONFIDENCE)
    with pytest.raises(ValueError, match="at most"):
        check_confidence("", choices.LARGEST_CONFIDENCE + 1e-9)


MEANT = {
    "sanitise in.csv out.csv": "did you mean sanitize?",
    "sanitize in.csv out.csv --sensitive sex --colums age --epsilon 1": "did you mean --columns?",
    "sanitize in.csv out.csv --sensitiv sex --epsilon 1": "did you mean --sensitive?",
    "sanitize in.csv out.csv --sensitive sex --eps 1": "did you mean --epsilon?",
    "sanitize in.csv out.csv --sensitive sex --epsilon 1 --measure kll": "did you mean kl?",
    "sanitize in.csv out.csv --sensitive sex --epsilon 1 --utility gues": "did you mean guess?",
    "sanitize in.csv out.csv --sensitive sex": "`skprivacy choose IN --sensitive NAMES",
}


@pytest.mark.parametrize("command", MEANT)
def test_a_slip_is_met_with_what_may_have_been_meant(command, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(command.split())
    told = capsys.readouterr().err
    assert MEANT[command] in told
    assert told.count("\n") == 1


def test_an_option_of_another_command_is_not_meant(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["choose", "in.csv", "--sensitive", "sex", "--epsilon", "1"])
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_all_columns_that_are_not_there_are_named(capsys):
    names = "age,bond,Sexx,nothing"
    assert (
        main(f"sanitize in.csv o.csv --sensitive sex --columns {names} --epsilon 1".split()) == 1
    )
    told = capsys.readouterr().err
    assert all(repr(name) in told for name in ("bond", "band", "Sexx", "nothing"))
    assert "--columns names the column 'age'" not in told
