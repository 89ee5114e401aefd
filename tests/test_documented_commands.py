"""Every command that the README, the user guide and the help show is run, in their order."""

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skprivacy.cli import main
from skprivacy.datasets import load_diabetes_bands

ROOT = Path(__file__).parents[1]
COMMANDS = ["demo", "sanitize", "apply", "curve", "choose", "audit"]


def commands_of(page):
    """The lines after a prompt in blocks of a page that are marked as console."""
    return re.findall(r"^ *\$ (.*skprivacy .*)$", (ROOT / page).read_text(), flags=re.MULTILINE)


def commands_of_help(command):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main([command, "--help"])
    _, _, examples = said.getvalue().partition("example")
    return re.findall(r"^  ((?:cat .*)?skprivacy .*)$", examples.replace("\\\n", ""), re.MULTILINE)


PAGES = ["README.md", *(str(p.relative_to(ROOT)) for p in sorted(ROOT.glob("docs/**/*.rst")))]
SHOWN = {page: commands_of(page) for page in PAGES} | {
    f"skprivacy {command} --help": commands_of_help(command) for command in COMMANDS
}


def test_there_are_commands_to_run():
    assert len(SHOWN["README.md"]) == 3
    assert len(SHOWN["docs/commands.rst"]) >= 10
    assert all(SHOWN[f"skprivacy {command} --help"] for command in COMMANDS[1:])


@pytest.mark.parametrize("place", [place for place, commands in SHOWN.items() if commands])
def test_the_commands_that_are_shown_work(place, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    patients = load_diabetes_bands()
    patients.to_csv("patients.csv", index=False)
    ages = np.random.default_rng(0).normal(50, 12, len(patients)).round(1)
    patients.assign(age=ages + 9 * (patients["sex"] == "sex 1")).to_csv("ages.csv", index=False)
    for command in SHOWN[place]:
        outputs = re.findall(r"\b(\w+\.(?:csv|png|html|json|parquet))\b", command)
        if "sanitize" in command and "released.csv" in outputs:  # a page may do so twice
            Path("released.csv").unlink(missing_ok=True)
        if "|" in command:
            shown = command.replace("skprivacy", f"{sys.executable} -m skprivacy")
            subprocess.run(shown, shell=True, check=True, timeout=60)
        else:
            assert main(shlex.split(command)[1:]) == 0, command
        assert all(Path(name).exists() for name in outputs), command
        capsys.readouterr()
