"""The command line is understood without the library, and knows what the library knows."""

import subprocess
import sys

import pytest

from skprivacy._validation import check_confidence
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
    main(sys.argv[1:])
except SystemExit as stop:
    heavy = {"numpy", "pandas", "scipy", "sklearn"} & set(sys.modules)
    sys.exit(f"imported {heavy}" if heavy else stop.code)
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


@pytest.mark.parametrize("arguments", [[], ["sanitise"], ["sanitize", "--epsilon", "x"]])
def test_neither_does_a_mistake(arguments):
    run = parsed(*arguments)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)


def test_every_command_has_its_function():
    for name, command in COMMANDS.items():
        module, function = command.get_default("run").split(":")
        imported = __import__(f"skprivacy.cli.{module}", fromlist=[function])
        assert callable(getattr(imported, function)), name


def test_the_names_are_those_of_the_library():
    assert tuple(MEASURES) == choices.MEASURES
    assert tuple(SOLVERS) == choices.SOLVERS
    assert set(choices.UTILITIES) == set(UTILITIES)
    assert choices.DEFAULT_BINS == DEFAULT_BINS
    assert choices.USUAL_CONFIDENCE == USUAL_CONFIDENCE
    assert check_confidence("", choices.LARGEST_CONFIDENCE)
    with pytest.raises(ValueError, match="at most"):
        check_confidence("", choices.LARGEST_CONFIDENCE + 1e-9)
